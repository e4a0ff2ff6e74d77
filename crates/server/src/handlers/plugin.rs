//! Plugins: what marketplaces offer, and which of it is installed.

use std::sync::Arc;

use protocol::{
    AppInfo, AppListUpdatedNotification, PluginInstallParams, PluginInstallResponse, PluginListParams,
    PluginListResponse, PluginReadParams, PluginReadResponse, PluginUninstallParams, PluginUninstallResponse,
    ServerNotification,
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
    let before = app.runtime.apps(None).await;
    let installed = app.runtime.install_plugin(params).await;
    notify_of_apps(&app, before).await;
    installed
}

pub(crate) async fn uninstall(
    app: Arc<App>,
    _: Requester,
    params: PluginUninstallParams,
) -> Result<PluginUninstallResponse, RuntimeError> {
    let before = app.runtime.apps(None).await;
    let uninstalled = app.runtime.uninstall_plugin(params).await;
    notify_of_apps(&app, before).await;
    uninstalled
}

/// Sends the list of apps to all clients if it is another one than before.
pub(super) async fn notify_of_apps(app: &App, before: Result<Vec<AppInfo>, RuntimeError>) {
    let (Ok(before), Ok(data)) = (before, app.runtime.apps(None).await) else { return };
    if data != before {
        let updated = AppListUpdatedNotification { data };
        app.hub.broadcast(ServerNotification::AppListUpdated(updated)).await;
    }
}
