//! A thread at work: its records, its notifications, and the result of replaying its record.

use std::collections::BTreeMap;

use engine::{Effect, Input, Refusal, Stamp, ThreadMachine, ThreadSeed};
use journal::{HistoryBuilder, JournalEntry, Record, ThreadHistory};
use protocol::{ResponseItem, RolloutRecord, ServerNotification, ThreadId, Turn, TurnId};
use serde_json::{Value, json};

use super::moves::{Move, Place, Setting};
use crate::support::{BEGAN_MS, THREAD, meta};

/// A record with its time.
pub(crate) type Timed = (i64, RolloutRecord);

pub(crate) struct Scene {
    pub(crate) thread: ThreadMachine,
    pub(crate) records: Vec<Timed>,
    /// The clients' view: the ended turns, without those rolled back.
    pub(crate) told: Vec<Told>,
    setting: Setting,
    attempt: u64,
    moves: u32,
    now_ms: i64,
}

/// A turn as clients were notified of it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// From `turn/completed`; none while the turn runs.
    pub(crate) end: Option<Turn>,
    /// The last state of each item.
    pub(crate) items: BTreeMap<String, Value>,
}

impl Scene {
    pub(crate) fn new(setting: Setting) -> Self {
        let seed = ThreadSeed::new(ThreadId::new(THREAD));
        let identity = RolloutRecord::SessionMeta { meta: Box::new(meta()) };
        Self {
            thread: ThreadMachine::new(seed),
            records: vec![(BEGAN_MS, identity)],
            told: vec![],
            setting,
            attempt: 0,
            moves: 0,
            now_ms: BEGAN_MS,
        }
    }

    /// An idle thread after these moves: a running turn is stopped, like on closing.
    pub(crate) fn after(setting: Setting, moves: &[Move]) -> Self {
        let mut scene = Self::new(setting);
        for one in moves {
            // A refusal is fine: it changes nothing.
            let _ = scene.keep_busy(*one);
        }
        scene.play(Move::Interrupt).expect("always accepted");
        scene
    }

    /// A thread opened from this one's record at the same moment. Attempts are counted from 0.
    pub(crate) fn reopened(&self) -> Self {
        let mut reopened = Self::new(self.setting);
        reopened.thread = ThreadMachine::new(seed(replay(&self.records)));
        reopened.records.clone_from(&self.records);
        (reopened.moves, reopened.now_ms) = (self.moves, self.now_ms);
        reopened
    }

    /// Performs the move, starting a turn if it needs one.
    fn keep_busy(&mut self, one: Move) -> Result<Vec<Effect>, Refusal> {
        let mut effects = match self.thread.active_turn() {
            None if one.needs_a_turn() => self.play(Move::Start(Place::Here))?,
            _ => vec![],
        };
        effects.extend(self.play(one)?);
        Ok(effects)
    }

    /// Performs the move and returns its effects, with attempts counted relative to `since`.
    pub(crate) fn play_since(&mut self, one: Move, since: u64) -> Result<Vec<Effect>, Refusal> {
        self.keep_busy(one)
            .map(|effects| effects.into_iter().map(|effect| counted_from(effect, since)).collect())
    }

    pub(crate) fn attempt(&self) -> u64 {
        self.attempt
    }

    pub(crate) fn play(&mut self, one: Move) -> Result<Vec<Effect>, Refusal> {
        self.moves += 1;
        self.now_ms += 137;
        let mut input = one.input(self.setting, TurnId::new(format!("u{}", self.moves)), self.attempt);
        if let (Input::Proposed { turn_id, .. }, Some(active)) = (&mut input, self.thread.active_turn()) {
            turn_id.clone_from(active);
        }
        let taken_back = match &input {
            Input::Rollback { num_turns, .. } => *num_turns as usize,
            _ => 0,
        };
        let stamp = Stamp { now_ms: self.now_ms, entropy: u128::from(self.moves) };
        let mut effects = self.thread.on(stamp, input)?;
        self.told.truncate(self.told.len().saturating_sub(taken_back));
        for effect in &effects {
            self.see(effect);
        }
        if let Some(Effect::ReadBack { turn_id, step }) = effects.last().cloned() {
            let ThreadSeed { history, context, .. } = seed(replay(&self.records));
            let more = self.thread.on(stamp, Input::ReadBack { history, context, turn_id, step })?;
            more.iter().for_each(|effect| self.see(effect));
            effects.extend(more);
        }
        Ok(effects)
    }

    fn see(&mut self, effect: &Effect) {
        match effect {
            Effect::Record(record) => self.records.push((self.now_ms, (**record).clone())),
            Effect::RequestModel { attempt, .. } => self.attempt = *attempt,
            Effect::Emit(notification) => self.hear(notification),
            _ => {}
        }
    }

    fn hear(&mut self, notification: &ServerNotification) {
        match notification {
            ServerNotification::TurnStarted(_) => self.told.push(Told::default()),
            ServerNotification::TurnCompleted(completed) => {
                self.told.last_mut().expect("begun before").end = Some(completed.turn.clone());
            }
            ServerNotification::ItemCompleted(completed) => {
                let item = serde_json::to_value(&completed.item).expect("serialises");
                let id = item["id"].as_str().expect("every item has one").to_owned();
                self.told.last_mut().expect("inside a turn").items.insert(id, item);
            }
            _ => {}
        }
    }
}

fn counted_from(effect: Effect, since: u64) -> Effect {
    match effect {
        Effect::RequestModel { attempt, request } => {
            Effect::RequestModel { attempt: attempt - since, request }
        }
        Effect::CancelModel { attempt } => Effect::CancelModel { attempt: attempt - since },
        other => other,
    }
}

/// The history of these records.
pub(crate) fn replay(records: &[Timed]) -> ThreadHistory {
    let mut builder = HistoryBuilder::new(Some(ThreadId::new(THREAD)));
    for ((at_ms, record), seq) in records.iter().zip(1..) {
        builder.add(JournalEntry { seq, at_ms: *at_ms, record: Record::Known(record.clone()) });
    }
    builder.finish()
}

/// The seed of a stored thread.
pub(crate) fn seed(history: ThreadHistory) -> ThreadSeed {
    ThreadSeed {
        history: history.model,
        usage: history.token_usage,
        context: history.told_context,
        ..ThreadSeed::new(ThreadId::new(THREAD))
    }
}

/// The model's history as the engine keeps it: without items that providers reject.
pub(crate) fn as_kept(items: &[ResponseItem]) -> Value {
    let kept = engine::History::new(items.to_vec());
    json!(kept.items())
}

/// A complete text form of a history, for comparison.
pub(crate) fn bytes(history: &ThreadHistory) -> Vec<u8> {
    let ThreadHistory {
        model,
        turns,
        summary,
        meta,
        token_usage,
        goal,
        turn_context,
        host,
        told_context,
        operations,
        agreed,
        amendments,
        unfinished_turn,
    } = history;
    let wire = (model, turns, meta, token_usage, goal, turn_context, host, told_context, unfinished_turn);
    let mut bytes = serde_json::to_vec(&wire).expect("serialises");
    bytes.extend(format!("{summary:?}{operations:?}{agreed:?}{amendments:?}").into_bytes());
    bytes
}
