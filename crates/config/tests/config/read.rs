use serde_json::{Value, json};

use crate::support::{Machine, json};

const MOCK: &str = r#"
model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[features]
[skills.bundled]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:1/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"#;

fn read(machine: &Machine) -> Value {
    json(machine.load().read_response(true).expect("an answer"))
}

#[test]
fn every_known_key_is_shown() {
    let answer = read(&Machine::with(MOCK));
    let config = answer["config"].as_object().expect("an object");
    // The number of keys in the recorded answer of the reference to the same file.
    assert_eq!(config.len(), 86);
    let set: Vec<&str> =
        config.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key.as_str()).collect();
    let mut set = set;
    set.sort_unstable();
    assert_eq!(
        set,
        [
            "approval_policy",
            "features",
            "mcp_servers",
            "model",
            "model_provider",
            "model_providers",
            "plugins",
            "profiles",
            "sandbox_mode",
            "shell_environment_policy",
            "skills",
        ]
    );
    assert_eq!(
        config["features"],
        json!({"apps": true, "plugins": true, "tool_search": false, "tool_suggest": true, "tool_call_mcp_elicitation": true})
    );
    assert_eq!(
        config["model_providers"]["mock"],
        json!({
            "name": "mock", "base_url": "http://127.0.0.1:1/v1", "env_key": null, "env_key_instructions": null,
            "experimental_bearer_token": null, "wire_api": "responses", "query_params": null, "http_headers": null,
            "env_http_headers": null, "request_max_retries": 0, "stream_max_retries": 0,
            "stream_idle_timeout_ms": null, "websocket_connect_timeout_ms": null, "requires_openai_auth": false,
            "supports_websockets": false,
        })
    );
    assert_eq!(config["shell_environment_policy"].as_object().map(serde_json::Map::len), Some(6));
    let mut origins: Vec<&str> =
        answer["origins"].as_object().expect("an object").keys().map(String::as_str).collect();
    origins.sort_unstable();
    assert_eq!(
        origins,
        [
            "approval_policy",
            "model",
            "model_provider",
            "model_providers.mock.base_url",
            "model_providers.mock.name",
            "model_providers.mock.request_max_retries",
            "model_providers.mock.stream_max_retries",
            "model_providers.mock.supports_websockets",
            "model_providers.mock.wire_api",
            "sandbox_mode",
            "skills.bundled.enabled",
        ]
    );
}

#[test]
fn layers_come_highest_first_with_their_versions() {
    let machine = Machine::with("b = 2\na = { d = 1, c = [\"x\"] }")
        .file("repo/.codex/config.toml", "model = \"x\"")
        .cwd("repo")
        .flag("model=flag");
    let answer = read(&machine);
    let names: Vec<_> = answer["layers"]
        .as_array()
        .expect("layers")
        .iter()
        .map(|layer| layer["name"]["type"].clone())
        .collect();
    assert_eq!(json!(names), json!(["sessionFlags", "project", "user", "system"]));
    let [_, project, user, system] = [0, 1, 2, 3].map(|index| &answer["layers"][index]);
    assert!(project["disabledReason"].is_string() && user.get("disabledReason").is_none());
    assert_eq!(user["config"].to_string(), r#"{"a":{"c":["***"],"d":1},"b":2}"#);
    // The hashes of `{"a":{"c":["x"],"d":1},"b":2}` and of `{}`.
    assert_eq!(user["version"], "sha256:9f7f5c0673383cc1a39c7421e4cfbcd6b6d8d88b83f9cb6250f6a1b48660897a");
    assert_eq!(system["version"], "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    assert_eq!(answer["origins"]["a.c.0"]["version"], user["version"]);
    assert_eq!(answer["origins"]["model"]["name"], json!({"type": "sessionFlags"}));
    assert_eq!(answer["config"].get("b"), None);

    let without = json(machine.load().read_response(false).expect("an answer"));
    assert_eq!(without.get("layers"), None);
}

#[test]
fn an_origin_is_the_layer_whose_value_counts() {
    let machine = Machine::with(
        "model = \"a\"\nnotify = [\"x\", \"y\"]\nreview_model = \"r\"\n[features]\nundo = true",
    )
    .file("etc/config.toml", "model = \"s\"\nnotify = [\"a\", \"b\", \"c\"]\ndeveloper_instructions = \"d\"")
    .request("model", json!("q"));
    let origins = read(&machine)["origins"].clone();
    let origin = |path: &str| origins[path]["name"]["type"].as_str().unwrap_or("none").to_owned();
    for (path, expected) in [
        ("model", "sessionFlags"),
        ("review_model", "user"),
        ("notify.0", "user"),
        ("notify.2", "none"),
        ("developer_instructions", "system"),
        ("features.undo", "user"),
        ("features.apps", "none"),
    ] {
        assert_eq!(origin(path), expected, "{path}");
    }
}

#[test]
fn profiles_and_switches_are_shown_as_they_are_set() {
    let machine = Machine::with(
        "profile = \"p\"\nmodel = \"top\"\n[tools]\nweb_search = true\n[features]\nnot_a_flag = true\napps = false\n[profiles.p]\nmodel = \"pm\"",
    );
    let config = read(&machine)["config"].clone();
    assert_eq!((&config["model"], &config["profile"]), (&json!("top"), &json!("p")));
    assert_eq!(config["tools"], json!({"web_search": null, "view_image": null}));
    let profile = config["profiles"]["p"].as_object().expect("an object");
    assert_eq!((profile.len(), &profile["model"]), (29, &json!("pm")));
    assert_eq!(
        (&config["features"]["not_a_flag"], &config["features"]["apps"]),
        (&json!(true), &json!(false))
    );
}

#[test]
fn secrets_are_not_shown() {
    let machine = Machine::with(
        "when = 1979-05-27\n[model_providers.p]\nname = \"p\"\nbase_url = \"https://u:planted@host/v1?key=planted\"\nquery_params = { key = \"planted\" }\nexperimental_bearer_token = \"sk-planted\"\nhttp_headers = { Authorization = \"planted\" }",
    );
    let answer = read(&machine).to_string();
    assert!(!answer.contains("planted"), "{answer}");
    assert!(answer.contains("\"base_url\":\"https://***@host/v1?key=***\""), "{answer}");
    // Unknown values may be secrets.
    assert!(answer.contains("\"when\":\"***\""), "{answer}");
    let misfit = Machine::with("[model_providers.p]\nname = \"p\"\nhttp_headers = \"sk-planted\"").error();
    assert!(
        misfit.contains("invalid type: string, expected a map") && !misfit.contains("planted"),
        "{misfit}"
    );
}
