//! Replaying a record gives the thread that wrote it: the same history, turns and token count after random events, and
//! the same effects from then on. A truncated record gives an earlier state.

mod moves;
mod scene;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::THREAD;
use engine::{Effect, ThreadMachine};
use journal::{RecordBatch, Store, StoreOptions, ThreadHistory};
use moves::{CALL, COMPLETED, MESSAGE_DONE, Move, PLAIN, Place, Setting, moves, settings};
use proptest::prelude::*;
use proptest::sample::Index;
use protocol::{RolloutRecord, ThreadId, Turn};
use scene::{Scene, Timed, as_kept, bytes, replay, seed};
use serde_json::{Value, json};

/// Overridden by `PROPTEST_CASES`; `scripts/figures` runs 2,000.
const CASES: u32 = 400;

/// Runs only a share of the cases, for slow tests.
fn one_case_in(share: u32) -> ProptestConfig {
    let chosen = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { chosen.cases } else { CASES };
    ProptestConfig { cases: cases.div_ceil(share), failure_persistence: None, ..chosen }
}

/// The record agrees with the thread that wrote it and with its clients' notifications.
fn check_agreement(scene: &Scene, history: &ThreadHistory) {
    assert_eq!(as_kept(&history.model), json!(scene.thread.history()), "what the model is to see");
    assert_eq!(history.token_usage.as_ref(), scene.thread.usage(), "the count of tokens");
    assert_eq!(history.unfinished_turn, None, "no turn is left open");
    let without_items = |turn: &Turn| Turn { items: vec![], ..turn.clone() };
    let ends: Vec<Turn> = history.turns.iter().map(without_items).collect();
    let told: Vec<Turn> = scene.told.iter().filter_map(|told| told.end.clone()).collect();
    assert_eq!(ends, told, "the ends of the turns");
    for (turn, told) in history.turns.iter().zip(&scene.told) {
        let items: BTreeMap<String, Value> = turn.items.iter().map(named).collect();
        assert_eq!(items.len(), turn.items.len(), "an item is in its turn once");
        assert_eq!(items, told.items, "the items of turn {}", turn.id);
    }
}

fn named(item: &protocol::ThreadItem) -> (String, Value) {
    let item = json!(item);
    (item["id"].as_str().expect("every item has one").to_owned(), item)
}

/// Thread and replay get the same moves at the same times and do the same.
fn check_continuation(setting: Setting, before: &[Move], after: &[Move]) {
    let mut original = Scene::after(setting, before);
    let mut reopened = original.reopened();
    let since = original.attempt();
    for (number, one) in after.iter().enumerate() {
        let expected = original.play_since(*one, since);
        assert_eq!(reopened.play_since(*one, 0), expected, "{one:?}, number {number} after the replay");
    }
    assert_eq!(reopened.thread.history(), original.thread.history());
    assert_eq!(reopened.thread.usage(), original.thread.usage());
}

/// One more record changes the last turn, starts another, or rolls turns back; it never rewrites an earlier turn.
fn check_one_more(records: &[Timed], cut: usize) {
    let (before, after) = (replay(&records[..cut]).turns, replay(&records[..=cut]).turns);
    if let (_, RolloutRecord::RolledBack { num_turns }) = &records[cut] {
        let left = before.len().saturating_sub(*num_turns as usize);
        return assert_eq!(after, before[..left], "what a rollback leaves");
    }
    let settled = if after.len() == before.len() { before.len().saturating_sub(1) } else { before.len() };
    assert_eq!(after[..settled], before[..settled], "settled before record {cut}");
    assert!(after.len() <= before.len() + 1, "a record begins one turn at most");
}

/// In a truncated record, every turn but the last is as in the whole record, unless it was rolled back later.
fn check_cut(records: &[Timed], cut: usize) {
    let (part, whole) = (replay(&records[..cut]), replay(records));
    let last = part.turns.len().saturating_sub(1);
    for turn in &part.turns[..last] {
        if let Some(later) = whole.turns.iter().find(|later| later.id == turn.id) {
            assert_eq!(turn, later, "cut at {cut}");
        }
    }
    let known: BTreeSet<_> = part.turns.iter().map(|turn| &turn.id).collect();
    let begun = whole.turns.iter().filter(|turn| known.contains(&turn.id)).map(|turn| &turn.id);
    let first: Vec<_> = part.turns.iter().map(|turn| &turn.id).collect();
    let begun: Vec<_> = begun.collect();
    assert_eq!(first[..begun.len()], begun, "turns keep their order");
    check_can_continue(part);
}

/// Whatever a crash left, the next request is valid for a provider: every call has its output.
fn check_can_continue(history: ThreadHistory) {
    let mut scene = Scene::new(PLAIN);
    scene.thread = ThreadMachine::new(seed(history));
    let effects = scene.play(Move::Start(Place::Here)).expect("an idle thread starts");
    let asked = effects.iter().find_map(|effect| match effect {
        Effect::RequestModel { request, .. } => Some(json!(request.body.input)),
        _ => None,
    });
    let asked = asked.expect("a turn begins with a request");
    let ids = |kind: &str| -> BTreeSet<String> {
        let items = asked.as_array().expect("a list").iter();
        items.filter(|item| item["type"] == kind).map(|item| item["call_id"].to_string()).collect()
    };
    assert_eq!(ids("function_call"), ids("function_call_output"));
}

/// The same records, written to a file like in production and read again.
fn through_a_file(records: &[Timed]) -> (ThreadHistory, ThreadHistory) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(folder.path(), StoreOptions::default()).expect("a store");
    let thread_id = ThreadId::new(THREAD);
    let mut batches = records
        .chunk_by(|(one, _), (next, _)| one == next)
        .map(|chunk| {
            chunk.iter().try_fold(RecordBatch::at(chunk[0].0), |batch, (_, record)| batch.with(record))
        })
        .map(|batch| batch.expect("a record fits"));
    let journal = store.create(&thread_id, batches.next().expect("an identity")).expect("a journal");
    for batch in batches {
        journal.append(batch).expect("appended");
    }
    journal.close().expect("closed");
    let read = store.read(&thread_id).expect("readable");
    assert!(read.damage.is_empty(), "{:?}", read.damage);
    (read.history, store.resume(&thread_id).expect("can be continued").history)
}

/// The same result from the same records, in memory and after writing and reading them.
fn check_twice(records: &[Timed]) {
    let once = bytes(&replay(records));
    assert!(once == bytes(&replay(records)), "replaying twice gives the same bytes");
    let written = serde_json::to_vec(records).expect("serialises");
    let read: Vec<Timed> = serde_json::from_slice(&written).expect("records can be read again");
    assert!(once == bytes(&replay(&read)), "so does replaying what was written");
}

proptest! {
    #![proptest_config(one_case_in(1))]

    #[test]
    fn a_replay_is_the_thread_that_wrote_it(setting in settings(), moves in moves(40), cut in any::<Index>()) {
        let scene = Scene::after(setting, &moves);
        check_agreement(&scene, &replay(&scene.records));
        check_twice(&scene.records);
        let cut = cut.index(scene.records.len());
        check_cut(&scene.records, cut);
        check_one_more(&scene.records, cut);
    }

    #[test]
    fn a_replay_continues_like_the_thread(setting in settings(), before in moves(25), after in moves(15)) {
        let after: Vec<Move> = [Move::Start(Place::Here)].into_iter().chain(after).collect();
        check_continuation(setting, &before, &after);
    }
}

proptest! {
    #![proptest_config(one_case_in(50))]

    #[test]
    fn a_file_holds_the_thread_that_wrote_it(setting in settings(), moves in moves(40)) {
        let scene = Scene::after(setting, &moves);
        let (read, resumed) = through_a_file(&scene.records);
        prop_assert_eq!(bytes(&read), bytes(&resumed));
        prop_assert_eq!(bytes(&read), bytes(&replay(&scene.records)));
        check_agreement(&scene, &read);
    }
}

proptest! {
    #![proptest_config(one_case_in(20))]

    #[test]
    fn a_record_may_be_cut_anywhere(setting in settings(), moves in moves(40)) {
        let records = Scene::after(setting, &moves).records;
        check_twice(&records);
        for cut in 0..records.len() {
            check_cut(&records, cut);
            check_one_more(&records, cut);
        }
    }
}

/// A turn with an answer.
const ANSWERED: [Move; 3] = [Move::Start(Place::Here), MESSAGE_DONE, COMPLETED];
/// A turn that was stopped.
const STOPPED: [Move; 2] = [Move::Start(Place::Here), Move::Interrupt];
/// A turn during which the thread changes its environment.
const MOVED: [Move; 7] = [
    Move::Start(Place::Here),
    CALL,
    COMPLETED,
    Move::ToolEnds(0),
    Move::Captured(Place::Elsewhere),
    MESSAGE_DONE,
    COMPLETED,
];
const COMPACTED: [Move; 3] = [Move::Compact, MESSAGE_DONE, COMPLETED];

fn check_story(parts: &[&[Move]]) {
    let moves = parts.concat();
    let scene = Scene::after(PLAIN, &moves);
    check_agreement(&scene, &replay(&scene.records));
    for place in [Place::Here, Place::Elsewhere] {
        check_continuation(PLAIN, &moves, &[Move::Start(place), MESSAGE_DONE, COMPLETED]);
    }
}

#[test]
fn a_rollback_removes_a_turn_with_all_its_items() {
    check_story(&[&ANSWERED, &[Move::Start(Place::Here), Move::Steer, Move::Interrupt, Move::Rollback(1)]]);
}

#[test]
fn a_rollback_leaves_the_mark_of_an_earlier_stopped_turn() {
    check_story(&[&STOPPED, &ANSWERED, &[Move::Rollback(1)]]);
}

#[test]
fn a_rollback_of_a_compaction_restores_the_history() {
    check_story(&[&ANSWERED, &COMPACTED, &[Move::Rollback(1)]]);
}

#[test]
fn a_rollback_restores_the_environment() {
    check_story(&[&ANSWERED, &MOVED, &[Move::Rollback(1)]]);
}

#[test]
fn after_a_compaction_the_context_is_sent_again() {
    check_story(&[&ANSWERED, &COMPACTED]);
}

#[test]
fn the_end_of_a_child_keeps_its_position() {
    let ends = [Move::ChildEnds(1)];
    check_story(&[&ends, &ANSWERED, &ends]);
    check_story(&[&ANSWERED, &[Move::Start(Place::Here)], &ends, &[MESSAGE_DONE, COMPLETED]]);
    check_story(&[&ANSWERED, &[Move::Compact], &ends, &[MESSAGE_DONE, COMPLETED]]);
}

#[test]
fn a_rollback_removes_notifications_after_the_turn() {
    check_story(&[&ANSWERED, &ANSWERED, &[Move::ChildEnds(1), Move::Rollback(1)]]);
    check_story(&[&[Move::ChildEnds(1)], &ANSWERED, &[Move::Rollback(1)]]);
}

#[test]
fn a_changed_environment_is_in_the_record() {
    check_story(&[&ANSWERED, &MOVED]);
}
