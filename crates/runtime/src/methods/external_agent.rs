//! `externalAgentConfig/*`: importing the settings of another coding agent.

use std::path::Path;
use std::time::Duration;

use config::{ExternalAgentError, detect_external_agent, import_external_agent};
use protocol::{
    ExternalAgentConfigDetectParams, ExternalAgentConfigDetectResponse, ExternalAgentConfigImportParams,
};

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use support::blocking;
use workspace::within;

/// Time limit of detecting or importing settings.
const IMPORT_LIMIT: Duration = Duration::from_secs(30);

impl Runtime {
    /// Lists everything that can be imported and does not exist here: of the user, then of each repository.
    pub async fn detect_external_agent(
        &self,
        params: ExternalAgentConfigDetectParams,
    ) -> Result<ExternalAgentConfigDetectResponse, RuntimeError> {
        let loader = self.loader().clone();
        Ok(blocking(|| limited(move || detect_external_agent(&loader, &params))).await??)
    }

    /// Imports these items in order. Existing files and settings stay unchanged.
    pub async fn import_external_agent(
        &self,
        params: ExternalAgentConfigImportParams,
    ) -> Result<(), RuntimeError> {
        let loader = self.loader().clone();
        Ok(blocking(|| limited(move || import_external_agent(&loader, params))).await??)
    }
}

/// Limits blocking work in time. Work that has started continues if the file system responds later.
fn limited<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExternalAgentError> + Send + 'static,
) -> Result<T, ExternalAgentError> {
    let path = Path::new("the files of another agent");
    let hangs = |error: workspace::ReadError| ExternalAgentError::Failed {
        path: path.to_owned(),
        problem: error.problem.to_string(),
    };
    within(path, IMPORT_LIMIT, work).unwrap_or_else(|error| Err(hangs(error)))
}

impl From<ExternalAgentError> for RuntimeError {
    fn from(error: ExternalAgentError) -> Self {
        match error {
            ExternalAgentError::Folder(problem) => Self::Field { field: "cwds", problem },
            ExternalAgentError::Write(error) => Self::ConfigWrite(error.to_string()),
            error @ (ExternalAgentError::Failed { .. } | ExternalAgentError::Settings(_)) => {
                Self::ExternalAgent(error.to_string())
            }
        }
    }
}
