//! Measures how long a large journal takes to resume: `cargo run --release -p oarlock-journal --example read_speed
//! [MB]`.

use std::time::Instant;

use oarlock_journal::{JournalError, ReadOptions, RecordBatch, Store, StoreOptions, read_history_file};
use protocol::{
    ContentItem, FunctionCallOutputBody, ItemId, ResponseItem, RolloutRecord, SessionMeta, ThreadId,
    ThreadItem, TurnId, TurnStatus,
};

fn main() -> Result<(), JournalError> {
    let megabytes: u64 = std::env::args().nth(1).and_then(|megabytes| megabytes.parse().ok()).unwrap_or(150);
    let root = std::env::temp_dir().join(format!("read-speed-{}", std::process::id()));
    let store = Store::open(&root, StoreOptions::default())?;
    let thread = ThreadId::new("00000000-0000-4000-8000-000000000001");
    let journal = store.create(&thread, RecordBatch::one(0, &meta(&thread))?)?;
    let mut turns = 0;
    loop {
        let turn = TurnId::new(format!("turn-{turns}"));
        let mut batch = RecordBatch::at(turns);
        for record in records(&turn, turns) {
            batch.push(&record)?;
        }
        turns += 1;
        let appended = journal.append_durable(batch)?;
        if appended.length >= megabytes * 1_000_000 {
            println!("{} MB, {} records, {turns} turns", appended.length / 1_000_000, appended.last);
            break;
        }
    }
    let path = journal.path().to_owned();
    journal.close()?;
    let (before, busy) = (memory_kb("VmRSS:"), busy_ms());
    let timed = Instant::now();
    let (history, _) = read_history_file(&path, &ReadOptions::default())?;
    println!(
        "read:   {:?}, {} model items, {} turns",
        timed.elapsed(),
        history.model.len(),
        history.turns.len()
    );
    println!("        {} ms of them busy", busy_ms() - busy);
    println!("memory: {} MB more at the peak", (memory_kb("VmHWM:") - before) / 1_000);
    drop(history);
    let timed = Instant::now();
    let resumed = store.resume(&thread)?;
    println!("resume: {:?}, next is {}", timed.elapsed(), resumed.journal.next_seq());
    drop(resumed);
    store.delete_index()?;
    let timed = Instant::now();
    store.refresh_index()?;
    println!("index:  {:?}", timed.elapsed());
    let _ = std::fs::remove_dir_all(&root);
    Ok(())
}

fn memory_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// CPU time of this process, which does not depend on other load.
fn busy_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    ticks * 10
}

fn meta(thread: &ThreadId) -> RolloutRecord {
    let json = serde_json::json!({
        "threadId": thread, "sessionId": thread, "createdAtMs": 0, "cwd": "/work", "originator": "example",
        "cliVersion": "0", "source": "cli", "modelProvider": "none",
    });
    let meta: SessionMeta = serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"));
    RolloutRecord::SessionMeta { meta: Box::new(meta) }
}

/// One turn: a message, a call, its output, and their items for clients.
fn records(turn: &TurnId, at_ms: i64) -> Vec<RolloutRecord> {
    let model = |item| RolloutRecord::ResponseItem { turn_id: Some(turn.clone()), item };
    let text = "It reads the file, and then \"quotes\" it:\n\tline one\n".repeat(8);
    let output = "src/main.rs:12: fn main() {\n".repeat(60);
    let content = vec![ContentItem::OutputText { text: text.clone() }];
    let message = ResponseItem::Message {
        id: None,
        role: "assistant".to_owned(),
        content,
        end_turn: None,
        phase: None,
    };
    let call = ResponseItem::FunctionCall {
        id: None,
        name: "shell".to_owned(),
        namespace: None,
        arguments: r#"{"command":["rg","fn main"]}"#.to_owned(),
        call_id: format!("call-{at_ms}"),
    };
    let result = ResponseItem::FunctionCallOutput {
        call_id: format!("call-{at_ms}"),
        output: FunctionCallOutputBody::Text(output),
    };
    let id = ItemId::new(format!("item-{at_ms}"));
    let seen = ThreadItem::AgentMessage { id, text, phase: None, memory_citation: None };
    vec![
        RolloutRecord::TurnStarted { turn_id: turn.clone(), at_ms },
        model(message),
        RolloutRecord::ThreadItem { turn_id: turn.clone(), item: seen },
        model(call),
        model(result),
        RolloutRecord::TurnEnded { turn_id: turn.clone(), status: TurnStatus::Completed, error: None, at_ms },
    ]
}
