//! Reading files in another environment gives the same results as here.

use std::os::unix::fs::symlink;

use engine::StepEnvironment;
use protocol::FunctionCallOutputBody;
use serde_json::{Value, json};

use crate::elsewhere::in_every_shell;
use crate::stage::Stage;

/// Compares with the same call on this machine.
async fn check(stage: &mut Stage, tool: &str, arguments: Value) {
    let there = stage.call(tool, arguments.clone()).await;
    let place = std::mem::replace(&mut stage.step.environments, [StepEnvironment::here("/")].into());
    let here = stage.call(tool, arguments.clone()).await;
    stage.step.environments = place;
    assert_eq!(there, here, "{tool} {arguments}");
}

fn fill(stage: &Stage) {
    let write = |name: &str, content: &[u8]| {
        let path = stage.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, content).expect("written");
    };
    write("w/plain", b"one\ntwo\r\n\nfour");
    write("w/ends", b"one\ntwo\n");
    write("w/empty", b"");
    write("w/blank", b"\n");
    write("w/wide", "é".repeat(600).as_bytes());
    write("w/binary", b"a\0b\n");
    write("w/odd", b"caf\xff\n");
    write("w/it's $(touch x)\n`y`", b"needle\n");
    write("w/-dash/-rf", b"a needle 42\n");
    write("w/b/c/deep.txt", b"needle\n");
    write("w/.hidden/x", b"needle\n");
    write("w/long", (0..3_000).map(|number| format!("line {number}\n")).collect::<String>().as_bytes());
    symlink("plain", stage.path("w/link")).expect("linked");
    symlink("nowhere", stage.path("w/broken")).expect("linked");
    rustix::fs::mkfifoat(rustix::fs::CWD, stage.path("w/pipe"), 0o600.into()).expect("made");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_alike() {
    for mut stage in in_every_shell() {
        fill(&stage);
        stage.step.cwd = stage.path("w").canonicalize().expect("there").display().to_string();
        for name in
            ["plain", "ends", "empty", "blank", "wide", "odd", "link", "long", "b/../plain", "-dash/-rf"]
        {
            check(&mut stage, "read_file", json!({"file_path": name})).await;
        }
        check(&mut stage, "read_file", json!({"file_path": "it's $(touch x)\n`y`"})).await;
        for (offset, limit) in [(2, 1), (4, 10), (5, 1), (9, 9), (1, 3)] {
            for name in ["plain", "ends", "long"] {
                check(&mut stage, "read_file", json!({"file_path": name, "offset": offset, "limit": limit}))
                    .await;
            }
        }
        for name in ["gone", ".", "pipe", "a\0b", ""] {
            check(&mut stage, "read_file", json!({"file_path": name})).await;
        }
        let (text, success) = stage.call("read_file", json!({"file_path": "binary"})).await;
        assert!(!success && text.ends_with("binary is not a text file"), "{text}");
        let (text, success) = stage.call("read_file", json!({"file_path": "broken"})).await;
        assert!(!success && text.contains("broken cannot be read"), "{text}");
        assert!(!stage.path("w/x").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_listed_alike() {
    for mut stage in in_every_shell() {
        fill(&stage);
        stage.step.cwd = stage.path("w").canonicalize().expect("there").display().to_string();
        for more in [
            json!({}),
            json!({"depth": 1}),
            json!({"depth": 5}),
            json!({"limit": 2}),
            json!({"offset": 3, "limit": 4}),
            json!({"offset": 100}),
        ] {
            let mut arguments = json!({"dir_path": "."});
            arguments
                .as_object_mut()
                .expect("an object")
                .extend(more.as_object().expect("an object").clone());
            check(&mut stage, "list_dir", arguments).await;
        }
        check(&mut stage, "list_dir", json!({"dir_path": "-dash"})).await;
        check(&mut stage, "list_dir", json!({"dir_path": "gone"})).await;
        let (text, success) = stage.call("list_dir", json!({"dir_path": "plain"})).await;
        assert!(!success && text.contains("not a directory"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_searched_alike() {
    for mut stage in in_every_shell() {
        fill(&stage);
        // Not every grep can return a name with a line break.
        std::fs::remove_file(stage.path("w/it's $(touch x)\n`y`")).expect("there");
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let file = std::fs::File::options().append(true).open(stage.path("w/-dash/-rf")).expect("there");
        file.set_modified(old).expect("set");
        stage.step.cwd = stage.path("w").canonicalize().expect("there").display().to_string();
        for arguments in [
            json!({"pattern": "needle"}),
            json!({"pattern": "(?i)NEEDLE \\d+$"}),
            json!({"pattern": "needle", "include": "*.txt"}),
            json!({"pattern": "needle", "include": "b/**"}),
            json!({"pattern": "needle", "limit": 1}),
            json!({"pattern": "needle", "path": "b"}),
            json!({"pattern": "two", "path": "plain"}),
            json!({"pattern": "-e nothing"}),
            json!({"pattern": "("}),
            json!({"pattern": "x", "include": "{"}),
            json!({"pattern": "x", "path": "gone"}),
        ] {
            check(&mut stage, "grep_files", arguments).await;
        }
        let (text, success) = stage.call("grep_files", json!({"pattern": "\\p{Lu}"})).await;
        assert!(!success && text.contains("grep in environment `box` knows no words for"), "{text}");
        std::fs::write(stage.path("w/.gitignore"), "b/\n").expect("written");
        let git = std::process::Command::new("git").arg("init").arg("-q").arg(stage.path("w")).status();
        if git.is_ok_and(|status| status.success()) {
            check(&mut stage, "grep_files", json!({"pattern": "needle"})).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_are_seen_there() {
    for stage in in_every_shell() {
        let bytes = [&b"\x89PNG\r\n\x1a\n"[..], &(0..=255).collect::<Vec<u8>>()].concat();
        std::fs::write(stage.path("a.png"), &bytes).expect("written");
        std::fs::write(stage.path("b.png"), "words").expect("written");
        let outcome = stage.start("view_image", &json!({"path": "a.png"})).await;
        let FunctionCallOutputBody::Content(content) = &outcome.output else { panic!("{outcome:?}") };
        let content = serde_json::to_value(content).expect("plain data");
        let url = content[0]["image_url"].as_str().expect("a picture");
        use base64::Engine as _;
        let expected = base64::engine::general_purpose::STANDARD.encode(bytes);
        assert_eq!(url, format!("data:image/png;base64,{expected}"));
        let (text, success) = stage.call("view_image", json!({"path": "b.png"})).await;
        assert!(!success && text.contains("is not a PNG"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_for_reading_applies_there() {
    for mut stage in in_every_shell() {
        fill(&stage);
        let outside = stage.path("outside");
        std::fs::write(&outside, "secret\n").expect("written");
        symlink(&outside, stage.path("w/out")).expect("linked");
        stage.step.cwd = stage.path("w").canonicalize().expect("there").display().to_string();
        let access = json!({"type": "restricted", "includePlatformDefaults": false, "readableRoots": []});
        let policy = json!({"type": "readOnly", "access": access});
        stage.step.sandbox = serde_json::from_value(policy).expect("a policy");
        assert!(stage.call("read_file", json!({"file_path": "plain"})).await.1);
        for path in ["out", "../outside", "/etc/passwd"] {
            let (text, success) = stage.call("read_file", json!({"file_path": path})).await;
            assert!(!success && text.contains("is not among what you may read"), "{path}: {text}");
        }
    }
}
