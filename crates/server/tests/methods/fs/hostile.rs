//! Pipes, devices and links that somebody planted.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use testkit::{Stage, within};

use super::{at, refusal, text_of, write};

#[tokio::test]
async fn nobody_waits_for_a_pipe_or_a_device() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let pipe = at(&stage, "pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let zero = at(&stage, "zero");
    symlink("/dev/zero", &zero).expect("linked");
    let asking = async {
        for path in [&pipe, &zero] {
            let path = text_of(path);
            let sentence = format!(
                "{path} is not a regular file; pipes, sockets and devices cannot be read or written here"
            );
            let refused = refusal(&mut client, "fs/readFile", json!({"path": path})).await;
            assert_eq!(refused, (-32600, sentence.clone()));
            let params = json!({"path": path, "dataBase64": "eA=="});
            assert_eq!(refusal(&mut client, "fs/writeFile", params).await, (-32600, sentence));
        }
        let params = json!({"sourcePath": text_of(&pipe), "destinationPath": text_of(&at(&stage, "copy"))});
        let sentence = "fs/copy only supports regular files, directories, and symlinks";
        assert_eq!(refusal(&mut client, "fs/copy", params).await, (-32600, sentence.to_owned()));
    };
    within("answers about pipes", asking).await;
}

#[tokio::test]
async fn a_copied_tree_keeps_its_links_and_follows_none() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    fs::create_dir_all(at(&stage, "a")).expect("made");
    fs::create_dir_all(at(&stage, "outside")).expect("made");
    write(&mut client, &at(&stage, "outside/f"), "old").await;
    write(&mut client, &at(&stage, "a/f"), "new").await;
    symlink(at(&stage, "outside"), at(&stage, "a/out")).expect("linked");
    let copy = |to: &str| json!({"sourcePath": text_of(&at(&stage, "a")), "destinationPath": text_of(&at(&stage, to)), "recursive": true});
    client.ask("fs/copy", copy("c")).await;
    assert_eq!(fs::read_link(at(&stage, "c/out")).expect("a link"), at(&stage, "outside"));
    fs::create_dir_all(at(&stage, "d")).expect("made");
    symlink(at(&stage, "outside/f"), at(&stage, "d/f")).expect("linked");
    let (code, message) = refusal(&mut client, "fs/copy", copy("d")).await;
    assert_eq!(code, -32600);
    assert!(message.contains("does not write through links"), "{message}");
    assert_eq!(fs::read_to_string(at(&stage, "outside/f")).expect("text"), "old");
}
