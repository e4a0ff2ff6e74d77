//! `account/*` and `getAuthStatus`.

mod auth_status;
mod chatgpt;
mod issuer;
mod login;
mod logout;
mod rate_limits;
mod read;

use serde_json::{Value, json};

pub(crate) use issuer::id_token;

const OPENAI: &str = "model_provider = \"openai\"";

fn key() -> Value {
    json!({"type": "apiKey", "apiKey": "sk-test-1234"})
}
