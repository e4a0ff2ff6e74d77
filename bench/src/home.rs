//! A home and a workspace for one server, gone when dropped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::sse::MockWire;

/// The sandbox mode of a thread's commands, as the configuration spells it.
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

    /// The same with a provider for each wire, named after it. Servers that do not know a wire may refuse it, so it is
    /// not part of every home.
    pub(crate) fn create_with_wires(work: &Path, port: u16) -> Result<Self> {
        let home = Self::create(work, port, SandboxMode::FullAccess)?;
        let mut text = configuration(port, SandboxMode::FullAccess);
        for wire in MockWire::ALL {
            text.push('\n');
            text.push_str(&provider(wire, wire.name(), port));
        }
        fs::write(home.codex_home().join("config.toml"), text)?;
        Ok(home)
    }

    /// The folder that `HOME` names.
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

/// The table of a provider.
fn provider(wire: MockWire, name: &str, port: u16) -> String {
    let wire = wire.name();
    format!(
        r#"[model_providers.{name}]
name = "{name}"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "{wire}"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"#
    )
}

fn configuration(port: u16, sandbox: SandboxMode) -> String {
    let (sandbox, provider) = (sandbox.name(), provider(MockWire::Responses, "mock", port));
    format!(
        r#"model = "mock-model"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "{sandbox}"

{provider}
[skills.bundled]
enabled = false
"#
    )
}
