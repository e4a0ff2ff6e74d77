//! A home full of stored threads. The server makes them itself, so nothing here depends on how it keeps them.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::command::ServerCommand;
use crate::home::Home;
use crate::session::{Bench, Session};
use crate::sse::Reply;
use crate::workload::Workload;

/// A server is started anew after so many threads: some keep every thread they have seen in memory.
const THREADS_PER_PROCESS: usize = 100;

/// Made once per server; every repetition starts a process on it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) home: Home,
    pub(crate) long_thread: String,
}

impl Store {
    pub(crate) fn build(bench: &Bench<'_>, command: &ServerCommand) -> Result<Self> {
        let home = bench.home()?;
        let (total, reply) = (bench.workload.stored, Arc::new(Reply::message("ok")));
        for first in (0..total).step_by(THREADS_PER_PROCESS) {
            let mut session = bench.start(command, &home)?;
            for index in first..total.min(first + THREADS_PER_PROCESS) {
                store_short(bench, &mut session, index, &reply)
                    .with_context(|| format!("stored thread {index}"))?;
            }
            session.client.close();
            eprintln!(
                "{}: stored {} of {total} threads",
                command.name,
                total.min(first + THREADS_PER_PROCESS)
            );
        }
        let long_thread = store_long(bench, command, &home).context("the long thread")?;
        eprintln!("{}: stored the long thread", command.name);
        Ok(Self { home, long_thread })
    }
}

fn store_short(bench: &Bench<'_>, session: &mut Session, index: usize, reply: &Arc<Reply>) -> Result<()> {
    let (thread, _) = session.start_thread()?;
    bench.turn(session, &thread, &format!("question number {index}"), reply)?;
    session.client.call("thread/unsubscribe", &json!({"threadId": thread}))?;
    Ok(())
}

fn store_long(bench: &Bench<'_>, command: &ServerCommand, home: &Home) -> Result<String> {
    let mut session = bench.start(command, home)?;
    let (thread, _) = session.start_thread()?;
    for turn in 0..bench.workload.long_turns {
        let reply = Arc::new(Reply::messages(&long_messages(&bench.workload, turn)));
        bench.turn(&mut session, &thread, &format!("turn {turn}"), &reply)?;
    }
    session.client.settle(bench.quiet)?;
    session.client.close();
    Ok(thread)
}

fn long_messages(workload: &Workload, turn: usize) -> Vec<String> {
    let message = |index| format!("answer {turn}.{index} {}", "lorem ipsum ".repeat(10));
    (0..workload.messages_per_turn).map(message).collect()
}

/// Every message of every turn, in order and nothing else of the model's.
pub(crate) fn check_long_thread(workload: &Workload, thread: &Value) -> Result<()> {
    let turns = thread["turns"].as_array().context("the resumed thread has no turns")?;
    let items = turns.iter().filter_map(|turn| turn["items"].as_array()).flatten();
    let texts: Vec<&str> = items
        .filter(|item| item["type"] == "agentMessage")
        .filter_map(|item| item["text"].as_str())
        .collect();
    let expected: Vec<String> =
        (0..workload.long_turns).flat_map(|turn| long_messages(workload, turn)).collect();
    let right = texts.iter().zip(&expected).take_while(|(text, expected)| *text == expected).count();
    ensure!(
        right == expected.len() && texts.len() == right,
        "of {} messages {right} came back right, {} in all",
        expected.len(),
        texts.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resumed(change: impl FnOnce(&mut Vec<Value>)) -> Result<()> {
        let workload = Workload::scaled(50);
        let turn = |turn| {
            let texts = long_messages(&workload, turn);
            let mut items = vec![json!({"type": "userMessage", "content": []})];
            items.extend(texts.iter().map(|text| json!({"type": "agentMessage", "text": text})));
            json!({"items": items})
        };
        let mut turns: Vec<Value> = (0..workload.long_turns).map(turn).collect();
        change(&mut turns);
        check_long_thread(&workload, &json!({"turns": turns}))
    }

    #[test]
    fn a_whole_thread_passes_and_any_gap_or_extra_fails() {
        assert!(resumed(|_| ()).is_ok());
        assert!(resumed(|turns| drop(turns.pop())).is_err());
        assert!(resumed(|turns| turns.swap(0, 1)).is_err());
        assert!(resumed(|turns| turns.push(turns[0].clone())).is_err());
        assert!(resumed(|turns| turns[0]["items"][1]["text"] = json!("another")).is_err());
        assert!(check_long_thread(&Workload::scaled(50), &json!({})).is_err());
    }
}
