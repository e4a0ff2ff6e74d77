//! `command/exec` and what goes with it: real commands of real clients.

mod buffered;
mod confinement;
mod ending;
mod errors;
mod streaming;
mod terminal;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::{Stage, TestClient, TestServer, within};

const DELTA: &str = "command/exec/outputDelta";
/// Most of what is tested has nothing to do with the sandbox.
const NO_WALLS: &str = "sandbox_mode = \"danger-full-access\"";

/// A server without a sandbox, and one client.
async fn open() -> (Stage, TestServer, TestClient) {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let (server, client) = stage.open().await;
    (stage, server, client)
}

/// The params of a shell script, with more fields.
fn script(script: &str, more: &Value) -> Value {
    let mut params = json!({"command": ["sh", "-c", script]});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    params
}

fn encode(text: impl AsRef<[u8]>) -> String {
    STANDARD.encode(text)
}

fn written(process: &str, text: &str) -> Value {
    json!({"processId": process, "deltaBase64": encode(text)})
}

fn bytes(delta: &Value) -> Vec<u8> {
    STANDARD.decode(delta["deltaBase64"].as_str().expect("text")).expect("base64")
}

fn answer(code: i32, stdout: &str, stderr: &str) -> Value {
    json!({"exitCode": code, "stdout": stdout, "stderr": stderr})
}

/// Commands that clients run.
trait CommandClient {
    async fn exec(&mut self, params: Value) -> Value;

    /// The code and the message of a refusal.
    async fn exec_refused(&mut self, method: &str, params: Value) -> (i64, String);

    /// Reads what a command streams until the text has come, and gives all that came.
    async fn hear_until(&mut self, process: &str, expected: &str) -> String;

    /// Everything of one stream that came and that nobody took, and whether the cap was reached at its end.
    async fn heard(&mut self, process: &str, stream: &str) -> (Vec<u8>, Vec<bool>);
}

impl CommandClient for TestClient {
    async fn exec(&mut self, params: Value) -> Value {
        self.ask("command/exec", params).await
    }

    async fn exec_refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let refused = self.request(method, params).await.expect_err("a refusal");
        assert_eq!(refused.data, Value::Null);
        (refused.code, refused.message)
    }

    async fn hear_until(&mut self, process: &str, expected: &str) -> String {
        let hearing = async {
            let mut heard = String::new();
            while !heard.contains(expected) {
                let delta = self.wait_for(DELTA, |params| params["processId"] == process).await;
                heard.push_str(&String::from_utf8_lossy(&bytes(&delta)));
            }
            heard
        };
        within(&format!("{expected:?} of {process}"), hearing).await
    }

    async fn heard(&mut self, process: &str, stream: &str) -> (Vec<u8>, Vec<bool>) {
        let (mut all, mut caps) = (Vec::new(), Vec::new());
        let deltas: Vec<Value> = self.rest_whole().await;
        for delta in
            deltas.iter().filter(|message| message["method"] == DELTA).map(|message| &message["params"])
        {
            if delta["processId"] == process && delta["stream"] == stream {
                all.extend(bytes(delta));
                caps.push(delta["capReached"].as_bool().expect("a boolean"));
            }
        }
        (all, caps)
    }
}

/// A number of seconds that only one command of all tests sleeps, to find it by.
fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("2000.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How many processes have this as one of their arguments.
fn count_processes(argument: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let has_it = |path: PathBuf| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    };
    entries.filter(|entry| has_it(entry.path())).count()
}
