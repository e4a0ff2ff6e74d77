//! Requests of clients that name a placement.

use std::sync::Arc;

use protocol::SandboxPolicy;
use serde_json::{Value, json};

use crate::error::TaskError;
use crate::link::{OrderedAnswer, RuntimeClient};
use crate::placing::{AskedSandbox, boundary_sandbox, check_sandbox, unholdable};
use crate::task_host::TaskHost;

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
