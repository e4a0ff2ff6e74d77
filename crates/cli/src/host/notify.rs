//! Tells people that something waits: by a command, or by a webhook. Never more than one message per operation and state.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use ::host::TaskHost;
use anyhow::{Context, Result, bail};
use protocol::{Operation, OperationListParams};
use runtime::{Clock, SystemClock};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::host_table::{NotifyTarget, shown_url};

/// How often the store is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Clients that are there answer first.
const DEFAULT_AFTER: Duration = Duration::from_secs(10);
/// A command or a webhook that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(30);
const MAX_LISTED: u32 = 1_000;

/// Looks for what waits, for ever.
pub(crate) async fn notify_people(host: TaskHost, target: NotifyTarget, after_seconds: Option<u64>) {
    let after = after_seconds.map_or(DEFAULT_AFTER, Duration::from_secs);
    let mut told: BTreeSet<(String, String)> = BTreeSet::new();
    loop {
        let params = OperationListParams { limit: Some(MAX_LISTED), ..OperationListParams::default() };
        match host.list_operations(params).await {
            Ok(listed) => {
                let now = SystemClock.now_ms();
                let waiting = listed.data;
                told.retain(|key| waiting.iter().any(|operation| key_of(operation) == *key));
                for operation in waiting {
                    let age = u64::try_from(now - operation.updated_at_ms).unwrap_or(0);
                    if Duration::from_millis(age) < after || !told.insert(key_of(&operation)) {
                        continue;
                    }
                    if let Err(error) = tell(&target, &operation).await {
                        tracing::warn!("host.notify: {error:#}");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "host.notify: what waits cannot be listed"),
        }
        tokio::time::sleep(LOOK_EVERY.min(after.max(Duration::from_millis(200)))).await;
    }
}

fn key_of(operation: &Operation) -> (String, String) {
    (operation.operation_id.as_str().to_owned(), format!("{:?} {}", operation.state, operation.attempt))
}

async fn tell(target: &NotifyTarget, operation: &Operation) -> Result<()> {
    let message = json!({ "type": "operation/waiting", "operation": operation }).to_string();
    match tokio::time::timeout(PATIENCE, send(target, message)).await {
        Ok(sent) => sent,
        Err(_) => bail!("no end within {} s", PATIENCE.as_secs()),
    }
}

async fn send(target: &NotifyTarget, message: String) -> Result<()> {
    match target {
        NotifyTarget::Command(words) => {
            let (program, arguments) = words.split_first().context("the command is empty")?;
            // It runs without a sandbox, so not from where commands can write.
            let mut command = Command::new(placements::find_tool(program).with_context(|| program.clone())?);
            command.envs(placements::tool_path().map(|path| ("PATH", path)));
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
            let mut child = command.spawn().with_context(|| program.clone())?;
            if let Some(mut input) = child.stdin.take() {
                // A command that does not read its input has all it wants.
                let _ = input.write_all(message.as_bytes()).await;
            }
            let status = child.wait().await?;
            if !status.success() {
                bail!("{program} ended with {status}");
            }
            Ok(())
        }
        NotifyTarget::Webhook(url) => {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
            let request = http::HttpRequest {
                method: http::Method::POST,
                url: url.parse().with_context(|| shown_url(url))?,
                headers,
                body: bytes::Bytes::from(message).into(),
            };
            let answer = http::Client::new(None).send(request, PATIENCE).await?;
            if !answer.status.is_success() {
                bail!("{} answered {}", shown_url(url), answer.status);
            }
            Ok(())
        }
    }
}
