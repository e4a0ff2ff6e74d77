//! `gitDiffToRemote`: the diff of a checkout to the nearest commit that a remote has.

use std::path::PathBuf;

use protocol::{GitDiffToRemoteParams, GitDiffToRemoteResponse};

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use driver::{ClockExt, IdMaker};

impl Runtime {
    pub async fn git_diff_to_remote(
        &self,
        params: GitDiffToRemoteParams,
    ) -> Result<GitDiffToRemoteResponse, RuntimeError> {
        // A temporary folder with a unique name.
        let name = IdMaker::random(self.state.clock.stamp());
        let scratch = self.loader().home().state().join("git").join(name);
        let asked = command_exec::git_diff_to_remote(PathBuf::from(&params.cwd), scratch).await;
        asked.ok_or(RuntimeError::GitDiff(params.cwd))
    }
}
