//! Keeps secrets out of what clients are shown.

use serde_json::Value;

const HIDDEN: &str = "***";

/// Replaces every text under a key that names a secret. Names of variables that hold one are no secrets.
pub(crate) fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut().filter(|(key, _)| *key != "env_http_headers") {
                match value {
                    Value::String(text) if is_secret(key) && !text.is_empty() => HIDDEN.clone_into(text),
                    value => hide(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        _ => {}
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    let names_a_variable = key.starts_with("env_") || key.ends_with("_env_var");
    let words =
        ["api_key", "apikey", "access_key", "authorization", "cookie", "password", "private_key", "secret"];
    let is_token = key.ends_with("token");
    !names_a_variable && (is_token || words.iter().any(|word| key.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_and_names_stay() {
        let mut value = json!({
            "model_auto_compact_token_limit": 5,
            "model_providers": {"p": {
                "env_key": "MY_KEY",
                "experimental_bearer_token": "sk-planted",
                "http_headers": {"Authorization": "Bearer planted", "X-Api-Key": "planted", "version": "1"},
                "env_http_headers": {"Authorization": "VARIABLE"},
            }},
            "mcp_servers": {"m": {"bearer_token_env_var": "VARIABLE", "env": {"GH_TOKEN": "planted", "MODE": "x"}}},
            "list": [{"password": "planted", "token": null}],
        });
        hide(&mut value);
        let text = value.to_string();
        assert!(!text.contains("planted"), "{text}");
        assert_eq!(text.matches("***").count(), 5, "{text}");
        for kept in ["MY_KEY", "VARIABLE", "\"version\":\"1\"", "\"MODE\":\"x\""] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
    }
}
