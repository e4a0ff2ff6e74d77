//! Requests of clients that name a placement: files there are read and written by short commands, everything else is carried
//! out by a runtime there that works for the one client.

use std::sync::Arc;
use std::time::Duration;

use placements::{AttachedProcess, PlacementError};
use protocol::ThreadId;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::TaskError;
use crate::handshake::greet;
use crate::link::{ClientRuntime, RuntimeClient, RuntimePipes};
use crate::placing::bring_up::UsablePlace;
use crate::placing::launch::LaunchFailure;
use crate::shared::HostShared;

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

impl HostShared {
    pub(crate) async fn start_for_client(
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
            Ok(Ok(_)) => return Ok(runtime),
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
