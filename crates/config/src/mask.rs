//! Removes secrets from the configuration as shown to people and clients. Only texts known to be harmless are shown;
//! others become `***`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::known_keys::is_known;

const HIDDEN: &str = "***";

/// The harmless keys of one `[mcp_servers.<name>]`.
const OF_MCP_SERVER: &[&str] = &[
    "bearer_token_env_var",
    "command",
    "cwd",
    "disabled_tools",
    "enabled_tools",
    "env_vars",
    "oauth_resource",
    "scopes",
    "tools",
    "type",
    "url",
];

/// The harmless keys of one `[model_providers.<id>]`.
const OF_PROVIDER: &[&str] = &["base_url", "env_key", "env_key_instructions", "name", "wire_api"];

/// Variables with paths or display settings.
const VARIABLES: &[&str] = &[
    "CI",
    "COLORTERM",
    "EDITOR",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PAGER",
    "PATH",
    "PWD",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
];

/// Harmless parameters of an address.
const PARAMETERS: &[&str] = &["api-version", "deployment", "model", "region", "v", "version"];

/// Masks possible secrets in a whole configuration.
pub(crate) fn hide(value: &mut Value) {
    let Some(keys) = value.as_object_mut() else { return };
    for (key, value) in keys {
        match key.as_str() {
            "model_providers" => entries(value, |provider| allow(provider, OF_PROVIDER)),
            "mcp_servers" => entries(value, |server| allow(server, OF_MCP_SERVER)),
            "notify" => arguments(value),
            "prices" | "sandbox" => {}
            // The address of a webhook is like a password.
            "host" => {
                look(value);
                if let Some(notify) = value.get_mut("notify") {
                    all(notify);
                }
            }
            "shell_environment_policy" => {
                look(value);
                if let Some(Value::Object(set)) = value.get_mut("set") {
                    allow(set, VARIABLES);
                }
            }
            "profiles" => entries(value, hide_keys),
            key if is_known(key) && !is_secret(key) => look(value),
            _ => all(value),
        }
    }
}

fn hide_keys(profile: &mut Map<String, Value>) {
    for (key, value) in profile {
        if is_known(key) && !is_secret(key) { look(value) } else { all(value) }
    }
}

fn entries(tables: &mut Value, each: impl Fn(&mut Map<String, Value>)) {
    for table in tables.as_object_mut().into_iter().flat_map(Map::values_mut) {
        match table {
            Value::Object(table) => each(table),
            other => all(other),
        }
    }
}

/// Shows only the texts under these keys, and the harmless parts of special tables.
fn allow(table: &mut Map<String, Value>, harmless: &[&str]) {
    for (key, value) in table {
        match key.as_str() {
            "args" => arguments(value),
            "auth" => entries_of(value, &["command", "cwd"]),
            "query_params" => entries_of(value, PARAMETERS),
            "env" => entries_of(value, VARIABLES),
            "env_http_headers" => names(value),
            key if names_a_variable(key) => names(value),
            key if harmless.contains(&key) => look(value),
            _ => all(value),
        }
    }
}

fn entries_of(value: &mut Value, harmless: &[&str]) {
    match value {
        Value::Object(table) => allow(table, harmless),
        other => all(other),
    }
}

/// Every text.
fn all(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(all),
        Value::Array(values) => values.iter_mut().for_each(all),
        Value::String(text) if text.is_empty() => {}
        Value::String(_) => *value = HIDDEN.into(),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Masks values under a secret's key, and secrets in addresses.
fn look(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    "http_headers" | "headers" => all(value),
                    "env_http_headers" => names(value),
                    key if names_a_variable(key) => names(value),
                    key if is_secret(key) => all(value),
                    _ => look(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(look),
        Value::String(text) => {
            if let Cow::Owned(shown) = without_secrets(text) {
                *text = shown;
            }
        }
        _ => {}
    }
}

/// A secret value may be misplaced where the name of a variable belongs.
fn names(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(names),
        Value::Array(values) => values.iter_mut().for_each(names),
        Value::String(text) => {
            let is_name =
                text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            if !is_name || text.len() > 60 {
                HIDDEN.clone_into(text);
            }
        }
        _ => {}
    }
}

/// Arguments of a program: masks values after `--token` and the like, and what looks like a key.
fn arguments(value: &mut Value) {
    let Some(list) = value.as_array_mut() else { return all(value) };
    let mut is_next_secret = false;
    for argument in list {
        let Some(text) = argument.as_str() else { continue };
        let shown = match text.split_once('=') {
            _ if is_next_secret => HIDDEN.into(),
            Some((key, _)) if is_secret(key.trim_start_matches('-')) => format!("{key}={HIDDEN}"),
            Some((key, value)) if looks_like_a_key(value) => format!("{key}={HIDDEN}"),
            _ if looks_like_a_key(text) || text.contains(": ") => HIDDEN.into(),
            _ => without_secrets(text).into_owned(),
        };
        is_next_secret =
            text.starts_with('-') && !text.contains('=') && is_secret(text.trim_start_matches('-'));
        *argument = shown.into();
    }
}

/// Long, with digits and letters, and neither a path nor an address nor a package.
fn looks_like_a_key(text: &str) -> bool {
    let has = |kind: fn(&char) -> bool| text.chars().any(|c| kind(&c));
    text.len() >= 20
        && !text.contains(['/', '@', ' '])
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

/// Whether the value under this key is never shown.
pub(crate) fn may_be_secret(key: &str) -> bool {
    let tables = ["env", "env_http_headers", "headers", "http_headers", "query_params", "set"];
    tables.contains(&key) || is_secret(key)
}

fn names_a_variable(key: &str) -> bool {
    key == "env_key" || key.ends_with("_env_var")
}

pub(crate) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    let words = [
        "api_key",
        "apikey",
        "access_key",
        "auth_header",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "passphrase",
        "passwd",
        "password",
        "private_key",
        "secret",
    ];
    let is_harmless = key.ends_with("_store") || key.ends_with("_env_var");
    let is_token = key == "key" || key.ends_with("token") || key.ends_with("tokens");
    !is_harmless && (is_token || words.iter().any(|word| key.contains(word)))
}

/// The text with possible secrets in its addresses shown as `***`: user and password, and all parameters except
/// harmless ones.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        let end = after.find(|c: char| c.is_whitespace() || "\"'<>`".contains(c)).unwrap_or(after.len());
        let (address, next) = after.split_at(end);
        shown.push_str(before);
        push_address(&mut shown, address);
        rest = next;
    }
    shown.push_str(rest);
    if shown == text { text.into() } else { shown.into() }
}

/// Takes what comes after `://`.
fn push_address(shown: &mut String, address: &str) {
    let authority = address.find(['/', '?', '#']).unwrap_or(address.len());
    // A password may contain any of these; the host follows the last `@` before the path.
    let authority = match address[..authority].contains('@') {
        true => authority,
        false => address
            .find('@')
            .map_or(authority, |at| at + address[at..].find(['/', '?', '#']).unwrap_or(address.len() - at)),
    };
    let (host, rest) = address.split_at(authority);
    match host.rsplit_once('@') {
        Some((_, host)) => shown.extend([HIDDEN, "@", host]),
        None => shown.push_str(host),
    }
    let (rest, fragment) =
        rest.split_once('#').map_or((rest, None), |(rest, fragment)| (rest, Some(fragment)));
    let Some((path, query)) = rest.split_once('?') else {
        shown.push_str(rest);
        if fragment.is_some() {
            shown.extend(["#", HIDDEN]);
        }
        return;
    };
    shown.extend([path, "?"]);
    for (at, pair) in query.split('&').enumerate() {
        let separator = if at == 0 { "" } else { "&" };
        match pair.split_once('=') {
            Some((key, _)) if !PARAMETERS.contains(&key) => shown.extend([separator, key, "=", HIDDEN]),
            Some(_) => shown.extend([separator, pair]),
            None => shown.extend([separator, HIDDEN]),
        }
    }
    if fragment.is_some() {
        shown.extend(["#", HIDDEN]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_and_names_stay() {
        let mut value = json!({
            "model": "shown-model",
            "model_auto_compact_token_limit": 5,
            "openai_base_url": "https://u:planted@shown.example/v1?key=planted&api-version=shown",
            "model_providers": {"p": {
                "name": "shown-name",
                "base_url": "https://planted@shown.example/v1?sig=planted",
                "env_key": "SHOWN_KEY",
                "experimental_bearer_token": "sk-planted",
                "http_headers": {"Authorization": "Bearer planted", "X-Org": "planted"},
                "env_http_headers": {"Authorization": "SHOWN_VARIABLE", "X-Key": "ghp_planted"},
                "query_params": {"key": "planted", "code": "planted", "api-version": "shown-7"},
                "request_max_retries": 3,
                "auth": {"command": "shown-vault", "args": ["--token", "planted"], "surprise": "planted"},
                "surprise": {"deep": ["planted"]},
            }},
            "mcp_servers": {"m": {
                "command": "shown-command",
                "args": ["-y", "shown-package", "--token", "planted", "--api-key=planted", "--header",
                    "Authorization: planted", "xoxb-0123456789-planted", "postgres://u:planted@shown-db/x"],
                "bearer_token_env_var": "SHOWN_VARIABLE",
                "env": {"GH_TOKEN": "planted", "MODE": "planted", "PATH": "/shown/bin"},
                "url": "https://shown.example/mcp?t=planted#planted",
                "new_key": "planted",
            }},
            "shell_environment_policy": {"inherit": "shown", "exclude": ["SHOWN_*"], "set": {"A": "planted", "TZ": "shown"}},
            "otel": {"exporter": {"otlp-http": {"endpoint": "https://a:planted@shown.example", "headers": {"x": "planted"}}}},
            "notify": ["shown-notify", "--password", "planted"],
            "profiles": {"w": {"model": "shown-w", "api_key": "planted"}},
            "tui": {"theme": "shown-theme", "tokens": ["planted"], "pass": {"password": {"value": "planted"}}},
            "made_up": ["planted", {"x": "planted"}],
        });
        hide(&mut value);
        let text = value.to_string();
        assert!(!text.contains("planted"), "{text}");
        assert_eq!(text.matches("shown").count(), 18, "{text}");
        assert_eq!(text.matches("SHOWN").count(), 4, "{text}");
        assert_eq!(value["model_providers"]["p"]["http_headers"]["X-Org"], "***");
    }

    #[test]
    fn addresses_are_shown_without_who_asks() {
        for (text, expected) in [
            ("https://host/v1", "https://host/v1"),
            ("no address: a@b?c=d", "no address: a@b?c=d"),
            ("https://user:pass@host:8/v1?api-version=1", "https://***@host:8/v1?api-version=1"),
            ("https://user:p@ss@host/v1", "https://***@host/v1"),
            ("https://user:p/s?x@host/v1", "https://***@host/v1"),
            ("http://host?key=1&v=2&bare", "http://host?key=***&v=2&***"),
            (
                "see http://a@h, \"https://h/?t=1\" and more",
                "see http://***@h, \"https://h/?t=***\" and more",
            ),
            ("http://", "http://"),
        ] {
            assert_eq!(without_secrets(text), expected, "{text}");
        }
    }
}
