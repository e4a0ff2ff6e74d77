//! The sandbox around a client's command.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::Stage;

use super::{CommandClient, NO_WALLS, answer, script};

/// Tries to write in the working directory and outside of it; says where it could.
const TRY_BOTH: &str =
    "(: > inside) 2>/dev/null && echo inside; (: > \"$OUT/outside\") 2>/dev/null && echo outside";

/// A folder that is neither the workspace nor ours.
fn beside(stage: &Stage) -> PathBuf {
    let folder = stage.cwd().parent().expect("a folder").join("beside");
    std::fs::create_dir_all(&folder).expect("made");
    folder
}

fn tries(stage: &Stage, policy: Value) -> Value {
    let more = json!({"cwd": stage.cwd(), "env": {"OUT": beside(stage)}});
    let mut params = script(TRY_BOTH, &more);
    if !policy.is_null() {
        params["sandboxPolicy"] = policy;
    }
    params
}

async fn check(keys: &str, policy: Value, expected: &str) {
    let stage = Stage::configured(json!([]), keys).await;
    let (_server, mut client) = stage.open().await;
    let ended = client.exec(tries(&stage, policy.clone())).await;
    assert_eq!(ended["stdout"], expected, "{keys} {policy} {ended}");
    assert_eq!(stage.cwd().join("inside").exists(), expected.contains("inside"));
    assert_eq!(beside(&stage).join("outside").exists(), expected.contains("outside"));
}

/// Temporary folders count as inside, and that is where these tests play.
const WORKSPACE: &str = "sandbox_mode = \"workspace-write\"\nsandbox_workspace_write.exclude_slash_tmp = true\n\
                         sandbox_workspace_write.exclude_tmpdir_env_var = true";

#[tokio::test]
async fn the_configured_policy_holds() {
    check("sandbox_mode = \"read-only\"", Value::Null, "").await;
    check(WORKSPACE, Value::Null, "inside\n").await;
    check(NO_WALLS, Value::Null, "inside\noutside\n").await;
}

#[tokio::test]
async fn the_policy_of_the_request_holds_instead() {
    check(NO_WALLS, json!({"type": "readOnly"}), "").await;
    let workspace = json!({"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true});
    check("sandbox_mode = \"read-only\"", workspace, "inside\n").await;
    check("sandbox_mode = \"read-only\"", json!({"type": "dangerFullAccess"}), "inside\noutside\n").await;
    check("sandbox_mode = \"read-only\"", json!({"type": "externalSandbox"}), "inside\noutside\n").await;
}

#[tokio::test]
async fn more_folders_can_be_opened() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let (_server, mut client) = stage.open().await;
    let policy = json!({
        "type": "workspaceWrite",
        "writableRoots": [beside(&stage)],
        "excludeSlashTmp": true,
        "excludeTmpdirEnvVar": true,
    });
    assert_eq!(client.exec(tries(&stage, policy)).await, answer(0, "inside\noutside\n", ""));
}

#[tokio::test]
async fn our_own_folder_is_neither_readable_nor_writable_by_any_policy_with_walls() {
    let stage = Stage::configured(json!([]), "sandbox_mode = \"read-only\"").await;
    let (_server, mut client) = stage.open().await;
    let (home, folder) = (stage.home(), stage.cwd().parent().expect("a folder").to_owned());
    std::fs::create_dir_all(home.join("rules")).expect("made");
    for roots in [json!([home]), json!([home.join("rules")]), json!([folder]), json!([])] {
        let policy = json!({"type": "workspaceWrite", "writableRoots": roots});
        let path = home.display();
        let tries = format!(
            "cat {path}/config.toml; ls {path}/threads; touch {path}/rules/default.rules && echo written; mv {path} {path}2 && echo moved; true"
        );
        let ended = client.exec(script(&tries, &json!({"cwd": stage.cwd(), "sandboxPolicy": policy}))).await;
        assert_eq!(ended["stdout"], "", "{roots}: {ended}");
    }
    assert!(!home.join("rules/default.rules").exists() && home.join("config.toml").exists());
}

#[tokio::test]
async fn what_programs_outside_act_on_is_protected() {
    let stage = Stage::configured(json!([]), WORKSPACE).await;
    let (_server, mut client) = stage.open().await;
    let make = "for name in .git .codex .agents; do mkdir $name 2>/dev/null && echo $name; done; mkdir other && echo other";
    let ended = client.exec(script(make, &json!({"cwd": stage.cwd()}))).await;
    assert_eq!(ended["stdout"], "other\n", "{ended}");
}

#[tokio::test]
async fn stored_credentials_cannot_be_read() {
    let stage = Stage::configured(json!([]), "sandbox_mode = \"read-only\"").await;
    let (_server, mut client) = stage.open().await;
    client.ask("account/login/start", json!({"type": "apiKey", "apiKey": "sk-test-1234"})).await;
    let read = script("cat \"$FILE\"", &json!({"env": {"FILE": stage.home().join("credentials.json")}}));
    let ended = client.exec(read.clone()).await;
    assert!(!ended["stdout"].as_str().expect("text").contains("sk-test"), "{ended}");
    let mut open = read;
    open["sandboxPolicy"] = json!({"type": "dangerFullAccess"});
    assert!(client.exec(open).await["stdout"].as_str().expect("text").contains("sk-test"));
}

#[tokio::test]
async fn walls_work_with_streams_and_terminals() {
    let stage = Stage::configured(json!([]), "sandbox_mode = \"read-only\"").await;
    let (_server, mut client) = stage.open().await;
    let piped =
        json!({"command": ["cat"], "processId": "p", "streamStdin": true, "streamStdoutStderr": true});
    let running = client.send("command/exec", piped).await;
    client.ask("command/exec/write", super::written("p", "through\n")).await;
    client.hear_until("p", "through\n").await;
    client.ask("command/exec/write", json!({"processId": "p", "closeStdin": true})).await;
    assert_eq!(client.outcome(running).await, Ok(answer(0, "", "")));
    let size = json!({"processId": "t", "tty": true, "size": {"rows": 12, "cols": 34}});
    assert_eq!(client.exec(script("exit 3", &size.clone())).await, answer(3, "", ""));
    let running = client.send("command/exec", script("stty size; read x; exit 5", &size)).await;
    client.hear_until("t", "12 34\r\n").await;
    client.ask("command/exec/write", super::written("t", "\n")).await;
    assert_eq!(client.outcome(running).await, Ok(answer(5, "", "")));
}

#[tokio::test]
async fn what_the_server_listens_on_is_out_of_reach() {
    let stage = Stage::configured(json!([]), "sandbox_mode = \"read-only\"").await;
    let server = stage.listen();
    let mut client = server.connect().await;
    let socket = stage.home().parent().expect("a folder").join("socket");
    let look = script("[ -S \"$SOCKET\" ] && echo there; echo done", &json!({"env": {"SOCKET": socket}}));
    assert_eq!(client.exec(look.clone()).await["stdout"], "done\n");
    let mut open = look;
    open["sandboxPolicy"] = json!({"type": "dangerFullAccess"});
    assert_eq!(client.exec(open).await["stdout"], "there\ndone\n");
}
