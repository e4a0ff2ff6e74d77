//! The inbox: input is committed once per id, and its first answer is given again.

use oarlock_store::{InboxEntry, InboxPut, InboxState};
use protocol::TurnId;
use serde_json::json;

use crate::databases::on_each;
use crate::{create, thread};

fn entry(input: &str, text: &str) -> InboxEntry {
    InboxEntry {
        thread: thread("t"),
        input_id: input.to_owned(),
        method: "turn/start".to_owned(),
        turn_id: TurnId::new(format!("turn-{input}")),
        params: json!({"text": text}),
    }
}

#[tokio::test]
async fn an_input_counts_once_and_keeps_its_first_answer() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        assert!(matches!(store.put_input(entry("1", "one")).await, Ok(InboxPut::Received(_))));
        let InboxPut::Known(known) = store.put_input(entry("1", "other")).await.expect("an answer") else {
            panic!("the same id is new")
        };
        assert_eq!((known.params, known.answer), (json!({"text": "one"}), None));
        let answer = json!({"turn": {"id": "turn-1"}});
        let said = store.answer_input(&thread("t"), "1", InboxState::Accepted, answer.clone()).await;
        assert!(said.expect("an answer"));
        let late = store.answer_input(&thread("t"), "1", InboxState::Refused, json!({})).await;
        assert!(!late.expect("an answer"), "the first answer counts");
        let InboxPut::Known(known) = store.put_input(entry("1", "one")).await.expect("an answer") else {
            panic!("the same id is new")
        };
        assert_eq!((known.state, known.answer), (InboxState::Accepted, Some(answer)));
    })
    .await;
}

#[tokio::test]
async fn inputs_wait_in_the_order_they_came() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        for input in ["z", "a", "m"] {
            store.put_input(entry(input, input)).await.expect("a commit");
        }
        store.answer_input(&thread("t"), "a", InboxState::Accepted, json!({})).await.expect("an answer");
        let waiting = store.waiting_inputs(&thread("t")).await.expect("inputs");
        assert_eq!(waiting.iter().map(|row| row.input_id.as_str()).collect::<Vec<_>>(), ["z", "m"]);
    })
    .await;
}

#[tokio::test]
async fn the_same_input_at_once_is_received_once() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        let racers: Vec<_> = (0..8)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { store.put_input(entry("1", "one")).await })
            })
            .collect();
        let mut received = 0;
        for racer in racers {
            let put = racer.await.expect("no panic").expect("an answer");
            received += usize::from(matches!(put, InboxPut::Received(_)));
        }
        assert_eq!(received, 1);
    })
    .await;
}
