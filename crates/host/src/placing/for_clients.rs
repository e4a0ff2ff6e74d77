//! Requests of clients that name a placement: files there are read and written by short commands, everything else is carried
//! out by a runtime there that works for the one client.

use std::sync::Arc;
use std::time::Duration;

use placements::{AttachedProcess, PlacementError};
use protocol::{SandboxPolicy, ThreadId};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::error::TaskError;
use crate::link::{ClientRuntime, OrderedAnswer, RuntimeClient, RuntimePipes};
use crate::open_runtime::greet;
use crate::placing::bring_up::UsablePlace;
use crate::placing::launch::LaunchFailure;
use crate::placing::{AskedSandbox, boundary_sandbox, check_sandbox, unholdable};
use crate::shared::HostShared;
use crate::task_host::TaskHost;

/// The methods that are carried out in a placement where they name one.
pub const PLACED: &[&str] = &[
    "command/exec",
    "command/exec/resize",
    "command/exec/terminate",
    "command/exec/write",
    "fs/copy",
    "fs/createDirectory",
    "fs/getMetadata",
    "fs/readDirectory",
    "fs/readFile",
    "fs/remove",
    "fs/unwatch",
    "fs/watch",
    "fs/writeFile",
    "fuzzyFileSearch",
    "fuzzyFileSearch/sessionStart",
    "fuzzyFileSearch/sessionStop",
    "fuzzyFileSearch/sessionUpdate",
    "gitDiffToRemote",
    "skills/list",
];
/// The handshake, after the process has begun.
const GREET_WITHIN: Duration = Duration::from_secs(60);
/// How long a runtime may take to stop after the end of its input.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Whether the params of a method name a placement.
pub fn names_placement(method: &str, params: Option<&str>) -> bool {
    let Some(params) = params.filter(|params| params.contains("placementId")) else { return false };
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    PLACED.contains(&method) && !params["placementId"].is_null()
}

impl TaskHost {
    /// Passes a request on to the client's runtime in the placement that it names, which is started where there is none.
    /// An error says that nothing was sent.
    pub async fn use_place(
        &self,
        client: &Arc<dyn RuntimeClient>,
        (method, mut params): (&'static str, Value),
        answer: OrderedAnswer,
    ) -> Result<(), TaskError> {
        let named = params.as_object_mut().and_then(|params| params.remove("placementId"));
        let id = named.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let (row, task) = self.reachable_place(&id).await?;
        if method == "command/exec"
            && let Some(boundary) = boundary_sandbox(&row.record.settings)
        {
            let given: Option<SandboxPolicy> = serde_json::from_value(params["sandboxPolicy"].clone()).ok();
            let refused = given.as_ref().and_then(unholdable);
            check_sandbox(&row.record.settings, Some(AskedSandbox { by: "sandboxPolicy", refused }))?;
            params["sandboxPolicy"] = json!(given.unwrap_or(boundary));
        }
        let too_many = |most: usize| TaskError::Field {
            field: "placementId",
            problem: format!(
                "this connection has something open in {most} placements already; end it there first"
            ),
        };
        let start = self.shared.start_for_client(&id, &task, Arc::clone(client));
        let for_clients = &self.shared.places.for_clients;
        for_clients.request((client, id.as_str()), (method, params), answer, start, too_many).await?;
        self.shared.note_use(&id).await;
        Ok(())
    }

    /// Whether what is done in this placement is done on the host's own machine.
    pub async fn is_place_here(&self, id: &str) -> Result<bool, TaskError> {
        Ok(self.reachable_place(id).await?.0.record.settings.is_this_machine())
    }

    /// A client's connection has ended: what it has begun in placements ends.
    pub async fn client_left(&self, connection: u64) {
        self.shared.places.for_clients.end_client(connection).await;
    }
}

impl HostShared {
    async fn start_for_client(
        &self,
        id: &str,
        task: &ThreadId,
        client: Arc<dyn RuntimeClient>,
    ) -> Result<ClientRuntime, TaskError> {
        let failed = |failure: LaunchFailure| TaskError::Placement(failure.message);
        let usable = self.usable_place(id, task).await.map_err(failed)?;
        let process = match self.spawn_for_client(&usable, task).await {
            Err(error) if error.may_mean_loss() => {
                let usable = self.mended_place(id, task, error).await.map_err(failed)?;
                self.spawn_for_client(&usable, task).await?
            }
            process => process?,
        };
        let runtime = ClientRuntime::begin(pipes_of(process), client);
        let greeted = timeout(GREET_WITHIN, greet(runtime.link(), &self.options.version)).await;
        let problem = match greeted {
            Ok(Ok(())) => return Ok(runtime),
            Ok(Err(failure)) => failure.message,
            Err(_) => format!("its runtime was not ready within {GREET_WITHIN:?}"),
        };
        runtime.end().await;
        self.places.forget(id);
        Err(TaskError::Placement(format!("placement {id}: {problem}")))
    }

    async fn spawn_for_client(
        &self,
        usable: &UsablePlace,
        task: &ThreadId,
    ) -> Result<AttachedProcess, PlacementError> {
        // No name of a task's runtime begins like this: theirs are hexadecimal.
        let name = format!("client-{}", self.new_uuid().replace('-', ""));
        let options = self.runtime_in(usable, task, (&name, name.clone()), None).await?;
        usable.placement.spawn(&options).await
    }
}

fn pipes_of(mut process: AttachedProcess) -> RuntimePipes {
    let (input, output, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
    if let Some(mut stderr) = stderr {
        tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::stderr()).await });
    }
    RuntimePipes {
        input: input.map_or_else(|| Box::new(tokio::io::sink()) as _, |input| Box::new(input) as _),
        output: output.map_or_else(|| Box::new(tokio::io::empty()) as _, |output| Box::new(output) as _),
        end: Box::new(|| {
            Box::pin(async move {
                // It ends its commands in good order when it reads the end of its input.
                let _ = timeout(END_WITHIN, process.wait()).await;
                if let Err(error) = process.kill().await {
                    tracing::warn!(%error, "what a client has begun in a placement could not be ended");
                }
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_is_not_taken_for_this_machine() {
        let (with, without) = (r#"{"placementId": "p-1", "path": "/a"}"#, r#"{"placementId": null}"#);
        for method in PLACED {
            assert!(names_placement(method, Some(with)), "{method}");
            assert!(!names_placement(method, Some(without)), "{method}");
            assert!(!names_placement(method, None), "{method}");
        }
        assert!(!names_placement("placement/suspend", Some(with)));
    }
}
