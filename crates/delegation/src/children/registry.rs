//! The agents that a process knows, by family.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use protocol::{OperationId, SessionMeta, SessionSource, SubAgentSource, ThreadId};
use tools::AgentStatus;

use super::agent::{Agent, AgentPlace, Family};
use super::status::depth_of;

/// Every agent known to this process. Closed ones stay, so that they can be opened again by id.
#[derive(Debug, Default)]
pub struct AgentRegistry {
    /// By their keys.
    known: Mutex<HashMap<String, Arc<Agent>>>,
}

impl AgentRegistry {
    /// The agent of a thread in this process.
    pub fn find(&self, thread: &str) -> Option<Arc<Agent>> {
        self.known.lock().get(thread).filter(|agent| agent.place == AgentPlace::Here).cloned()
    }

    /// The agent with this id among a thread's descendants.
    pub fn find_below(&self, id: &str, thread: &ThreadId) -> Option<Arc<Agent>> {
        let is_named = |agent: &&Arc<Agent>| agent.id == id && !agent.is_asked_for();
        let named: Vec<Arc<Agent>> = self.known.lock().values().filter(is_named).cloned().collect();
        named.into_iter().find(|agent| self.is_below(agent, thread))
    }

    /// The agent of this delegation, placed or pending.
    pub fn with_delegation(&self, wanted: &OperationId) -> Option<Arc<Agent>> {
        self.known.lock().get(wanted.as_str()).filter(|agent| agent.place != AgentPlace::Here).cloned()
    }

    /// Whether another open agent of its family has its id.
    pub fn has_namesake(&self, agent: &Agent) -> bool {
        let is_namesake = |other: &Arc<Agent>| {
            let is_kin = other.family.root == agent.family.root && other.key() != agent.key();
            is_kin && other.id == agent.id && !(other.is_asked_for() || other.status().is_final())
        };
        self.known.lock().values().any(is_namesake)
    }

    /// The family of a new child of this thread.
    pub fn family_below(&self, parent: &ThreadId, child: &str) -> Family {
        let above = self.find(parent.as_str()).map(|agent| agent.family.clone());
        let (root, depth, mut path) = match above {
            Some(above) => (above.root, above.depth, above.path.to_vec()),
            None => (parent.clone(), 0, vec!["root".to_owned()]),
        };
        path.push(child.to_owned());
        Family { parent: parent.clone(), root, depth: depth + 1, path: path.into() }
    }

    /// Adds an agent, unless `most` are open below its root already.
    pub fn admit(&self, agent: Agent, most: usize) -> Result<Arc<Agent>, usize> {
        let mut known = self.known.lock();
        if open_below(&known, &agent.family.root) >= most {
            return Err(most);
        }
        let agent = Arc::new(agent);
        known.insert(agent.key().to_owned(), agent.clone());
        Ok(agent)
    }

    /// Like [`AgentRegistry::admit`], for a closed agent.
    pub fn readmit(&self, agent: &Agent, most: usize) -> Result<(), usize> {
        let known = self.known.lock();
        if !agent.is_open() && open_below(&known, &agent.family.root) >= most {
            return Err(most);
        }
        agent.open();
        agent.set(AgentStatus::PendingInit);
        Ok(())
    }

    /// Adds it under its key. An earlier agent with its id is no longer found by it.
    pub fn add(&self, agent: Agent) -> Arc<Agent> {
        let agent = Arc::new(agent);
        let mut known = self.known.lock();
        let is_namesake = |other: &Agent| other.id == agent.id && other.family.root == agent.family.root;
        known.retain(|_, other| !is_namesake(other));
        known.insert(agent.key().to_owned(), agent.clone());
        agent
    }

    pub fn remove(&self, key: &str) {
        self.known.lock().remove(key);
    }

    /// Frees a reserved slot, unless a child has taken it.
    pub fn give_back(&self, held: &Arc<Agent>) {
        let mut known = self.known.lock();
        if known.get(held.key()).is_some_and(|other| Arc::ptr_eq(other, held)) {
            known.remove(held.key());
        }
        drop(known);
        // Wakes those that wait for its placement.
        held.close();
    }

    /// Open children, oldest first: thread ids sort by time.
    pub fn open_children(&self, parent: &ThreadId) -> Vec<Arc<Agent>> {
        let known = self.known.lock();
        let is_child =
            |agent: &&Arc<Agent>| agent.family.parent == *parent && agent.is_open() && !agent.is_asked_for();
        let children = known.values().filter(is_child);
        let mut children: Vec<Arc<Agent>> = children.cloned().collect();
        children.sort_by(|one, other| one.id.cmp(&other.id));
        children
    }

    /// Whether the thread is an agent, or has open ones.
    pub fn is_known(&self, thread: &ThreadId) -> bool {
        self.find(thread.as_str()).is_some() || !self.open_children(thread).is_empty()
    }

    /// The nicknames of the agents below a root.
    pub fn nicknames_below(&self, root: &ThreadId) -> Vec<String> {
        let known = self.known.lock();
        let family = known.values().filter(|agent| agent.family.root == *root);
        family.filter_map(|agent| agent.nickname.clone()).collect()
    }

    /// Whether an agent is a descendant of this thread.
    pub fn is_below(&self, agent: &Agent, thread: &ThreadId) -> bool {
        let known = self.known.lock();
        let mut above = &agent.family.parent;
        // Limited, because a broken record may form a cycle.
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

    /// The agent of a thread that is being opened, if its record says that it is one.
    pub fn enter(&self, meta: &SessionMeta) -> Option<Arc<Agent>> {
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
        // Its ancestors may not be loaded.
        if depth_of(meta) > family.depth {
            let path = ["root", parent_thread_id.as_str(), id].map(str::to_owned);
            (family.depth, family.path) = (depth_of(meta), Arc::new(path));
            family.root = ThreadId::new(meta.session_id.as_str());
        }
        let mut agent = Agent::new(id.to_owned(), family, AgentPlace::Here);
        (agent.nickname, agent.role) = (agent_nickname.clone(), agent_role.clone());
        agent.report_nothing();
        Some(self.add(agent))
    }
}

/// The number of open agents below a root.
fn open_below(known: &HashMap<String, Arc<Agent>>, root: &ThreadId) -> usize {
    known.values().filter(|agent| agent.family.root == *root && agent.is_open()).count()
}

#[cfg(test)]
mod tests;
