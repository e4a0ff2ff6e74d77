//! Approval policy and sandbox.

use std::ffi::OsStr;
use std::path::PathBuf;

use protocol::{
    ApprovalsReviewer, AskForApproval, NetworkAccess, ReadOnlyAccess, SandboxMode, SandboxPolicy,
};

use super::{Sources, first};
use crate::config::PermissionOptions;
use crate::layer::absolute_path;
use crate::requirements::ChosenValue;
use crate::{ConfigError, SettingWarning, ShellEnvironmentPolicy, Trust};

/// Set by a host for runtimes in containers: the network access of commands there.
const EXTERNAL_SANDBOX: &str = "OARLOCK_EXTERNAL_SANDBOX";

const READ_ONLY: SandboxPolicy =
    SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };

impl Default for PermissionOptions {
    /// Permissions in a folder without a trust decision.
    fn default() -> Self {
        Self {
            approval_policy: AskForApproval::OnRequest,
            approvals_reviewer: ApprovalsReviewer::User,
            asked_sandbox: None,
            sandbox_mode: SandboxMode::ReadOnly,
            sandbox_policy: READ_ONLY,
            trust: None,
            allow_login_shell: true,
            shell_environment: ShellEnvironmentPolicy::default(),
        }
    }
}

impl Sources<'_> {
    pub(super) fn permissions(
        &self,
        warnings: &mut Vec<SettingWarning>,
    ) -> Result<PermissionOptions, ConfigError> {
        let (overrides, profile, keys) = (self.overrides, &self.profile, self.keys);
        let trust = self.layers.trust;
        let policy = first([&overrides.approval_policy, &profile.approval_policy, &keys.approval_policy]);
        let default_policy = match trust {
            Some(Trust::Untrusted) => AskForApproval::Untrusted,
            Some(Trust::Trusted) | None => AskForApproval::OnRequest,
        };
        let asked_sandbox = self.sandbox_mode(warnings)?;
        let default_mode = if trust.is_some() { SandboxMode::WorkspaceWrite } else { SandboxMode::ReadOnly };
        let mode =
            ChosenValue { explicit: asked_sandbox.is_some(), value: asked_sandbox.unwrap_or(default_mode) };
        let policy = ChosenValue { explicit: policy.is_some(), value: policy.unwrap_or(default_policy) };
        let sandbox_mode = self.requirements.constrain_sandbox(mode, warnings);
        let reviewer =
            first([&overrides.approvals_reviewer, &profile.approvals_reviewer, &keys.approvals_reviewer]);
        Ok(PermissionOptions {
            approval_policy: self.requirements.constrain_approval(policy, warnings),
            approvals_reviewer: reviewer.unwrap_or(ApprovalsReviewer::User),
            asked_sandbox,
            sandbox_mode,
            sandbox_policy: self.sandbox_policy(sandbox_mode)?,
            trust,
            allow_login_shell: keys.allow_login_shell.unwrap_or(true),
            shell_environment: keys.shell_environment_policy.as_ref().map(Into::into).unwrap_or_default(),
        })
    }

    /// The explicitly chosen mode. The highest layer decides between `sandbox_mode` and `default_permissions`.
    fn sandbox_mode(&self, warnings: &mut Vec<SettingWarning>) -> Result<Option<SandboxMode>, ConfigError> {
        let legacy = first([&self.overrides.sandbox_mode, &self.profile.sandbox_mode]);
        if legacy.is_some() {
            return Ok(legacy);
        }
        let enabled = self.layers.layers.iter().rev().filter(|layer| layer.is_enabled());
        let mut deciding = enabled.filter_map(|layer| {
            match (layer.table.get("sandbox_mode"), layer.table.get("default_permissions")) {
                (None, None) => None,
                (Some(_), _) => Some(false),
                (None, Some(_)) => Some(true),
            }
        });
        if deciding.next() == Some(true) {
            warnings.push(SettingWarning::with_details(
                "Permission profiles are not supported; the sandbox is read-only.",
                "default_permissions is set. Use sandbox_mode and [sandbox_workspace_write] instead.",
            ));
            return Ok(Some(SandboxMode::ReadOnly));
        }
        if self.keys.permissions.is_some() && self.keys.default_permissions.is_none() {
            return Err(ConfigError::value(
                "[permissions] needs default_permissions, which says which of them counts",
            ));
        }
        Ok(self.keys.sandbox_mode)
    }

    /// The parent of this process may know that it runs in an external sandbox.
    fn without_sandbox(&self) -> SandboxPolicy {
        let network_access = match self.env.var_os(EXTERNAL_SANDBOX).as_deref().and_then(OsStr::to_str) {
            Some("restricted") => NetworkAccess::Restricted,
            Some("enabled") => NetworkAccess::Enabled,
            _ => return SandboxPolicy::DangerFullAccess,
        };
        SandboxPolicy::ExternalSandbox { network_access }
    }

    fn sandbox_policy(&self, mode: SandboxMode) -> Result<SandboxPolicy, ConfigError> {
        let details = match mode {
            SandboxMode::ReadOnly => return Ok(READ_ONLY),
            SandboxMode::DangerFullAccess => return Ok(self.without_sandbox()),
            SandboxMode::WorkspaceWrite => self.keys.sandbox_workspace_write.as_ref(),
        };
        let mut roots: Vec<PathBuf> =
            details.into_iter().flat_map(|details| &details.writable_roots).map(PathBuf::from).collect();
        let more = self.overrides.writable_roots.iter().cloned();
        for root in more.chain([self.home.reading().join("memories")]) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Ok(SandboxPolicy::WorkspaceWrite {
            network_access: details.is_some_and(|details| details.network_access),
            writable_roots: roots.iter().map(|root| absolute_path(root)).collect::<Result<_, _>>()?,
            read_only_access: ReadOnlyAccess::FullAccess,
            exclude_tmpdir_env_var: details.is_some_and(|details| details.exclude_tmpdir_env_var),
            exclude_slash_tmp: details.is_some_and(|details| details.exclude_slash_tmp),
        })
    }
}
