//! Reading, writing, listing, copying and removing.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use testkit::Stage;

use super::{at, encode, refusal, text_of, write};

const MISSING: &str = "No such file or directory (os error 2)";

#[tokio::test]
async fn a_file_is_written_read_described_and_removed() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let (folder, file) = (at(&stage, "a/b"), at(&stage, "a/b/f.txt"));
    assert_eq!(client.ask("fs/createDirectory", json!({"path": text_of(&folder)})).await, json!({}));
    write(&mut client, &file, "hello\0").await;
    let read = client.ask("fs/readFile", json!({"path": text_of(&file)})).await;
    assert_eq!(read, json!({"dataBase64": "aGVsbG8A"}));
    symlink(&file, at(&stage, "link")).expect("linked");
    let facts = client.ask("fs/getMetadata", json!({"path": text_of(&at(&stage, "link"))})).await;
    assert_eq!(
        (&facts["isSymlink"], &facts["isFile"], &facts["isDirectory"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert!(facts["modifiedAtMs"].as_i64().is_some_and(|at| at > 1_600_000_000_000), "{facts}");
    let listed = client.ask("fs/readDirectory", json!({"path": text_of(&at(&stage, "a"))})).await;
    assert_eq!(listed, json!({"entries": [{"fileName": "b", "isDirectory": true, "isFile": false}]}));
    let copied = at(&stage, "c");
    let copy = json!({"sourcePath": text_of(&at(&stage, "a")), "destinationPath": text_of(&copied), "recursive": true});
    assert_eq!(client.ask("fs/copy", copy).await, json!({}));
    assert_eq!(fs::read(copied.join("b/f.txt")).expect("copied"), b"hello\0");
    assert_eq!(client.ask("fs/remove", json!({"path": text_of(&copied)})).await, json!({}));
    assert_eq!(client.ask("fs/remove", json!({"path": text_of(&copied)})).await, json!({}), "by force");
    assert!(!copied.exists());
}

#[tokio::test]
async fn refusals_have_the_words_of_the_system() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let path = |name: &str| text_of(&at(&stage, name));
    fs::create_dir_all(at(&stage, "a/inner")).expect("made");
    let missing = (-32603, MISSING.to_owned());
    for (method, params, expected) in [
        ("fs/readFile", json!({"path": path("none")}), missing.clone()),
        ("fs/readFile", json!({"path": path("a")}), (-32603, "Is a directory (os error 21)".to_owned())),
        ("fs/writeFile", json!({"path": path("no/f"), "dataBase64": ""}), missing.clone()),
        (
            "fs/writeFile",
            json!({"path": path("f"), "dataBase64": "***"}),
            (
                -32600,
                "fs/writeFile requires valid base64 dataBase64: Invalid symbol 42, offset 0.".to_owned(),
            ),
        ),
        ("fs/createDirectory", json!({"path": path("x/y"), "recursive": false}), missing.clone()),
        ("fs/getMetadata", json!({"path": path("none")}), missing.clone()),
        (
            "fs/copy",
            json!({"sourcePath": path("a"), "destinationPath": path("c")}),
            (-32600, "fs/copy requires recursive: true when sourcePath is a directory".to_owned()),
        ),
        (
            "fs/copy",
            json!({"sourcePath": path("a"), "destinationPath": path("a/inner/x"), "recursive": true}),
            (-32600, "fs/copy cannot copy a directory to itself or one of its descendants".to_owned()),
        ),
        (
            "fs/remove",
            json!({"path": path("a"), "recursive": false}),
            (-32603, "Directory not empty (os error 39)".to_owned()),
        ),
        ("fs/remove", json!({"path": path("none"), "force": false}), missing),
        (
            "fs/remove",
            json!({"path": "/", "recursive": false}),
            (-32600, "fs/remove cannot remove the root of the file system".to_owned()),
        ),
        (
            "fs/readFile",
            json!({"path": "C:\\x"}),
            (-32600, "C:\\x is not absolute on this system".to_owned()),
        ),
    ] {
        assert_eq!(refusal(&mut client, method, params.clone()).await, expected, "{method} {params}");
    }
    let (code, message) = refusal(&mut client, "fs/readFile", json!({"path": "relative.txt"})).await;
    assert_eq!(code, -32600);
    assert!(
        message.starts_with("Invalid request: AbsolutePathBuf deserialized without a base path"),
        "{message}"
    );
    assert!(!at(&stage, "f").exists());
}

#[tokio::test]
async fn requests_about_files_keep_their_order() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let path = text_of(&at(&stage, "f"));
    let mut ids = Vec::new();
    for round in 0..20 {
        let content = encode(format!("{round}"));
        client.send("fs/writeFile", json!({"path": path, "dataBase64": content})).await;
        ids.push((client.send("fs/readFile", json!({"path": path})).await, content));
    }
    for (id, content) in ids {
        assert_eq!(client.outcome(id).await.expect("read"), json!({"dataBase64": content}));
    }
}

#[tokio::test]
async fn a_large_file_is_read_and_a_giant_one_refused() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let content = vec![7; 5 << 20];
    fs::write(at(&stage, "large"), &content).expect("written");
    let read = client.ask("fs/readFile", json!({"path": text_of(&at(&stage, "large"))})).await;
    assert_eq!(read["dataBase64"], encode(content));
    let giant = at(&stage, "giant");
    fs::File::create(&giant).expect("made").set_len(1 << 34).expect("sparse");
    let refused = refusal(&mut client, "fs/readFile", json!({"path": text_of(&giant)})).await;
    let sentence =
        format!("{} is larger than 64 MiB, which is the most that fs/readFile reads", giant.display());
    assert_eq!(refused, (-32600, sentence));
}
