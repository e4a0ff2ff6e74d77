//! Child agents: threads that the model of another thread started, here or at the host.

mod away;
mod away_record;
mod children;
mod names;
mod overheard;
mod resume;
mod roles;
mod spawn;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use protocol::{OperationId, SessionMeta, SessionSource, SubAgentSource, ThreadId};
use tokio::sync::watch;
use tools::AgentStatus;

use crate::runtime::lock;

pub(crate) use away_record::{is_away, tell_late};
pub(crate) use children::Children;
pub(crate) use overheard::Overheard;
pub(crate) use resume::Adopted;
pub(crate) use roles::role_lines;
pub(crate) use spawn::recorded_status;

/// Every agent this process has heard of. Those that are closed stay, so that they can be opened again by name.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    /// By their keys.
    known: Mutex<HashMap<String, Arc<Agent>>>,
}

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
        }
    }

    pub(crate) fn status(&self) -> AgentStatus {
        self.status.borrow().clone()
    }

    fn watch(&self) -> watch::Receiver<AgentStatus> {
        self.status.subscribe()
    }

    fn set(&self, status: AgentStatus) {
        self.status.send_replace(status);
    }

    /// Says whether its parent still has to be told that it is at an end, which is once.
    fn end(&self, status: AgentStatus) -> bool {
        let is_final = status.is_final();
        self.set(status);
        is_final && self.is_awaited.swap(false, Ordering::AcqRel)
    }

    /// It works on something more: its next end is news again.
    fn begin(&self) {
        self.expect_news();
        self.set(AgentStatus::Running);
    }

    /// Its parent is told when it is next at an end.
    fn expect_news(&self) {
        self.is_awaited.store(true, Ordering::Release);
    }

    fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Acquire)
    }

    /// Whatever comes of it now is no news.
    fn expect_nothing(&self) {
        self.is_awaited.store(false, Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// It is at an end that is no news.
    fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        self.expect_nothing();
        self.set(AgentStatus::Shutdown);
    }

    fn thread(&self) -> ThreadId {
        ThreadId::new(self.id.as_str())
    }

    /// Hosts name their children as they like, so that only the operation tells those of several hosts apart.
    fn key(&self) -> &str {
        match &self.place {
            Place::Here => &self.id,
            Place::Asked(delegation_id) | Place::Away { delegation_id, .. } => delegation_id.as_str(),
        }
    }

    fn is_asked_for(&self) -> bool {
        matches!(self.place, Place::Asked(_))
    }
}

impl Agents {
    /// The agent of a thread in this process.
    pub(crate) fn find(&self, thread: &str) -> Option<Arc<Agent>> {
        lock(&self.known).get(thread).filter(|agent| agent.place == Place::Here).cloned()
    }

    /// The agent that works under this name for a thread, directly or not.
    fn find_below(&self, id: &str, thread: &ThreadId) -> Option<Arc<Agent>> {
        let is_named = |agent: &&Arc<Agent>| agent.id == id && !agent.is_asked_for();
        let named: Vec<Arc<Agent>> = lock(&self.known).values().filter(is_named).cloned().collect();
        named.into_iter().find(|agent| self.is_below(agent, thread))
    }

    /// The one that the host was given by this operation, or is being asked about.
    fn with_delegation(&self, wanted: &OperationId) -> Option<Arc<Agent>> {
        lock(&self.known).get(wanted.as_str()).filter(|agent| agent.place != Place::Here).cloned()
    }

    /// Whether another one of its family that is open has its name.
    fn has_namesake(&self, agent: &Agent) -> bool {
        let is_namesake = |other: &Arc<Agent>| {
            let is_kin = other.family.root == agent.family.root && other.key() != agent.key();
            is_kin && other.id == agent.id && !(other.is_asked_for() || other.status().is_final())
        };
        lock(&self.known).values().any(is_namesake)
    }

    /// The family of a child that this thread is about to have.
    fn family_below(&self, parent: &ThreadId, child: &str) -> Family {
        let above = self.find(parent.as_str()).map(|agent| agent.family.clone());
        let (root, depth, mut path) = match above {
            Some(above) => (above.root, above.depth, above.path.to_vec()),
            None => (parent.clone(), 0, vec!["root".to_owned()]),
        };
        path.push(child.to_owned());
        Family { parent: parent.clone(), root, depth: depth + 1, path: path.into() }
    }

    /// Takes one more, unless so many are open below its root already.
    fn admit(&self, agent: Agent, most: usize) -> Result<Arc<Agent>, usize> {
        let mut known = lock(&self.known);
        if open_below(&known, &agent.family.root) >= most {
            return Err(most);
        }
        let agent = Arc::new(agent);
        known.insert(agent.key().to_owned(), agent.clone());
        Ok(agent)
    }

    /// As [`Agents::admit`], for one that was closed.
    fn readmit(&self, agent: &Agent, most: usize) -> Result<(), usize> {
        let known = lock(&self.known);
        if !agent.is_open() && open_below(&known, &agent.family.root) >= most {
            return Err(most);
        }
        agent.open();
        agent.set(AgentStatus::PendingInit);
        Ok(())
    }

    /// Takes it in the place of whoever has its key. One that had its name is found by it no more.
    fn add(&self, agent: Agent) -> Arc<Agent> {
        let agent = Arc::new(agent);
        let mut known = lock(&self.known);
        let is_namesake = |other: &Agent| other.id == agent.id && other.family.root == agent.family.root;
        known.retain(|_, other| !is_namesake(other));
        known.insert(agent.key().to_owned(), agent.clone());
        agent
    }

    fn remove(&self, key: &str) {
        lock(&self.known).remove(key);
    }

    /// Gives a place back, unless somebody has taken it.
    fn give_back(&self, held: &Arc<Agent>) {
        let mut known = lock(&self.known);
        if known.get(held.key()).is_some_and(|other| Arc::ptr_eq(other, held)) {
            known.remove(held.key());
        }
        drop(known);
        // Whoever waits for it to be settled looks again.
        held.close();
    }

    /// Open ones, oldest first: ids of threads are in the order of time.
    fn open_children(&self, parent: &ThreadId) -> Vec<Arc<Agent>> {
        let known = lock(&self.known);
        let is_child =
            |agent: &&Arc<Agent>| agent.family.parent == *parent && agent.is_open() && !agent.is_asked_for();
        let children = known.values().filter(is_child);
        let mut children: Vec<Arc<Agent>> = children.cloned().collect();
        children.sort_by(|one, other| one.id.cmp(&other.id));
        children
    }

    /// What those below a root are called.
    fn nicknames_below(&self, root: &ThreadId) -> Vec<String> {
        let known = lock(&self.known);
        let family = known.values().filter(|agent| agent.family.root == *root);
        family.filter_map(|agent| agent.nickname.clone()).collect()
    }

    /// Whether an agent works, directly or not, for this thread.
    fn is_below(&self, agent: &Agent, thread: &ThreadId) -> bool {
        let known = lock(&self.known);
        let mut above = &agent.family.parent;
        // A record that names its own child as its parent leads round in a circle.
        for _ in 0..=known.len() {
            if above == thread {
                return true;
            }
            match known.get(above.as_str()) {
                Some(agent) => above = &agent.family.parent,
                None => return false,
            }
        }
        false
    }

    /// The agent that a thread about to be opened is, if its record says that it is one.
    pub(crate) fn enter(&self, meta: &SessionMeta) -> Option<Arc<Agent>> {
        let SessionSource::SubAgent(SubAgentSource::ThreadSpawn {
            parent_thread_id,
            agent_nickname,
            agent_role,
            ..
        }) = &meta.source
        else {
            return None;
        };
        let id = meta.thread_id.as_str();
        if let Some(known) = self.find(id) {
            if !known.is_open() {
                known.set(AgentStatus::PendingInit);
                known.open();
            }
            return Some(known);
        }
        let mut family = self.family_below(parent_thread_id, id);
        // Not all that are above it need be in memory.
        if depth_of(meta) > family.depth {
            let path = ["root", parent_thread_id.as_str(), id].map(str::to_owned);
            (family.depth, family.path) = (depth_of(meta), Arc::new(path));
            family.root = ThreadId::new(meta.session_id.as_str());
        }
        let mut agent = Agent::new(id.to_owned(), family, Place::Here);
        (agent.nickname, agent.role) = (agent_nickname.clone(), agent_role.clone());
        *agent.is_awaited.get_mut() = false;
        Some(self.add(agent))
    }
}

/// How many are open below a root.
fn open_below(known: &HashMap<String, Arc<Agent>>, root: &ThreadId) -> usize {
    known.values().filter(|agent| agent.family.root == *root && agent.is_open()).count()
}

/// How deep below the root the agent of a thread is.
pub(crate) fn depth_of(meta: &SessionMeta) -> u32 {
    match &meta.source {
        SessionSource::SubAgent(SubAgentSource::ThreadSpawn { depth, .. }) => {
            u32::try_from(*depth).unwrap_or(0)
        }
        _ => 0,
    }
}
