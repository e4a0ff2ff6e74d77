//! Plugins: what marketplaces offer, and which of it is installed.

use std::sync::Arc;

use protocol::{
    PluginInstallParams, PluginInstallResponse, PluginListParams, PluginListResponse, PluginReadParams,
    PluginReadResponse, PluginUninstallParams, PluginUninstallResponse,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;

pub(crate) async fn list(
    app: Arc<App>,
    _: Requester,
    params: PluginListParams,
) -> Result<PluginListResponse, RuntimeError> {
    app.runtime.list_plugins(params).await
}

pub(crate) async fn read(
    app: Arc<App>,
    _: Requester,
    params: PluginReadParams,
) -> Result<PluginReadResponse, RuntimeError> {
    app.runtime.read_plugin(params).await
}

pub(crate) async fn install(
    app: Arc<App>,
    _: Requester,
    params: PluginInstallParams,
) -> Result<PluginInstallResponse, RuntimeError> {
    app.runtime.install_plugin(params).await
}

pub(crate) async fn uninstall(
    app: Arc<App>,
    _: Requester,
    params: PluginUninstallParams,
) -> Result<PluginUninstallResponse, RuntimeError> {
    app.runtime.uninstall_plugin(params).await
}
