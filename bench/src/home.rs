//! A home and a workspace for one server, gone when dropped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// What the commands of a thread may do, as the configuration says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxMode {
    FullAccess,
    WorkspaceWrite,
}

impl SandboxMode {
    fn name(self) -> &'static str {
        match self {
            Self::FullAccess => "danger-full-access",
            Self::WorkspaceWrite => "workspace-write",
        }
    }
}

/// The folder is removed with it.
#[derive(Debug)]
pub(crate) struct Home {
    root: TempDir,
}

impl Home {
    /// An empty home whose configuration names the mock model at this port. Nothing needs an approval.
    pub(crate) fn create(work: &Path, port: u16, sandbox: SandboxMode) -> Result<Self> {
        let work = fs::canonicalize(work).with_context(|| format!("no folder {}", work.display()))?;
        let root = tempfile::Builder::new().prefix("oarlock-bench-").tempdir_in(work)?;
        let home = Self { root };
        fs::create_dir(home.codex_home())?;
        fs::create_dir(home.workspace())?;
        fs::write(home.codex_home().join("config.toml"), configuration(port, sandbox))?;
        Ok(home)
    }

    /// What `HOME` says.
    pub(crate) fn user_home(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn codex_home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("ws")
    }
}

fn configuration(port: u16, sandbox: SandboxMode) -> String {
    let sandbox = sandbox.name();
    format!(
        r#"model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "{sandbox}"

[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[skills.bundled]
enabled = false
"#
    )
}
