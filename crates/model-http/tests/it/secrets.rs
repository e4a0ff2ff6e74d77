//! A planted key is looked for in everything that could show it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oarlock_model_http::{Provider, Secret};
use serde_json::json;

use crate::support::*;

const KEY: &str = "sk-planted-0123456789abcdef";
const TOKEN: &str = "planted-bearer-token";
const HEADER: &str = "planted-header-value";
const QUERY: &str = "planted-query-value";
const PASSWORD: &str = "planted-password";
const PLANTED: &str = "planted";

fn planted(mut provider: Provider) -> Provider {
    provider.base_url = provider.base_url.replace("http://", &format!("http://me:{PASSWORD}@"));
    provider.api_key = Some(KEY.into());
    provider.bearer_token = Some(TOKEN.into());
    provider.http_headers.insert("x-secret".into(), HEADER.into());
    provider.query_params.insert("key".into(), QUERY.into());
    provider.stream_idle_timeout = Duration::from_millis(300);
    provider.request_max_retries = 1;
    provider
}

/// Whatever the provider answers, even if it quotes all it was sent.
#[tokio::test]
async fn no_answer_makes_a_secret_visible() {
    let echo = format!("{KEY} {TOKEN} {HEADER} {QUERY} {PASSWORD}");
    let error = json!({ "error": { "message": echo, "type": echo, "code": echo } }).to_string();
    let failed = |code: &str| json!({ "type": "response.failed", "response": { "error": { "code": code, "message": echo } } });
    let mut answers: Vec<Answer> =
        [400, 401, 403, 404, 418, 429, 302].iter().map(|status| Answer::status(*status, &error)).collect();
    answers.push(Answer::status(400, &echo));
    answers.extend(["", "invalid_prompt", "rate_limit_exceeded"].map(|code| Answer::stream(&[failed(code)])));
    answers.push(Answer::stream(&[delta("a")]));
    answers.push(Answer::stream(&[delta("a")]).then(Then::Hold));
    answers.push(Answer::raw(format!("{echo}\r\n\r\n")));
    answers.push(Answer::status(500, &error));
    answers.push(Answer::status(503, &error));

    let log = Arc::new(Mutex::new(Vec::new()));
    // For all threads: what a thread without a subscriber logs first would stay switched off for this one too.
    tracing::subscriber::set_global_default(Everything(Arc::clone(&log))).unwrap();
    tracing::callsite::rebuild_interest_cache();
    for answer in answers {
        let server = Server::start(vec![answer.clone(), answer]).await;
        let transport = transport(&planted(server.provider()));
        let found = events(&transport, request("hi")).await;
        let shown = format!("{found:?} {transport:?} {}", lines(&found).join("\n"));
        assert!(!shown.contains(PLANTED), "{shown}");
        assert!(server.requests()[0].head.contains(KEY), "the key is sent all the same");
    }
    let nobody = transport(&planted(Provider::new("gone", "http://127.0.0.1:1/v1")));
    let found = events(&nobody, request("hi")).await;
    assert!(!format!("{found:?}").contains(PLANTED));

    let log = log.lock().unwrap().join("\n");
    assert!(log.contains("the request is sent again"), "{log}");
    assert!(!log.contains(PLANTED), "{log}");
}

#[test]
fn no_type_shows_a_secret() {
    let provider = planted(Provider::new("p", "http://host/v1"));
    let shown = format!("{provider:?}");
    assert!(shown.contains("http://host/v1") && !shown.contains(PLANTED), "{shown}");
    assert!(!format!("{:?}", transport(&provider)).contains(PLANTED));
    assert_eq!(Secret::new(KEY).to_string(), "***");
}

/// Records every field of every event, those of the HTTP client's own log included.
struct Everything(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl tracing::Subscriber for Everything {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
