//! `fs/*`: files on the server's machine.

mod files;
mod hostile;
mod watch;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::{Stage, TestClient};

/// A path below the working directory of the stage.
fn at(stage: &Stage, path: &str) -> PathBuf {
    stage.cwd().join(path)
}

fn text_of(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

fn encode(content: impl AsRef<[u8]>) -> String {
    STANDARD.encode(content)
}

async fn write(client: &mut TestClient, path: &std::path::Path, content: &str) {
    let params = json!({"path": text_of(path), "dataBase64": encode(content)});
    assert_eq!(client.ask("fs/writeFile", params).await, json!({}));
}

/// The code and the message of a refusal.
async fn refusal(client: &mut TestClient, method: &str, params: Value) -> (i64, String) {
    let refused = client.request(method, params).await.expect_err("a refusal");
    (refused.code, refused.message)
}
