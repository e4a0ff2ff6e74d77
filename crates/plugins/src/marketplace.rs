//! Marketplaces: files that list plugins.

use std::path::{Path, PathBuf};

use config::ResolvedConfig;
use protocol::{
    AbsolutePath, MarketplaceInterface, MarketplaceLoadErrorInfo, PluginAuthPolicy, PluginInstallPolicy,
    PluginMarketplaceEntry, PluginSource, PluginSummary,
};
use serde::Deserialize;
use workspace::{Reader, git_root};

use crate::PluginError;
use crate::git::{Checkout, GitSource};
use crate::id::{PluginId, is_plain};
use crate::installed::{active_folder, is_enabled};
use crate::manifest::{Manifest, below};

/// The path of a marketplace file in its folder.
const FILE: &str = ".agents/plugins/marketplace.json";
const MAX_FILE_BYTES: u64 = 4 << 20;
const MAX_PLUGINS: usize = 1_000;
/// This program's name in a plugin's list of products.
const PRODUCT: &str = "codex";

/// Where to look for marketplaces.
#[derive(Debug, Clone, Default)]
pub struct MarketplaceSearch {
    /// The user's own folder.
    pub user: Option<PathBuf>,
    /// Folders whose projects may have one.
    pub cwds: Vec<PathBuf>,
}

/// One plugin that a marketplace offers.
#[derive(Debug, Clone)]
pub struct OfferedPlugin {
    pub id: PluginId,
    pub marketplace_path: PathBuf,
    pub(crate) source: PluginOrigin,
    pub(crate) install_policy: PluginInstallPolicy,
    pub auth_policy: PluginAuthPolicy,
    category: Option<String>,
    is_for_us: bool,
}

/// Where its files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PluginOrigin {
    Folder(AbsolutePath),
    Git(GitSource),
}

struct Marketplace {
    name: String,
    interface: Option<MarketplaceInterface>,
    plugins: Vec<OfferedPlugin>,
}

#[derive(Deserialize)]
struct MarketplaceFile {
    name: String,
    interface: Option<MarketplaceInterface>,
    plugins: Vec<PluginEntry>,
}

#[derive(Deserialize)]
struct PluginEntry {
    name: String,
    source: SourceEntry,
    #[serde(default)]
    policy: PolicyEntry,
    category: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
enum SourceEntry {
    Local { path: String },
    Git { url: String, commit: String, path: Option<String> },
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PolicyEntry {
    installation: Option<PluginInstallPolicy>,
    authentication: Option<PluginAuthPolicy>,
    products: Option<Vec<String>>,
}

/// All marketplaces, and the errors of unreadable ones.
pub fn list_marketplaces(
    config: &ResolvedConfig,
    search: &MarketplaceSearch,
) -> (Vec<PluginMarketplaceEntry>, Vec<MarketplaceLoadErrorInfo>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for path in places(search) {
        match Marketplace::read(&path) {
            Ok(marketplace) => {
                let offered = marketplace.plugins.iter().filter(|plugin| plugin.is_for_us);
                let plugins: Vec<_> = offered.filter_map(|plugin| summary(config, plugin)).collect();
                if plugins.is_empty() {
                    continue;
                }
                found.extend(absolute(&path).map(|path| PluginMarketplaceEntry {
                    name: marketplace.name,
                    path,
                    interface: marketplace.interface,
                    plugins,
                }));
            }
            Err(PluginError::NoMarketplace(_)) => {}
            Err(error) => errors.extend(absolute(&path).map(|marketplace_path| MarketplaceLoadErrorInfo {
                marketplace_path,
                message: error.to_string(),
            })),
        }
    }
    (found, errors)
}

fn places(search: &MarketplaceSearch) -> Vec<PathBuf> {
    let of_projects = search.cwds.iter().map(|cwd| git_root(cwd).unwrap_or_else(|| cwd.clone()));
    let mut places: Vec<PathBuf> =
        search.user.iter().cloned().chain(of_projects).map(|root| root.join(FILE)).collect();
    let mut seen = std::collections::HashSet::new();
    places.retain(|place| seen.insert(place.clone()));
    places
}

/// One plugin of the marketplace in this file.
pub fn find_plugin(file: &Path, plugin: &str) -> Result<OfferedPlugin, PluginError> {
    let marketplace = Marketplace::read(file)?;
    let name = marketplace.name;
    let found = marketplace.plugins.into_iter().find(|offered| offered.id.plugin == plugin);
    found.ok_or_else(|| PluginError::NotFound { plugin: plugin.to_owned(), marketplace: name })
}

impl OfferedPlugin {
    pub(crate) fn check_available(&self) -> Result<(), PluginError> {
        match self.install_policy == PluginInstallPolicy::NotAvailable || !self.is_for_us {
            true => Err(PluginError::NotAvailable {
                plugin: self.id.plugin.clone(),
                marketplace: self.id.marketplace.clone(),
            }),
            false => Ok(()),
        }
    }
}

/// The folder with a plugin's files. Fetches a repository if needed.
pub fn plugin_folder(config: &ResolvedConfig, plugin: &OfferedPlugin) -> Result<PathBuf, PluginError> {
    match &plugin.source {
        PluginOrigin::Folder(folder) => Ok(PathBuf::from(folder.as_str())),
        PluginOrigin::Git(source) => Checkout::new(config, &plugin.id.plugin, source).fetch(),
    }
}

/// A summary of a plugin. Fetches nothing: the source of one from a repository is the folder where it will be stored.
/// `None` if the home has no absolute path.
pub fn summary(config: &ResolvedConfig, plugin: &OfferedPlugin) -> Option<PluginSummary> {
    let installed = active_folder(&config.home, &plugin.id);
    let (path, folder) = match &plugin.source {
        PluginOrigin::Folder(path) => (Some(path.clone()), Some(PathBuf::from(path.as_str()))),
        PluginOrigin::Git(source) => {
            let checkout = Checkout::new(config, &plugin.id.plugin, source);
            (absolute(&checkout.folder()), checkout.folder_if_here().or_else(|| installed.clone()))
        }
    };
    let manifest = folder.and_then(|folder| Manifest::read(&plugin.id.plugin, &folder).ok());
    let mut interface = manifest.and_then(|manifest| manifest.interface);
    if let (Some(interface), Some(category)) = (&mut interface, &plugin.category) {
        interface.category = Some(category.clone());
    }
    Some(PluginSummary {
        id: plugin.id.to_string(),
        name: plugin.id.plugin.clone(),
        source: PluginSource::Local { path: path? },
        installed: installed.is_some(),
        enabled: is_enabled(config, &plugin.id),
        install_policy: plugin.install_policy,
        auth_policy: plugin.auth_policy,
        interface,
    })
}

fn absolute(path: &Path) -> Option<AbsolutePath> {
    AbsolutePath::new(path.to_string_lossy().into_owned())
}

impl Marketplace {
    fn read(file: &Path) -> Result<Self, PluginError> {
        let wrong = |problem: String| PluginError::Marketplace { path: file.to_owned(), problem };
        let root =
            file.to_str().and_then(|path| path.strip_suffix(FILE)).filter(|root| root.starts_with('/'));
        let Some(root) = root.map(PathBuf::from) else {
            return Err(match file.exists() {
                true => wrong(format!("it must be at <folder>/{FILE}")),
                false => PluginError::NoMarketplace(file.to_owned()),
            });
        };
        // Links may lead out of a project, like paths.
        let read =
            Reader::default().beneath(&root).and_then(|reader| reader.read_whole(file, MAX_FILE_BYTES));
        let text = read.map_err(|error| match error.is_missing() {
            true => PluginError::NoMarketplace(file.to_owned()),
            false => wrong(error.to_string()),
        })?;
        let parsed: MarketplaceFile =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if !is_plain(&parsed.name) {
            return Err(wrong("its name may have letters, digits, `-` and `_` only".to_owned()));
        }
        if parsed.plugins.len() > MAX_PLUGINS {
            return Err(wrong(format!("it has more than {MAX_PLUGINS} plugins")));
        }
        let offered = |entry: PluginEntry| {
            let name = entry.name.clone();
            let offered = entry.offered(file, &root, &parsed.name);
            offered.map_err(|problem| wrong(format!("plugin `{name}`: {problem}")))
        };
        let plugins = parsed.plugins.into_iter().map(offered).collect::<Result<_, _>>()?;
        Ok(Self { name: parsed.name, interface: parsed.interface, plugins })
    }
}

impl PluginEntry {
    fn offered(self, file: &Path, root: &Path, marketplace: &str) -> Result<OfferedPlugin, String> {
        if !is_plain(&self.name) {
            return Err("its name may have letters, digits, `-` and `_` only".to_owned());
        }
        let source = match self.source {
            SourceEntry::Local { path } if path.starts_with("./") => {
                let path =
                    below(&path).ok_or("local plugin source path must stay within its marketplace root")?;
                PluginOrigin::Folder(absolute(&root.join(path)).ok_or("its folder is not an absolute path")?)
            }
            SourceEntry::Local { .. } => {
                return Err("local plugin source path must start with `./`".to_owned());
            }
            SourceEntry::Git { url, commit, path } => {
                PluginOrigin::Git(GitSource::new(&url, commit, path.as_deref())?)
            }
        };
        let is_ours =
            |products: &Vec<String>| products.iter().any(|product| product.eq_ignore_ascii_case(PRODUCT));
        Ok(OfferedPlugin {
            id: PluginId { plugin: self.name, marketplace: marketplace.to_owned() },
            marketplace_path: file.to_owned(),
            source,
            install_policy: self.policy.installation.unwrap_or(PluginInstallPolicy::Available),
            auth_policy: self.policy.authentication.unwrap_or(PluginAuthPolicy::OnInstall),
            category: self.category,
            is_for_us: self.policy.products.as_ref().is_none_or(is_ours),
        })
    }
}
