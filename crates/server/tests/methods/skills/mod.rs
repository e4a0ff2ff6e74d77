//! `skills/*`, and skills in turns.

mod changed;
mod config_write;
mod in_turns;
mod list;

use std::fs;

use serde_json::Value;
use testkit::{Stage, TestClient};

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
async fn listed(client: &mut TestClient, params: Value) -> Vec<String> {
    let list = client.ask("skills/list", params).await;
    let skills = list["data"][0]["skills"].as_array().expect("skills");
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |skill: &Value| {
        format!("{} {} {}", word(&skill["scope"]), word(&skill["name"]), word(&skill["enabled"]))
    };
    skills.iter().map(line).collect()
}
