//! `plugin/*` and `app/list`.

use std::path::{Path, PathBuf};

use config::ResolvedConfig;
use plugins::{
    Manifest, MarketplaceSearch, PluginError, app_page, app_summary, find_plugin, install, list_marketplaces,
    plugin_apps, plugin_folder, plugin_mcp_servers, summary, uninstall,
};
use protocol::{
    AppInfo, AppsListParams, AppsListResponse, PluginDetail, PluginInstallParams, PluginInstallResponse,
    PluginListParams, PluginListResponse, PluginReadParams, PluginReadResponse, PluginUninstallParams,
    PluginUninstallResponse, ThreadId,
};
use skills::Skills;
use support::blocking;

use crate::error::RuntimeError;
use crate::open::config_request::ConfigRequest;
use crate::runtime::Runtime;

/// There is no remote service to synchronise plugins with.
const NO_REMOTE: &str = "this runtime has no remote plugin service; the lists are the local ones";

/// The key of the apps feature.
const APPS: &str = "apps";

impl Runtime {
    /// Lists the marketplaces of the user and of the given folders.
    pub async fn list_plugins(&self, params: PluginListParams) -> Result<PluginListResponse, RuntimeError> {
        let paths =
            |cwds: Vec<protocol::AbsolutePath>| cwds.iter().map(|cwd| PathBuf::from(cwd.as_str())).collect();
        let search = MarketplaceSearch {
            user: self.state.loader.user_home(),
            cwds: params.cwds.map(paths).unwrap_or_default(),
        };
        let config = self.load_for_plugins().await?;
        let (marketplaces, marketplace_load_errors) = match config.features.enabled("plugins") {
            true => blocking(move || list_marketplaces(&config, &search)).await?,
            false => Default::default(),
        };
        Ok(PluginListResponse {
            marketplaces,
            marketplace_load_errors,
            remote_sync_error: params.force_remote_sync.then(|| NO_REMOTE.to_owned()),
            featured_plugin_ids: Vec::new(),
        })
    }

    /// One plugin with its contents, installed or not.
    pub async fn read_plugin(&self, params: PluginReadParams) -> Result<PluginReadResponse, RuntimeError> {
        let config = self.enabled_plugins().await?;
        let skills = self.state.skills.clone();
        let plugin = blocking(move || read(&config, &skills, params)).await??;
        Ok(PluginReadResponse { plugin })
    }

    /// Copies and enables a plugin. Threads get its servers at their next request.
    pub async fn install_plugin(
        &self,
        params: PluginInstallParams,
    ) -> Result<PluginInstallResponse, RuntimeError> {
        let config = self.enabled_plugins().await?;
        let installing = move || {
            let plugin = find_plugin(Path::new(params.marketplace_path.as_str()), &params.plugin_name)?;
            install(&config, &plugin)?;
            let folder = plugin_folder(&config, &plugin)?;
            let apps = plugin_apps(&folder, &Manifest::read(&plugin.id.plugin, &folder)?);
            Ok::<_, PluginError>((plugin.auth_policy, apps))
        };
        let (auth_policy, apps) = blocking(installing).await??;
        self.plugins_changed().await;
        let apps_needing_auth = match self.has_apps(None).await? {
            true => apps.into_iter().map(app_summary).collect(),
            false => Vec::new(),
        };
        Ok(PluginInstallResponse { auth_policy, apps_needing_auth })
    }

    /// A page of the apps of installed plugins.
    pub async fn list_apps(&self, params: &AppsListParams) -> Result<AppsListResponse, RuntimeError> {
        let apps = self.apps(params.thread_id.as_ref()).await?;
        app_page(apps, params).map_err(RuntimeError::Cursor)
    }

    /// The apps of installed plugins, if apps are available.
    pub async fn apps(&self, thread: Option<&ThreadId>) -> Result<Vec<AppInfo>, RuntimeError> {
        if !self.has_apps(thread).await? {
            return Ok(Vec::new());
        }
        let config = self.load_for_plugins().await?;
        Ok(blocking(move || plugins::apps(&config)).await?)
    }

    /// Apps need a ChatGPT account and a thread with the feature enabled.
    async fn has_apps(&self, thread: Option<&ThreadId>) -> Result<bool, RuntimeError> {
        let is_on = match thread {
            Some(id) => self.thread(id)?.snapshot(false).await?.settings.tools.features.contains(APPS),
            None => self.load_for_plugins().await?.features.enabled(APPS),
        };
        Ok(is_on && self.has_account())
    }

    pub async fn uninstall_plugin(
        &self,
        params: PluginUninstallParams,
    ) -> Result<PluginUninstallResponse, RuntimeError> {
        let home = self.state.loader.home().clone();
        blocking(move || uninstall(&home, &params.plugin_id)).await??;
        self.plugins_changed().await;
        Ok(PluginUninstallResponse {})
    }

    async fn plugins_changed(&self) {
        self.state.skills.plugins_changed();
        if let Err(error) = self.reload_mcp_servers().await {
            tracing::warn!(%error, "threads keep the MCP servers they have");
        }
    }

    async fn enabled_plugins(&self) -> Result<ResolvedConfig, RuntimeError> {
        let config = self.load_for_plugins().await?;
        match config.features.enabled("plugins") {
            true => Ok(config),
            false => Err(PluginError::Disabled.into()),
        }
    }

    async fn load_for_plugins(&self) -> Result<ResolvedConfig, RuntimeError> {
        let loader = self.state.loader.clone();
        blocking(move || ConfigRequest::default().load(&loader)).await?
    }
}

fn read(
    config: &ResolvedConfig,
    skills: &Skills,
    params: PluginReadParams,
) -> Result<PluginDetail, PluginError> {
    let plugin = find_plugin(Path::new(params.marketplace_path.as_str()), &params.plugin_name)?;
    let folder = plugin_folder(config, &plugin)?;
    if !folder.is_dir() {
        return Err(PluginError::NoSource(folder));
    }
    let manifest = Manifest::read(&plugin.id.plugin, &folder)?;
    let summary = summary(config, &plugin).ok_or_else(|| PluginError::NoSource(folder.clone()))?;
    Ok(PluginDetail {
        marketplace_name: plugin.id.marketplace.clone(),
        marketplace_path: params.marketplace_path,
        summary,
        skills: skills.of_plugin(config, &folder, &plugin.id.plugin, &manifest),
        apps: plugin_apps(&folder, &manifest).into_iter().map(app_summary).collect(),
        mcp_servers: plugin_mcp_servers(&folder, &manifest).into_iter().map(|(name, _)| name).collect(),
        description: manifest.description,
    })
}
