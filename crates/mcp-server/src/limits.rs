//! The settings that a call may choose. Its arguments are written by a model, which anything it reads can steer: they may narrow
//! what the user's own settings allow, never widen it.

use std::path::{Path, PathBuf};

use core_api::ThreadOptions;
use core_api::protocol::{AskForApproval, SandboxMode};
use runtime::config::{LoadRequest, Loader, RequestOverrides, is_harmless_key};

/// Keys beside the harmless ones. What comes of them is compared with what the user's own settings say.
const COMPARED: [&str; 4] = ["approval_policy", "sandbox_mode", "profile", "model_provider"];

/// The user's own settings.
#[derive(Debug, Clone)]
pub(super) struct CallLimits {
    loader: Loader,
}

impl CallLimits {
    pub(super) fn new(loader: Loader) -> Self {
        Self { loader }
    }

    /// The error is a sentence for the model that made the call.
    pub(super) async fn check(&self, options: &ThreadOptions) -> Result<(), String> {
        let (limits, options) = (self.clone(), options.clone());
        let checked = tokio::task::spawn_blocking(move || limits.check_now(&options)).await;
        checked.unwrap_or_else(|_| Err("the settings cannot be read".to_owned()))
    }

    fn check_now(&self, options: &ThreadOptions) -> Result<(), String> {
        if let Some(key) = options.config.keys().find(|key| !may_set(key)) {
            let key: String = key.chars().take(64).collect();
            return Err(format!(
                "config: `{key}` is not for a call to set; leave it out, or start the server with \
                 `oarlock mcp-server -c {key}=…`"
            ));
        }
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let cwd = options.cwd.as_deref().map_or_else(here, |cwd| here().join(cwd));
        let own = LoadRequest { cwd: Some(cwd.clone()), ..LoadRequest::default() };
        let overrides = RequestOverrides {
            approval_policy: options.approval_policy.clone(),
            sandbox_mode: options.sandbox,
            ..RequestOverrides::default()
        };
        let asked = LoadRequest { config: Some(&options.config), overrides, ..own.clone() };
        // Settings that cannot be loaded open no thread either, which then says why.
        let (Ok(own), Ok(asked)) = (self.loader.load(&own), self.loader.load(&asked)) else { return Ok(()) };
        let (own, asked) = (&own.permissions, &asked.permissions);
        let is_open = asked.sandbox_mode == SandboxMode::DangerFullAccess;
        if is_open && own.sandbox_mode != SandboxMode::DangerFullAccess {
            return Err(
                "`danger-full-access` is not for a call to choose; leave it out, or start the server with \
                        `oarlock mcp-server -c sandbox_mode=danger-full-access`"
                    .to_owned(),
            );
        }
        let is_strict = asked.approval_policy == AskForApproval::Untrusted;
        if is_open && asked.approval_policy != own.approval_policy && !is_strict {
            return Err("approval-policy: without a sandbox a call cannot choose it; leave it out".to_owned());
        }
        let opens_home = || self.loader.user_home().is_some_and(|home| holds(&cwd, &home));
        // Whoever starts the server in the home folder, for commands that write, has opened it.
        let is_own = own.sandbox_mode == asked.sandbox_mode && holds(&here(), &cwd);
        if asked.sandbox_mode == SandboxMode::WorkspaceWrite && !is_own && opens_home() {
            return Err(
                "cwd: the whole home folder cannot be made writable by a call; choose a folder in it"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

fn may_set(key: &str) -> bool {
    COMPARED.contains(&key) || is_harmless_key(key)
}

fn holds(folder: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(path).starts_with(real(folder))
}
