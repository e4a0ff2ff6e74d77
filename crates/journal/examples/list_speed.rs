//! Measures how long lists take: `cargo run --release -p oarlock-journal --example list_speed [THREADS]`.

use std::time::Instant;

use oarlock_journal::{JournalError, ListQuery, RecordBatch, Store, StoreOptions};
use protocol::{ItemId, RolloutRecord, SessionMeta, SortDirection, ThreadId, ThreadItem, TurnId, UserInput};

fn main() -> Result<(), JournalError> {
    let threads: i64 = std::env::args().nth(1).and_then(|threads| threads.parse().ok()).unwrap_or(1_000);
    let root = std::env::temp_dir().join(format!("list-speed-{}", std::process::id()));
    let store = Store::open(&root, StoreOptions::default())?;
    for number in 0..threads {
        let thread = ThreadId::new(format!("00000000-0000-4000-8000-{number:012x}"));
        let mut first = RecordBatch::at(number * 60_000);
        first.push(&meta(&thread, number))?;
        first.push(&words(number))?;
        store.create(&thread, first)?.close()?;
    }
    drop(store);
    let timed = Instant::now();
    let store = Store::open(&root, StoreOptions::default())?;
    println!("open:                 {:?}", timed.elapsed());
    let query = ListQuery { limit: 100, ..ListQuery::default() };
    let timed = Instant::now();
    store.list(&query)?;
    println!("first page, compared: {:?}", timed.elapsed());
    for limit in [25, 100] {
        let query = ListQuery { limit, ..ListQuery::default() };
        let timed = Instant::now();
        for _ in 0..100 {
            store.list(&query)?;
        }
        println!("page of {limit:<3}:          {:?}", timed.elapsed() / 100);
    }
    store.delete_index()?;
    let timed = Instant::now();
    store.list(&query)?;
    println!("lost, first page:     {:?}", timed.elapsed());
    let oldest = ListQuery { direction: SortDirection::Asc, ..query };
    store.list(&oldest)?;
    println!("lost, read again:     {:?}", timed.elapsed());
    let _ = std::fs::remove_dir_all(&root);
    Ok(())
}

fn meta(thread: &ThreadId, number: i64) -> RolloutRecord {
    let json = serde_json::json!({
        "threadId": thread, "sessionId": thread, "createdAtMs": number * 60_000, "cwd": "/work",
        "originator": "example", "cliVersion": "0", "source": "cli", "modelProvider": "none",
        "baseInstructions": "You are helpful. ".repeat(500),
    });
    let meta: SessionMeta = serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"));
    RolloutRecord::SessionMeta { meta: Box::new(meta) }
}

fn words(number: i64) -> RolloutRecord {
    let text = format!("Please look at number {number} and tell what you see. ").repeat(4);
    let content = vec![UserInput::Text { text, text_elements: Vec::new() }];
    let item = ThreadItem::UserMessage { id: ItemId::new("u"), content };
    RolloutRecord::ThreadItem { turn_id: TurnId::new("t"), item }
}
