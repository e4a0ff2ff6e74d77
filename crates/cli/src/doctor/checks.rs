//! The single checks.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::{JournalError, ListQuery, Store, StoreEvent, StoreOptions};
use parking_lot::Mutex;
use protocol::ThreadSourceKind;
use runtime::Catalogue;
use runtime::config::{ConfigError, Home, Loader, ProviderKind, ResolvedConfig};
use rustix::fs::{Access, access};
use serde_json::{Value, json};

use super::DoctorCheck;
use crate::config_parts::ConfigPart;
use crate::exec::STARTED_BY_USERS;
use crate::wording::warning_text;

pub(super) fn home(home: &Home) -> DoctorCheck {
    let (reading, state) = (home.reading(), home.state());
    let place = match reading == state {
        true => reading.display().to_string(),
        false => format!("{}, with our own files in {}", reading.display(), state.display()),
    };
    match fs::metadata(state) {
        Err(error) if error.kind() == ErrorKind::NotFound => match why_not_made(state) {
            None => DoctorCheck::ok("home", format!("{place} (not there yet; the first run makes it)")),
            Some(why) => DoctorCheck::problem(
                "home",
                format!("{place} is not there, and cannot be made: {why}"),
                "make it yourself, or point OARLOCK_HOME to a folder of your own",
            ),
        },
        Ok(metadata) if metadata.is_dir() => DoctorCheck::ok("home", place),
        Ok(_) => {
            DoctorCheck::problem("home", format!("{place} is not a folder"), "point OARLOCK_HOME to a folder")
        }
        Err(error) => {
            DoctorCheck::problem("home", format!("{place}: {error}"), "make the folder readable for you")
        }
    }
}

/// Why a missing folder could not be made, found without making anything.
fn why_not_made(folder: &Path) -> Option<String> {
    // A link that leads nowhere is there, and nothing can be made in its place.
    let nearest = folder.ancestors().find(|above| above.symlink_metadata().is_ok())?;
    if !nearest.is_dir() {
        return Some(format!("{} is not a folder", nearest.display()));
    }
    let refused = access(nearest, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("{}: {}", nearest.display(), std::io::Error::from(refused)))
}

pub(super) fn configuration(loader: &Loader, loaded: Result<&ResolvedConfig, &ConfigError>) -> DoctorCheck {
    let file = loader.home().config_file();
    match loaded {
        Err(error) => {
            DoctorCheck::problem("config", error.to_string(), "correct it; until then nothing can be started")
        }
        Ok(config) if config.warnings.is_empty() => {
            let is_there = if file.exists() { "" } else { " (no such file; defaults are used)" };
            let profile = config.profile.as_ref().map(|name| format!(", profile {name}")).unwrap_or_default();
            DoctorCheck::ok("config", format!("{}{is_there}{profile}", file.display()))
        }
        Ok(config) => {
            let warnings = config.warnings.iter().map(warning_text).collect::<Vec<_>>().join("; ");
            DoctorCheck::note("config", format!("{}: {warnings}", file.display()), None)
        }
    }
}

/// Rules, hooks and MCP servers, where there are any.
pub(super) fn part(
    (name, advice, (count, mistakes)): (&'static str, &str, ConfigPart),
) -> Option<DoctorCheck> {
    match mistakes.is_empty() {
        false => Some(DoctorCheck::problem(name, mistakes.join("; "), advice)),
        true => (count > 0).then(|| DoctorCheck::ok(name, format!("{count} can be used"))),
    }
}

/// The existing files that sandboxed commands cannot read.
pub(super) fn hidden(config: &ResolvedConfig) -> DoctorCheck {
    let limits = config.off_limits();
    let there = |places: &[PathBuf]| -> Vec<String> {
        let there = places.iter().filter(|place| place.exists());
        // A folder stands for what is in it.
        let outermost = there.filter(|place| {
            !places.iter().any(|above| above != *place && place.starts_with(above) && above.exists())
        });
        outermost.map(|place| place.display().to_string()).collect()
    };
    let ours = there(&limits.sealed);
    let ours = if ours.is_empty() { "nothing of ours yet".to_owned() } else { ours.join(", ") };
    let theirs = match there(&limits.credentials) {
        found if found.is_empty() => "none are here".to_owned(),
        found => found.join(", "),
    };
    let known = limits.credentials.len();
    let mut summary = format!("commands cannot read {ours}; of {known} places for credentials: {theirs}");
    if !limits.unix_sockets.is_empty() {
        let sockets: Vec<_> = limits.unix_sockets.iter().map(|path| path.display().to_string()).collect();
        summary.push_str(&format!("; with network they may connect to {}", sockets.join(", ")));
    }
    DoctorCheck::ok("hidden", summary)
}

/// The same for programs, also what is not there.
pub(super) fn hidden_json(config: &ResolvedConfig) -> Value {
    let limits = config.off_limits();
    json!({
        "sealed": limits.sealed,
        "credentials": limits.credentials,
        "shown": limits.shown,
        "unixSockets": limits.unix_sockets,
    })
}

pub(super) fn model(config: &ResolvedConfig) -> DoctorCheck {
    let catalogue = match &config.model.catalog_json {
        None => Catalogue::bundled(),
        Some(path) => match Catalogue::from_file(path) {
            Ok(catalogue) => catalogue,
            Err(error) => {
                return DoctorCheck::problem("model", error.to_string(), "correct model_catalog_json");
            }
        },
    };
    let is_offline = config.provider.kind == ProviderKind::Offline;
    let of_provider = config.provider.default_model.as_deref();
    let default = if is_offline { "offline" } else { of_provider.unwrap_or(catalogue.default_model()) };
    match &config.model.name {
        Some(name) if catalogue.lookup(name).is_fallback && !is_offline => {
            let summary = format!("{name}: not in the list of known models; its limits are guessed");
            DoctorCheck::note("model", summary, Some("set model_context_window if the guess is wrong"))
        }
        Some(name) => DoctorCheck::ok("model", name.as_str()),
        None => DoctorCheck::ok("model", format!("{default} (nothing else is configured)")),
    }
}

/// The records of threads, and the index made from them.
pub(super) fn records(home: &Home) -> Vec<DoctorCheck> {
    if !home.state().is_dir() {
        return vec![DoctorCheck::ok("records", "none yet")];
    }
    let unusable = |error: &JournalError| {
        DoctorCheck::problem("records", error.to_string(), "make the folder writable, or free some space")
    };
    let events: Arc<Mutex<Vec<StoreEvent>>> = Arc::default();
    let heard = events.clone();
    let observer = Arc::new(move |event: &StoreEvent| {
        heard.lock().push(event.clone());
    });
    let store = Store::open(home.state(), StoreOptions { observer, ..StoreOptions::default() });
    let store = match store.and_then(|store| store.check_writable().map(|()| store)) {
        Ok(store) => store,
        Err(error) => return vec![unusable(&error)],
    };
    let index = store.refresh_index();
    let counted = count(&store, false).and_then(|active| Ok((active, count(&store, true)?)));
    let (active, archived) = match counted {
        Ok(counted) => counted,
        Err(error) => return vec![unusable(&error)],
    };
    let damaged = active.damaged + archived.damaged;
    let summary = format!("{} threads, {} more in the archive", active.threads, archived.threads);
    let records = match damaged {
        0 => DoctorCheck::ok("records", summary),
        _ => DoctorCheck::note(
            "records",
            format!("{summary}; {damaged} of them are damaged and are read as far as possible"),
            Some("`oarlock threads --all` marks them"),
        ),
    };
    let events = events.lock();
    let in_memory = events.iter().find(|event| matches!(event, StoreEvent::IndexInMemory { .. }));
    let index = match (index, in_memory) {
        (Err(error), _) => DoctorCheck::note("index", error.to_string(), Some("lists are slower without it")),
        (Ok(()), Some(event)) => {
            DoctorCheck::note("index", event.to_string(), Some("lists are slower without it"))
        }
        (Ok(()), None) => DoctorCheck::ok("index", "agrees with the records"),
    };
    vec![records, index]
}

#[derive(Debug, Default)]
struct Count {
    threads: usize,
    damaged: usize,
}

fn count(store: &Store, archived: bool) -> Result<Count, JournalError> {
    let mut source_kinds = STARTED_BY_USERS.to_vec();
    source_kinds.push(ThreadSourceKind::SubAgent);
    let mut query =
        ListQuery { limit: 100, archived, source_kinds, with_silent: true, ..ListQuery::default() };
    let mut count = Count::default();
    loop {
        let page = store.list(&query)?;
        count.threads += page.threads.len();
        count.damaged += page.threads.iter().filter(|row| row.is_damaged).count();
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(count),
        }
    }
}

pub(super) fn workspace(cwd: Option<&Path>) -> DoctorCheck {
    match cwd {
        None => DoctorCheck::problem("folder", "the current folder is gone", "change to another one"),
        Some(cwd) if crate::exec::is_in_repository(cwd) => {
            DoctorCheck::ok("folder", format!("{} (in a git repository)", cwd.display()))
        }
        Some(cwd) => DoctorCheck::note(
            "folder",
            format!("{} is not in a git repository", cwd.display()),
            Some("`oarlock exec` works here only with --skip-git-repo-check"),
        ),
    }
}
