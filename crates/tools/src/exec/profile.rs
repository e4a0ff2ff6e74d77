//! Caches the effect of the user's profile on the environment, so that a script need not wait for a login shell to read
//! it again. Used only if a shell without a profile then ends up in the same state as a login shell; other profiles
//! need a login shell. Never written to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use protocol::{ReadOnlyAccess, SandboxPolicy};
use sandbox::{Confinement, Limits, Order, ReadAccess, RunOptions, Strength, run};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::bench::BenchOptions;

/// The feature that enables it.
const FEATURE: &str = "shell_snapshot";
/// Login shells before the search starts: it is not worth it for fewer.
const WORTH_IT: u32 = 2;
/// Limit of searches per thread; the profile may change.
const MOST_SEARCHES: u32 = 8;
/// Time limit of a search.
const LIMIT: Duration = Duration::from_secs(10);
/// Limit of the cached changes.
const MOST_BYTES: usize = 128 << 10;

/// Prints the shell's state in four parts after a mark, then its environment, which includes exported functions.
const PROBE: &str = "\
    builtin printf '\\0oarlock\\0'; builtin declare -f; builtin printf '\\0'
    { builtin shopt -p; builtin set +o; builtin alias -p; builtin trap -p; builtin umask; builtin ulimit -a
      builtin pwd; builtin printf '%q' \"$IFS\"; } 2>&1; builtin printf '\\0'
    builtin declare -p; builtin printf '\\0'
    oarlock_names=$(builtin compgen -A function); [ -z \"$oarlock_names\" ] || builtin export -f $oarlock_names
    exec /usr/bin/env -0";

/// Variables that differ between shells, or that matter only in an interactive terminal.
const OF_THE_SHELL: &[&str] = &[
    "_",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "OLDPWD",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "PROMPT_COMMAND",
    "PROMPT_DIRTRIM",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
];

/// Files that a login shell reads. Files that these include are unknown.
const STARTUP_FILES: &[&str] =
    &["/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/environment"];
const OWN_STARTUP_FILES: &[&str] =
    &[".bash_profile", ".bash_login", ".profile", ".bashrc", ".bash_aliases", ".bash_functions"];

/// Owned by the thread.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    inner: Mutex<ProfileState>,
    /// A search has ended.
    news: Notify,
}

#[derive(Debug, Default)]
struct ProfileState {
    /// Login shells so far.
    count: u32,
    searches: u32,
    /// The result or the running search, with its inputs.
    found: Option<(Circumstances, Knowledge)>,
    /// Ends with the thread.
    tasks: JoinSet<()>,
}

#[derive(Debug, Clone)]
enum Knowledge {
    Sought,
    Changes(Arc<Changes>),
    /// Only a login shell works.
    Refused,
}

/// The inputs of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Circumstances {
    cwd: PathBuf,
    /// Each existing startup file, with the metadata that shows a change.
    files: Vec<(PathBuf, u64, u64, i64, i64)>,
}

/// The changes that a profile makes to the environment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    set: BTreeMap<String, String>,
    unset: BTreeSet<String>,
}

/// A shell's state.
#[derive(Debug, PartialEq, Eq)]
struct ShellSnapshot {
    functions: String,
    settings: String,
    variables: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
}

impl Profile {
    /// Replaces the login shell of an order by a plain shell with the cached changes, if the effect is the same. Only
    /// for commands in the thread's own folder.
    pub(crate) fn hasten(self: &Arc<Self>, order: &mut Order, options: &BenchOptions, folder: &str) {
        if !options.features.contains(FEATURE) || !is_login(order, options) {
            return;
        }
        if Path::new(folder).canonicalize().ok().as_ref() != Some(&order.cwd) {
            return;
        }
        let Some(confinement) = probe_sandbox(order, options) else { return };
        let circumstances = Circumstances::of(&order.cwd, &options.env);
        let mut inner = self.lock();
        inner.count = inner.count.saturating_add(1);
        match &inner.found {
            Some((known, Knowledge::Changes(changes))) if *known == circumstances => {
                changes.apply(&mut order.env, &options.env);
                "-c".clone_into(&mut order.argv[1]);
            }
            Some((known, _)) if *known == circumstances => {}
            _ if inner.count >= WORTH_IT && inner.searches < MOST_SEARCHES => {
                self.seek(&mut inner, order, options, confinement, circumstances);
            }
            _ => {}
        }
    }

    fn seek(
        self: &Arc<Self>,
        inner: &mut ProfileState,
        order: &Order,
        options: &BenchOptions,
        confinement: Confinement,
        circumstances: Circumstances,
    ) {
        inner.searches += 1;
        inner.found = Some((circumstances.clone(), Knowledge::Sought));
        let order = Order {
            argv: order.argv.clone(),
            cwd: order.cwd.clone(),
            env: options.env.clone(),
            confinement: Some(confinement),
            limits: Limits::default(),
            terminal: false,
        };
        let profile = Arc::downgrade(self);
        while inner.tasks.try_join_next().is_some() {}
        inner.tasks.spawn(async move {
            let changes = tokio::time::timeout(LIMIT, find_changes(order)).await.ok().flatten();
            let Some(profile) = profile.upgrade() else { return };
            let knowledge =
                changes.map_or(Knowledge::Refused, |changes| Knowledge::Changes(Arc::new(changes)));
            let mut inner = profile.lock();
            // The folder or a file may have changed by now.
            if let Some((sought, found)) = &mut inner.found
                && *sought == circumstances
            {
                *found = knowledge;
            }
            drop(inner);
            profile.news.notify_waiters();
        });
    }

    /// Waits until no search runs.
    pub(crate) async fn settled(&self) {
        loop {
            let news = self.news.notified();
            if !matches!(&self.lock().found, Some((_, Knowledge::Sought))) {
                return;
            }
            news.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProfileState> {
        self.inner.lock()
    }
}

/// Whether it is a script for a login shell of the user's kind, without a terminal.
fn is_login(order: &Order, options: &BenchOptions) -> bool {
    let is_bash = options.shell.file_name().is_some_and(|name| name == "bash");
    let [shell, flag, _] = order.argv.as_slice() else { return false };
    is_bash && !order.terminal && flag == "-lc" && Path::new(shell) == options.shell
}

/// A sandbox in which the search is harmless. `None` if the command cannot read the files that a profile may need.
fn probe_sandbox(order: &Order, options: &BenchOptions) -> Option<Confinement> {
    let confinement = match &order.confinement {
        Some(confinement) => confinement.clone(),
        None => {
            let sandbox =
                SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
            let strength = if options.landlock_only { Strength::LandlockOnly } else { Strength::Full };
            Confinement::for_policy(&sandbox, &order.cwd, None, strength, &options.off_limits)?
        }
    };
    (confinement.read == ReadAccess::Everything).then_some(Confinement {
        writable: Vec::new(),
        network: false,
        ..confinement
    })
}

impl Circumstances {
    fn of(cwd: &Path, env: &BTreeMap<String, String>) -> Self {
        let home = env.get("HOME").map(PathBuf::from).unwrap_or_default();
        let own = OWN_STARTUP_FILES.iter().map(|name| home.join(name));
        let files = STARTUP_FILES.iter().map(PathBuf::from).chain(own).filter_map(|path| {
            let found = std::fs::metadata(&path).ok()?;
            Some((path, found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
        });
        Self { cwd: cwd.to_owned(), files: files.collect() }
    }
}

/// Runs twice with the profile, which must agree, and once without it but with the changes applied, which must agree
/// too.
async fn find_changes(order: Order) -> Option<Changes> {
    let first = stand(&order, "-lc", order.env.clone()).await?;
    let again = stand(&order, "-lc", order.env.clone()).await?;
    if first != again {
        return None;
    }
    let changes = Changes::between(&order.env, &first.env)?;
    let mut env = order.env.clone();
    changes.apply(&mut env, &order.env);
    (stand(&order, "-c", env).await? == first).then_some(changes)
}

async fn stand(order: &Order, flag: &str, env: BTreeMap<String, String>) -> Option<ShellSnapshot> {
    let argv = vec![order.argv.first()?.clone(), flag.to_owned(), PROBE.to_owned()];
    let options = RunOptions { cap_bytes: 8 * MOST_BYTES, ..RunOptions::default() };
    let finished = run(Order { argv, env, ..order.clone() }, options).await.ok()?;
    let said = finished.stdout.excerpt();
    (finished.exit.code == 0 && said.omitted_bytes == 0).then(|| ShellSnapshot::read(&said.head)).flatten()
}

impl ShellSnapshot {
    fn read(said: &str) -> Option<Self> {
        // Output of the profile itself precedes the mark; output that is not text is unusable.
        let (_, said) = said.split_once("\0oarlock\0")?;
        let mut parts = said.splitn(4, '\0');
        let (functions, settings, variables, env) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let env = env.split_terminator('\0').map(|entry| entry.split_once('='));
        let env: BTreeMap<_, _> = env
            .map(|entry| entry.map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect::<Option<_>>()?;
        let lines = |text: &str, skipped: &str| -> String {
            text.lines().filter(|line| !line.starts_with(skipped)).flat_map(|line| [line, "\n"]).collect()
        };
        Some(Self {
            functions: lines(functions, "declare -f"),
            settings: lines(settings, "shopt -s login_shell").replace("shopt -u login_shell\n", ""),
            variables: variables_of(variables),
            env: env.into_iter().filter(|(name, _)| !is_of_the_shell(name)).collect(),
        })
        .filter(|_| !said.contains(char::REPLACEMENT_CHARACTER))
    }
}

/// The unexported variables, from the shell's declarations.
fn variables_of(declared: &str) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut last = None;
    for line in declared.lines() {
        // A value may span several lines.
        if let Some((flags, rest)) = line.strip_prefix("declare -").and_then(|rest| rest.split_once(' ')) {
            let name = rest.split('=').next().unwrap_or(rest).to_owned();
            let is_kept = !flags.contains('x') && !is_of_the_shell(&name) && !name.starts_with("oarlock_");
            last = is_kept.then_some(name);
        }
        if let Some(name) = &last {
            variables.entry(name.clone()).or_default().push_str(line);
        }
    }
    variables
}

fn is_of_the_shell(name: &str) -> bool {
    let is_function = name.starts_with("BASH_FUNC_");
    OF_THE_SHELL.contains(&name) || (name.starts_with("BASH") && !is_function && name != "BASH_ENV")
}

/// Whether a shell gives the variable a special meaning.
fn acts(name: &str) -> bool {
    matches!(name, "BASH_ENV" | "ENV" | "BASHOPTS" | "SHELLOPTS" | "POSIXLY_CORRECT")
        || name.starts_with("LD_")
}

impl Changes {
    /// `None` if the changes are too large, or affect variables with a special meaning.
    fn between(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Option<Self> {
        let is_new = |(name, value): &(&String, &String)| before.get(*name) != Some(*value);
        let set = after.iter().filter(is_new).map(|(name, value)| (name.clone(), value.clone()));
        let gone = |name: &&String| !after.contains_key(*name) && !is_of_the_shell(name);
        let changes = Self { set: set.collect(), unset: before.keys().filter(gone).cloned().collect() };
        let bytes: usize = changes.set.iter().map(|(name, value)| name.len() + value.len()).sum();
        let is_plain = !changes.set.keys().chain(&changes.unset).any(|name| acts(name));
        (bytes <= MOST_BYTES && is_plain).then_some(changes)
    }

    /// Variables that a command sets itself are kept.
    fn apply(&self, env: &mut BTreeMap<String, String>, of_thread: &BTreeMap<String, String>) {
        let is_own = |env: &BTreeMap<String, String>, name: &String| env.get(name) != of_thread.get(name);
        for (name, value) in &self.set {
            if !is_own(env, name) {
                env.insert(name.clone(), value.clone());
            }
        }
        for name in &self.unset {
            if !is_own(env, name) {
                env.remove(name);
            }
        }
    }
}
