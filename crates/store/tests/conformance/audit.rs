//! The audit trail: an entry for each change, in the same commit, and decisions in records that nobody took.

use std::time::Duration;

use oarlock_store::{
    AuditEntry, AuditFilter, AuditRow, DecisionRequest, InboxEntry, OwnDecision, PlacementRow, StoreError,
    TaskChange, TaskCreation, TaskState, TaskStore,
};
use protocol::{OperationDecision, OperationId, ThreadId, TurnId};
use serde_json::{Value, json};

use crate::databases::{on_each, postgres};
use crate::{TTL_MS, create, granted, new_task, owned, proposed, replica, step, thread};

fn entry(action: &str, task: Option<&str>) -> AuditEntry {
    AuditEntry {
        who: "user:ana".to_owned(),
        action: action.to_owned(),
        subject: task.unwrap_or("p").to_owned(),
        task: task.map(thread),
        details: json!({"action": action}),
    }
}

async fn entries(store: &TaskStore, filter: AuditFilter) -> Vec<AuditRow> {
    store.audit(AuditFilter { limit: 100, ..filter }).await.expect("a page").rows
}

/// Who did what to what, oldest first.
async fn trail(store: &TaskStore) -> Vec<String> {
    let shown = |row: &AuditRow| format!("{} {} {}", row.entry.who, row.entry.action, row.entry.subject);
    let mut trail: Vec<String> = entries(store, AuditFilter::default()).await.iter().map(shown).collect();
    trail.reverse();
    trail
}

#[tokio::test]
async fn entries_are_read_by_task_and_time_the_newest_first() {
    on_each(|store| async move {
        for number in 0..5 {
            let task = ["t", "u"][number % 2];
            store.audited(entry(&format!("a{number}"), Some(task))).note().await.expect("a commit");
        }
        store.audited(entry("placement/delete", None)).note().await.expect("a commit");
        let page = store.audit(AuditFilter { limit: 4, ..AuditFilter::default() }).await.expect("a page");
        let numbers: Vec<i64> = page.rows.iter().map(|row| row.number).collect();
        assert_eq!((numbers, page.before), (vec![6, 5, 4, 3], Some(3)));
        let rest = AuditFilter { before: page.before, limit: 4, ..AuditFilter::default() };
        let rest = store.audit(rest).await.expect("a page");
        assert_eq!((rest.rows.len(), rest.before), (2, None));
        assert_eq!(rest.rows[1].entry, entry("a0", Some("t")));
        assert_eq!(page.rows[0].entry.task, None);

        let of_task =
            entries(&store, AuditFilter { task: Some(thread("u")), ..AuditFilter::default() }).await;
        let actions: Vec<&str> = of_task.iter().map(|row| row.entry.action.as_str()).collect();
        assert_eq!(actions, ["a3", "a1"]);
        let since_ms = Some(page.rows[0].at_ms + 60_000);
        assert_eq!(entries(&store, AuditFilter { since_ms, ..AuditFilter::default() }).await, []);
        let since_ms = Some(rest.rows[1].at_ms);
        assert_eq!(entries(&store, AuditFilter { since_ms, ..AuditFilter::default() }).await.len(), 6);
    })
    .await;
}

#[tokio::test]
async fn a_change_has_its_entry_and_what_changes_nothing_has_none() {
    on_each(|store| async move {
        let by = |action: &str| store.audited(entry(action, Some("t")));
        for _ in 0..2 {
            by("thread/start").create_task(new_task("t", None)).await.expect("a task");
        }
        let input = InboxEntry {
            thread: thread("t"),
            input_id: "i1".to_owned(),
            method: "turn/start".to_owned(),
            turn_id: TurnId::new("u1"),
            params: json!({}),
        };
        for _ in 0..2 {
            by("turn/start").put_input(input.clone()).await.expect("an answer");
        }
        let placement = PlacementRow {
            id: "t".to_owned(),
            backend: "local".to_owned(),
            site: "here".to_owned(),
            state: "ready".to_owned(),
            reference: json!({}),
            snapshot: None,
            created_at_ms: 1,
            used_at_ms: 1,
        };
        by("placement/create").put_placement(placement).await.expect("a commit");
        for _ in 0..2 {
            by("placement/delete").delete_placement("t").await.expect("an answer");
        }
        let archived = TaskChange { is_archived: Some(true), ..TaskChange::default() };
        by("thread/archive").update_task(&thread("t"), archived.clone()).await.expect("a change");
        for _ in 0..2 {
            by("task/delete").delete_task(&thread("t")).await.expect("an answer");
        }
        // Undone as a whole, so that no number is missing either.
        let refused = by("thread/archive").update_task(&thread("t"), archived).await;
        assert!(matches!(refused, Err(StoreError::UnknownTask(_))), "{refused:?}");
        by("last").note().await.expect("a commit");
        let actions = [
            "thread/start",
            "turn/start",
            "placement/create",
            "placement/delete",
            "thread/archive",
            "task/delete",
            "last",
        ];
        let expected: Vec<String> = actions.iter().map(|action| format!("user:ana {action} t")).collect();
        assert_eq!(trail(&store).await, expected);
        let numbers: Vec<i64> =
            entries(&store, AuditFilter::default()).await.iter().map(|row| row.number).collect();
        assert_eq!(numbers, [7, 6, 5, 4, 3, 2, 1]);
    })
    .await;
}

/// The numbers of entries that are written at once have no gaps, and a page never passes one over that comes later.
#[tokio::test]
async fn entries_of_many_at_once_are_counted_without_a_gap() {
    on_each(|store| async move {
        let racers: Vec<_> = (0..24)
            .map(|number| {
                let store = store.clone();
                let id = format!("t{}", number % 12);
                tokio::spawn(async move {
                    let audited = store.audited(entry("thread/start", Some(&id)));
                    let made = audited.create_task(new_task(&id, None)).await.expect("a task");
                    matches!(made, TaskCreation::Created(_))
                })
            })
            .collect();
        let mut made = 0;
        for racer in racers {
            made += usize::from(racer.await.expect("no panic"));
        }
        let mut numbers: Vec<i64> =
            entries(&store, AuditFilter::default()).await.iter().map(|row| row.number).collect();
        numbers.reverse();
        assert_eq!((made, numbers), (12, (1..=12).collect()));
    })
    .await;
}

#[tokio::test]
async fn old_entries_are_forgotten_from_the_end() {
    on_each(|store| async move {
        for number in 0..3 {
            store.audited(entry(&format!("a{number}"), None)).note().await.expect("a commit");
            // The clock of a database is not ours to set.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let all = entries(&store, AuditFilter::default()).await;
        assert_eq!(store.forget_audit(all[1].at_ms).await.expect("a commit"), 1);
        assert_eq!(entries(&store, AuditFilter::default()).await, all[..2]);
        assert_eq!(store.forget_audit(i64::MAX).await.expect("a commit"), 2);
        store.audited(entry("next", None)).note().await.expect("a commit");
        assert_eq!(entries(&store, AuditFilter::default()).await[0].number, 4, "no number comes twice");
    })
    .await;
}

fn operation(id: &str) -> OperationId {
    OperationId::new(id)
}

fn asked(id: &str, decision: Value, needs: &str) -> DecisionRequest {
    DecisionRequest {
        operation: operation(id),
        arguments_digest: "sha256:aa".to_owned(),
        decision: serde_json::from_value(decision).expect("a decision"),
        needs: needs.to_owned(),
        by: "user:ana".to_owned(),
        on_behalf_of: Some("eve".to_owned()),
    }
}

#[tokio::test]
async fn the_first_decision_is_in_the_trail_and_no_other() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        store.append(&lease, &thread("t"), 0, vec![proposed(0, "op")]).await.expect("a commit");
        let approve = asked("op", json!({"type": "approve"}), "accept");
        store.decide(approve.clone()).await.expect("the first");
        let late = store.decide(DecisionRequest { by: "user:eve".to_owned(), ..approve }).await;
        assert!(matches!(late, Err(StoreError::AlreadyDecided(_))), "{late:?}");
        let rows = entries(&store, AuditFilter { task: Some(thread("t")), ..AuditFilter::default() }).await;
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        let AuditEntry { who, action, subject, details, .. } = &row.entry;
        assert_eq!((who.as_str(), action.as_str(), subject.as_str()), ("user:ana", "operation/decide", "op"));
        assert_eq!(
            (&details["decision"]["type"], &details["onBehalfOf"]),
            (&json!("approve"), &json!("eve"))
        );

        // The trail outlives the task, and an answer may be a secret.
        store.append(&lease, &thread("t"), 1, vec![proposed(1, "other")]).await.expect("a commit");
        let text = json!([{"type": "inputText", "text": "4711"}]);
        let respond = json!({"type": "respond", "contentItems": text, "success": true});
        store.decide(asked("other", respond, "respond")).await.expect("decided");
        let rows = entries(&store, AuditFilter::default()).await;
        assert_eq!(rows[0].entry.details["decision"], json!({"type": "respond", "success": true}));
    })
    .await;
}

#[tokio::test]
async fn adopted_tasks_are_in_the_trail() {
    let Some(server) = postgres() else { return };
    let store = server.store().await;
    let (first, second) = (replica("a", 1), replica("b", 1));
    for id in ["t", "u"] {
        create(&store, id, None).await;
        let change = TaskChange { state: Some(TaskState::Running), ..TaskChange::default() };
        store.update_task(&thread(id), change).await.expect("a change");
    }
    store.renew_replica(&first, 300).await.expect("a renewal");
    store.renew_replica(&second, TTL_MS).await.expect("a renewal");
    granted(&store, "t", &first).await;
    granted(&store, "u", &first).await;
    assert_eq!(trail(&store).await, [""; 0], "nobody had them before");
    tokio::time::sleep(Duration::from_millis(400)).await;
    granted(&store, "t", &second).await;
    assert_eq!(store.adopt_tasks(&second, 10).await.expect("tasks").len(), 1);
    assert_eq!(trail(&store).await, ["host:b task/adopt t", "host:b task/adopt u"]);
    let rows = entries(&store, AuditFilter::default()).await;
    assert!(rows.iter().all(|row| row.entry.details == json!({"from": "a"})), "{rows:?}");
}

/// A task whose operation `op` was decided like this, if it was, and what its row says after this record.
async fn recorded(
    store: &TaskStore,
    task: &str,
    stored: Option<Value>,
    record: Value,
) -> Option<OwnDecision> {
    let lease = owned(store, task, &replica("a", 1)).await;
    let id = format!("{task}:op");
    let mut propose = proposed(0, &id);
    if let Some(protocol::OperationRecord::Proposed { available_decisions, kind, .. }) =
        &mut propose.operation
    {
        *available_decisions =
            ["accept", "acceptForSession", "decline", "respond"].map(str::to_owned).to_vec();
        *kind = protocol::OperationType::Command;
    }
    store.append(&lease, &thread(task), 0, vec![propose]).await.expect("a commit");
    if let Some(decision) = stored {
        let needs = match (decision["type"].as_str(), decision["scope"].as_str()) {
            (Some("reject"), _) => "decline",
            (_, Some("session")) => "acceptForSession",
            _ => "accept",
        };
        store.decide(asked(&id, decision.clone(), needs)).await.expect("decided");
    }
    let mut decided = json!({
        "state": "decided", "operationId": id, "argumentsDigest": "sha256:aa", "decidedAtMs": 7,
    });
    decided.as_object_mut().expect("an object").extend(record.as_object().cloned().unwrap_or_default());
    store.append(&lease, &thread(task), 1, vec![step(1, decided)]).await.expect("a commit");
    let row = store.operation(&operation(&id)).await.expect("an answer").expect("an operation");
    row.own_decision
}

#[tokio::test]
async fn a_decision_in_a_record_is_somebodys_or_it_is_flagged() {
    let approve = || json!({"type": "approve"});
    let reject = || json!({"type": "reject", "endTurn": false});
    let session = || json!({"type": "approve", "scope": "session"});
    let policy = |name: &str| Some(OwnDecision::Policy(format!("policy:{name}")));
    let cases = || {
        [
            (Some(approve()), json!({"decision": approve(), "by": "user:ana"}), None),
            (Some(approve()), json!({"decision": approve()}), None),
            (Some(session()), json!({"decision": session()}), None),
            (Some(approve()), json!({"decision": reject()}), None),
            (None, json!({"decision": approve(), "by": "policy:reviewer"}), policy("reviewer")),
            (None, json!({"decision": reject(), "by": "policy:unanswered"}), policy("unanswered")),
            (None, json!({"decision": approve(), "by": "policy:unanswered"}), Some(OwnDecision::Unbacked)),
            (None, json!({"decision": approve(), "by": "user:ana"}), Some(OwnDecision::Unbacked)),
            (None, json!({"decision": approve()}), Some(OwnDecision::Unbacked)),
            (Some(reject()), json!({"decision": approve(), "by": "user:ana"}), Some(OwnDecision::Unbacked)),
            (Some(approve()), json!({"decision": session()}), Some(OwnDecision::Unbacked)),
            (
                Some(approve()),
                json!({"decision": {"type": "replace", "command": ["rm"]}}),
                Some(OwnDecision::Unbacked),
            ),
        ]
    };
    on_each(|store| async move {
        for (number, (stored, record, expected)) in cases().into_iter().enumerate() {
            let shown = format!("{stored:?} {record}");
            let task = format!("t{number}");
            let is_flagged = expected == Some(OwnDecision::Unbacked);
            let has_row = stored.is_some();
            assert_eq!(recorded(&store, &task, stored, record).await, expected, "{shown}");
            let filter = AuditFilter { task: Some(ThreadId::new(&task)), ..AuditFilter::default() };
            let noted = entries(&store, filter).await;
            let flags = noted.iter().filter(|row| row.entry.action == "operation/unbackedDecision");
            assert_eq!(flags.count(), usize::from(is_flagged), "{shown}");
            let decided = store.decisions_of(&thread(&task)).await.expect("decisions");
            let [one] = decided.as_slice() else {
                assert!(decided.is_empty() && !has_row && expected.is_none(), "{shown}: {decided:?}");
                continue;
            };
            assert_eq!((one.item.as_str(), &one.own_decision), ("i", &expected), "{shown}");
            let by = one.decision.as_ref().map(|row| row.by.as_str());
            assert_eq!(by, has_row.then_some("user:ana"), "{shown}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_proposal_that_is_made_anew_is_flagged_no_more() {
    on_each(|store| async move {
        let own = recorded(&store, "t", None, json!({"decision": {"type": "approve"}})).await;
        assert_eq!(own, Some(OwnDecision::Unbacked));
        let lease = granted(&store, "t", &replica("a", 1)).await;
        let withdrawn = step(2, json!({"state": "withdrawn", "operationId": "t:op"}));
        store.append(&lease, &thread("t"), 2, vec![withdrawn, proposed(3, "t:op")]).await.expect("a commit");
        let row = store.operation(&operation("t:op")).await.expect("an answer").expect("an operation");
        assert_eq!(row.own_decision, None);
        store.decide(asked("t:op", json!({"type": "approve"}), "accept")).await.expect("decided");
        let decision = store.last_decision(&operation("t:op")).await.expect("an answer").expect("a decision");
        assert!(matches!(decision.decision, OperationDecision::Approve { .. }));
    })
    .await;
}
