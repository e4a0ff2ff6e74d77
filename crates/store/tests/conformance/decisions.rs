//! Operations: decided once, by what was shown, whether or not a runtime lives; attempts begun once.

use oarlock_store::{
    AttemptStart, DecisionRequest, OperationFilter, OperationRowState, StoreError, TaskLease, TaskStore,
};
use protocol::{OperationDecision, OperationId, OperationResult};
use serde_json::{Value, json};

use crate::databases::on_each;
use crate::{TTL_MS, create, owned, proposed, replica, step, thread};

fn operation(id: &str) -> OperationId {
    OperationId::new(id)
}

fn approve(id: &str) -> DecisionRequest {
    DecisionRequest {
        operation: operation(id),
        arguments_digest: "sha256:aa".to_owned(),
        decision: OperationDecision::Approve { scope: None, execpolicy_amendment: None },
        needs: "accept".to_owned(),
        by: "user:ana".to_owned(),
        on_behalf_of: None,
    }
}

/// A task with one operation that waits.
async fn waiting(store: &TaskStore) -> TaskLease {
    let lease = owned(store, "t", &replica("a", 1)).await;
    store.append(&lease, &thread("t"), 0, vec![proposed(0, "op")]).await.expect("a commit");
    lease
}

#[tokio::test]
async fn the_first_decision_counts_and_the_second_learns_of_it() {
    on_each(|store| async move {
        waiting(&store).await;
        let decided = store.decide(approve("op")).await.expect("the first");
        assert_eq!(decided.operation.state, OperationRowState::Decided);
        let reject = OperationDecision::Reject { message: None, end_turn: false };
        let other = DecisionRequest { decision: reject, needs: "decline".to_owned(), ..approve("op") };
        match store.decide(other).await {
            Err(StoreError::AlreadyDecided(first)) => assert_eq!(*first, decided.decision),
            other => panic!("{other:?}"),
        }
        let stored = store.decision(&operation("op"), 0).await.expect("an answer").expect("a decision");
        assert_eq!((stored.by.as_str(), &stored.decision), ("user:ana", &approve("op").decision));
    })
    .await;
}

#[tokio::test]
async fn deciders_at_once_and_one_wins() {
    on_each(|store| async move {
        waiting(&store).await;
        let racers: Vec<_> = (0..8)
            .map(|number| {
                let store = store.clone();
                let asked = DecisionRequest { by: format!("user:{number}"), ..approve("op") };
                tokio::spawn(async move { store.decide(asked).await })
            })
            .collect();
        let mut wins = 0;
        for racer in racers {
            match racer.await.expect("no panic") {
                Ok(_) => wins += 1,
                Err(StoreError::AlreadyDecided(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(wins, 1);
    })
    .await;
}

#[tokio::test]
async fn only_what_was_shown_and_offered_can_be_decided() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        let other_digest = DecisionRequest { arguments_digest: "sha256:bb".to_owned(), ..approve("op") };
        let refused = store.decide(other_digest).await.expect_err("another digest");
        assert!(matches!(refused, StoreError::DigestMismatch { .. }), "{refused}");
        let retry = DecisionRequest {
            decision: OperationDecision::Retry,
            needs: "retry".to_owned(),
            ..approve("op")
        };
        let refused = store.decide(retry.clone()).await.expect_err("not offered");
        assert!(
            refused.to_string().contains("accept, acceptWithArguments, respond, decline, cancel"),
            "{refused}"
        );
        let refused = store.decide(approve("nothing")).await.expect_err("not there");
        assert!(matches!(refused, StoreError::UnknownOperation(_)), "{refused}");
        let withdrawn = step(1, json!({"state": "withdrawn", "operationId": "op"}));
        store.append(&lease, &thread("t"), 1, vec![withdrawn]).await.expect("a commit");
        let refused = store.decide(approve("op")).await.expect_err("it is over");
        assert!(matches!(refused, StoreError::NotWaiting(_)), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn what_was_taken_back_and_proposed_anew_waits_again() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        store.decide(approve("op")).await.expect("the first");
        let withdrawn = step(1, json!({"state": "withdrawn", "operationId": "op"}));
        store.append(&lease, &thread("t"), 1, vec![withdrawn, proposed(2, "op")]).await.expect("a commit");
        let waits = store.list_operations(OperationFilter { limit: 10, ..OperationFilter::default() }).await;
        assert_eq!(waits.expect("a list").0.len(), 1);
        assert_eq!(store.decision(&operation("op"), 0).await.expect("an answer"), None);
        store.decide(approve("op")).await.expect("about what is shown now");
    })
    .await;
}

#[tokio::test]
async fn a_decision_before_an_earlier_attempt_ends_with_what_it_was_about() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        store.decide(approve("op")).await.expect("the first");
        let started = json!({"state": "started", "operationId": "op", "attempt": 1, "executor": "host"});
        store.append(&lease, &thread("t"), 1, vec![step(1, started)]).await.expect("a commit");
        let holds = store.last_decision(&operation("op")).await.expect("an answer");
        assert_eq!(holds.map(|row| row.attempt), Some(0), "it holds for the attempt after it");
        let withdrawn = step(2, json!({"state": "withdrawn", "operationId": "op"}));
        store.append(&lease, &thread("t"), 2, vec![withdrawn, proposed(3, "op")]).await.expect("a commit");
        assert_eq!(store.last_decision(&operation("op")).await.expect("an answer"), None);
    })
    .await;
}

#[tokio::test]
async fn an_unknown_outcome_is_decided_anew() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        store.decide(approve("op")).await.expect("the first");
        let steps = vec![
            step(1, json!({"state": "started", "operationId": "op", "attempt": 1, "executor": "host"})),
            step(2, json!({"state": "unknown", "operationId": "op", "attempt": 1})),
        ];
        store.append(&lease, &thread("t"), 1, steps).await.expect("a commit");
        let row = store.operation(&operation("op")).await.expect("an answer").expect("a row");
        assert_eq!((row.state, row.attempt), (OperationRowState::Unknown, 1));
        assert_eq!(row.available_decisions(), ["retry", "respond", "reject"]);
        let refused = store.decide(approve("op")).await.expect_err("run again without saying so");
        assert!(matches!(refused, StoreError::DecisionNotAvailable { .. }), "{refused}");
        let retry = DecisionRequest {
            decision: OperationDecision::Retry,
            needs: "retry".to_owned(),
            ..approve("op")
        };
        assert_eq!(store.decide(retry).await.expect("a second decision").decision.attempt, 1);
    })
    .await;
}

#[tokio::test]
async fn proposing_again_after_a_restart_keeps_the_decision() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        store.decide(approve("op")).await.expect("a decision");
        store.append(&lease, &thread("t"), 1, vec![proposed(1, "op")]).await.expect("a commit");
        let row = store.operation(&operation("op")).await.expect("an answer").expect("a row");
        assert_eq!(row.state, OperationRowState::Decided);
        assert!(store.decision(&operation("op"), 0).await.expect("an answer").is_some());
    })
    .await;
}

#[tokio::test]
async fn what_waits_is_listed_oldest_first_in_pages() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        create(&store, "child", Some("t")).await;
        let more: Vec<_> = (0..4).map(|number| proposed(number, &format!("op-{number}"))).collect();
        store.append(&lease, &thread("child"), 0, more).await.expect("a commit");
        store.decide(approve("op-1")).await.expect("a decision");
        let mut filter =
            OperationFilter { thread: Some(thread("t")), limit: 2, ..OperationFilter::default() };
        let mut found = Vec::new();
        loop {
            let (page, cursor) = store.list_operations(filter.clone()).await.expect("a page");
            found.extend(page.into_iter().map(|row| row.id.as_str().to_owned()));
            let Some(cursor) = cursor else { break };
            filter.cursor = Some(cursor);
        }
        assert_eq!(found, ["op", "op-0", "op-2", "op-3"]);
    })
    .await;
}

#[tokio::test]
async fn an_attempt_is_begun_by_one_and_finished_once() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        let id = operation("op");
        let begun = store.begin_attempt(&lease, &id, 1, "client-1").await.expect("begun");
        assert!(matches!(begun, AttemptStart::Begun(_)), "{begun:?}");
        let repeated = store.begin_attempt(&lease, &id, 1, "client-1").await.expect("the same");
        assert!(matches!(repeated, AttemptStart::Repeated(_)), "{repeated:?}");
        let taken = store.begin_attempt(&lease, &id, 1, "client-2").await.expect_err("another's");
        assert!(matches!(taken, StoreError::AttemptTaken { .. }), "{taken}");
        let result = |success| OperationResult { content_items: Vec::new(), success };
        assert!(store.finish_attempt(&id, 1, result(true)).await.expect("an answer"));
        assert!(
            !store.finish_attempt(&id, 1, result(false)).await.expect("an answer"),
            "the first result counts"
        );
        let stored = store.attempt(&id, 1).await.expect("an answer").expect("an attempt");
        assert_eq!(stored.result, Some(result(true)));
        store.release_task(&lease).await.expect("a release");
        let fenced = store.begin_attempt(&lease, &id, 2, "client-1").await.expect_err("no lease");
        assert!(matches!(fenced, StoreError::Fenced(_)), "{fenced}");
    })
    .await;
}

#[tokio::test]
async fn an_attempt_that_was_lost_is_unknown_and_one_that_was_never_sent_is_not() {
    on_each(|store| async move {
        let lease = waiting(&store).await;
        let id = operation("op");
        let state =
            || async { store.operation(&id).await.expect("an answer").map(|row| (row.state, row.attempt)) };
        store.begin_attempt(&lease, &id, 1, "client-1").await.expect("begun");
        assert_eq!(state().await, Some((OperationRowState::Started, 1)));
        assert!(store.give_up_attempt(&id, 1, false).await.expect("an answer"));
        assert_eq!(state().await, Some((OperationRowState::Proposed, 0)));
        store.begin_attempt(&lease, &id, 1, "client-2").await.expect("begun again");
        let running = vec![id.clone()];
        assert_eq!(store.lose_started_operations(&lease, running).await.expect("stored").len(), 0);
        assert!(store.give_up_attempt(&id, 1, true).await.expect("an answer"));
        assert_eq!(state().await, Some((OperationRowState::Unknown, 1)));
        let refused = store.begin_attempt(&lease, &id, 2, "client-2").await.expect_err("nobody decided");
        assert!(matches!(refused, StoreError::NotWaiting(_)), "{refused}");
        let decision = OperationDecision::Retry;
        let retry = DecisionRequest { decision, needs: "retry".to_owned(), ..approve("op") };
        store.decide(retry).await.expect("a decision");
        store.begin_attempt(&lease, &id, 2, "client-2").await.expect("begun by decision");
        let result = OperationResult { content_items: Vec::new(), success: true };
        assert!(store.finish_attempt(&id, 2, result).await.expect("stored"));
        assert_eq!(state().await, Some((OperationRowState::Decided, 2)), "the runtime has not heard of it");
    })
    .await;
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_declared_anew_waits_again_unless_it_has_run() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        let call = |ordinal: u64, id: &str, tool: &str| {
            let proposed = json!({
                "state": "proposed", "operationId": id, "type": "function", "tool": tool, "itemId": "i",
                "agentPath": ["root"], "arguments": {}, "argumentsDigest": "sha256:aa", "effects": "once",
                "availableDecisions": [], "createdAtMs": 6,
            });
            step(ordinal, proposed)
        };
        let calls = vec![call(0, "new", "pay"), call(1, "ran", "pay"), call(2, "other", "look")];
        store.append(&lease, &thread("t"), 0, calls).await.expect("a commit");
        for id in ["new", "ran", "other"] {
            store.decide(approve(id)).await.expect("a decision");
        }
        let result = OperationResult { content_items: Vec::new(), success: true };
        store.begin_attempt(&lease, &operation("ran"), 1, "client").await.expect("begun");
        store.finish_attempt(&operation("ran"), 1, result).await.expect("stored");
        let anew = || async {
            let pay = |_: &mut Value| vec!["pay".to_owned()];
            let (_, found) = store.change_tools(&thread("t"), pay).await.expect("an answer");
            found.into_iter().map(|row| (row.id, row.state, row.attempt)).collect::<Vec<_>>()
        };
        assert_eq!(anew().await, [(operation("new"), OperationRowState::Proposed, 0)]);
        assert!(store.last_decision(&operation("new")).await.expect("an answer").is_none());
        // Decided again, lost on the way, and decided to be tried again: what became of it is still not known.
        store.decide(approve("new")).await.expect("another decision");
        store.begin_attempt(&lease, &operation("new"), 1, "client").await.expect("begun");
        assert_eq!(anew().await, [], "it is under way");
        store.give_up_attempt(&operation("new"), 1, true).await.expect("an answer");
        let retry = OperationDecision::Retry;
        let retry = DecisionRequest { decision: retry, needs: "retry".to_owned(), ..approve("new") };
        store.decide(retry).await.expect("a decision");
        assert_eq!(anew().await, [(operation("new"), OperationRowState::Unknown, 1)]);
        let reject = OperationDecision::Reject { message: None, end_turn: false };
        let reject = DecisionRequest { decision: reject, needs: "reject".to_owned(), ..approve("new") };
        store.decide(reject).await.expect("a decision");
        assert_eq!(anew().await, [], "what does not run is not asked about again");
    })
    .await;
}

fn started(ordinal: u64, id: &str) -> oarlock_store::NewRecord {
    step(ordinal, json!({"state": "started", "operationId": id, "attempt": 1, "executor": "runtime"}))
}

#[tokio::test]
async fn what_was_started_and_lost_waits_for_a_decision_unless_it_may_run_twice() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        let twice = json!({
            "state": "proposed", "operationId": "look", "type": "function", "tool": "look", "itemId": "i",
            "agentPath": ["root"], "arguments": {}, "argumentsDigest": "sha256:bb", "effects": "readonly",
            "availableDecisions": [], "createdAtMs": 6,
        });
        let records = vec![proposed(0, "op"), started(1, "op"), step(2, twice), started(3, "look")];
        store.append(&lease, &thread("t"), 0, records).await.expect("a commit");
        let lost = store.lose_started_operations(&lease, Vec::new()).await.expect("stored");
        let lost: Vec<_> = lost.iter().map(|row| (row.id.as_str(), row.state)).collect();
        assert_eq!(lost, [("op", OperationRowState::Unknown)]);
        assert_eq!(store.lose_started_operations(&lease, Vec::new()).await.expect("stored").len(), 0, "once");
        let retry = DecisionRequest {
            decision: OperationDecision::Retry,
            needs: "retry".to_owned(),
            ..approve("op")
        };
        assert_eq!(store.decide(retry).await.expect("a decision").decision.attempt, 1);
        // A host that is started again goes on with it.
        let again = store.register_replica(&replica("a", 0), TTL_MS).await.expect("a registration");
        let adopted = store.adopt_tasks(&again, 10).await.expect("tasks");
        assert_eq!(adopted.iter().map(|lease| &lease.task).collect::<Vec<_>>(), [&thread("t")]);
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_turn_withdraws_what_it_left_open() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        let records = vec![proposed(0, "t:u1:c"), proposed(1, "t:u2:c")];
        store.append(&lease, &thread("t"), 0, records).await.expect("a commit");
        create(&store, "t-child", Some("t")).await;
        let of_child = vec![proposed(0, "t-child:u1:c")];
        store.append(&lease, &thread("t-child"), 0, of_child).await.expect("a commit");
        let counts = store.waiting_counts(vec![thread("t"), thread("none")]).await.expect("counts");
        assert_eq!(counts, [(thread("t"), 3), (thread("t-child"), 1)].into_iter().collect());
        assert_eq!(store.withdraw_operations(&thread("t-child"), None).await.expect("stored").len(), 1);
        let turn = protocol::TurnId::new("u1");
        let withdrawn = store.withdraw_operations(&thread("t"), Some(&turn)).await.expect("stored");
        let withdrawn: Vec<_> = withdrawn.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(withdrawn, ["t:u1:c"]);
        let filter = OperationFilter { limit: 10, ..OperationFilter::default() };
        assert_eq!(store.list_operations(filter).await.expect("a list").0.len(), 1);
        assert_eq!(store.withdraw_operations(&thread("t"), None).await.expect("stored").len(), 1);
    })
    .await;
}
