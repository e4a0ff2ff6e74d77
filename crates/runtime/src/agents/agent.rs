//! One agent: how it stands, and whether that is news to its parent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use protocol::{OperationId, ThreadId, TurnId};
use tokio::sync::watch;
use tools::AgentStatus;

use super::ledger::{Account, Heard};
use crate::runtime::lock;

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    /// What tools call it by.
    pub(crate) id: String,
    pub(crate) family: Family,
    pub(crate) nickname: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) place: Place,
    status: watch::Sender<AgentStatus>,
    /// Counts against the limit.
    is_open: AtomicBool,
    /// Its parent is told when it is next at an end.
    is_awaited: AtomicBool,
    /// Closed under its own name and not along with one above it, with which it would be opened again.
    is_dismissed: AtomicBool,
    ends: Mutex<Ends>,
    /// What its parent knows of it, until its own record says what else there is to tell.
    account: Mutex<Option<Account>>,
}

/// The turns that an agent's ends came with.
#[derive(Debug, Default)]
struct Ends {
    /// The one it stands at the end of.
    seen: Option<TurnId>,
    /// The last one that its parent's record is known to have.
    told: Option<TurnId>,
}

impl Ends {
    fn is_told(&self) -> bool {
        self.seen.is_some() && self.seen == self.told
    }
}

/// Where an agent stands among others.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    pub(crate) parent: ThreadId,
    pub(crate) root: ThreadId,
    /// 1 for a child of the root.
    pub(crate) depth: u32,
    /// From the root to this one.
    pub(crate) path: Arc<[String]>,
}

/// Where an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its id is that of its thread.
    Here,
    /// The host is asked where it is to be; until then it only keeps its place.
    Asked(OperationId),
    /// Wherever the host put it.
    Away { delegation_id: OperationId, child_ref: String },
}

impl Agent {
    pub(crate) fn new(id: String, family: Family, place: Place) -> Self {
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

    pub(crate) fn status(&self) -> AgentStatus {
        self.status.borrow().clone()
    }

    pub(super) fn watch(&self) -> watch::Receiver<AgentStatus> {
        self.status.subscribe()
    }

    pub(super) fn set(&self, status: AgentStatus) {
        self.status.send_replace(status);
    }

    /// Says whether its parent still has to be told that it is at an end, which is once.
    pub(super) fn end(&self, turn: Option<&TurnId>, status: AgentStatus) -> bool {
        let mut ends = lock(&self.ends);
        let is_final = status.is_final();
        self.set(status);
        ends.seen = turn.cloned();
        is_final && !ends.is_told() && self.is_awaited.swap(false, Ordering::AcqRel)
    }

    /// Its parent comes back, with what its record has of this one.
    pub(super) fn settle(&self, heard: &Heard) {
        *lock(&self.account) = None;
        let mut ends = lock(&self.ends);
        ends.told.clone_from(&heard.told);
        if heard.awaits {
            self.expect_news();
        } else if ends.is_told() {
            self.expect_nothing();
        }
    }

    /// Its parent comes back, and the record of this one is not there to be read.
    pub(super) fn owe(&self, account: Account) {
        *lock(&self.account) = Some(account);
    }

    pub(super) fn account(&self) -> Option<Account> {
        lock(&self.account).clone()
    }

    /// The turn it is at the end of; none when its parent knows of that.
    pub(super) fn untold_end(&self) -> Option<Option<TurnId>> {
        let ends = lock(&self.ends);
        (!ends.is_told()).then(|| ends.seen.clone())
    }

    /// Its parent, which is not in memory, hears of its end when it is back.
    pub(super) fn keep_news(&self) {
        let ends = lock(&self.ends);
        if !ends.is_told() {
            self.expect_news();
        }
    }

    /// It works on something more: its next end is news again.
    pub(super) fn begin(&self) {
        lock(&self.ends).seen = None;
        self.expect_news();
        self.set(AgentStatus::Running);
    }

    /// Its parent is told when it is next at an end.
    pub(super) fn expect_news(&self) {
        self.is_awaited.store(true, Ordering::Release);
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Acquire)
    }

    /// Whatever comes of it now is no news.
    pub(super) fn expect_nothing(&self) {
        self.is_awaited.store(false, Ordering::Release);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.is_dismissed.store(false, Ordering::Release);
    }

    /// Closed, it stays so when its parent is opened again.
    pub(super) fn dismiss(&self) {
        self.is_dismissed.store(true, Ordering::Release);
    }

    pub(super) fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Acquire)
    }

    /// It is at an end that is no news.
    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        self.expect_nothing();
        self.set(AgentStatus::Shutdown);
    }

    pub(super) fn thread(&self) -> ThreadId {
        ThreadId::new(self.id.as_str())
    }

    /// Hosts name their children as they like, so that only the operation tells those of several hosts apart.
    pub(super) fn key(&self) -> &str {
        match &self.place {
            Place::Here => &self.id,
            Place::Asked(delegation_id) | Place::Away { delegation_id, .. } => delegation_id.as_str(),
        }
    }

    pub(super) fn is_asked_for(&self) -> bool {
        matches!(self.place, Place::Asked(_))
    }
}
