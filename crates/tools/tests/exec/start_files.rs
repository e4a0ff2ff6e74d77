//! Files that a shell runs first, written from inside the sandbox, do not run outside it.

use std::fs;

use protocol::AskForApproval;
use serde_json::json;
use tempfile::TempDir;

use crate::stage::{Answer, Stage, output};

/// A thread that works in its user's home, where every start file leaves a trace outside.
fn at_home(shell: &str) -> (Stage, TempDir) {
    let outside = tempfile::tempdir().expect("a folder");
    let sandbox = json!({"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true});
    let stage = Stage::asking(AskForApproval::OnRequest, sandbox, |_| Answer::Accept);
    let folder = stage.folder.path().display().to_string();
    let stage = stage.with_options(|options| {
        (options.shell, options.login_shell) = (shell.into(), true);
        for name in ["BASH_ENV", "ENV"] {
            options.env.insert(name.to_owned(), format!("{folder}/.named"));
        }
        options.env.insert("ZDOTDIR".to_owned(), folder.clone());
    });
    let names = [".profile", ".bash_profile", ".bashrc", ".zshenv", ".zprofile", ".named"];
    for name in names {
        let trace = outside.path().join("trace");
        fs::write(stage.path(name), format!("echo {name} >> {}\n", trace.display())).expect("written");
    }
    (stage, outside)
}

#[tokio::test]
async fn an_approved_command_runs_no_start_files_that_the_model_could_have_written() {
    for shell in ["/bin/bash", "/bin/sh"] {
        let (stage, outside) = at_home(shell);
        let calls = [
            ("exec_command", json!({"cmd": "echo ran", "login": true})),
            ("shell_command", json!({"command": "echo ran"})),
            ("shell", json!({"command": [shell, "-lc", "echo ran"]})),
        ];
        for (tool, mut arguments) in calls {
            arguments["sandbox_permissions"] = "require_escalated".into();
            arguments["justification"] = "run it?".into();
            let (text, success) = stage.call(tool, arguments).await;
            assert!(success && text.contains("ran"), "{tool}: {text}");
        }
        assert_eq!(stage.questions().len(), 3);
        let trace = fs::read_to_string(outside.path().join("trace")).unwrap_or_default();
        assert_eq!(trace, "", "{shell}");
    }
}

#[tokio::test]
async fn start_files_that_nothing_sandboxed_can_write_run_as_ever() {
    let (stage, outside) = at_home("/bin/bash");
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join(".bash_profile"), "export GREETING=hello\n").expect("written");
    let path = home.path().display().to_string();
    fs::write(home.path().join(".gitconfig"), "[alias]\n\thi = !echo alias\n").expect("written");
    let stage = stage.with_options(|options| {
        options.env.retain(|name, _| name == "PATH");
        options.env.insert("HOME".to_owned(), path);
    });
    let arguments = json!({
        "cmd": "echo $GREETING; git hi", "sandbox_permissions": "require_escalated", "justification": "run it?",
    });
    let text = stage.call("exec_command", arguments).await.0;
    assert!(output(&text).contains("hello") && !outside.path().join("trace").exists(), "{text}");
    assert!(output(&text).contains("alias"), "the user's own settings count: {text}");
}

#[tokio::test]
async fn an_approved_command_ignores_settings_that_the_model_could_have_written() {
    let (stage, outside) = at_home("/bin/bash");
    let (trace, private) = (outside.path().join("trace"), outside.path().join("outputs/thread"));
    let stage = stage.with_options(|options| options.outputs = Some(private));
    let trace_text = trace.display();
    fs::create_dir_all(stage.path(".config/git")).expect("made");
    for (name, text) in [
        (".gitconfig", format!("[alias]\n\tone = !echo git >> {trace_text}\n")),
        (".config/git/config", format!("[alias]\n\ttwo = !echo git >> {trace_text}\n")),
        (".curlrc", format!("output = \"{trace_text}\"\n")),
        (".wgetrc", format!("logfile = {trace_text}\n")),
    ] {
        fs::write(stage.path(name), text).expect("written");
    }
    let script = "git one; git two; curl -s file:///etc/hostname; wget --tries=1 http://127.0.0.1:1/; true";
    let arguments =
        json!({"cmd": script, "sandbox_permissions": "require_escalated", "justification": "run them?"});
    let (text, success) = stage.call("exec_command", arguments).await;
    assert!(success, "{text}");
    assert_eq!(fs::read_to_string(trace).unwrap_or_default(), "", "{text}");
}

#[tokio::test]
async fn variables_that_lead_into_the_workspace_do_not_leave_the_sandbox() {
    let (stage, _outside) = at_home("/bin/bash");
    let folder = stage.folder.path().display().to_string();
    let stage = stage.with_options(|options| {
        options.env.insert("GIT_SSH_COMMAND".to_owned(), format!("{folder}/evil.sh -v"));
        options.env.insert("NODE_OPTIONS".to_owned(), "--require ./evil.js".to_owned());
        options.env.insert("PYTHONPATH".to_owned(), "/usr/lib/own".to_owned());
        options.env.insert("ANYTHING_AT_ALL".to_owned(), format!("--use={folder}/x"));
        options.env.insert("VIRTUAL_ENV".to_owned(), "/tmp/venv".to_owned());
    });
    let show = "echo [$GIT_SSH_COMMAND] [$NODE_OPTIONS] [$PYTHONPATH] [$ANYTHING_AT_ALL] [$VIRTUAL_ENV]";
    let inside = stage.call("exec_command", json!({"cmd": show})).await.0;
    let all =
        format!("[{folder}/evil.sh -v] [--require ./evil.js] [/usr/lib/own] [--use={folder}/x] [/tmp/venv]");
    assert!(output(&inside).contains(&all), "{inside}");
    let arguments =
        json!({"cmd": show, "sandbox_permissions": "require_escalated", "justification": "run it?"});
    let outside = stage.call("exec_command", arguments).await.0;
    assert!(output(&outside).contains("[] [] [/usr/lib/own] [] [/tmp/venv]"), "{outside}");
}
