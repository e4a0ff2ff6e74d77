//! `skills/list`, `skills/config/write`, `skills/changed`, and skills in turns.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::{Client, turn};
use crate::stage::Stage;

/// Writes a skill below the folder of the stage and gives the real path of its file.
fn skill(stage: &Stage, folder: &str, description: &str) -> String {
    let folder = stage.home().parent().expect("a folder").join(folder);
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("SKILL.md");
    fs::write(&file, format!("---\ndescription: {description}\n---\nAbout {description}.\n"))
        .expect("a file");
    fs::canonicalize(file).expect("there").to_string_lossy().into_owned()
}

fn here(stage: &Stage) -> String {
    stage.cwd().to_string_lossy().into_owned()
}

/// `scope name enabled` of the skills of the working directory.
async fn listed(client: &mut Client, params: Value) -> Vec<String> {
    let list = client.ask("skills/list", params).await;
    let skills = list["data"][0]["skills"].as_array().expect("skills");
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |skill: &Value| {
        format!("{} {} {}", word(&skill["scope"]), word(&skill["name"]), word(&skill["enabled"]))
    };
    skills.iter().map(line).collect()
}

/// The texts of all messages of a request, in order.
fn texts(request: &Value) -> Vec<String> {
    let messages = request["input"].as_array().expect("input").iter();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    parts.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn skills_of_every_place_are_listed() {
    let stage = Stage::new(json!([])).await;
    stage.write_machine("system.toml", "");
    let path = skill(&stage, "work/.codex/skills/local", "here");
    skill(&stage, "work/.oarlock/skills/own", "ours");
    skill(&stage, "work/.agents/skills/agents", "of the project");
    skill(&stage, "home/skills/mine", "mine");
    skill(&stage, ".agents/skills/also", "mine too");
    skill(&stage, "home/skills/.system/bundled", "bundled");
    skill(&stage, "skills/machine", "of the machine");
    fs::create_dir_all(stage.home().join("skills/broken")).expect("a folder");
    fs::write(stage.home().join("skills/broken/SKILL.md"), "no front matter").expect("a file");
    fs::create_dir_all(stage.cwd().join(".codex/skills/local/agents")).expect("a folder");
    let shown = "interface: {display_name: Local}\ndependencies:\n  tools:\n  - {type: env, value: TOKEN}\n";
    fs::write(stage.cwd().join(".codex/skills/local/agents/openai.yaml"), shown).expect("a file");
    let (_server, mut client) = stage.open().await;
    let params = json!({"cwds": [here(&stage)]});
    assert_eq!(
        listed(&mut client, params.clone()).await,
        [
            "repo agents true",
            "repo local true",
            "repo own true",
            "user also true",
            "user mine true",
            "system bundled true",
            "admin machine true",
        ]
    );
    let list = client.ask("skills/list", params).await;
    let broken = fs::canonicalize(stage.home()).expect("there").join("skills/broken/SKILL.md");
    assert_eq!(
        list["data"][0]["errors"],
        json!([{"path": broken, "message": "missing YAML frontmatter delimited by ---"}])
    );
    assert_eq!(
        list["data"][0]["skills"][1],
        json!({
            "name": "local", "description": "here", "path": path, "scope": "repo", "enabled": true,
            "interface": {"displayName": "Local"},
            "dependencies": {"tools": [{"type": "env", "value": "TOKEN"}]},
        })
    );
}

#[tokio::test]
async fn a_list_is_kept_until_it_is_asked_for_anew() {
    let stage = Stage::new(json!([])).await;
    skill(&stage, "home/skills/a", "a");
    skill(&stage, "extra/b", "b");
    let (_server, mut client) = stage.open().await;
    let cwd = here(&stage);
    let extra = stage.home().parent().expect("a folder").join("extra");
    let with_extra = |force: bool| {
        let roots = json!([
            {"cwd": cwd, "extraUserRoots": [extra]},
            {"cwd": "/elsewhere", "extraUserRoots": ["/nowhere"]},
        ]);
        json!({"cwds": [cwd], "forceReload": force, "perCwdExtraUserRoots": roots})
    };
    assert_eq!(listed(&mut client, json!({"cwds": [cwd]})).await, ["user a true"]);
    skill(&stage, "home/skills/c", "c");
    assert_eq!(listed(&mut client, with_extra(false)).await, ["user a true"]);
    assert_eq!(listed(&mut client, with_extra(true)).await, ["user a true", "user b true", "user c true"]);
    let unknown = json!({"cwds": [cwd], "forceReload": true, "perCwdExtraUserRoots": [
        {"cwd": "/elsewhere", "extraUserRoots": [extra]},
    ]});
    assert_eq!(listed(&mut client, unknown).await, ["user a true", "user c true"]);
    let relative =
        json!({"cwds": [cwd], "perCwdExtraUserRoots": [{"cwd": cwd, "extraUserRoots": ["rel/x"]}]});
    assert_eq!(
        client.refused("skills/list", relative).await,
        "skills/list perCwdExtraUserRoots extraUserRoots paths must be absolute: rel/x"
    );
}

#[tokio::test]
async fn each_folder_has_a_list_of_its_own() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let named = client.ask("skills/list", json!({"cwds": ["/a", "/b"], "forceReload": true})).await;
    let none = |cwd: &str| json!({"cwd": cwd, "skills": [], "errors": []});
    assert_eq!(named, json!({"data": [none("/a"), none("/b")]}));
    let own = client.ask("skills/list", json!({})).await;
    assert_eq!(own["data"][0]["cwd"], json!(std::env::current_dir().expect("a folder")));
    stage.configure("sandbox_mode = 7");
    let broken = client.ask("skills/list", json!({"cwds": ["/a"]})).await;
    assert_eq!(broken["data"][0]["errors"][0]["path"], "/a");
}

#[tokio::test]
async fn skills_are_switched_off_and_on() {
    let stage = Stage::new(json!([])).await;
    let path = skill(&stage, "home/skills/a", "a");
    skill(&stage, "work/.agents/skills/a", "another a");
    let (_server, mut client) = stage.open().await;
    let list = json!({"cwds": [here(&stage)]});
    let before = fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    let write = |selector: Value, enabled: bool| {
        let mut params = selector;
        params["enabled"] = json!(enabled);
        params
    };
    let off = client.ask("skills/config/write", write(json!({"path": path}), false)).await;
    assert_eq!(off, json!({"effectiveEnabled": false}));
    assert_eq!(listed(&mut client, list.clone()).await, ["repo a true", "user a false"]);
    let off = client.ask("skills/config/write", write(json!({"name": "a"}), false)).await;
    assert_eq!(off, json!({"effectiveEnabled": false}));
    assert_eq!(listed(&mut client, list.clone()).await, ["repo a false", "user a false"]);
    let on = client.ask("skills/config/write", write(json!({"path": path}), true)).await;
    assert_eq!(on, json!({"effectiveEnabled": true}));
    assert_eq!(listed(&mut client, list.clone()).await, ["repo a false", "user a true"]);
    client.ask("skills/config/write", write(json!({"name": "a"}), true)).await;
    client.ask("skills/config/write", write(json!({"path": path}), true)).await;
    assert_eq!(listed(&mut client, list).await, ["repo a true", "user a true"]);
    let after = fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    assert_eq!(after.trim_end(), before.trim_end(), "nothing of it is left");
}

#[tokio::test]
async fn a_switch_names_one_thing() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for params in [
        json!({"enabled": true}),
        json!({"enabled": true, "name": " "}),
        json!({"enabled": true, "name": "a", "path": "/a"}),
    ] {
        let id = client.send("skills/config/write", params).await;
        let refused = client.outcome(id).await.expect_err("refused");
        assert_eq!(refused.code, -32602);
        assert_eq!(refused.message, "skills/config/write requires exactly one of path or name");
    }
    stage.configure("broken = [");
    let id = client.send("skills/config/write", json!({"name": "a", "enabled": false})).await;
    let refused = client.outcome(id).await.expect_err("refused");
    assert_eq!(refused.code, -32603);
    assert!(refused.message.contains("config.toml:"), "{refused:?}");
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
async fn a_changed_skill_is_told_to_subscribers() {
    let stage = Stage::new(json!([{"text": "one"}])).await;
    skill(&stage, "home/skills/a", "first");
    let server = stage.listen();
    let (mut client, mut stranger) = (server.connect().await, server.connect().await);
    let thread = client.start_thread(json!({"cwd": here(&stage)})).await;
    // The list is known, and so is that it changes.
    assert_eq!(listed(&mut client, json!({"cwds": [here(&stage)]})).await, ["user a true"]);
    client.turn(&thread, "hello").await;
    // The folder of the project is made now.
    skill(&stage, "work/.codex/skills/b", "second");
    assert_eq!(client.wait_for("skills/changed", |_| true).await, json!({}));
    assert_eq!(
        listed(&mut client, json!({"cwds": [here(&stage)]})).await,
        ["repo b true", "user a true"],
        "what is told is known already"
    );
    assert!(!stranger.rest().await.contains(&"skills/changed".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_skill_changed_right_after_the_answer_is_told() {
    let mut tries = tokio::task::JoinSet::new();
    for at in 0..50 {
        // Some at a time: a client hears of changes every ten seconds at most, so each try has a server of its own.
        while tries.len() >= 5 {
            tries.join_next().await.expect("one").expect("told");
        }
        tries.spawn(async move {
            let stage = Stage::new(json!([])).await;
            skill(&stage, "home/skills/a", "first");
            let (_server, mut client) = stage.open().await;
            client.start_thread(json!({"cwd": here(&stage)})).await;
            skill(&stage, ["home/skills/a", "work/.codex/skills/b"][at % 2], "second");
            assert_eq!(client.wait_for("skills/changed", |_| true).await, json!({}));
        });
    }
    while let Some(done) = tries.join_next().await {
        done.expect("told");
    }
}
