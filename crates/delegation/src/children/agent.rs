//! One agent: how it stands, and whether that is news to its parent.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::{OperationId, ThreadId, TurnId};
use tokio::sync::watch;
use tools::AgentStatus;

use super::ledger::{ChildAccount, ReportedEnd};

/// One agent.
#[derive(Debug)]
pub struct Agent {
    /// The name that tools use for it.
    pub id: String,
    pub family: Family,
    pub nickname: Option<String>,
    pub role: Option<String>,
    pub place: AgentPlace,
    status: watch::Sender<AgentStatus>,
    /// Counts against the limit.
    is_open: AtomicBool,
    /// Its parent is told when it is next at an end.
    is_awaited: AtomicBool,
    /// Closed under its own name and not along with one above it, with which it would be opened again.
    is_dismissed: AtomicBool,
    ends: Mutex<TurnEnds>,
    /// Its parent's knowledge of it, until its own record says what else there is to tell.
    account: Mutex<Option<ChildAccount>>,
}

/// The turns that an agent's ends came with.
#[derive(Debug, Default)]
struct TurnEnds {
    /// The one it stands at the end of.
    seen: Option<TurnId>,
    /// The last one that its parent's record is known to have.
    told: Option<TurnId>,
}

impl TurnEnds {
    fn is_told(&self) -> bool {
        self.seen.is_some() && self.seen == self.told
    }
}

/// Where an agent stands among others.
#[derive(Debug, Clone)]
pub struct Family {
    pub parent: ThreadId,
    pub root: ThreadId,
    /// 1 for a child of the root.
    pub depth: u32,
    /// From the root to this one.
    pub path: Arc<[String]>,
}

/// Where an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentPlace {
    /// Its id is that of its thread.
    Here,
    /// The host is asked where it is to be; until then it only keeps its place.
    Asked(OperationId),
    /// Wherever the host put it.
    Away { delegation_id: OperationId, child_ref: String },
}

impl Agent {
    pub fn new(id: String, family: Family, place: AgentPlace) -> Self {
        let status = watch::Sender::new(AgentStatus::PendingInit);
        Self {
            id,
            family,
            nickname: None,
            role: None,
            place,
            status,
            is_open: AtomicBool::new(true),
            is_awaited: AtomicBool::new(true),
            is_dismissed: AtomicBool::new(false),
            ends: Mutex::default(),
            account: Mutex::default(),
        }
    }

    pub fn status(&self) -> AgentStatus {
        self.status.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<AgentStatus> {
        self.status.subscribe()
    }

    pub fn set(&self, status: AgentStatus) {
        self.status.send_replace(status);
    }

    /// Says whether its parent still has to be told that it is at an end, which is once.
    pub fn end(&self, turn: Option<&TurnId>, status: AgentStatus) -> bool {
        let mut ends = self.ends.lock();
        let is_final = status.is_final();
        self.set(status);
        ends.seen = turn.cloned();
        is_final && !ends.is_told() && self.is_awaited.swap(false, Ordering::AcqRel)
    }

    /// Its parent comes back, with what its record has of this one.
    pub fn settle(&self, heard: &ReportedEnd) {
        *self.account.lock() = None;
        let mut ends = self.ends.lock();
        ends.told.clone_from(&heard.told);
        if heard.awaits {
            self.expect_news();
        } else if ends.is_told() {
            self.expect_nothing();
        }
    }

    /// Its parent comes back, and the record of this one is not there to be read.
    pub fn owe(&self, account: ChildAccount) {
        *self.account.lock() = Some(account);
    }

    pub fn account(&self) -> Option<ChildAccount> {
        self.account.lock().clone()
    }

    /// The turn it is at the end of; none when its parent knows of that.
    pub fn untold_end(&self) -> Option<Option<TurnId>> {
        let ends = self.ends.lock();
        (!ends.is_told()).then(|| ends.seen.clone())
    }

    /// Its parent, which is not in memory, hears of its end when it is back.
    pub fn keep_news(&self) {
        let ends = self.ends.lock();
        if !ends.is_told() {
            self.expect_news();
        }
    }

    /// It works on something more: its next end is news again.
    pub fn begin(&self) {
        self.ends.lock().seen = None;
        self.expect_news();
        self.set(AgentStatus::Running);
    }

    /// Its parent is told when it is next at an end.
    pub fn expect_news(&self) {
        self.is_awaited.store(true, Ordering::Release);
    }

    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Acquire)
    }

    /// Whatever comes of it now is no news.
    pub fn expect_nothing(&self) {
        self.is_awaited.store(false, Ordering::Release);
    }

    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    pub fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.is_dismissed.store(false, Ordering::Release);
    }

    /// Closed, it stays so when its parent is opened again.
    pub fn dismiss(&self) {
        self.is_dismissed.store(true, Ordering::Release);
    }

    pub fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Acquire)
    }

    /// It is at an end that is no news.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        self.expect_nothing();
        self.set(AgentStatus::Shutdown);
    }

    pub fn thread(&self) -> ThreadId {
        ThreadId::new(self.id.as_str())
    }

    /// Hosts name their children as they like, so that only the operation tells those of several hosts apart.
    pub fn key(&self) -> &str {
        match &self.place {
            AgentPlace::Here => &self.id,
            AgentPlace::Asked(delegation_id) | AgentPlace::Away { delegation_id, .. } => {
                delegation_id.as_str()
            }
        }
    }

    pub fn is_asked_for(&self) -> bool {
        matches!(self.place, AgentPlace::Asked(_))
    }
}
