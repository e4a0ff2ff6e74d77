//! Children at the host, and processes that end meanwhile.

use serde_json::json;
use testkit::Stage;

use super::{Keeper, finished, news, offer, output, output_json, terms};
use crate::delegation::websocket::connect;

#[tokio::test]
async fn a_result_is_taken_by_the_next_process() {
    for keeps in [false, true] {
        let stage = Stage::new(json!([])).await;
        let (server, mut host) = Keeper::new(&stage, "host", keeps).await;
        let (delegation, request) = host.away("c1", "job").await;
        assert_eq!(host.ends(&request, "later").await["status"], "completed");
        server.kill().await;
        let server = host.resume(&stage).await;
        // It goes on, and can be spoken to.
        let request = host.begin("tell it").await;
        assert_eq!(news(&request), Vec::<String>::new());
        host.calls(&request, "c2", "send_input", json!({"target": "host:job", "message": "left"})).await;
        let asked = host.wait("delegation/input", |_| true).await;
        assert_eq!(asked["params"]["delegationId"], delegation);
        host.client.answer(&asked, json!({})).await;
        let request = host.root().await;
        host.ends(&request, "told").await;
        assert_eq!(host.result(finished(&delegation, "completed", "days later")).await, Ok(json!({})));
        server.kill().await;

        // In the record, and told of once, in the process after that.
        let server = host.resume(&stage).await;
        let again = host.result(finished(&delegation, "completed", "days later")).await;
        assert_eq!(again, Ok(json!({"duplicate": true})), "{keeps}");
        for words in ["and?", "and now?"] {
            let request = host.begin(words).await;
            let told = news(&request);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].contains(r#"{"completed":"days later"}"#), "{told:?}");
            host.ends(&request, "so").await;
        }
        let request = host.begin("ask").await;
        host.calls(&request, "c3", "wait_agent", json!({"targets": ["host:job"]})).await;
        let request = host.root().await;
        assert_eq!(output_json(&request, "c3")["status"]["host:job"], json!({"completed": "days later"}));
        server.kill().await;
    }
}

#[tokio::test]
async fn a_child_that_was_closed_stays_closed() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Keeper::new(&stage, "host", true).await;
    let (delegation, request) = host.away("c1", "job").await;
    host.calls(&request, "c2", "close_agent", json!({"target": "host:job"})).await;
    let asked = host.wait("delegation/cancel", |_| true).await;
    host.client.answer(&asked, json!({"disposition": "canceled"})).await;
    let request = host.root().await;
    host.ends(&request, "done").await;
    server.kill().await;
    let server = host.resume(&stage).await;
    let late = host.result(finished(&delegation, "canceled", "as you wish")).await;
    assert_eq!(late, Ok(json!({"duplicate": true})));
    let request = host.begin("and?").await;
    assert_eq!(news(&request), Vec::<String>::new());
    server.kill().await;
}

/// The process ends while the host thinks: it is asked for the same child again, and there is one.
#[tokio::test]
async fn a_question_without_an_answer_is_asked_again() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Keeper::new(&stage, "host", true).await;
    let asked = host.spawns("c1", json!({"message": "look"})).await;
    let delegation = asked["params"]["delegationId"].clone();
    server.kill().await;
    let (server, mut client) = stage.open_raw(None);
    client.initialize(offer()).await;
    host.epoch += 1;
    host.unread.clear();
    host.client = client;
    let records = json!(host.records.as_ref().expect("records")[&host.thread]);
    let params = json!({
        "threadId": host.thread, "delegation": terms("host", host.epoch), "rolloutOwnership": "client",
        "initialItems": records, "resumeTurn": true,
    });
    let id = host.client.send("thread/resume", params).await;
    host.outcome(id).await.expect("it is there");
    let asked = host.wait("delegation/request", |_| true).await;
    assert_eq!(asked["params"]["delegationId"], delegation);
    host.client.answer(&asked, json!({"disposition": "host", "childRef": "job"})).await;
    let request = host.root().await;
    assert_eq!(output_json(&request, "c1")["agent_id"], "host:job");
    host.calls(&request, "c2", "wait_agent", json!({"targets": ["host:job"]})).await;
    assert_eq!(host.result(finished(&delegation, "completed", "seen")).await, Ok(json!({})));
    let request = host.root().await;
    assert_eq!(output_json(&request, "c2")["status"]["host:job"], json!({"completed": "seen"}));
    server.kill().await;
}

/// Not taken up, a call that had begun is not made again.
#[tokio::test]
async fn a_question_of_a_turn_that_is_over_is_not_asked_again() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Keeper::new(&stage, "host", false).await;
    host.spawns("c1", json!({"message": "look"})).await;
    server.kill().await;
    let server = host.resume(&stage).await;
    let request = host.begin("and?").await;
    let lost = output(&request, "c1");
    assert!(lost.contains("not known"), "{lost}");
    assert!(!host.has_heard("delegation/request").await);
    server.kill().await;
}

/// A host that drops while it is asked, and one that comes back to its child.
#[tokio::test]
async fn a_host_that_drops_finds_its_children_again() {
    let stage = Stage::new(json!([])).await;
    let (server, address) = stage.listen_for_websockets().await;
    let client = connect(address, offer()).await;
    let mut host = Keeper::start(client, &stage, "host", false, json!({})).await;
    let (delegation, request) = host.away("c1", "job").await;
    host.ends(&request, "later").await;
    let back = |thread: &str| json!({"threadId": thread, "delegation": terms("host", 1), "resumeTurn": true});
    host.client = connect(address, offer()).await;
    host.unread.clear();
    let opened = host.ask("thread/resume", back(&host.thread.clone())).await.expect("it is there");
    assert_eq!(opened["thread"]["status"], json!({"type": "idle"}));
    assert_eq!(host.result(finished(&delegation, "completed", "seen")).await, Ok(json!({})));
    let request = host.begin("and?").await;
    assert_eq!(news(&request).len(), 1);
    host.ends(&request, "so").await;
    // Gone while it is asked where the next one is to be.
    let asked = host.spawns("c2", json!({"message": "look"})).await;
    let delegation = asked["params"]["delegationId"].clone();
    host.client = connect(address, offer()).await;
    host.unread.clear();
    host.ask("thread/resume", back(&host.thread.clone())).await.expect("it is there");
    // It may have started the child, so that it is asked for the same one.
    let asked = host.wait("delegation/request", |_| true).await;
    assert_eq!(asked["params"]["delegationId"], delegation);
    host.client.answer(&asked, json!({"disposition": "host", "childRef": "job-2"})).await;
    let request = host.root().await;
    assert_eq!(output_json(&request, "c2")["agent_id"], "host:job-2");
    assert_eq!(host.result(finished(&delegation, "completed", "seen too")).await, Ok(json!({})));
    server.kill().await;
}
