//! The hooks of a configuration, as clients list them.

use config::HookOrigin;
use data_encoding::HEXLOWER;
use protocol::{AbsolutePath, HookMetadata, HookSource, HookTrustStatus, HooksListEntry};
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::definition::{HANDLER, Hook, HookSet, word};
use crate::set::snake;

impl HookSet {
    /// For `hooks/list`.
    pub fn list(&self, cwd: String) -> HooksListEntry {
        let hooks = self.hooks.iter().enumerate().filter_map(|(order, hook)| metadata(hook, order));
        HooksListEntry {
            cwd,
            hooks: hooks.collect(),
            warnings: self.warnings.clone(),
            errors: self.errors.clone(),
        }
    }
}

fn metadata(hook: &Hook, order: usize) -> Option<HookMetadata> {
    let path = hook.source_path.to_string_lossy();
    let (group, handler) = hook.place;
    let is_managed = matches!(hook.origin, HookOrigin::System | HookOrigin::Managed);
    Some(HookMetadata {
        key: format!("{path}:{}:{group}:{handler}", snake(word(hook.event))),
        event_name: hook.event,
        handler_type: HANDLER,
        matcher: hook.matcher.clone(),
        command: Some(hook.command.clone()),
        timeout_sec: i64::try_from(hook.timeout.as_secs()).unwrap_or(i64::MAX),
        status_message: hook.status_message.clone(),
        source_path: AbsolutePath::new(path.as_ref())?,
        source: match hook.origin {
            HookOrigin::System => HookSource::System,
            HookOrigin::User => HookSource::User,
            HookOrigin::Project => HookSource::Project,
            HookOrigin::Managed => HookSource::LegacyManagedConfigFile,
            HookOrigin::Session => HookSource::SessionFlags,
        },
        plugin_id: None,
        display_order: i64::try_from(order).unwrap_or(i64::MAX),
        enabled: hook.is_accepted,
        is_managed,
        current_hash: hash(hook),
        trust_status: match (is_managed, hook.is_accepted) {
            (true, _) => HookTrustStatus::Managed,
            (false, true) => HookTrustStatus::Trusted,
            (false, false) => HookTrustStatus::Untrusted,
        },
    })
}

/// Over everything that determines when it runs and what it does.
fn hash(hook: &Hook) -> String {
    let seconds = hook.timeout.as_secs();
    let text =
        json!([word(hook.event), hook.matcher, hook.command, seconds, hook.status_message]).to_string();
    format!("sha256:{}", HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref()))
}
