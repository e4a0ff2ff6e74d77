//! One agent: its status, and whether its parent must be notified of its end.

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
    /// Its id in tool calls.
    pub id: String,
    pub family: Family,
    pub nickname: Option<String>,
    pub role: Option<String>,
    pub place: AgentPlace,
    status: watch::Sender<AgentStatus>,
    /// Counts against the limit.
    is_open: AtomicBool,
    /// Its next end is reported to the parent.
    is_awaited: AtomicBool,
    /// Closed by its own id, not together with an ancestor, with which it would be opened again.
    is_dismissed: AtomicBool,
    ends: Mutex<TurnEnds>,
    /// What the parent's record says about it, until its own record is read.
    account: Mutex<Option<ChildAccount>>,
}

/// The turns at whose ends the agent stopped.
#[derive(Debug, Default)]
struct TurnEnds {
    /// The turn that its current status is from.
    seen: Option<TurnId>,
    /// The last turn whose end is in the parent's record.
    told: Option<TurnId>,
}

impl TurnEnds {
    fn is_reported(&self) -> bool {
        self.seen.is_some() && self.seen == self.told
    }
}

/// The position of an agent in its family.
#[derive(Debug, Clone)]
pub struct Family {
    pub parent: ThreadId,
    pub root: ThreadId,
    /// 1 for a child of the root.
    pub depth: u32,
    /// From the root to this agent.
    pub path: Arc<[String]>,
}

/// Where an agent runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentPlace {
    /// In this process; its id is that of its thread.
    Here,
    /// The host is being asked where to run it; until then only its slot is reserved.
    Asked(OperationId),
    /// At the host.
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

    /// Sets the final status. Returns whether to notify the parent, once per end.
    pub fn end(&self, turn: Option<&TurnId>, status: AgentStatus) -> bool {
        let mut ends = self.ends.lock();
        let is_final = status.is_final();
        self.set(status);
        ends.seen = turn.cloned();
        is_final && !ends.is_reported() && self.is_awaited.swap(false, Ordering::AcqRel)
    }

    /// The parent was loaded again, with this from its record.
    pub fn settle(&self, heard: &ReportedEnd) {
        *self.account.lock() = None;
        let mut ends = self.ends.lock();
        ends.told.clone_from(&heard.told);
        if heard.awaits {
            self.report_next_end();
        } else if ends.is_reported() {
            self.report_nothing();
        }
    }

    /// The parent was loaded again, and this agent's own record cannot be read.
    pub fn owe(&self, account: ChildAccount) {
        *self.account.lock() = Some(account);
    }

    pub fn account(&self) -> Option<ChildAccount> {
        self.account.lock().clone()
    }

    /// The turn of its last end, unless that was reported already.
    pub fn unreported_end(&self) -> Option<Option<TurnId>> {
        let ends = self.ends.lock();
        (!ends.is_reported()).then(|| ends.seen.clone())
    }

    /// The parent is not loaded: it is notified when it is.
    pub fn report_later(&self) {
        let ends = self.ends.lock();
        if !ends.is_reported() {
            self.report_next_end();
        }
    }

    /// It works again, so its next end is reported.
    pub fn begin(&self) {
        self.ends.lock().seen = None;
        self.report_next_end();
        self.set(AgentStatus::Running);
    }

    /// Reports its next end to the parent.
    pub fn report_next_end(&self) {
        self.is_awaited.store(true, Ordering::Release);
    }

    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Acquire)
    }

    /// Reports no further end.
    pub fn report_nothing(&self) {
        self.is_awaited.store(false, Ordering::Release);
    }

    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    pub fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.is_dismissed.store(false, Ordering::Release);
    }

    /// It stays closed when its parent is opened again.
    pub fn dismiss(&self) {
        self.is_dismissed.store(true, Ordering::Release);
    }

    pub fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Acquire)
    }

    /// Closes it without a report.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        self.report_nothing();
        self.set(AgentStatus::Shutdown);
    }

    pub fn thread(&self) -> ThreadId {
        ThreadId::new(self.id.as_str())
    }

    /// Different hosts may use the same child id, so the operation id is the key.
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
