//! `fuzzyFileSearch*`.

mod once;
mod session;

use std::fs;

use serde_json::Value;
use testkit::{Stage, text};

fn files(stage: &Stage, paths: &[&str]) {
    for path in paths {
        let path = stage.cwd().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, "x").expect("written");
    }
}

fn root(stage: &Stage) -> String {
    stage.cwd().to_string_lossy().into_owned()
}

fn paths(answer: &Value) -> Vec<String> {
    answer["files"].as_array().expect("files").iter().map(|file| text(&file["path"])).collect()
}
