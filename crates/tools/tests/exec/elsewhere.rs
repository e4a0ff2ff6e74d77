//! Commands in environments that are reached through another command.

use std::process::Stdio;
use std::time::Instant;

use engine::ToolPayload;
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Stage, output, session_id, text, unique_seconds, until_gone, until_there};

/// Handles its arguments like ssh: joined, and parsed once more by a shell.
const SSH: &str = "#!/bin/sh\nexec sh -c \"$*\"\n";

/// Commands that reach "another environment" on this machine, each with another shell as `sh`.
fn shells(stage: &Stage) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for shell in ["dash", "bash", "busybox"] {
        let found = ["/usr/bin", "/bin"].map(|folder| std::path::Path::new(folder).join(shell));
        let Some(found) = found.into_iter().find(|path| path.exists()) else { continue };
        let folder = stage.path(&format!("with-{shell}"));
        std::fs::create_dir(&folder).expect("made");
        std::os::unix::fs::symlink(found, folder.join("sh")).expect("linked");
        all.push(words(&["env", "-i", &format!("PATH={}:/usr/bin:/bin", folder.display())]));
    }
    all
}

/// Other clients.
fn clients(stage: &Stage) -> Vec<Vec<String>> {
    vec![
        words(&["env", "-i", "PATH=/usr/bin:/bin"]),
        words(&["sh", "-c", "exec \"$@\"", "sh"]),
        words(&["sh", "-c", "echo 'Welcome!'; echo motd >&2; exec \"$@\"", "sh"]),
        vec![stage.program("ssh", SSH)],
    ]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn behind_each(prefixes: impl Fn(&Stage) -> Vec<Vec<String>>) -> Vec<Stage> {
    let one = |index: usize| {
        let stage = Stage::new();
        let prefix = prefixes(&stage).swap_remove(index);
        let words: Vec<&str> = prefix.iter().map(String::as_str).collect();
        stage.behind("box", &words)
    };
    (0..prefixes(&Stage::new()).len()).map(one).collect()
}

/// One stage per installed shell.
pub(crate) fn in_every_shell() -> Vec<Stage> {
    behind_each(shells)
}

/// One stage per shell and per kind of client.
fn everywhere() -> Vec<Stage> {
    behind_each(|stage| [clients(stage), shells(stage)].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_there_as_they_run_here() {
    for stage in everywhere() {
        let script = "echo \"out $(pwd)\"; echo err >&2; printf '%s' \"$1'\\\"\"; exit 3";
        let (text, success) =
            stage.call("shell", json!({"command": ["/bin/sh", "-c", script, "x", "a\nb 'c' $(d) -é"]})).await;
        let result: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("JSON: {text}"));
        let cwd = &stage.step.cwd;
        assert_eq!(result["output"], format!("out {cwd}\na\nb 'c' $(d) -é'\"err\n"));
        assert_eq!((&result["metadata"]["exit_code"], success), (&json!(3), false));
        let text = stage.exec("echo $TERM $NO_COLOR; echo \"[$HOME_OF_THREAD]\"; cat; exit 7").await;
        assert!(text.contains("Process exited with code 7\n"), "{text}");
        assert_eq!(output(&text), "dumb 1\n[]\n");
        let (text, _) = stage.call("shell_command", json!({"command": "kill -9 $$"})).await;
        assert!(text.starts_with("Exit code: 137\n") && text.ends_with("Output:\n"), "{text}");
        let (text, _) = stage.call("shell", json!({"command": ["nosuchprogram"]})).await;
        assert!(text.contains("127") && text.contains("nosuchprogram"), "{text}");
        assert!(stage.proposals().iter().all(|one| one.arguments["environmentId"] == "box"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_requested_variables_are_passed() {
    let stage = Stage::new().with_options(|options| {
        options.env.insert("SECRET_OF_THREAD".to_owned(), "x".to_owned());
    });
    let stage = stage.behind("box", &["env", "-i", "PATH=/usr/bin:/bin"]);
    let text = stage.exec("env").await;
    assert!(!text.contains("SECRET_OF_THREAD") && text.contains("CODEX_CI=1"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_may_have_any_name_and_a_missing_one_is_reported() {
    for mut stage in in_every_shell() {
        for name in ["two\nlines", "it's $(touch x)", "-n", "`žluť` \"漢\\", " "] {
            let folder = stage.path(name);
            std::fs::create_dir(&folder).expect("made");
            let (text, _) =
                stage.call("shell_command", json!({"command": "pwd; ls ..", "workdir": name})).await;
            let expected = folder.canonicalize().expect("there").display().to_string();
            assert!(text.contains(&expected), "{name:?}: {text}");
        }
        assert!(!stage.path("x").exists());
        let (text, success) =
            stage.call("shell_command", json!({"command": "true", "workdir": "gone"})).await;
        let cwd = stage.path("gone").display().to_string();
        let expected = format!(
            "the command could not be run: the working directory {cwd} is not usable in environment `box`"
        );
        let real = stage.step.cwd.clone();
        assert_eq!(
            (text.replace(&real, &stage.folder.path().display().to_string()), success),
            (expected, false)
        );
        stage.step.cwd = "relative".to_owned();
        let (text, _) = stage.call("shell_command", json!({"command": "true"})).await;
        assert!(text.contains("is not absolute"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_read_there() {
    for stage in in_every_shell() {
        let script = "read x; echo got:$x; cat; echo end; trap 'echo caught; exit 5' INT; sleep 1000 & wait";
        let arguments = json!({"cmd": script, "tty": true, "yield_time_ms": 250});
        let started = stage.call("exec_command", arguments).await.0;
        assert!(started.contains("\nEnvironment `box` gives no terminal: "), "{started}");
        let id = session_id(&started);
        let write = |chars: &str| json!({"session_id": id, "chars": chars, "yield_time_ms": 250});
        let one = stage.call("write_stdin", write("o%s \\n é'\n")).await.0;
        assert_eq!(output(&one), "got:o%s n é'\n");
        let two = stage.call("write_stdin", write("last\n\u{4}")).await.0;
        assert_eq!(output(&two), "last\nend\n");
        let three = stage.call("write_stdin", write("\u{3}")).await.0;
        assert_eq!(output(&three), "caught\n");
        assert!(three.contains("Process exited with code 5\n"), "{three}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_started_in_a_stays_in_a() {
    let mut stage = Stage::new();
    let (a, b) = (stage.path("a"), stage.path("b"));
    for folder in [&a, &b] {
        std::fs::create_dir(folder).expect("made");
    }
    stage.go_to("a", &["env", "PLACE=a"]);
    stage.step.cwd = a.display().to_string();
    let script = "while read -r line; do eval \"$line\"; done";
    let started =
        stage.call("exec_command", json!({"cmd": script, "tty": true, "yield_time_ms": 250})).await.0;
    let id = session_id(&started);
    stage.go_to("b", &["env", "PLACE=b"]);
    stage.step.cwd = b.display().to_string();
    assert_eq!(output(&stage.exec("echo $PLACE").await), "b\n");
    let typed = json!({"session_id": id, "chars": "echo in $PLACE; pwd; touch made\n"});
    let text = stage.call("write_stdin", typed.clone()).await.0;
    assert_eq!(output(&text), format!("in a\n{}\n", a.display()));
    assert!(a.join("made").exists() && !b.join("made").exists());
    // Even when no environment is attached any more.
    stage.step.environments = [].into();
    let text = stage.call("write_stdin", typed).await.0;
    assert!(output(&text).starts_with("in a\n"), "{text}");
}

/// Runs what its clients send, like the docker daemon: the commands are no children of the clients.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, and its client program.
fn detached(stage: &Stage) -> (Server, String) {
    let base = stage.folder.path().display().to_string();
    let made = std::process::Command::new("mkfifo").arg(format!("{base}/requests")).status();
    assert!(made.expect("there is mkfifo").success());
    let serve = format!(
        "exec 9<>{base}/requests; while read -r d <&9; do \
         (exec 9<&-; sh <$d/in >$d/out 2>$d/err; echo $? 1<>$d/code) & done"
    );
    let mut server = std::process::Command::new("sh");
    server.args(["-c", &serve]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let client = stage.program(
        "client",
        &format!(
            "#!/bin/sh\nd=$(mktemp -d {base}/call.XXXXXX); mkfifo $d/in $d/out $d/err $d/code\n\
             echo $d >{base}/requests; exec 3<&0 4<>$d/code\ncat <&3 >$d/in &\ncat $d/err >&2 &\ncat $d/out\n\
             read -r code <&4; exit $code\n"
        ),
    );
    (Server(server.spawn().expect("it starts")), client)
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_there_end_with_this_side() {
    let stage = Stage::new();
    let (_server, client) = detached(&stage);
    let stage = stage.behind("box", &[&client]);
    let (text, _) = stage.call("shell_command", json!({"command": "echo hi; exit 4"})).await;
    assert!(text.starts_with("Exit code: 4\n") && text.ends_with("Output:\nhi\n"), "{text}");
    let seconds = unique_seconds();
    let script = format!("trap '' HUP TERM; sleep {seconds} & sleep {seconds}");
    let began = Instant::now();
    let (text, _) = stage.call("shell_command", json!({"command": script, "timeout_ms": 500})).await;
    assert!(text.starts_with("Exit code: 124\n"), "{text}");
    assert!(began.elapsed() < PATIENCE);
    until_gone(&seconds).await;
    let payload = json!({"command": script, "timeout_ms": 60_000}).to_string();
    let call =
        tokio::spawn(stage.call_as("call_2", "shell_command", ToolPayload::Function { arguments: payload }));
    until_there(&seconds).await;
    call.abort();
    until_gone(&seconds).await;
    let text = stage.call("exec_command", json!({"cmd": script, "yield_time_ms": 250})).await.0;
    session_id(&text);
    until_there(&seconds).await;
    stage.bench.clear_terminals().await;
    until_gone(&seconds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn background_processes_end_with_their_command() {
    for stage in in_every_shell() {
        let seconds = unique_seconds();
        let began = Instant::now();
        let text = stage.exec(&format!("sleep {seconds} & echo done")).await;
        assert_eq!(output(&text), "done\n");
        assert!(began.elapsed() < PATIENCE);
        until_gone(&seconds).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_the_user_runs_where_the_thread_works() {
    let stage = Stage::new().behind("box", &["env", "-i", "PATH=/usr/bin:/bin", "PLACE=box"]);
    let payload = ToolPayload::Custom { input: "echo $PLACE; exit 2".to_owned() };
    let call = stage.call_as("item_1", "user_shell", payload);
    let outcome = tokio::time::timeout(PATIENCE, call).await.expect("it ends");
    assert!(text(&outcome).starts_with("Exit code: 2\n") && text(&outcome).ends_with("Output:\nbox\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_output_arrives_complete() {
    let stage = Stage::new().behind("box", &["env"]);
    let (_, success) = stage.call("shell_command", json!({"command": "seq 1 30000"})).await;
    assert!(success);
    let told: String = stage.deltas().concat();
    let expected: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
    assert!(told == expected, "{} bytes", told.len());
}
