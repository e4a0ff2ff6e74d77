//! `skills/list`.

use std::fs;

use serde_json::json;
use testkit::Stage;

use super::{here, listed, skill};

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
