//! Environments: the places where tools run.

use std::sync::Arc;

use protocol::{
    EnvironmentAddParams, EnvironmentAddResponse, EnvironmentInfoParams, EnvironmentInfoResponse,
    EnvironmentStatusParams, EnvironmentStatusResponse,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;

pub(crate) async fn add(
    app: Arc<App>,
    _: Requester,
    params: EnvironmentAddParams,
) -> Result<EnvironmentAddResponse, RuntimeError> {
    app.runtime.add_environment(params).await?;
    Ok(EnvironmentAddResponse {})
}

pub(crate) async fn info(
    app: Arc<App>,
    _: Requester,
    params: EnvironmentInfoParams,
) -> Result<EnvironmentInfoResponse, RuntimeError> {
    app.runtime.environment_info(&params.environment_id)
}

pub(crate) async fn status(
    app: Arc<App>,
    _: Requester,
    params: EnvironmentStatusParams,
) -> Result<EnvironmentStatusResponse, RuntimeError> {
    Ok(app.runtime.environment_status(&params.environment_id).await)
}
