//! The scripted host against the real server, whatever its manners.
#![allow(clippy::expect_used, reason = "a test may panic")]

use oarlock_testkit::{Answer, Ending, Manners, ScriptedHost, Stage, TestServer};
use serde_json::{Value, json};

/// A stage, and a host with a server of its own.
fn open() -> (Stage, TestServer, ScriptedHost) {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("threads");
    let stage = threads.block_on(Stage::new(json!([])));
    let (server, host) = stage.open_host();
    (stage, server, host)
}

/// The number of deltas, and their joined text.
fn long(count: usize) -> (Answer, String) {
    let deltas = (0..count).map(|n| format!("{n} "));
    let whole: String = deltas.clone().collect();
    let mut events = oarlock_testkit::text_response(&whole);
    let delta = |said: String| json!({"type": "response.output_text.delta", "item_id": "m1", "delta": said});
    events.splice(2..3, deltas.map(delta));
    (Answer::events(events), whole)
}

/// The answer as clients got it, delta by delta.
fn told(host: &mut ScriptedHost) -> String {
    let deltas = host.heard.drain(..).filter(|message| message["method"] == "item/agentMessage/delta");
    deltas.map(|message| message["params"]["delta"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn whatever_its_manners_the_answer_is_the_same() {
    let good = Manners::default();
    for (manners, stream) in [
        (good, json!({})),
        (Manners { batch: 1, ..good }, json!({"windowEvents": 1})),
        (Manners { batch: 3, ..good }, json!({"windowEvents": 7, "windowBytes": 300})),
        (Manners { batch: 5, repeats: true, ..good }, json!({"windowEvents": 16})),
        (Manners { batch: 5, leaves_gaps: true, ..good }, json!({"windowEvents": 16})),
        (Manners { batch: 8, ignores_credit: true, ..good }, json!({"windowEvents": 8})),
        (Manners { notifies: true, ..good }, json!({"windowEvents": 1})),
    ] {
        let (_stage, _server, mut host) = open();
        host.manners = manners;
        let (answer, whole) = long(400);
        host.play([answer, Answer::text("and that is all")]);
        let mut delegation = ScriptedHost::delegation();
        delegation["stream"] = stream;
        let thread = host.start_thread(json!({"model": "m", "delegation": delegation}));
        assert_eq!(host.turn(&thread, "count")["status"], "completed", "{manners:?}");
        assert_eq!(told(&mut host), whole, "{manners:?}");
        assert_eq!(host.turn(&thread, "more?")["status"], "completed");
        assert_eq!(host.counts().requests, 2);
        assert_eq!(host.counts().refusals > 0, manners.leaves_gaps || manners.ignores_credit, "{manners:?}");
        // Each round of sending gets one batch taken at least, and the rest of them refused once.
        assert!(host.counts().refusals < 51 * 51, "{manners:?}: {:?}", host.counts());
        host.finish();
    }
}

#[test]
fn it_breaks_off_rejects_and_falls_silent_on_demand() {
    let (_stage, _server, mut host) = open();
    let lost = Ending::Abort { reason: "disconnected", replay_safe: true };
    let half: Vec<Value> = oarlock_testkit::text_response("half").into_iter().take(3).collect();
    host.play([Answer::events(half).then(lost), Answer::text("whole")]);
    let thread = host.start_thread(json!({"model": "m"}));
    assert_eq!(host.turn(&thread, "hello")["status"], "completed");
    assert_eq!(host.requests[1]["retryOf"], host.requests[0]["modelRequestId"]);
    host.play([Answer::rejected(json!({"code": "unauthorized", "message": "no key"}))]);
    let turn = host.turn(&thread, "again");
    assert_eq!(
        (&turn["status"], &turn["error"]["codexErrorInfo"]),
        (&json!("failed"), &json!("unauthorized"))
    );

    let mut delegation = ScriptedHost::delegation();
    delegation["stream"] = json!({"firstEventTimeoutMs": 30});
    let other = host.start_thread(json!({"model": "m", "delegation": delegation}));
    host.play([Answer::events([]).then(Ending::Silence)]);
    assert_eq!(host.turn(&other, "anybody?")["status"], "failed");
    host.ask("thread/loaded/list", &json!({}));
    assert_eq!(host.counts().cancels, 1);
    host.finish();
}
