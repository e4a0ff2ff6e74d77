//! Paths that sandboxed commands cannot reach: our own files, and the places of credentials.

mod access;
mod places;

pub use access::{confinement, hidden_in};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::ConfigLayerSource;
use sandbox::{OffLimits, is_named_within};
use toml::{Table, Value};

use self::places::{BY_VARIABLE, OF_SYSTEM, OF_USER, OWN_PRIVATE, OWN_SHOWN};
use crate::edit::real_place;
use crate::layer::SettingsLayer;
use crate::{Env, ResolvedConfig, SettingWarning};

/// The table of its keys.
const TABLE: &str = "sandbox";

/// Home folders of agents, used or not: theirs contain the same kinds of files as ours.
const HOMES: [&str; 2] = [".oarlock", ".codex"];

impl ResolvedConfig {
    /// The paths that are off limits under this configuration.
    pub fn off_limits(&self) -> OffLimits {
        self.off_limits.get_or_init(|| self.find_off_limits()).clone()
    }

    fn find_off_limits(&self) -> OffLimits {
        let users = user_homes(&self.env);
        let mut limits = OffLimits { sealed: self.sealed(&users), ..OffLimits::default() };
        let usual = usual_credentials(&self.env, &users);
        let own = [self.home.reading(), self.home.state()];
        let shown = own.into_iter().flat_map(|home| OWN_SHOWN.iter().map(|name| home.join(name)));
        limits.shown.extend(shown);
        // Readable and never writable for commands: plugins name programs, and the texts are instructions for every
        // thread.
        limits.protected.extend(limits.shown.iter().filter_map(|shown| link_target(shown)));
        let layers = self.layers.iter().filter(|layer| layer.is_enabled() && is_users_own(layer));
        let tables: Vec<&Table> =
            layers.filter_map(|layer| layer.table.get(TABLE).and_then(Value::as_table)).collect();
        let mut places = if tables.is_empty() { Vec::new() } else { usual.to_vec() };
        for table in &tables {
            allow(&mut limits, &mut places, paths(table, "allow_read"));
            places.extend(paths(table, "deny_read"));
            limits.unix_sockets.extend(paths(table, "unix_sockets"));
        }
        let OffLimits { sealed, shown, protected, unix_sockets, .. } = &mut limits;
        [sealed, &mut places, shown, protected, unix_sockets].into_iter().for_each(tidy);
        limits.credentials = if tables.is_empty() { usual } else { OffLimits::share_credentials(places) };
        limits
    }

    fn sealed(&self, users: &[PathBuf]) -> Vec<PathBuf> {
        let named = [self.home.reading().to_owned(), self.home.state().to_owned()];
        let usual = users.iter().flat_map(|user| HOMES.iter().map(|name| user.join(name)));
        let set = ["OARLOCK_HOME", "CODEX_HOME"].into_iter().filter_map(|name| absolute(&self.env, name));
        let mut sealed = Vec::new();
        for home in named.into_iter().chain(usual).chain(set) {
            let real = home.canonicalize().ok().filter(|real| *real != home);
            for home in [Some(home), real].into_iter().flatten() {
                // A command that works inside the folder can access that part of it, but never these.
                if home.is_dir() {
                    let private: Vec<PathBuf> = OWN_PRIVATE.iter().map(|name| home.join(name)).collect();
                    // Users may link config.toml into a folder of dotfiles, in which they also work.
                    sealed.extend(private.iter().filter_map(|path| link_target(path)));
                    sealed.extend(private);
                }
                sealed.push(home);
            }
        }
        sealed
    }
}

/// The target of a link, even if it is missing. `None` if the path is no link.
fn link_target(path: &Path) -> Option<PathBuf> {
    path.symlink_metadata().ok().filter(|found| found.is_symlink())?;
    let target = real_place(path).ok()?;
    // Parent folders may be missing too. The sandbox reserves the first missing name.
    let (above, mut real) = target.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))?;
    // Avoids a trailing slash for an existing target.
    real.extend(target.strip_prefix(above).ok()?);
    Some(real)
}

/// A warning if a project sets what only its user may.
pub(crate) fn project_warning(layers: &[SettingsLayer]) -> Option<SettingWarning> {
    let mut enabled = layers.iter().filter(|layer| layer.is_enabled() && !is_users_own(layer));
    let layer = enabled.find(|layer| layer.table.contains_key(TABLE))?;
    let folder = layer.folder.as_deref().unwrap_or(Path::new("")).display();
    Some(SettingWarning::new(format!(
        "[{TABLE}] in {folder}/config.toml is ignored: what commands may read is for the user's own config.toml to say."
    )))
}

fn is_users_own(layer: &SettingsLayer) -> bool {
    match layer.source {
        ConfigLayerSource::Project { .. } => false,
        ConfigLayerSource::Mdm { .. }
        | ConfigLayerSource::System { .. }
        | ConfigLayerSource::User { .. }
        | ConfigLayerSource::SessionFlags
        | ConfigLayerSource::LegacyManagedConfigTomlFromFile { .. }
        | ConfigLayerSource::LegacyManagedConfigTomlFromMdm => true,
    }
}

/// A folder opens all credentials in it; a path inside a hidden folder is shown.
fn allow(limits: &mut OffLimits, places: &mut Vec<PathBuf>, paths: Vec<PathBuf>) {
    for path in paths {
        places.retain(|place| !place.starts_with(&path));
        if places.iter().any(|place| is_named_within(&path, place)) && !limits.is_sealed(&path) {
            limits.shown.extend([path]);
        }
    }
}

/// The list for these users and this environment. Cached, because it has hundreds of paths and every thread needs it.
fn usual_credentials(env: &Env, users: &[PathBuf]) -> Arc<[PathBuf]> {
    type CachedKey = (Vec<PathBuf>, Vec<Option<OsString>>);
    static LAST: Mutex<Option<(CachedKey, Arc<[PathBuf]>)>> = Mutex::new(None);
    let variables = ["XDG_CONFIG_HOME", "XDG_DATA_HOME"].into_iter();
    let variables = variables.chain(BY_VARIABLE.iter().map(|(variable, _)| *variable));
    let key: CachedKey = (users.to_vec(), variables.map(|variable| env.var_os(variable)).collect());
    let mut last = LAST.lock();
    if let Some((_, places)) = last.as_ref().filter(|(known, _)| *known == key) {
        return places.clone();
    }
    let mut places = credentials(env, users);
    tidy(&mut places);
    let places = OffLimits::share_credentials(places);
    *last = Some((key, places.clone()));
    places
}

fn credentials(env: &Env, users: &[PathBuf]) -> Vec<PathBuf> {
    let names = || OF_USER.iter().copied().flatten();
    let mut places = Vec::with_capacity(users.len() * names().count());
    for user in users {
        places.extend(names().map(|name| user.join(name)));
    }
    for (variable, below) in [("XDG_CONFIG_HOME", ".config/"), ("XDG_DATA_HOME", ".local/share/")] {
        let Some(folder) = absolute(env, variable) else { continue };
        places.extend(names().filter_map(|name| Some(folder.join(name.strip_prefix(below)?))));
    }
    for (variable, name) in BY_VARIABLE {
        let folders = env.var_os(variable).into_iter();
        // KUBECONFIG may be a list.
        let folders = folders.flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>());
        let usable = folders.filter(|path| path.is_absolute() && path.parent().is_some());
        places.extend(usable.map(|path| if name.is_empty() { path } else { path.join(name) }));
    }
    if rustix::process::geteuid().is_root() {
        places.extend(OF_SYSTEM.iter().map(PathBuf::from));
    }
    places
}

/// The user's home from environment and system, as written and resolved. Root can read everyone's.
fn user_homes(env: &Env) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = absolute(env, "HOME").into_iter().collect();
    let uid = rustix::process::geteuid();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    for line in accounts.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, id, _, _, home, ..] = fields.as_slice() else { continue };
        let Ok(id) = id.parse::<u32>() else { continue };
        let is_person = (1_000..60_000).contains(&id);
        let is_home = Path::new(home).is_absolute() && Path::new(home).parent().is_some();
        if is_home && (id == uid.as_raw() || (uid.is_root() && is_person)) {
            homes.extend([PathBuf::from(home)]);
        }
    }
    let real: Vec<PathBuf> = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
    homes.extend(real);
    homes.retain(|home| home.is_dir());
    tidy(&mut homes);
    homes
}

fn absolute(env: &Env, variable: &str) -> Option<PathBuf> {
    env.var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute() && path.parent().is_some())
}

fn paths(table: &Table, key: &str) -> Vec<PathBuf> {
    let list = table.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(PathBuf::from).collect()
}

/// Removes duplicates.
fn tidy(list: &mut Vec<PathBuf>) {
    list.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    list.dedup_by(|one, other| one.as_os_str() == other.as_os_str());
}
