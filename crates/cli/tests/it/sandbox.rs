//! A command of the user's own within the sandbox.

use std::fs;
use std::process::{Child, Stdio};

use sandbox::{Io, Limits, Order, Process, TerminalSize};
use testkit::{EndInTime, RunInTime, within};

use crate::support::{Place, Ran, Sign, running, signal};

/// The folders of tests lie among temporary files, which are not to be writable here.
const NO_TEMPORARY: &str = "sandbox_workspace_write={exclude_slash_tmp=true,exclude_tmpdir_env_var=true}";

fn run(place: &Place, arguments: &[&str]) -> Ran {
    place.run(&[&["-c", NO_TEMPORARY, "sandbox"], arguments].concat())
}

fn sh(place: &Place, options: &[&str], script: &str) -> Ran {
    run(place, &[options, &["--", "sh", "-c", script]].concat())
}

#[test]
fn input_output_and_exit_codes_are_the_commands() {
    let place = Place::new();
    let script = "cat; echo wrong >&2; exit 7";
    let ran = place.run_piped(&["sandbox", "--", "sh", "-c", script], b"some\0bytes\n");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(7), "some\0bytes\n", "wrong\n"));
    assert_eq!(sh(&place, &[], "kill -9 $$").code, Some(137));
    let many = vec![b'x'; 3 << 20];
    assert_eq!(
        place.run_piped(&["sandbox", "--", "wc", "-c"], &many).good().out.trim(),
        many.len().to_string()
    );
    let none = run(&place, &["--", "no-such-program"]);
    assert_eq!((none.code, none.err.as_str()), (Some(127), "oarlock: no-such-program: no such program\n"));
    fs::write(place.folder().join("text"), "").expect("written");
    assert_eq!(run(&place, &["./text"]).code, Some(126));
}

#[test]
fn the_mode_decides_what_can_be_written() {
    let place = Place::new();
    let outside = place.root().join("outside");
    let both = format!("touch in; touch {}", outside.display());
    let there = || (fs::exists(place.folder().join("in")).expect("seen"), outside.exists());
    let read_only = sh(&place, &[], &both);
    assert!(read_only.code == Some(1) && read_only.err.contains("Read-only file system"), "{read_only:?}");
    assert_eq!(there(), (false, false));
    sh(&place, &["--mode", "workspace-write"], &both);
    assert_eq!(there(), (true, false));
    sh(&place, &["--writable", place.root().to_str().expect("plain")], &both).good();
    assert_eq!(there(), (true, true));
    let ran = run(&place, &["--mode", "read-only", "--writable", ".", "--", "true"]);
    assert!(ran.code == Some(125) && ran.err.contains("nothing to write to"), "{ran:?}");
    let unsure = run(&place, &["--writable", "missing", "--", "true"]);
    assert!(unsure.code == Some(125) && unsure.err.contains("--writable missing"), "{unsure:?}");
}

#[test]
fn secrets_and_the_network_stay_outside() {
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    fs::write(place.home().join("credentials.json"), "a key").expect("written");
    let script = "env; cat \"$1\"";
    let file = place.home().join("credentials.json");
    let mut command =
        place.command(&["sandbox", "--", "sh", "-c", script, "sh", file.to_str().expect("plain")]);
    let output = command.env("SOME_TOKEN", "very-secret").output_in_time();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && !told.contains("a key") && !told.contains("very-secret"), "{told}");
    assert!(told.contains("CODEX_SANDBOX_NETWORK_DISABLED=1"), "{told}");
    let open = sh(&place, &["--network"], "env").good();
    assert!(!open.out.contains("NETWORK_DISABLED"), "{}", open.out);
}

#[test]
fn without_a_sandbox_nothing_runs_unless_the_weaker_one_is_named() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_oarlock");
    // Within the sandbox no other one can be built.
    let inside =
        |arguments: &[&str]| place.run(&[&["sandbox", "--", program, "sandbox"], arguments].concat());
    let refused = inside(&["--", "echo", "ran"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(125), ""), "{refused:?}");
    for part in ["the sandbox could not be set up: ", "`oarlock doctor`", "--landlock-only"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    let weaker = sh(&place, &["--landlock-only"], "touch x || echo held");
    assert_eq!((weaker.code, weaker.out.as_str()), (Some(0), "held\n"), "{weaker:?}");
}

fn start(place: &Place, script: &str) -> Child {
    let mut command = place.command(&["sandbox", "--mode", "workspace-write", "--", "sh", "-c", script]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs")
}

#[test]
fn signals_reach_the_command_and_nothing_is_left() {
    let place = Place::new();
    let sign = Sign::make(place.folder().join("sign"));
    let mut child =
        start(&place, "trap 'exit 9' INT; sleep 31041 & echo up > sign; while :; do sleep 0.01; done");
    sign.wait();
    signal(&child, "INT");
    assert_eq!(child.wait_in_time().code(), Some(9));
    let mut child = start(&place, "trap '' INT TERM; setsid sleep 31041 & echo up > sign; sleep 31041");
    sign.wait();
    signal(&child, "TERM");
    assert_eq!(child.wait_in_time().code(), Some(137));
    assert_eq!(running("sleep 31041"), Vec::<String>::new());
}

#[test]
fn at_a_terminal_the_command_has_one() {
    let place = Place::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // A terminal signals and then throws away what was not read yet, unless told not to.
    let script = "stty noflsh; stty size; trap 'echo stopped; exit 5' INT; read x; echo \"got $x\"; while :; do sleep 0.01; done";
    let argv = [env!("CARGO_BIN_EXE_oarlock"), "sandbox", "--", "sh", "-c", script];
    let order = Order {
        argv: argv.map(str::to_owned).to_vec(),
        cwd: place.folder(),
        env: [("OARLOCK_HOME", place.home().to_str().expect("plain")), ("PATH", "/usr/bin:/bin")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        confinement: None,
        limits: Limits::default(),
        terminal: true,
    };
    let (exit, told) = tokio.block_on(within("the end of the command", async {
        let (process, mut output) = Process::spawn(order, Io::Terminal(TerminalSize { rows: 33, cols: 99 }))
            .await
            .expect("it starts");
        let mut told = String::new();
        let steps: [(&str, &[u8]); 2] = [("33 99", b"hello\r"), ("got hello", b"\x03")];
        for (mark, keys) in steps {
            while !told.contains(mark) {
                let chunk = output.next().await.expect("more to come");
                told.push_str(&String::from_utf8_lossy(&chunk.bytes));
            }
            process.write(keys).await.expect("typed");
        }
        while let Some(chunk) = output.next().await {
            told.push_str(&String::from_utf8_lossy(&chunk.bytes));
        }
        (process.wait().await, told)
    }));
    assert_eq!(exit.code, 5, "{told}");
    assert!(told.contains("stopped"), "{told}");
}

/// The home may be anywhere; what is in it decides what runs outside the sandbox.
#[test]
fn whoever_works_in_the_home_folder_cannot_change_it() {
    let place = Place::new();
    let home = place.home();
    for folder in ["rules", "threads", "worktrees/one"] {
        fs::create_dir_all(home.join(folder)).expect("made");
    }
    fs::write(home.join("credentials.json"), "the secret").expect("written");
    let tries = "for f in config.toml rules/a.rules credentials.json threads/x; do echo x >$f; cat $f; \
                 echo x >../$f; cat ../$f; echo x >../../$f; cat ../../$f; done; echo x >here; true";
    for (folder, can_write) in [("", false), ("rules", false), ("worktrees/one", true)] {
        let folder = home.join(folder);
        let path = folder.to_str().expect("plain");
        let ran = place.run(&["sandbox", "-m", "workspace-write", "-C", path, "--", "sh", "-c", tries]);
        assert!(!ran.out.contains("the secret"), "{path}: {ran:?}");
        assert_eq!(folder.join("here").exists(), can_write, "{path}: {ran:?}");
        let _ = fs::remove_file(folder.join("here"));
    }
    assert!(!home.join("config.toml").exists() && !home.join("rules/a.rules").exists());
    assert!(!home.join("threads/x").exists() && !home.join("rules/config.toml").exists());
    assert_eq!(fs::read_to_string(home.join("credentials.json")).expect("there"), "the secret");
}
