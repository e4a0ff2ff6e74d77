//! The children of one thread, from their family's records: which ends were reported to it, and which children an
//! ancestor closed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use journal::{JournalEntry, JournalError, ReadOptions, Record, Store};
use protocol::{
    CollabAgentTool, FunctionCallOutputBody, ResponseItem, RolloutRecord, SessionSource, SubAgentSource,
    ThreadId, ThreadItem, Turn, TurnId,
};
use serde_json::{Value, json};
use tools::AgentStatus;

use super::at_host::news_in;
use super::recorded_child::AgentToolCall;
use super::status::ended;
use super::status::recorded_status;

/// Limit of ancestors, because a broken record may form a cycle.
const MOST_ABOVE: usize = 64;

/// What a parent's record says about a child with its own record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedEnd {
    /// The last turn whose end is in the parent's record, or about to be.
    pub told: Option<TurnId>,
    /// The next end is to be reported.
    pub awaits: bool,
}

/// The agents that one record mentions.
#[derive(Debug, Default)]
pub struct AgentRecord {
    thread: Option<ThreadId>,
    /// The thread it works for.
    above: Option<ThreadId>,
    told: Vec<ChildReport>,
    /// The turns that its messages to agents started or joined.
    begun: HashSet<TurnId>,
    /// The agents it last opened or closed, and when.
    opened: HashMap<String, (i64, bool)>,
}

#[derive(Debug, Clone)]
struct ChildReport {
    agent: String,
    /// Not in older records.
    turn: Option<TurnId>,
    status: Value,
}

impl AgentRecord {
    fn of(thread: &ThreadId) -> Self {
        Self { thread: Some(thread.clone()), ..Self::default() }
    }

    pub fn read(store: &Store, thread: &ThreadId) -> Result<Self, JournalError> {
        let mut page = Self::of(thread);
        each_record(store, thread, |at_ms, record| page.add(at_ms, record))?;
        Ok(page)
    }

    pub fn imported(thread: &ThreadId, entries: &[JournalEntry]) -> Self {
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
                self.told.push(ChildReport { agent, turn, status: news["status"].take() });
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
        let Some(call) = AgentToolCall::of(item).filter(|call| self.thread.as_ref() == Some(call.sender))
        else {
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

    /// The facts about one agent.
    fn account(&self, agent: &str, begun: &Arc<HashSet<TurnId>>) -> ChildAccount {
        let told = self.told.iter().filter(|told| told.agent == agent).cloned().collect();
        ChildAccount { told, begun: begun.clone() }
    }
}

/// One child, from its parent's record.
#[derive(Debug, Clone)]
pub struct ChildAccount {
    told: Vec<ChildReport>,
    begun: Arc<HashSet<TurnId>>,
}

impl ChildAccount {
    fn has(&self, turn: &TurnId, status: &AgentStatus) -> bool {
        self.told.iter().any(|told| match &told.turn {
            Some(told) => told == turn,
            None => told.status == json!(status),
        })
    }

    /// Compares with the child's own record: returns what was reported, and the ends still to report.
    pub fn settle(&self, life: &ChildLife) -> (ReportedEnd, Vec<ChildTurnEnd>) {
        let (news, awaits) = life.news(&self.begun);
        let told = news.last().map(|(turn, _)| (*turn).clone());
        let untold = news.into_iter().filter(|(turn, status)| !self.has(turn, status));
        (ReportedEnd { told, awaits }, untold.map(|(turn, status)| (turn.clone(), status.clone())).collect())
    }
}

/// The turn at whose end an agent stopped, and its status.
pub type ChildTurnEnd = (TurnId, AgentStatus);

/// The ends of an agent, from its own record.
#[derive(Debug, Default)]
pub struct ChildLife {
    ends: Vec<ChildTurnEnd>,
    /// The turn that has not ended.
    running: Option<TurnId>,
    last_words: Option<String>,
}

impl ChildLife {
    fn read(store: &Store, thread: &ThreadId) -> Result<Self, JournalError> {
        let mut life = Self::default();
        each_record(store, thread, |_, record| life.add(record))?;
        Ok(life)
    }

    /// Without rolled back turns.
    pub fn of(turns: &[Turn]) -> Self {
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

    /// The ends to be reported, and whether the next one is: the same rules as at run time.
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

/// Reads what is durable: other processes may be writing.
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

/// The facts known about one child.
#[derive(Debug)]
pub struct ChildFinding {
    pub is_open: bool,
    pub account: ChildAccount,
    /// Unset if its record is elsewhere.
    pub life: Option<ChildLife>,
}

/// The records of its ancestors, nearest first, as far as they are here.
fn above(store: &Store, own: &AgentRecord) -> Vec<AgentRecord> {
    let mut pages = Vec::new();
    let mut next = own.above.clone();
    while let Some(page) =
        next.filter(|_| pages.len() < MOST_ABOVE).and_then(|id| AgentRecord::read(store, &id).ok())
    {
        next = page.above.clone();
        pages.push(page);
    }
    pages
}

pub fn find_children(store: &Store, own: &AgentRecord, children: Vec<(String, bool)>) -> Vec<ChildFinding> {
    let above = above(store, own);
    let pages = || [own].into_iter().chain(&above);
    let begun: Arc<HashSet<TurnId>> = Arc::new(pages().flat_map(|page| page.begun.clone()).collect());
    let find = |(id, is_open): (String, bool)| {
        let since = own.opened.get(&id).map_or(i64::MIN, |(at_ms, _)| *at_ms);
        let touched =
            above.iter().filter_map(|page| page.opened.get(&id)).filter(|(at_ms, _)| *at_ms > since);
        let is_open = touched.max_by_key(|(at_ms, _)| *at_ms).map_or(is_open, |(_, opens)| *opens);
        let life = is_open.then(|| ChildLife::read(store, &ThreadId::new(id.as_str())).ok()).flatten();
        ChildFinding { is_open, account: own.account(&id, &begun), life }
    };
    children.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests;
