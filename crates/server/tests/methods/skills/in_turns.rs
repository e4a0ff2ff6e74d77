//! Skills in turns: what the model gets of them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{Stage, turn};

use super::{here, skill};

/// The texts of all messages of a request, in order.
fn texts(request: &Value) -> Vec<String> {
    let messages = request["input"].as_array().expect("input").iter();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    parts.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn the_model_is_told_of_skills_and_reads_those_it_is_given() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}])).await;
    let path = skill(&stage, "home/skills/greet", "Say hello");
    let local = skill(&stage, "work/.agents/skills/local", "Be local");
    skill(&stage, "work/.agents/skills/off", "Not this");
    skill(&stage, "work/.agents/skills/silent", "Only when asked");
    fs::create_dir_all(stage.cwd().join(".agents/skills/silent/agents")).expect("a folder");
    let policy = "policy: {allow_implicit_invocation: false}";
    fs::write(stage.cwd().join(".agents/skills/silent/agents/openai.yaml"), policy).expect("a file");
    let (_server, mut client) = stage.open().await;
    client.ask("skills/config/write", json!({"name": "off", "enabled": false})).await;
    let thread = client.start_thread(json!({"cwd": here(&stage)})).await;
    let mut params = turn(&thread, "$greet bob, then $silent and $off");
    let parts = params["input"].as_array_mut().expect("input");
    parts.push(json!({"type": "skill", "name": "greet", "path": path}));
    parts.push(json!({"type": "mention", "name": "calendar", "path": "app://calendar"}));
    parts.push(json!({"type": "mention", "name": "local", "path": format!("skill://{local}")}));
    let done = client.turn_with(params).await;
    assert_eq!(done["status"], "completed", "{done}");
    let shown = client.wait_for("item/completed", |params| params["item"]["type"] == "userMessage").await;
    assert_eq!(shown["item"]["content"].as_array().map(Vec::len), Some(4));
    let asked = texts(&stage.asked()[0]);
    let told = asked.iter().find(|text| text.starts_with("<skills_instructions>")).expect("a section");
    assert!(told.contains(&format!("- greet: Say hello (file: {path})")), "{told}");
    assert!(told.contains("- local: Be local"), "{told}");
    assert!(!told.contains("Not this") && !told.contains("Only when asked"), "{told}");
    let read: Vec<&String> = asked.iter().filter(|text| text.starts_with("<skill>")).collect();
    let names: Vec<&str> = read.iter().filter_map(|text| text.lines().nth(1)).collect();
    assert_eq!(names, ["<name>greet</name>", "<name>local</name>", "<name>silent</name>"]);
    assert_eq!(
        *read[0],
        format!(
            "<skill>\n<name>greet</name>\n<path>{path}</path>\n---\ndescription: Say hello\n---\nAbout Say hello.\n\n</skill>"
        )
    );
    let said = asked.iter().position(|text| text.starts_with("$greet bob")).expect("the words");
    assert!(asked[said + 1].starts_with("<skill>"), "skills stand behind the words");
    // The next turn brings no skill along.
    client.turn(&thread, "and now?").await;
    let again: usize = texts(&stage.asked()[1]).iter().filter(|text| text.starts_with("<skill>")).count();
    assert_eq!(again, 3, "only what was there before");
    stage.assert_played();
}

#[tokio::test]
async fn a_thread_can_choose_for_itself() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}])).await;
    skill(&stage, "home/skills/a", "About a");
    skill(&stage, "home/skills/.system/s", "About s");
    let (_server, mut client) = stage.open().await;
    let config = json!({
        "skills.config": [{"name": "a", "enabled": false}],
        "skills.bundled.enabled": false,
    });
    let chosen = client.start_thread(json!({"cwd": here(&stage), "config": config})).await;
    let plain = client.start_thread(json!({"cwd": here(&stage)})).await;
    client.turn(&chosen, "$a $s").await;
    client.turn(&plain, "$a $s").await;
    let asked: Vec<String> = stage.asked().iter().map(|request| texts(request).join("\n")).collect();
    assert!(!asked[0].contains("About a") && !asked[0].contains("About s"), "{}", asked[0]);
    assert!(asked[1].contains("- a: About a") && asked[1].contains("- s: About s"), "{}", asked[1]);
    assert!(asked[1].contains("<name>a</name>") && asked[1].contains("<name>s</name>"));
}

#[tokio::test]
async fn a_skill_that_cannot_be_read_is_told_and_the_turn_goes_on() {
    let stage = Stage::new(json!([{"text": "one"}])).await;
    let path = skill(&stage, "home/skills/a", "About a");
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"cwd": here(&stage)})).await;
    client.ask("skills/config/write", json!({"path": path, "enabled": false})).await;
    let gone = stage.cwd().join("gone/SKILL.md");
    let mut params = turn(&thread, "go");
    let parts = params["input"].as_array_mut().expect("input");
    parts.push(json!({"type": "skill", "name": "a", "path": path}));
    parts.push(json!({"type": "skill", "name": "b", "path": gone}));
    let done = client.turn_with(params).await;
    assert_eq!(done["status"], "completed", "{done}");
    for (name, told) in [("a", "switched off"), ("b", "not found")] {
        let warning = client.wait_for("configWarning", |_| true).await;
        let summary = warning["summary"].as_str().expect("text");
        assert!(summary.contains(&format!("skill {name} ")) && summary.contains(told), "{summary}");
        assert!(warning["path"].is_string());
    }
    assert!(!texts(&stage.asked()[0]).iter().any(|text| text.starts_with("<skill>")));
}

#[tokio::test]
async fn a_turn_in_another_folder_has_the_skills_of_that_folder() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}])).await;
    skill(&stage, "other/.agents/skills/there", "About there");
    let other: PathBuf = stage.home().parent().expect("a folder").join("other");
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"cwd": here(&stage)})).await;
    let mut params = turn(&thread, "$there");
    params["cwd"] = json!(other);
    client.turn_with(params).await;
    client.turn(&thread, "$there again").await;
    for request in stage.asked() {
        let asked = texts(&request).join("\n");
        assert!(asked.contains("- there: About there") && asked.contains("<name>there</name>"), "{asked}");
    }
}

#[tokio::test]
async fn many_skills_do_not_fill_every_request() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}])).await;
    for number in 0..400 {
        skill(
            &stage,
            &format!("home/skills/s{number:03}"),
            "One of very many skills that somebody collected",
        );
    }
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"cwd": here(&stage)})).await;
    client.turn(&thread, "first").await;
    let warning = client.next_of("configWarning").await;
    let summary = warning["summary"].as_str().expect("text");
    assert!(summary.starts_with("There are more skills than the model is told of"), "{warning}");
    client.transcript();
    client.turn(&thread, "second").await;
    let is_told_again = client.transcript().iter().any(|line| line.contains("configWarning"));
    assert!(!is_told_again, "once for a thread is enough");
    let asked = texts(&stage.asked()[0]);
    let told = asked.iter().find(|text| text.starts_with("<skills_instructions>")).expect("a section");
    assert!(told.contains("- s000: ") && told.len() < 27_000, "{}", told.len());
}
