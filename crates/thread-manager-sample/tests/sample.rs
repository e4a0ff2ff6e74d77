//! The built program: what it prints, where, and how it exits.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

struct Place {
    home: TempDir,
    work: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a folder");
        Self { home: folder(), work: folder() }
    }

    /// Runs the program with nothing of this machine's own settings.
    fn run(&self, arguments: &[&str], stdin: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-thread-manager-sample"));
        command.args(arguments).current_dir(self.work.path());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("OARLOCK_HOME", self.home.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        // A program that needs no input may be gone already.
        let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
        child.wait_with_output().expect("an end")
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[track_caller]
fn check(output: &Output, code: i32, out: &str, err: &str) {
    let (stdout, stderr) = (stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    assert_eq!(stdout, out);
    assert!(if err.is_empty() { stderr.is_empty() } else { stderr.contains(err) }, "{stderr}");
}

#[test]
fn the_final_message_and_nothing_else_is_printed() {
    let place = Place::new();
    let expected = "Offline model: hello\n";
    check(&place.run(&["--provider", "offline", "Say hello"], ""), 0, expected, "");
    check(&place.run(&["--provider", "offline"], "Say hello\n"), 0, expected, "");
    check(&place.run(&["-p", "offline", "-"], "Say hello\n"), 0, expected, "");
    check(&place.run(&["-p", "offline", "-m", "anything", "Say hello"], ""), 0, expected, "");
}

#[test]
fn without_a_prompt_there_is_nothing_to_do() {
    let place = Place::new();
    for (arguments, stdin) in [(&[][..], " \n"), (&["-"], ""), (&["  "], "Say hello")] {
        check(&place.run(arguments, stdin), 2, "", "there is no prompt");
    }
    assert_eq!(place.home.path().read_dir().expect("a folder").count(), 0, "nothing was opened");
}

#[test]
fn without_a_key_both_ways_out_are_named() {
    let place = Place::new();
    let output = place.run(&["Say hello"], "");
    check(&output, 1, "", "OPENAI_API_KEY");
    check(&output, 1, "", "--provider offline");
}

#[test]
fn what_cannot_be_chosen_is_an_error() {
    let place = Place::new();
    check(&place.run(&["--provider", "nobody", "Say hello"], ""), 1, "", "model provider `nobody` not found");
    assert_eq!(place.run(&["--nonsense"], "").status.code(), Some(2));
}

#[test]
fn the_help_helps() {
    let output = Place::new().run(&["--help"], "");
    let text = stdout(&output);
    for part in ["--model", "--provider", "offline", "Say hello", "OPENAI_API_KEY", "OARLOCK_HOME"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The program starts itself again as the helper that builds the sandbox.
#[test]
fn commands_run_within_walls() {
    let place = Place::new();
    let output = place.run(&["-p", "offline", "run `echo inside; touch made.txt`"], "");
    assert!(stdout(&output).contains("inside"), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
    assert!(!place.work.path().join("made.txt").exists());
}
