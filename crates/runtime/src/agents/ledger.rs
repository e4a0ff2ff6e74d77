//! What the records of a family say of the children of one thread: which ends it was told of and which it was not, and
//! whom somebody further above has closed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use journal::{Entry, JournalError, ReadOptions, Record, Store};
use protocol::{
    CollabAgentTool, FunctionCallOutputBody, ResponseItem, RolloutRecord, SessionSource, SubAgentSource,
    ThreadId, ThreadItem, Turn, TurnId,
};
use serde_json::{Value, json};
use tools::AgentStatus;

use super::adopted::Call;
use super::away_record::news_in;
use super::overheard::ended;
use super::spawn::recorded_status;

/// A record that names its own child as its parent leads round in a circle.
const MOST_ABOVE: usize = 64;

/// What a parent knows of a child that has a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heard {
    /// The last turn whose end the parent's record has, or is about to have.
    pub(super) told: Option<TurnId>,
    /// The next end is news.
    pub(super) awaits: bool,
}

/// What one record says of agents.
#[derive(Debug, Default)]
pub(super) struct Page {
    thread: Option<ThreadId>,
    /// The thread it works for.
    above: Option<ThreadId>,
    told: Vec<Told>,
    /// The turns that its words to agents began or joined.
    begun: HashSet<TurnId>,
    /// Whom it last opened or closed, and when.
    opened: HashMap<String, (i64, bool)>,
}

#[derive(Debug, Clone)]
struct Told {
    agent: String,
    /// Older records do not say.
    turn: Option<TurnId>,
    status: Value,
}

impl Page {
    fn of(thread: &ThreadId) -> Self {
        Self { thread: Some(thread.clone()), ..Self::default() }
    }

    pub(super) fn read(store: &Store, thread: &ThreadId) -> Result<Self, JournalError> {
        let mut page = Self::of(thread);
        each_record(store, thread, |at_ms, record| page.add(at_ms, record))?;
        Ok(page)
    }

    pub(super) fn brought(thread: &ThreadId, entries: &[Entry]) -> Self {
        let mut page = Self::of(thread);
        for entry in entries {
            if let Record::Known(record) = &entry.record {
                page.add(entry.at_ms, record);
            }
        }
        page
    }

    fn add(&mut self, at_ms: i64, record: &RolloutRecord) {
        match record {
            RolloutRecord::SessionMeta { meta } if self.thread.as_ref() == Some(&meta.thread_id) => {
                if let SessionSource::SubAgent(SubAgentSource::ThreadSpawn { parent_thread_id, .. }) =
                    &meta.source
                {
                    self.above = Some(parent_thread_id.clone());
                }
            }
            RolloutRecord::ResponseItem { item, .. } => self.hear(item),
            RolloutRecord::ThreadItem { item, .. } => self.note(at_ms, item),
            _ => {}
        }
    }

    fn hear(&mut self, item: &ResponseItem) {
        match item {
            ResponseItem::Message { id, role, .. } if role == "developer" => {
                let Some(mut news) = news_in(item) else { return };
                let Some(agent) = news["agent_path"].as_str().map(str::to_owned) else { return };
                let turn = id.as_deref().map(TurnId::new);
                self.told.push(Told { agent, turn, status: news["status"].take() });
            }
            ResponseItem::FunctionCallOutput { output: FunctionCallOutputBody::Text(text), .. }
                if text.starts_with(r#"{"submission_id""#) =>
            {
                let sent: Value = serde_json::from_str(text).unwrap_or_default();
                self.begun.extend(sent["submission_id"].as_str().map(TurnId::new));
            }
            _ => {}
        }
    }

    fn note(&mut self, at_ms: i64, item: &ThreadItem) {
        let Some(call) = Call::of(item).filter(|call| self.thread.as_ref() == Some(call.sender)) else {
            return;
        };
        let opens = match call.tool {
            CollabAgentTool::SpawnAgent | CollabAgentTool::ResumeAgent => true,
            CollabAgentTool::CloseAgent => false,
            CollabAgentTool::SendInput | CollabAgentTool::Wait => return,
        };
        for child in call.receivers.iter().filter(|child| call.is_done(child)) {
            self.opened.insert(child.to_string(), (at_ms, opens));
        }
    }

    /// What there is to know of one agent.
    fn account(&self, agent: &str, begun: &Arc<HashSet<TurnId>>) -> Account {
        let told = self.told.iter().filter(|told| told.agent == agent).cloned().collect();
        Account { told, begun: begun.clone() }
    }
}

/// What a parent's record says of one child.
#[derive(Debug, Clone)]
pub(super) struct Account {
    told: Vec<Told>,
    begun: Arc<HashSet<TurnId>>,
}

impl Account {
    fn has(&self, turn: &TurnId, status: &AgentStatus) -> bool {
        self.told.iter().any(|told| match &told.turn {
            Some(told) => told == turn,
            None => told.status == json!(status),
        })
    }

    /// Against what the child's own record says: what the parent knows, and the ends that it has to be told.
    pub(super) fn settle(&self, life: &Life) -> (Heard, Vec<End>) {
        let (news, awaits) = life.news(&self.begun);
        let told = news.last().map(|(turn, _)| (*turn).clone());
        let untold = news.into_iter().filter(|(turn, status)| !self.has(turn, status));
        (Heard { told, awaits }, untold.map(|(turn, status)| (turn.clone(), status.clone())).collect())
    }
}

/// The turn with which an agent came to an end, and to which.
pub(super) type End = (TurnId, AgentStatus);

/// The ends an agent came to, as its own record has them.
#[derive(Debug, Default)]
pub(super) struct Life {
    ends: Vec<End>,
    /// The turn that has begun and not ended.
    running: Option<TurnId>,
    last_words: Option<String>,
}

impl Life {
    fn read(store: &Store, thread: &ThreadId) -> Result<Self, JournalError> {
        let mut life = Self::default();
        each_record(store, thread, |_, record| life.add(record))?;
        Ok(life)
    }

    /// Without what was rolled back.
    pub(super) fn of(turns: &[Turn]) -> Self {
        let end = |turn: &Turn| (turn.id.clone(), recorded_status(std::slice::from_ref(turn)));
        Self { ends: turns.iter().map(end).collect(), ..Self::default() }
    }

    fn add(&mut self, record: &RolloutRecord) {
        match record {
            RolloutRecord::TurnStarted { turn_id, .. } => {
                self.running = Some(turn_id.clone());
                self.last_words = None;
            }
            RolloutRecord::ThreadItem { item: ThreadItem::AgentMessage { text, .. }, .. } => {
                self.last_words = Some(text.clone());
            }
            RolloutRecord::TurnEnded { turn_id, status, error, .. } => {
                let status = ended(*status, error.as_ref(), self.last_words.take());
                self.ends.push((turn_id.clone(), status));
                self.running = None;
            }
            _ => {}
        }
    }

    /// The ends that were news to its parent, and whether the next one is: as it is while they happen.
    fn news(&self, begun: &HashSet<TurnId>) -> (Vec<(&TurnId, &AgentStatus)>, bool) {
        let (mut news, mut awaits) = (Vec::new(), true);
        for (turn, status) in &self.ends {
            awaits |= begun.contains(turn);
            if awaits && status.is_final() {
                news.push((turn, status));
                awaits = false;
            }
        }
        (news, awaits || self.running.as_ref().is_some_and(|turn| begun.contains(turn)))
    }
}

/// Up to what is durable: others may be writing.
fn each_record(
    store: &Store,
    thread: &ThreadId,
    mut each: impl FnMut(i64, &RolloutRecord),
) -> Result<(), JournalError> {
    let row = store.summary(thread)?;
    let options = ReadOptions { up_to: Some(row.length), ..ReadOptions::default() };
    journal::read_each(&row.path, &options, |entry| {
        if let Record::Known(record) = &entry.record {
            each(entry.at_ms, record);
        }
    })?;
    Ok(())
}

/// What is known of one child.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) is_open: bool,
    pub(super) account: Account,
    /// Unless its record is elsewhere.
    pub(super) life: Option<Life>,
}

/// The records of those above, the nearest first, as far as they are here.
fn above(store: &Store, own: &Page) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut next = own.above.clone();
    while let Some(page) =
        next.filter(|_| pages.len() < MOST_ABOVE).and_then(|id| Page::read(store, &id).ok())
    {
        next = page.above.clone();
        pages.push(page);
    }
    pages
}

pub(super) fn find(store: &Store, own: &Page, children: Vec<(String, bool)>) -> Vec<Finding> {
    let above = above(store, own);
    let pages = || [own].into_iter().chain(&above);
    let begun: Arc<HashSet<TurnId>> = Arc::new(pages().flat_map(|page| page.begun.clone()).collect());
    let find = |(id, is_open): (String, bool)| {
        let since = own.opened.get(&id).map_or(i64::MIN, |(at_ms, _)| *at_ms);
        let touched =
            above.iter().filter_map(|page| page.opened.get(&id)).filter(|(at_ms, _)| *at_ms > since);
        let is_open = touched.max_by_key(|(at_ms, _)| *at_ms).map_or(is_open, |(_, opens)| *opens);
        let life = is_open.then(|| Life::read(store, &ThreadId::new(id.as_str())).ok()).flatten();
        Finding { is_open, account: own.account(&id, &begun), life }
    };
    children.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests;
