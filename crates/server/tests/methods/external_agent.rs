//! `externalAgentConfig/detect` and `externalAgentConfig/import`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Stage, TestClient, text};

fn write(path: &Path, contents: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, contents).expect("a file");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The user's own folder, of which the home of the server is a part.
fn user(stage: &Stage) -> PathBuf {
    stage.home().parent().expect("a folder").to_owned()
}

/// Settings, a skill and instructions of another agent.
fn set_up(folder: &Path, instructions: &str) {
    let settings =
        json!({"env": {"CI": true, "PORT": 8080, "NAME": "x", "NONE": null}, "sandbox": {"enabled": true}});
    write(&folder.join(".claude/settings.json"), &settings.to_string());
    let skill = "---\ndescription: greets\n---\nClaude waves. See CLAUDE.md.\n";
    write(&folder.join(".claude/skills/greet/SKILL.md"), skill);
    write(&folder.join(".claude/skills/greet/scripts/run.sh"), "echo claude\n");
    write(&folder.join(instructions), "Claude Code uses tabs.\n");
}

async fn detect(client: &mut TestClient, params: Value) -> Value {
    client.ask("externalAgentConfig/detect", params).await["items"].clone()
}

/// `TYPE cwd` of each item.
fn kinds(items: &Value) -> Vec<String> {
    let items = items.as_array().expect("items").iter();
    items.map(|item| format!("{} {}", text(&item["itemType"]), item["cwd"].as_str().unwrap_or("-"))).collect()
}

#[tokio::test]
async fn a_home_is_taken_over_once() {
    let stage = Stage::new(json!([])).await;
    set_up(&user(&stage), ".claude/CLAUDE.md");
    let (_server, mut client) = stage.open().await;
    assert_eq!(detect(&mut client, json!({})).await, json!([]), "a home has to be asked for");
    let items = detect(&mut client, json!({"includeHome": true})).await;
    assert_eq!(kinds(&items), ["CONFIG -", "SKILLS -", "AGENTS_MD -"]);
    assert!(text(&items[1]["description"]).contains("greet"), "{items}");
    let before = read(&stage.home().join("config.toml"));
    let imported = client.ask("externalAgentConfig/import", json!({"migrationItems": items})).await;
    assert_eq!(imported, json!({}));
    let config = read(&stage.home().join("config.toml"));
    for line in ["model = \"mock-model\"", "sandbox_mode = \"workspace-write\"", "inherit = \"core\""] {
        assert!(config.contains(line), "{config}");
    }
    for line in ["CI = \"true\"", "PORT = \"8080\"", "NAME = \"x\""] {
        assert!(config.contains(line), "{config}");
    }
    assert!(!config.contains("NONE") && before.lines().all(|line| config.contains(line)), "{config}");
    let skill = user(&stage).join(".agents/skills/greet");
    assert!(read(&skill.join("SKILL.md")).contains("Oarlock waves. See AGENTS.md."));
    assert_eq!(read(&skill.join("scripts/run.sh")), "echo claude\n", "only what the model reads is reworded");
    assert_eq!(read(&stage.home().join("AGENTS.md")), "Oarlock uses tabs.\n");
    assert_eq!(detect(&mut client, json!({"includeHome": true})).await, json!([]));
}

#[tokio::test]
async fn a_repository_stands_for_every_folder_in_it() {
    let stage = Stage::new(json!([])).await;
    let root = stage.cwd();
    let inner = root.join("a/b");
    for folder in [root.join(".git"), inner.clone()] {
        fs::create_dir_all(folder).expect("a folder");
    }
    set_up(&root, "CLAUDE.md");
    // Without a repository a folder stands for itself.
    let alone = user(&stage).join("alone");
    write(&alone.join(".claude/CLAUDE.md"), "Be brief.");
    let (_server, mut client) = stage.open().await;
    let items = detect(&mut client, json!({"cwds": [inner, root, alone]})).await;
    let (root_text, alone_text) = (root.display().to_string(), alone.display().to_string());
    let expected = [
        format!("CONFIG {root_text}"),
        format!("SKILLS {root_text}"),
        format!("AGENTS_MD {root_text}"),
        format!("AGENTS_MD {alone_text}"),
    ];
    assert_eq!(kinds(&items), expected);
    client.ask("externalAgentConfig/import", json!({"migrationItems": items})).await;
    assert!(read(&root.join(".codex/config.toml")).contains("sandbox_mode = \"workspace-write\""));
    assert!(root.join(".agents/skills/greet/scripts/run.sh").exists());
    assert_eq!(read(&root.join("AGENTS.md")), "Oarlock uses tabs.\n");
    assert_eq!(read(&alone.join("AGENTS.md")), "Be brief.");
    assert_eq!(detect(&mut client, json!({"cwds": [root, alone]})).await, json!([]));
}

#[tokio::test]
async fn what_is_there_stays_as_it_is() {
    let stage = Stage::new(json!([])).await;
    let root = stage.cwd();
    set_up(&root, "CLAUDE.md");
    let config =
        "# mine\nsandbox_mode = \"read-only\" # careful\n\n[shell_environment_policy.set]\nPORT = \"1\"\n";
    write(&root.join(".codex/config.toml"), config);
    write(&root.join(".agents/skills/greet/SKILL.md"), "mine");
    write(&root.join("AGENTS.md"), " \n");
    let (_server, mut client) = stage.open().await;
    let items = detect(&mut client, json!({"cwds": [root]})).await;
    let root_text = root.display().to_string();
    assert_eq!(kinds(&items), [format!("CONFIG {root_text}"), format!("AGENTS_MD {root_text}")]);
    // Everything is asked for; what meanwhile is there is left alone.
    let all: Vec<Value> = ["CONFIG", "SKILLS", "AGENTS_MD", "MCP_SERVER_CONFIG"]
        .iter()
        .map(|kind| json!({"itemType": kind, "description": "", "cwd": root}))
        .collect();
    client.ask("externalAgentConfig/import", json!({"migrationItems": all})).await;
    let filled = read(&root.join(".codex/config.toml"));
    assert!(filled.starts_with("# mine\nsandbox_mode = \"read-only\" # careful\n"), "{filled}");
    assert!(filled.contains("PORT = \"1\"") && !filled.contains("8080"), "{filled}");
    assert!(filled.contains("NAME = \"x\"") && filled.contains("inherit = \"core\""), "{filled}");
    assert_eq!(read(&root.join(".agents/skills/greet/SKILL.md")), "mine");
    let instructions = read(&root.join("AGENTS.md"));
    assert_eq!(instructions.trim(), "Oarlock uses tabs.");
    client.ask("externalAgentConfig/import", json!({"migrationItems": all})).await;
    assert_eq!(read(&root.join(".codex/config.toml")), filled, "a second time changes nothing");
    assert_eq!(read(&root.join("AGENTS.md")), instructions);
}

/// Whoever made a repository may have put links where the import writes, and each leads to something of the user's.
#[tokio::test]
async fn nothing_is_written_through_a_link_of_a_repository() {
    let stage = Stage::new(json!([])).await;
    let root = stage.cwd();
    let own = user(&stage).join("own");
    fs::create_dir_all(own.join("skills")).expect("a folder");
    write(&own.join("config.toml"), "model = \"mine\"\n");
    let (_server, mut client) = stage.open().await;
    let links = [
        ("AGENTS_MD", "AGENTS.md", own.join("made")),
        ("SKILLS", ".agents", own.clone()),
        ("SKILLS", ".agents/skills", own.join("skills")),
        ("CONFIG", ".codex", own.clone()),
        ("CONFIG", ".codex/config.toml", own.join("config.toml")),
        ("CONFIG", ".codex/config.toml", own.join("made.toml")),
    ];
    for (kind, link, target) in links {
        let _ = fs::remove_dir_all(&root);
        set_up(&root, "CLAUDE.md");
        let link = root.join(link);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        let items = json!([{"itemType": kind, "description": "", "cwd": root}]);
        let refused = client.request("externalAgentConfig/import", json!({"migrationItems": items})).await;
        let refused = refused.expect_err("a refusal").message;
        assert!(refused.contains("is a link or no plain file") || refused.contains("leads out"), "{refused}");
        let mut left: Vec<_> =
            fs::read_dir(&own).expect("readable").flatten().map(|found| found.file_name()).collect();
        left.sort();
        assert_eq!(left, ["config.toml", "skills"], "{}", link.display());
        assert_eq!(fs::read_dir(own.join("skills")).expect("readable").count(), 0);
        assert_eq!(read(&own.join("config.toml")), "model = \"mine\"\n");
    }
}

/// A file with holes is as large as it says, and takes no room where it comes from.
#[tokio::test]
async fn a_skill_that_would_fill_the_disk_is_refused_and_leaves_nothing() {
    let stage = Stage::new(json!([])).await;
    let root = stage.cwd();
    set_up(&root, "CLAUDE.md");
    let large = fs::File::create(root.join(".claude/skills/greet/large")).expect("a file");
    large.set_len(1 << 40).expect("a hole");
    let (_server, mut client) = stage.open().await;
    let items = json!([{"itemType": "SKILLS", "description": "", "cwd": root}]);
    let refused = client.request("externalAgentConfig/import", json!({"migrationItems": items})).await;
    let refused = refused.expect_err("a refusal").message;
    assert!(refused.contains("too many bytes"), "{refused}");
    assert_eq!(fs::read_dir(root.join(".agents/skills")).expect("readable").count(), 0);
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for (settings, problem) in [("{", "not JSON"), ("[]", "not a JSON object")] {
        write(&stage.cwd().join(".claude/settings.json"), settings);
        let params = json!({"cwds": [stage.cwd()]});
        let refused = client.request("externalAgentConfig/detect", params).await.expect_err("a refusal");
        assert_eq!(refused.code, -32603);
        assert!(
            refused.message.contains("settings.json") && refused.message.contains(problem),
            "{refused:?}"
        );
    }
    assert!(!stage.cwd().join(".codex").exists());
}
