//! Taking over the configuration of another coding agent.

use std::sync::Arc;

use protocol::{
    ExternalAgentConfigDetectParams, ExternalAgentConfigDetectResponse, ExternalAgentConfigImportParams,
    ExternalAgentConfigImportResponse,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;

pub(crate) async fn detect(
    app: Arc<App>,
    _: Requester,
    params: ExternalAgentConfigDetectParams,
) -> Result<ExternalAgentConfigDetectResponse, RuntimeError> {
    app.runtime.detect_external_agent(params).await
}

pub(crate) async fn import(
    app: Arc<App>,
    _: Requester,
    params: ExternalAgentConfigImportParams,
) -> Result<ExternalAgentConfigImportResponse, RuntimeError> {
    app.runtime.import_external_agent(params).await?;
    Ok(ExternalAgentConfigImportResponse {})
}
