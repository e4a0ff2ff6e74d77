//! Models, features and other choices, and the current configuration.

use std::sync::Arc;

use protocol::{
    AppsListParams, AppsListResponse, CollaborationModeListParams, CollaborationModeListResponse,
    ConfigReadParams, ConfigReadResponse, ConfigRequirementsReadResponse, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse, MockExperimentalMethodParams, MockExperimentalMethodResponse,
    ModelListParams, ModelListResponse, NoParams,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;

pub(crate) async fn models(
    app: Arc<App>,
    _: Requester,
    params: ModelListParams,
) -> Result<ModelListResponse, RuntimeError> {
    app.runtime.list_models(&params).await
}

pub(crate) async fn features(
    app: Arc<App>,
    _: Requester,
    params: ExperimentalFeatureListParams,
) -> Result<ExperimentalFeatureListResponse, RuntimeError> {
    app.runtime.list_features(&params)
}

pub(crate) async fn config_read(
    app: Arc<App>,
    _: Requester,
    params: ConfigReadParams,
) -> Result<ConfigReadResponse, RuntimeError> {
    app.runtime.read_config(params).await
}

pub(crate) async fn requirements_read(
    app: Arc<App>,
    _: Requester,
    _: NoParams,
) -> Result<ConfigRequirementsReadResponse, RuntimeError> {
    app.runtime.read_requirements()
}

pub(crate) async fn collaboration_modes(
    app: Arc<App>,
    _: Requester,
    _: CollaborationModeListParams,
) -> Result<CollaborationModeListResponse, RuntimeError> {
    Ok(app.runtime.list_collaboration_modes())
}

pub(crate) async fn apps(
    app: Arc<App>,
    _: Requester,
    params: AppsListParams,
) -> Result<AppsListResponse, RuntimeError> {
    app.runtime.list_apps(&params).await
}

/// Exists to test the experimental gate.
pub(crate) async fn mock(
    _: Arc<App>,
    _: Requester,
    params: MockExperimentalMethodParams,
) -> Result<MockExperimentalMethodResponse, RuntimeError> {
    Ok(MockExperimentalMethodResponse { echoed: params.value })
}
