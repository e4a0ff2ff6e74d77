//! Whether this machine can run sandboxed commands, checked before the first one is needed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use protocol::SandboxPolicy;
use sandbox::SelfTest;
use serde_json::json;

use crate::private_folder::private_temporary;

/// Commands run in a sandbox of ours under this policy.
pub(crate) fn is_sandboxed(policy: &SandboxPolicy) -> bool {
    matches!(policy, SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. })
}

#[derive(Debug, Args)]
pub(crate) struct SandboxCheckArgs {
    /// A folder whose owner commands would run as: say as well whether that keeps them away from this program.
    #[arg(long, value_name = "FOLDER")]
    command_user_of: Option<PathBuf>,
}

impl SandboxCheckArgs {
    /// Prints the self-test as JSON, for a host that asks how its runtime fares in a place.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let test = SelfTest::run();
        let mut report = json!({
            "version": env!("CARGO_PKG_VERSION"), "missing": test.missing(false), "landlockOnly": test.landlock_only,
            "layers": test.layers,
        });
        if let Some(workspace) = &self.command_user_of {
            // Private, as the home of a runtime is.
            let home = private_temporary("oarlock-sandbox-check-")?;
            let user = sandbox::try_separation(workspace, home.path()).user;
            report["separation"] = json!({ "user": user.as_ref().ok(), "problem": user.as_ref().err() });
        }
        println!("{report}");
        Ok(ExitCode::SUCCESS)
    }
}
