//! `oarlock mcp`: the example of docs/mcp.md, run as it stands there.

use std::process::{Command, Output};

use tempfile::TempDir;

fn run(home: &TempDir, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_oarlock"))
        .args(words)
        .current_dir(home.path())
        .env_clear()
        .env("OARLOCK_HOME", home.path())
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn where_there_is_no_server_the_list_says_how_to_add_one() {
    let home = TempDir::new().expect("a folder");
    let listed = run(&home, &["mcp", "list"]);
    assert_eq!(text(&listed.stdout), "There is no MCP server; `oarlock mcp add NAME -- PROGRAM` adds one.\n");
}

#[test]
fn the_example_of_the_page_does_what_it_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let example =
        page.split("```console\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let home = TempDir::new().expect("a folder");
    let mut runs = 0;
    for part in example.split("$ oarlock ").filter(|part| !part.is_empty()) {
        let (command, expected) = part.split_once('\n').expect("a line");
        let words: Vec<_> = command.split(' ').collect();
        let output = run(&home, &words);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        if words[1] == "list" {
            assert_eq!(text(&output.stdout), expected, "{command}");
        }
        runs += 1;
    }
    assert_eq!(runs, 5);
}

#[test]
fn a_server_is_shown_without_its_secrets() {
    let home = TempDir::new().expect("a folder");
    let add = ["mcp", "add", "s", "--env", "KEY=s3cret", "--", "srv", "-v"];
    assert!(run(&home, &add).status.success());
    let shown = text(&run(&home, &["mcp", "get", "s"]).stdout);
    assert!(shown.contains("server: srv -v") && shown.contains("variables: KEY"), "{shown}");
    assert!(!shown.contains("s3cret"));
}

#[test]
fn what_cannot_be_done_is_said() {
    let home = TempDir::new().expect("a folder");
    for (words, expected) in [
        (&["mcp", "get", "nobody"][..], "there is no MCP server `nobody`"),
        (&["mcp", "remove", "nobody"], "there is no MCP server `nobody`"),
        (&["mcp", "add", "x"], "say what to start after `--`"),
        (&["mcp", "add", "x y", "--", "srv"], "the name `x y` is not valid"),
        (&["mcp", "add", "x", "--env", "novalue", "--", "srv"], "--env takes NAME=VALUE"),
    ] {
        let output = run(&home, words);
        assert!(!output.status.success(), "{words:?}");
        assert!(text(&output.stderr).contains(expected), "{words:?}: {}", text(&output.stderr));
    }
}
