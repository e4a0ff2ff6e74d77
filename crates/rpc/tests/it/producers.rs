//! Many producers on several threads share one connection: each group keeps its order, and nothing is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use oarlock_rpc::{
    DeltaKey, FrameLimits, FrameReader, OrderGroup, Outbox, OutboxLimits, OutgoingMessage, drain,
};
use tokio::io::{AsyncRead, duplex};
use tokio::task::JoinSet;

const GROUPS: u64 = 8;
const ITEMS: usize = 60;
const DELTAS: usize = 50;

/// One thread's work: items that start, stream and complete, each after a request.
async fn produce(outbox: Outbox, group: u64) {
    let plain = |text: String| OutgoingMessage::Plain {
        group: Some(OrderGroup(group)),
        line: format!("{group} {text}\n").into(),
    };
    for item in 0..ITEMS {
        let slot = outbox.reserve(Vec::new).await.unwrap();
        // An ordered response stays between two items, an immediate one only comes before its item.
        match item % 2 {
            0 => slot.reply(format!("{group} answer {item}\n").into()).unwrap(),
            _ => slot.reply_now(format!("{group} now {item}\n").into()).unwrap(),
        }
        outbox.send(plain(format!("started {item}"))).await.unwrap();
        let key = DeltaKey { group: OrderGroup(group), stream: item.to_string().into() };
        for number in 0..DELTAS {
            let render = Arc::new(move |text: &str| format!("{group} delta {text}\n").into());
            let text = format!("[{item}.{number}]");
            outbox.send(OutgoingMessage::Delta { key: key.clone(), text, render }).await.unwrap();
        }
        outbox.send(plain(format!("completed {item}"))).await.unwrap();
    }
}

/// The expected text of each group after merging its deltas.
fn expected() -> String {
    let deltas = |item| (0..DELTAS).map(|number| format!("[{item}.{number}]")).collect::<String>();
    let answer = |item| if item % 2 == 0 { format!("answer {item};") } else { String::new() };
    let all = |item| format!("{}started {item};{};completed {item};", answer(item), deltas(item));
    (0..ITEMS).map(all).collect()
}

async fn collect(from: impl AsyncRead + Unpin) -> BTreeMap<u64, String> {
    let mut groups = BTreeMap::<u64, String>::new();
    let mut answered = BTreeSet::new();
    let mut reader = FrameReader::new(from, FrameLimits::default());
    while let Some(frame) = reader.next().await {
        let line = str::from_utf8(frame.unwrap()).unwrap().to_owned();
        let (group, text) = line.split_once(' ').unwrap();
        let seen = groups.entry(group.parse().unwrap()).or_default();
        let (kind, what) = text.split_once(' ').unwrap();
        match kind {
            "now" => {
                answered.insert((group.to_owned(), what.to_owned()));
                continue;
            }
            "started" if !what.ends_with(['0', '2', '4', '6', '8']) => {
                assert!(answered.contains(&(group.to_owned(), what.to_owned())), "{line} before its answer");
                seen.push_str(text);
            }
            // The text continues after the item's last delta.
            "delta" if seen.ends_with("];") => {
                seen.pop();
                seen.push_str(what);
            }
            "delta" => seen.push_str(what),
            _ => seen.push_str(text),
        }
        seen.push(';');
    }
    groups
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_group_keeps_its_order() {
    // Small enough that every limit is reached all the time.
    let limits = OutboxLimits { max_pending_requests: 3, max_message_bytes: 4000, max_answer_bytes: 1000 };
    let (outbox, backlog) = Outbox::open(limits);
    let (client, server) = duplex(512);
    let writer = tokio::spawn(drain(backlog, server));
    let reader = tokio::spawn(collect(client));
    let mut producers = JoinSet::new();
    for group in 0..GROUPS {
        producers.spawn(produce(outbox.clone(), group));
    }
    while let Some(done) = producers.join_next().await {
        done.unwrap();
        assert!(outbox.message_bytes() <= 4000);
    }
    drop(outbox);
    writer.await.unwrap().unwrap();
    let groups = reader.await.unwrap();
    assert_eq!(groups.len() as u64, GROUPS);
    for (group, seen) in groups {
        assert_eq!(seen, expected(), "group {group}");
    }
}
