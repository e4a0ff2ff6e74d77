//! Changes of the configuration.

use std::sync::Arc;

use protocol::{
    ConfigBatchWriteParams, ConfigValueWriteParams, ConfigWriteResponse,
    ExperimentalFeatureEnablementSetParams, ExperimentalFeatureEnablementSetResponse, HooksListParams,
    HooksListResponse,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::handlers::plugin::notify_of_apps;
use crate::hub::Requester;

pub(crate) async fn value_write(
    app: Arc<App>,
    _: Requester,
    params: ConfigValueWriteParams,
) -> Result<ConfigWriteResponse, RuntimeError> {
    app.runtime.write_config_value(params).await
}

pub(crate) async fn batch_write(
    app: Arc<App>,
    _: Requester,
    params: ConfigBatchWriteParams,
) -> Result<ConfigWriteResponse, RuntimeError> {
    app.runtime.write_config(params).await
}

pub(crate) async fn hooks_list(
    app: Arc<App>,
    _: Requester,
    params: HooksListParams,
) -> Result<HooksListResponse, RuntimeError> {
    app.runtime.list_hooks(params).await
}

pub(crate) async fn enablement_set(
    app: Arc<App>,
    _: Requester,
    params: ExperimentalFeatureEnablementSetParams,
) -> Result<ExperimentalFeatureEnablementSetResponse, RuntimeError> {
    let before = app.runtime.apps(None).await;
    let set = app.runtime.set_feature_enablement(params);
    notify_of_apps(&app, before).await;
    set
}
