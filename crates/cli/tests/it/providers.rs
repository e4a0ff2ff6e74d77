//! Providers as a person meets them: one thread with several of them, what is read when one refuses, and which one is
//! chosen.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;

use model_http::{OfflineReply, OfflineRequest, OfflineResponder, Wire};
use serde_json::{Value, json};
use testkit::{RunInTime, VendorServer, call_event, completed_event, text_event};

use crate::support::Place;

/// Thinks, looks with a command, and answers; the same on every wire.
#[derive(Debug)]
pub(crate) struct Traveller(pub(crate) &'static str);

impl OfflineResponder for Traveller {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let name = self.0;
        let body = serde_json::to_value(request.body).expect("JSON");
        let done = completed_event(100, 10);
        if body["input"].to_string().contains(&format!("looked-{name}")) {
            return OfflineReply::events(vec![text_event(&format!("answer of {name}")), done]);
        }
        let tools = body["tools"].to_string();
        let script = format!("echo looked-{name}");
        let call = match tools.contains("\"exec_command\"") {
            true => call_event(&format!("call_{name}"), "exec_command", &json!({"cmd": script})),
            false => call_event(&format!("call_{name}"), "shell", &json!({"command": ["sh", "-c", script]})),
        };
        let thought = json!({"type": "response.output_item.done", "item": {"type": "reasoning", "id": "rs1",
            "summary": [{"type": "summary_text", "text": format!("thought of {name}")}],
            "encrypted_content": format!("sealed-{name}")}});
        OfflineReply::events(vec![thought.to_string(), call, done])
    }
}

/// A PNG of one pixel.
pub(crate) const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0,
    0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63,
    0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0, 0, 0, 0, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn one_thread_goes_from_responses_to_messages_to_chat_and_back() {
    let first = VendorServer::start(Wire::Responses, Arc::new(Traveller("first")));
    let second = VendorServer::start(Wire::Messages, Arc::new(Traveller("second")));
    let third = VendorServer::start(Wire::Chat, Arc::new(Traveller("third")));
    let back = VendorServer::start(Wire::Responses, Arc::new(Traveller("fourth")));
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    let tables: String = [("first", &first), ("second", &second), ("third", &third), ("fourth", &back)]
        .iter()
        .map(|(name, server)| server.provider_table(name))
        .collect();
    fs::write(place.home().join("config.toml"), format!("allow_login_shell = false\n{tables}"))
        .expect("written");
    let picture = place.file("pixel.png", PIXEL);
    let run = |arguments: &[&str]| place.run(&[&["exec", "--yolo"], arguments].concat()).good();
    let ran = run(&["first question", "--provider", "first", "-m", "mock-model", "--image", &picture]);
    assert!(ran.out.contains("answer of first"), "{ran:?}");
    let resume = |provider: &str, model: &str, text: &str| {
        let arguments = ["resume", "--last", "--provider", provider, "-m", model, text];
        place.run(&[&["exec"], &arguments[..], &["--yolo"]].concat()).good()
    };
    assert!(resume("second", "claude-opus-4-6", "second question").out.contains("answer of second"));
    assert!(resume("third", "some-model", "third question").out.contains("answer of third"));
    assert!(resume("fourth", "mock-model", "fourth question").out.contains("answer of fourth"));
    // Thinking went back to the model that made it, unchanged, and to nobody else.
    let sent = second.bodies();
    let thinking = sent[1]["messages"].to_string();
    assert!(
        thinking.contains("thought of second") && thinking.contains("\"signature\":\"sig-"),
        "{thinking}"
    );
    assert!(!sent[0].to_string().contains("sealed-first"), "{}", sent[0]);
    let of_chat = third.bodies().last().expect("a request").to_string();
    assert!(!of_chat.contains("thought of") && !of_chat.contains("ox1."), "{of_chat}");
    // Everything else is still there.
    for body in [of_chat.as_str(), &back.bodies().last().expect("a request").to_string()] {
        for kept in ["first question", "looked-first", "answer of second", "looked-second", "third question"]
        {
            assert!(body.contains(kept), "{kept}: {body}");
        }
        assert!(body.contains("data:image/png;base64,"), "{body}");
    }
    let last = back.bodies().last().expect("a request").clone();
    assert!(!last.to_string().contains("ox1.") && !last.to_string().contains("thought of third"), "{last}");
    // The last provider refuses sealed reasoning of the first one, once; then it is left out.
    assert!(!last.to_string().contains("sealed-first"), "{last}");
    assert_eq!(back.foreign_reasoning(), 1);
    let calls = last["input"].as_array().expect("items").iter();
    let calls = calls.filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call")));
    assert_eq!(calls.count(), 4);
}

/// Refuses everything with the same words.
#[derive(Debug)]
struct Refusing(u16, String);

impl OfflineResponder for Refusing {
    fn respond(&self, _: OfflineRequest<'_>) -> OfflineReply {
        OfflineReply::refused(self.0, self.1.clone())
    }
}

/// The one line that a person reads when a provider refuses, with the address of the server taken out, and how often the
/// server was asked.
fn told(wire: Wire, provider: &str, answer: (u16, &Value), flags: &[&str]) -> (String, usize) {
    let (status, body) = answer;
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let server = VendorServer::start(wire, Arc::new(Refusing(status, text)));
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    // One retry is enough: the message is the same after each attempt.
    let table = server.provider_table(provider).replace("request_max_retries = 0", "request_max_retries = 1");
    let key = "env_key = \"VENDOR_KEY\"\n";
    let config = format!("model_provider = \"{provider}\"\nmodel = \"mock-modle\"\n{table}{key}");
    fs::write(place.home().join("config.toml"), config).expect("written");
    let mut command = place.command(&[&["exec", "--yolo", "hello"], flags].concat());
    let output = command.env("VENDOR_KEY", "planted-key").output_in_time();
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(!shown.contains("planted-key"), "{shown}");
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains(": ")).collect();
    let errors: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("error: ")).collect();
    let [line] = errors[..] else { panic!("one line for one failure: {shown}") };
    assert!(!shown.contains("retry: "), "{shown}");
    (line.replace(&server.base_url(), "URL"), server.bodies().len())
}

fn anthropic(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn openai(code: &str, message: &str) -> Value {
    json!({"error": {"message": message, "code": code}})
}

#[test]
fn what_a_person_reads_when_a_provider_refuses() {
    let page = json!("<!doctype html><html><body>Hello</body></html>");
    let no_key = openai("invalid_api_key", "Incorrect API key provided");
    let no_model = openai("model_not_found", "The model `mock-modle` does not exist");
    let no_money = openai("insufficient_quota", "You exceeded your current quota");
    let slow = openai("rate_limit_exceeded", "Rate limit reached for requests");
    let broken = openai("server_error", "The server had an error");
    let odd = openai("invalid_request_error", "Unknown parameter: 'x'");
    let refused_key = "the provider refused the key in VENDOR_KEY: Incorrect API key provided";
    let missing = "the model `mock-modle` is not there: The model `mock-modle` does not exist; did you mean mock-model?";
    // The same for a provider known by name and for one of the user's own, on every wire.
    for (status, body, expected, times) in [
        (401, &no_key, refused_key, 1),
        (403, &no_key, refused_key, 1),
        (404, &no_model, missing, 1),
        (404, &page, "URL/PATH answered with a page instead of an API; check base_url", 1),
        (400, &odd, "Unknown parameter: 'x'", 1),
        (429, &no_money, "the account has no quota left: You exceeded your current quota", 1),
        (429, &slow, "too many requests: Rate limit reached for requests", 1),
        (500, &broken, "the provider failed: The server had an error", 2),
        (503, &broken, "the model is overloaded: The server had an error", 2),
        (502, &page, "URL/PATH answered 502 Bad Gateway with a page instead of an API; check base_url", 2),
    ] {
        for (wire, path) in
            [(Wire::Responses, "responses"), (Wire::Chat, "chat/completions"), (Wire::Messages, "messages")]
        {
            for provider in ["xai", "mine"] {
                let expected = expected.replace("PATH", path);
                let found = told(wire, provider, (status, body), &[]);
                assert_eq!(found, (expected, times), "{wire:?} {provider} {status} {body}");
            }
        }
    }
}

#[test]
fn what_a_person_reads_of_other_vendors() {
    for (status, body, expected) in [
        (
            401,
            anthropic("authentication_error", "invalid x-api-key"),
            "the provider refused the key in VENDOR_KEY: invalid x-api-key",
        ),
        (
            404,
            anthropic("not_found_error", "model: mock-modle"),
            "the model `mock-modle` is not there: model: mock-modle; did you mean mock-model?",
        ),
        (
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
            "the account has no quota left: Your credit balance is too low to access the API.",
        ),
        (529, anthropic("overloaded_error", "Overloaded"), "the model is overloaded: Overloaded"),
        (
            404,
            json!("404 page not found"),
            "URL/messages answered 404 Not Found (404 page not found); check base_url",
        ),
        (
            422,
            json!({"detail": [{"loc": ["body", "messages"], "msg": "field required", "type": "missing"}]}),
            "field required (messages)",
        ),
    ] {
        assert_eq!(told(Wire::Messages, "xai", (status, &body), &[]).0, expected, "{status} {body}");
    }
}

/// Answers every request with these events.
#[derive(Debug)]
struct Streaming(Value);

impl OfflineResponder for Streaming {
    fn respond(&self, _: OfflineRequest<'_>) -> OfflineReply {
        OfflineReply::events(vec![self.0.to_string()])
    }
}

/// The same reason is told once, however often the request is sent.
#[test]
fn what_a_person_reads_when_a_stream_fails() {
    let cut = |reason: &str| json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}});
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "It broke."}}});
    let broke = "retry: the provider failed: It broke.\nerror: the provider failed: It broke.";
    // In the words of the reference, which clients know.
    let disconnected = "retry: stream disconnected before completion: It broke.\n\
                        error: stream disconnected before completion: It broke.";
    for (event, expected, requests) in [
        (json!({"type": "error", "code": "server_error", "message": "It broke."}), broke, 3),
        (failed, disconnected, 3),
        (
            json!({"type": "error", "error": {"code": "insufficient_quota", "message": "No money."}}),
            "error: the account has no quota left: No money.",
            1,
        ),
        (
            cut("max_output_tokens"),
            "error: the answer was cut: it is as long as the model's answers may be (max_output_tokens)",
            1,
        ),
        (cut("content_filter"), "error: the answer was cut by the provider's content filter", 1),
        (
            json!({"type": "response.created", "response": {"id": "r", "error": null}}),
            "retry: stream disconnected before completion: stream closed before response.completed\n\
             error: stream disconnected before completion: stream closed before response.completed",
            3,
        ),
    ] {
        let server = VendorServer::start(Wire::Responses, Arc::new(Streaming(event.clone())));
        let place = Place::new();
        fs::create_dir_all(place.home()).expect("made");
        let table = server.provider_table("mine").replace("stream_max_retries = 3", "stream_max_retries = 2");
        let config = format!("model_provider = \"mine\"\nmodel = \"mock-model\"\n{table}");
        fs::write(place.home().join("config.toml"), config).expect("written");
        let told = place.run(&["exec", "--yolo", "hello"]).bad().err;
        let is_failure = |line: &&str| line.starts_with("retry: ") || line.starts_with("error: ");
        let lines: Vec<&str> = told.lines().filter(is_failure).collect();
        assert_eq!((lines.join("\n").as_str(), server.bodies().len()), (expected, requests), "{event}");
    }
}

#[test]
fn the_details_of_a_failure_are_shown_with_v() {
    let body = openai("invalid_api_key", "Incorrect API key provided");
    for flags in [["-v"], ["--verbose"]] {
        assert_eq!(
            told(Wire::Responses, "mine", (401, &body), &flags).0,
            "the provider refused the key in VENDOR_KEY: Incorrect API key provided (url: URL/responses)"
        );
    }
}

#[test]
fn a_server_that_is_not_running_says_what_to_start() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let place = Place::new();
    let mut command = place.command(&["exec", "--yolo", "--provider", "ollama", "-m", "qwen3", "hello"]);
    let output = command.env("CODEX_OSS_BASE_URL", format!("http://{address}/v1")).output_in_time();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(&format!("nothing answers on {address}")), "{told}");
    assert!(told.contains("is `ollama serve` running?"), "{told}");
    // A server of the user's own is named, and where it was looked for.
    let config = format!(
        "model_provider = \"mine\"\nmodel = \"m\"\n[model_providers.mine]\nbase_url = \"http://{address}/v1\"\n\
         request_max_retries = 1\n"
    );
    fs::create_dir_all(place.home()).expect("made");
    fs::write(place.home().join("config.toml"), config).expect("written");
    let told = place.run(&["exec", "--yolo", "hello"]).bad().err;
    let expected = format!(
        "error: cannot reach the model provider mine: nothing answers on {address} (connection refused); start the \
         server that listens there, or change base_url\n"
    );
    assert!(told.contains(&expected), "{told}");
}

#[test]
fn doctor_says_which_provider_is_chosen_and_asks_it_for_its_models() {
    let server = VendorServer::start(Wire::Chat, Arc::new(Refusing(500, String::new())));
    let place = Place::new();
    let check = |arguments: &[&str], variables: &[(&str, &str)], name: &str| {
        let mut command = place.command(&[&["doctor", "--json"], arguments].concat());
        command.envs(variables.iter().copied());
        let output = command.output_in_time();
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        let checks = document["checks"].as_array().expect("checks").clone();
        checks.into_iter().find(|check| check["name"] == name).unwrap_or_default()
    };
    let local = [("CODEX_OSS_BASE_URL", server.base_url())];
    let local: Vec<(&str, &str)> = local.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let chosen = check(&["--provider", "ollama"], &local, "provider");
    assert!(
        chosen["summary"].as_str().is_some_and(|text| text.contains("chosen by --provider; needs no key")),
        "{chosen}"
    );
    let models = check(&["--provider", "ollama"], &local, "models");
    assert_eq!(models["summary"], "the provider answers: mock-model, roomy-model");
    // Nothing is configured: a server of this machine offers itself.
    let chosen = check(&[], &local, "provider");
    assert!(
        chosen["summary"]
            .as_str()
            .is_some_and(|text| text.contains("chosen because it answers on this machine")),
        "{chosen}"
    );
    let keyed = check(&["--no-request"], &[("ANTHROPIC_API_KEY", "sk-ant-planted")], "provider");
    assert_eq!(
        keyed["summary"],
        "anthropic at https://api.anthropic.com/v1: chosen because ANTHROPIC_API_KEY is set; there is a key"
    );
}

#[test]
fn a_server_of_this_machine_is_used_where_nothing_is_configured() {
    #[derive(Debug)]
    struct Hello;
    impl OfflineResponder for Hello {
        fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
            let said = format!("hello from {}", request.body.model);
            OfflineReply::events(vec![text_event(&said), completed_event(1, 1)])
        }
    }
    let server = VendorServer::start(Wire::Chat, Arc::new(Hello));
    let place = Place::new();
    let mut command = place.command(&["exec", "--yolo", "hello"]);
    let output = command.env("CODEX_OSS_BASE_URL", server.base_url()).output_in_time();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("hello from mock-model"), "{out} {err}");
    assert!(err.contains("nothing is known of the model `mock-model`"), "{err}");
    assert!(err.contains("set model_context_window"), "{err}");
}

#[test]
fn without_any_model_the_ways_out_are_listed() {
    let place = Place::new();
    let mut command = place.command(&["exec", "--yolo", "hello"]);
    // Nothing listens there.
    let output = command.env("CODEX_OSS_BASE_URL", "http://127.0.0.1:9/v1").output_in_time();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    for way in ["ANTHROPIC_API_KEY", "ollama serve", "model_provider", "--provider offline"] {
        assert!(told.contains(way), "{way}: {told}");
    }
}

#[test]
fn a_command_prints_the_token_and_nothing_of_it_is_shown() {
    #[derive(Debug)]
    struct Hello;
    impl OfflineResponder for Hello {
        fn respond(&self, _: OfflineRequest<'_>) -> OfflineReply {
            OfflineReply::events(vec![text_event("hello"), completed_event(1, 1)])
        }
    }
    let server = VendorServer::start(Wire::Messages, Arc::new(Hello));
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    let configure = |script: &str| {
        let table = server.provider_table("vendor");
        let auth =
            format!("[model_providers.vendor.auth]\ncommand = \"sh\"\nargs = [\"-c\", \"{script}\"]\n");
        let config = format!("model_provider = \"vendor\"\nmodel = \"mock-model\"\n{table}{auth}");
        fs::write(place.home().join("config.toml"), config).expect("written");
    };
    configure("echo planted-token");
    assert!(place.run(&["exec", "--yolo", "hello"]).good().out.contains("hello"));
    configure("echo planted-token; exit 7");
    let failed = place.run(&["exec", "--yolo", "hello"]).bad();
    let expected =
        "model_providers.vendor.auth.command (`sh`) ended with code 7; run it by hand to see what it prints";
    assert!(failed.err.contains(expected), "{failed:?}");
    assert!(!format!("{failed:?}").contains("planted"), "{failed:?}");
    let doctor = place.run(&["doctor", "--json"]);
    assert!(doctor.out.contains("its token comes from auth.command"), "{doctor:?}");
    assert!(
        doctor.out.contains("ended with code 7") && !format!("{doctor:?}").contains("planted"),
        "{doctor:?}"
    );
}
