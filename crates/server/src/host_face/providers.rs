//! Which connection runs which tools of which task.

use std::collections::HashMap;

use host::WantedTool;
use parking_lot::Mutex;
use protocol::{ProvidedTool, ThreadId, ThreadStartParams};
use tokio::sync::watch;

use crate::hub::{ConnectionId, Hub};

/// The tools that each client runs, as declared by `provides`. Every change wakes the calls that wait for a client.
#[derive(Debug, Default)]
pub(crate) struct ToolProviders {
    declared: Mutex<HashMap<ThreadId, Vec<DeclaredTools>>>,
    version: watch::Sender<u64>,
}

#[derive(Debug)]
struct DeclaredTools {
    connection: ConnectionId,
    tools: Vec<ProvidedTool>,
}

impl ToolProviders {
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// From now on this connection runs these tools of the task, and no others. Also called without any, for those who
    /// follow the task and declare nothing.
    pub(crate) fn declare(&self, task: &ThreadId, connection: ConnectionId, tools: Vec<ProvidedTool>) {
        let mut declared = self.declared.lock();
        let of_task = declared.entry(task.clone()).or_default();
        of_task.retain(|entry| entry.connection != connection);
        of_task.push(DeclaredTools { connection, tools });
        drop(declared);
        self.changed();
    }

    /// The tools of the task that this connection runs.
    pub(crate) fn declared_by(&self, task: &ThreadId, connection: ConnectionId) -> Vec<ProvidedTool> {
        let declared = self.declared.lock();
        let of_task = declared.get(task).into_iter().flatten();
        of_task.filter(|entry| entry.connection == connection).flat_map(|entry| entry.tools.clone()).collect()
    }

    pub(crate) fn leave(&self, task: &ThreadId, connection: ConnectionId) {
        self.retain(|thread, entry| thread != task || entry.connection != connection);
    }

    pub(crate) fn disconnect(&self, connection: ConnectionId) {
        self.retain(|_, entry| entry.connection != connection);
    }

    fn retain(&self, stays: impl Fn(&ThreadId, &DeclaredTools) -> bool) {
        self.declared.lock().retain(|thread, entries| {
            entries.retain(|entry| stays(thread, entry));
            !entries.is_empty()
        });
    }

    /// The one that declared it first. A client that knows nothing of hosts declares nothing: as at an app-server, it runs
    /// the tools of the threads it follows, if it may do work at all.
    pub(crate) fn find(&self, hub: &Hub, tool: &WantedTool) -> Option<ConnectionId> {
        let declared = self.declared.lock();
        let of_task = declared.get(&tool.task).into_iter().flatten();
        let mut fitting = of_task.filter(|entry| entry.tools.iter().any(|provided| fits(provided, tool)));
        let found = fitting.find(|entry| hub.is_connected(entry.connection)).map(|entry| entry.connection);
        drop(declared);
        found.or_else(|| hub.subscribers(&tool.task).into_iter().find(|id| hub.runs_undeclared_tools(*id)))
    }
}

fn fits(provided: &ProvidedTool, wanted: &WantedTool) -> bool {
    let is_same_schema = match (&provided.schema_digest, &wanted.schema_digest) {
        (Some(provided), Some(wanted)) => provided == wanted,
        _ => true,
    };
    provided.name == wanted.name && provided.namespace == wanted.namespace && is_same_schema
}

/// Unless it says otherwise, whoever starts a thread runs the tools it brings.
pub(crate) fn provided_at_start(params: &ThreadStartParams) -> Vec<ProvidedTool> {
    if let Some(provides) = &params.provides {
        return provides.clone();
    }
    let provided = |name: &String, namespace: &Option<String>| ProvidedTool {
        name: name.clone(),
        namespace: namespace.clone(),
        schema_digest: None,
    };
    let dynamic = params.dynamic_tools.iter().flatten().map(|tool| provided(&tool.name, &tool.namespace));
    let of_set = params.tool_set.iter().flat_map(|set| &set.dynamic).map(|tool| provided(&tool.name, &None));
    dynamic.chain(of_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_goes_to_one_of_its_name_group_and_schema() {
        let provided = |name: &str, namespace: Option<&str>, digest: Option<&str>| ProvidedTool {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            schema_digest: digest.map(str::to_owned),
        };
        let wanted = WantedTool {
            task: ThreadId::new("t"),
            name: "refund".to_owned(),
            namespace: None,
            schema_digest: Some("a".to_owned()),
        };
        assert!(fits(&provided("refund", None, Some("a")), &wanted));
        assert!(fits(&provided("refund", None, None), &wanted));
        assert!(!fits(&provided("refund", None, Some("b")), &wanted), "another schema");
        assert!(!fits(&provided("refund", Some("crm"), Some("a")), &wanted), "another group");
        assert!(!fits(&provided("look", None, Some("a")), &wanted));
    }
}
