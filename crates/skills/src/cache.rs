//! Caches the skills of each working directory. They are needed for every model request, so a cache hit must be cheap.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use config::{ConfigError, LoadRequest, Loader, ResolvedConfig, SkillRules};
use engine::{PluginLine, SkillLine};
use futures_util::future::BoxFuture;
use plugins::{InstalledPlugin, active_plugins};
use protocol::{ConfigWarningNotification, SkillErrorInfo, SkillScope, ThreadId};
use workspace::Reader;

use super::bound::{BoundedList, MAX_LIST_BYTES, bounded};
use super::roots::{SkillRoot, roots};
use super::scan::{scan, sort};
use super::watch::FollowedThreads;
use super::{ScanResult, Skill, of_plugins};

/// Beyond this many, directories without a loaded thread are removed.
const MAX_DIRECTORIES: usize = 256;

/// Maximum age of an unwatched directory's skills.
const UNWATCHED_AGE: Duration = Duration::from_secs(10);

/// The skill settings of one thread. The user's settings apply too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillChoices {
    /// These override the user's.
    rules: SkillRules,
    without_bundled: bool,
}

impl SkillChoices {
    pub fn of(config: &ResolvedConfig) -> Self {
        Self { rules: config.session_skill_rules(), without_bundled: !config.bundled_skills() }
    }
}

/// Notifies the clients of a thread that its skills have changed.
pub type NotifySkillsChanged = Box<dyn Fn(ThreadId) -> BoxFuture<'static, ()> + Send + Sync>;

/// The skills of all working directories.
pub struct Skills {
    pub(super) loader: Loader,
    pub(super) notify: NotifySkillsChanged,
    directories: Mutex<HashMap<PathBuf, Arc<Directory>>>,
    pub(super) following: Mutex<FollowedThreads>,
}

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skills").field("directories", &self.directories).finish_non_exhaustive()
    }
}

/// The skills of one working directory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) roots: Vec<SkillRoot>,
    /// The enabled plugins.
    pub(super) plugins: Arc<[InstalledPlugin]>,
    /// The user's rules.
    rules: SkillRules,
    /// Scanned on first use.
    found: OnceLock<Arc<ScanResult>>,
    extra_roots: Vec<SkillRoot>,
    /// Skills in the roots that a client named.
    extra: OnceLock<Arc<ScanResult>>,
    /// When its roots were last determined.
    since: Instant,
    /// The last lines, and the choices they were made for.
    lines: Mutex<Option<(SkillChoices, ListedSkills)>>,
}

/// The list for the model, and how much was left out.
#[derive(Debug, Clone)]
struct ListedSkills {
    lines: Arc<[SkillLine]>,
    shortened: usize,
    left_out: usize,
}

impl Directory {
    fn new(
        roots: Vec<SkillRoot>,
        plugins: Arc<[InstalledPlugin]>,
        rules: SkillRules,
        extra_roots: Vec<SkillRoot>,
    ) -> Self {
        Self {
            roots,
            plugins,
            rules,
            found: OnceLock::new(),
            extra: OnceLock::new(),
            extra_roots,
            since: Instant::now(),
            lines: Mutex::default(),
        }
    }

    /// The same directory with other rules.
    fn with_rules(&self, rules: SkillRules) -> Self {
        Self {
            roots: self.roots.clone(),
            plugins: self.plugins.clone(),
            rules,
            found: self.found.clone(),
            extra_roots: self.extra_roots.clone(),
            extra: self.extra.clone(),
            since: self.since,
            lines: Mutex::default(),
        }
    }

    pub(super) fn scan_result(&self) -> &Arc<ScanResult> {
        self.found.get_or_init(|| Arc::new(scan(&self.roots)))
    }

    fn extra(&self) -> &Arc<ScanResult> {
        self.extra.get_or_init(|| Arc::new(scan(&self.extra_roots)))
    }

    /// All skills in order, and whether each is enabled.
    pub(super) fn skills(&self, choices: &SkillChoices) -> Vec<(Skill, bool)> {
        let (found, extra) = (self.scan_result(), self.extra());
        let is_new = |skill: &&Skill| found.skills.iter().all(|known| known.path != skill.path);
        let mut skills: Vec<Skill> =
            found.skills.iter().chain(extra.skills.iter().filter(is_new)).cloned().collect();
        if !extra.skills.is_empty() {
            sort(&mut skills);
        }
        skills.retain(|skill| self.is_offered(skill, choices));
        let with_state = |skill: Skill| {
            let enabled = self.is_enabled(&skill, choices);
            (skill, enabled)
        };
        skills.into_iter().map(with_state).collect()
    }

    pub(super) fn errors(&self) -> Vec<SkillErrorInfo> {
        self.scan_result().errors.iter().chain(&self.extra().errors).cloned().collect()
    }

    fn is_offered(&self, skill: &Skill, choices: &SkillChoices) -> bool {
        !(choices.without_bundled && skill.scope == SkillScope::System)
    }

    fn is_enabled(&self, skill: &Skill, choices: &SkillChoices) -> bool {
        let verdict = |rules: &SkillRules| rules.verdict(&skill.path, &skill.name);
        verdict(&choices.rules).or_else(|| verdict(&self.rules)).unwrap_or(true)
    }

    /// The list for the model: enabled skills that it may use on its own.
    fn listed(&self, choices: &SkillChoices) -> ListedSkills {
        let mut made = self.lines.lock();
        if let Some((known, listed)) = &*made
            && known == choices
        {
            return listed.clone();
        }
        let is_listed = |skill: &&Skill| {
            skill.is_implicit && self.is_offered(skill, choices) && self.is_enabled(skill, choices)
        };
        let line = |skill: &Skill| SkillLine {
            name: skill.name.clone(),
            description: skill.description.clone(),
            path: skill.path.to_string_lossy().into_owned(),
        };
        let lines = self.scan_result().skills.iter().filter(is_listed).map(line).collect();
        let BoundedList { lines, shortened, left_out } = bounded(lines, MAX_LIST_BYTES);
        let listed = ListedSkills { lines: lines.into(), shortened, left_out };
        *made = Some((choices.clone(), listed.clone()));
        listed
    }
}

impl Skills {
    pub fn new(loader: Loader, notify: NotifySkillsChanged) -> Self {
        Self { loader, notify, directories: Mutex::default(), following: Mutex::default() }
    }

    /// For the model. Reads the disk only for a directory that is unknown or unwatched. Leaves out project skills that
    /// `limits` do not allow to read.
    pub fn lines(&self, cwd: &Path, choices: &SkillChoices, limits: Option<&Reader>) -> Arc<[SkillLine]> {
        let directory = self.fresh(cwd);
        let lines = directory.listed(choices).lines;
        let Some(limits) = limits else { return lines };
        let is_refused = |skill: &&Skill| skill.project.is_some() && !limits.allows(&skill.path);
        let refused: HashSet<&Path> = directory
            .scan_result()
            .skills
            .iter()
            .filter(is_refused)
            .map(|skill| skill.path.as_path())
            .collect();
        lines.iter().filter(|line| !refused.contains(Path::new(&line.path))).cloned().collect()
    }

    /// For the model. Reads the disk like [`Skills::lines`].
    pub fn plugin_lines(&self, cwd: &Path) -> Arc<[PluginLine]> {
        self.fresh(cwd).plugins.iter().map(of_plugins::line).collect()
    }

    /// Warns once per thread that its list is incomplete. Reads the disk like [`Skills::lines`].
    pub fn list_warning(&self, thread: &ThreadId) -> Option<ConfigWarningNotification> {
        let cwd = self.following.lock().warn_once(thread)?;
        let ListedSkills { lines, shortened, left_out } = self.fresh(&cwd).listed(&SkillChoices::default());
        if shortened == 0 && left_out == 0 {
            return None;
        }
        let summary = format!(
            "There are more skills than the model is told of: {} are listed, {shortened} of them with a shortened \
             description, and {left_out} are left out.",
            lines.len()
        );
        let details = "The list is part of every request and has a limit. A skill that is left out can be asked for by \
                       `$name`; switch off those you do not need with [[skills.config]]."
            .to_owned();
        Some(ConfigWarningNotification { summary, details: Some(details), path: None, range: None })
    }

    /// Reads the disk now if the skills are not known yet.
    pub fn preload(&self, cwd: &Path) {
        self.fresh(cwd).scan_result();
    }

    /// Like [`Skills::directory`], but reads an outdated one again.
    pub(super) fn fresh(&self, cwd: &Path) -> Arc<Directory> {
        let known = self.directory(cwd);
        if known.since.elapsed() < UNWATCHED_AGE || self.following.lock().is_watched(cwd) {
            return known;
        }
        let extra: Vec<PathBuf> = known.extra_roots.iter().map(|root| root.path.clone()).collect();
        self.reload(cwd, &extra).unwrap_or(known)
    }

    /// The cached skills, or those on disk. Empty if the configuration is unreadable.
    pub(super) fn directory(&self, cwd: &Path) -> Arc<Directory> {
        if let Some(known) = self.known(cwd) {
            return known;
        }
        match self.load(cwd, &[]) {
            Ok(directory) => self.keep(cwd, directory),
            Err(error) => {
                tracing::warn!(%error, cwd = %cwd.display(), "the skills of this directory are not read");
                Arc::new(Directory::new(Vec::new(), Arc::default(), SkillRules::default(), Vec::new()))
            }
        }
    }

    pub(super) fn known(&self, cwd: &Path) -> Option<Arc<Directory>> {
        self.directories.lock().get(cwd).cloned()
    }

    /// Whether there is a scan to compare a later one with.
    pub(super) fn is_scanned(&self, cwd: &Path) -> bool {
        self.known(cwd).is_some_and(|known| known.found.get().is_some())
    }

    /// Reads the disk again.
    pub(super) fn reload(&self, cwd: &Path, extra: &[PathBuf]) -> Result<Arc<Directory>, ConfigError> {
        Ok(self.keep(cwd, self.load(cwd, extra)?))
    }

    fn load(&self, cwd: &Path, extra: &[PathBuf]) -> Result<Directory, ConfigError> {
        let config =
            self.loader.load(&LoadRequest { cwd: Some(cwd.to_owned()), ..LoadRequest::default() })?;
        let plugins: Arc<[_]> = active_plugins(&config).into();
        let roots = roots(&config, &plugins, cwd, self.loader.user_home().as_deref());
        let extra = extra.iter().map(|path| SkillRoot::new(path, SkillScope::User));
        Ok(Directory::new(roots, plugins, config.skill_rules(), extra.collect()))
    }

    fn keep(&self, cwd: &Path, directory: Directory) -> Arc<Directory> {
        let directory = Arc::new(directory);
        let mut directories = self.directories.lock();
        if directories.len() >= MAX_DIRECTORIES {
            let followed = self.following.lock().directories();
            directories.retain(|cwd, _| followed.contains(cwd));
        }
        directories.insert(cwd.to_owned(), directory.clone());
        directory
    }

    pub(super) fn forget_all(&self) {
        self.directories.lock().clear();
    }

    pub(super) fn forget(&self, cwd: &Path) {
        self.directories.lock().remove(cwd);
    }

    /// Scans the disk again. Returns the previous scan, if there was one, and the directory.
    pub(super) fn rescan(&self, cwd: &Path) -> (Option<Arc<ScanResult>>, Arc<Directory>) {
        let known = self.directory(cwd);
        let Some(before) = known.found.get().cloned() else { return (None, known) };
        let now = Directory {
            found: OnceLock::from(Arc::new(scan(&known.roots))),
            extra: OnceLock::new(),
            ..known.with_rules(known.rules.clone())
        };
        // Keeping an equal scan keeps its lines.
        let is_same = !now.scan_result().differs(&before)
            && now.scan_result().folders == before.folders
            && !now.extra().differs(known.extra());
        if !is_same {
            return (Some(before), self.keep(cwd, now));
        }
        (Some(before), known)
    }

    /// A thread was opened with this configuration, which may be newer than the cache.
    pub fn thread_opened(self: &Arc<Self>, thread: &ThreadId, config: &ResolvedConfig) {
        let Some(cwd) = &config.cwd else { return };
        let plugins: Arc<[_]> = active_plugins(config).into();
        let roots = roots(config, &plugins, cwd, self.loader.user_home().as_deref());
        let rules = config.skill_rules();
        match self.known(cwd) {
            // It is watched, so the cache is current.
            Some(known)
                if known.roots == roots
                    && known.plugins == plugins
                    && self.following.lock().is_watched(cwd) =>
            {
                if known.rules != rules {
                    self.keep(cwd, known.with_rules(rules));
                }
            }
            known => {
                let extra = known.map_or_else(Vec::new, |known| known.extra_roots.clone());
                self.keep(cwd, Directory::new(roots, plugins, rules, extra));
            }
        }
        self.follow(thread, cwd);
    }

    /// The user's rules were written: they apply at once, also for loaded threads.
    pub fn rules_changed(&self) {
        let rules = self.loader.load(&LoadRequest::default()).map(|config| config.skill_rules());
        let mut directories = self.directories.lock();
        match rules {
            Ok(rules) => directories.values_mut().for_each(|directory| {
                *directory = Arc::new(directory.with_rules(rules.clone()));
            }),
            Err(error) => {
                tracing::warn!(%error, "the rules about skills cannot be read");
                directories.clear();
            }
        }
    }
}
