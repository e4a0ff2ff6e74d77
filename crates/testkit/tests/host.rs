//! The scripted host against the real server, whatever its manners.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use oarlock_testkit::{Answer, Ending, Manners, ScriptedHost};
use protocol::{AbsolutePath, SessionSource};
use runtime::config::{Env, Home, Loader, LoaderOptions};
use runtime::{Catalogue, Runtime, RuntimeOptions, StoreOptions, SystemClock};
use serde_json::{Value, json};
use server::{App, Hub, HubAudience, Listen, Pipes, ServerOptions, Signals, routes, serve_pipes};
use tempfile::TempDir;

/// A server on threads of its own, and a host at the other end.
struct Stage {
    _folder: TempDir,
    _threads: tokio::runtime::Runtime,
    host: ScriptedHost,
}

fn stage() -> Stage {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("a folder");
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let threads = threads.expect("threads");
    let (near, far) = UnixStream::pair().expect("a pair");
    far.set_nonblocking(true).expect("a socket");
    let environment = Env::fixed([("HOME", folder.path().as_os_str())]);
    let options =
        LoaderOptions { system_file: None, managed_file: None, requirements_file: None, environment };
    let loader = Loader::new(Home::at(home.clone()), Vec::new(), options);
    let path = AbsolutePath::new(home.to_string_lossy()).expect("absolute");
    threads.spawn(async move {
        let (input, output) = tokio::net::UnixStream::from_std(far).expect("a socket").into_split();
        let hub = Hub::new();
        let runtime = Runtime::new(RuntimeOptions {
            loader,
            audience: Arc::new(HubAudience(hub.clone())),
            clock: Arc::new(SystemClock),
            catalogue: Catalogue::bundled(),
            source: SessionSource::AppServer,
            version: "1".to_owned(),
            store: StoreOptions::default(),
        });
        let app = Arc::new(App::new(hub.clone(), runtime));
        let (_stop, requests) = tokio::sync::mpsc::channel(1);
        let options = ServerOptions::new(Listen::Stdio, path);
        serve_pipes(options, app, hub, routes(), Signals::manual(requests), Pipes { input, output }).await;
    });
    let host = ScriptedHost::over(near.try_clone().expect("a socket"), near);
    Stage { _folder: folder, _threads: threads, host }
}

/// So many deltas, and the text they come to.
fn long(count: usize) -> (Answer, String) {
    let deltas = (0..count).map(|n| format!("{n} "));
    let whole: String = deltas.clone().collect();
    let mut events = oarlock_testkit::text_response(&whole);
    let delta = |said: String| json!({"type": "response.output_text.delta", "item_id": "m1", "delta": said});
    events.splice(2..3, deltas.map(delta));
    (Answer::events(events), whole)
}

/// What clients were told of the answer, delta by delta.
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
        let Stage { _folder, _threads, mut host } = stage();
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
        host.finish();
    }
}

#[test]
fn it_breaks_off_rejects_and_falls_silent_on_demand() {
    let Stage { _folder, _threads, mut host } = stage();
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
