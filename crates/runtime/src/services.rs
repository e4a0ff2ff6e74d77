//! What lives as long as the process, apart from what one thread is made of.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::{Stamp, ThreadSeed};
use journal::{Store, ThreadJournal};
use model::ModelTransport;
use protocol::{RolloutRecord, SessionMeta};
use ring::rand::{SecureRandom, SystemRandom};
use tools::Bench;

use crate::actor::Actor;
use crate::audience::Audience;
use crate::handle::ThreadHandle;
use crate::host_record::HostRecord;
use crate::settings::{StepMaker, ThreadSettings};
use crate::tools::ToolRunner;

/// Shared by all threads.
#[derive(Debug, Clone)]
pub struct Services {
    pub store: Arc<Store>,
    pub audience: Arc<dyn Audience>,
    pub tools: Arc<dyn ToolRunner>,
    pub clock: Arc<dyn Clock>,
    pub steps: Arc<dyn StepMaker>,
}

/// Where time and randomness come from.
pub trait Clock: fmt::Debug + Send + Sync {
    fn stamp(&self) -> Stamp;
}

/// The real ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn stamp(&self) -> Stamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Stamp { now_ms, entropy: entropy() }
    }
}

/// From the system. Should it have none, which no supported system does, ids are still told apart by a hasher's key.
fn entropy() -> u128 {
    let mut bytes = [0; 16];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => u128::from_ne_bytes(bytes),
        Err(_) => u128::from(RandomState::new().build_hasher().finish()),
    }
}

/// One thread, new or resumed.
#[derive(Debug)]
pub struct ThreadPlan {
    pub seed: ThreadSeed,
    pub meta: SessionMeta,
    /// Set for a resumed thread. A new one gets its journal with its first turn; an ephemeral one never.
    pub journal: Option<ThreadJournal>,
    pub ephemeral: bool,
    /// Set where the host keeps the record.
    pub host_record: Option<Box<HostRecord>>,
    pub settings: ThreadSettings,
    pub transport: Arc<dyn ModelTransport>,
    /// What the thread's last process left to be written down.
    pub recovered: Vec<RolloutRecord>,
    /// What its tools share.
    pub bench: Arc<Bench>,
}

/// Starts the actor of a thread. It runs until its last handle is dropped or it is closed.
pub fn open_thread(services: Services, plan: ThreadPlan) -> ThreadHandle {
    Actor::spawn(services, plan)
}
