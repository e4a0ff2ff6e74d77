//! Services shared by all threads of the process.

use std::sync::Arc;

use engine::{Stamp, ThreadSeed};
use journal::{ReferenceRollout, Store, ThreadJournal};
use model::ModelTransport;
use protocol::{RolloutRecord, SessionMeta};
use support::Clock;
use tools::Bench;
use traces::Tracer;

use crate::audience::Audience;
use crate::thread::actor::Actor;
use crate::thread::handle::ThreadHandle;
use crate::thread::hooks::ThreadHooks;
use crate::thread::notify::NotifyCommand;
use crate::thread::settings::{StepMaker, ThreadSettings};
use crate::thread::tool_jobs::ToolRunner;
use delegation::{HostRecord, HostSession};

/// Shared by all threads.
#[derive(Debug, Clone)]
pub struct Services {
    pub store: Arc<Store>,
    pub audience: Arc<dyn Audience>,
    pub tools: Arc<dyn ToolRunner>,
    pub clock: Arc<dyn Clock>,
    pub steps: Arc<dyn StepMaker>,
    pub tracer: Tracer,
}

/// Time and randomness, from which ids are made.
pub trait ClockExt {
    fn stamp(&self) -> Stamp;
}

impl ClockExt for dyn Clock + '_ {
    fn stamp(&self) -> Stamp {
        Stamp { now_ms: self.now_ms(), entropy: support::entropy() }
    }
}

/// One thread, new or resumed.
#[derive(Debug)]
pub struct ThreadPlan {
    pub seed: ThreadSeed,
    pub meta: SessionMeta,
    /// Set for a resumed thread. A new one gets its journal with its first turn; an ephemeral one never.
    pub journal: Option<ThreadJournal>,
    /// Set for a resumed thread of the reference, which gets a journal with its first write.
    pub rollout: Option<Box<ReferenceRollout>>,
    pub ephemeral: bool,
    /// Set if the host keeps the record.
    pub host_record: Option<Box<HostRecord>>,
    /// The thread's host.
    pub session: Option<Arc<HostSession>>,
    pub settings: ThreadSettings,
    pub transport: Arc<dyn ModelTransport>,
    /// Records that the thread's last process did not write.
    pub recovered: Vec<RolloutRecord>,
    /// State that its tools share.
    pub bench: Arc<Bench>,
    pub hooks: Arc<ThreadHooks>,
    /// The program that is notified of completed turns.
    pub notify: Arc<NotifyCommand>,
}

/// Starts the actor of a thread. It runs until it is closed or its last handle is dropped.
pub fn open_thread(services: Services, plan: ThreadPlan) -> ThreadHandle {
    Actor::spawn(services, plan)
}
