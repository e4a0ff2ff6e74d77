//! State that the tools of one thread share from call to call.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::{
    ConfigWarningNotification, ItemStartedNotification, ServerNotification, ThreadId, ThreadItem, TurnId,
};
use sandbox::{CommandClock, OffLimits};
use support::{Clock, SystemClock};

use crate::Suggestion;
use crate::child_agents::ChildAgents;
use crate::exec::terminals::Terminals;
use crate::exec::{KnownRoots, Profile, RuleBook};
use crate::tool::{BoxFuture, ToolSource};
use crate::tool_state::{ToolState, ToolStates};
use crate::turn_diffs::TurnDiffs;

/// Settings of a thread's tools. Fixed for as long as the thread is loaded.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// The user's shell.
    pub shell: PathBuf,
    /// Commands may run in a login shell.
    pub login_shell: bool,
    /// The environment of every child process; nothing else is inherited.
    pub env: BTreeMap<String, String>,
    /// Folders whose `rules/*.rules` count, lowest precedence first.
    pub rule_folders: Vec<PathBuf>,
    /// The rules of projects, which were read with their configuration.
    pub project_rules: Vec<policy::RuleFile>,
    /// The rules of an administrator.
    pub required_rules: Vec<policy::PrefixRule>,
    /// Where rules go that a client adds.
    pub rules_file: PathBuf,
    /// Where outputs are kept that are too long to be shown. Unset: nowhere.
    pub outputs: Option<PathBuf>,
    /// Paths that no sandboxed command may reach, such as stored credentials.
    pub off_limits: OffLimits,
    /// Landlock alone will do where namespaces are not to be had.
    pub landlock_only: bool,
    /// Keys of the features that are on.
    pub features: BTreeSet<String>,
    /// The longest wait for a command that runs on.
    pub max_background_wait_ms: u64,
    /// A command in a terminal that ends within this time may have been stopped by its sandbox right at the start.
    /// Clients are told of its output only with its end.
    pub early: Duration,
    /// A client is asked about every command and every patch, whatever the policy says.
    pub ask_always: bool,
    /// The same for calls of these tools alone.
    pub ask_for: BTreeSet<String>,
    /// No patch is applied, not even one in the clothes of a command.
    pub no_patches: bool,
    /// Runs scripts. Unset: there is none.
    pub node: Option<PathBuf>,
    /// Plugins that may be suggested to the user.
    pub suggestions: Arc<[Suggestion]>,
    /// Where the reports of jobs are kept while they run. Unset: there are no jobs.
    pub jobs: Option<PathBuf>,
    /// How many seconds an agent of a job has, where the model says nothing.
    pub job_seconds: Option<u64>,
    /// The time of day in items and reports.
    pub clock: Arc<dyn Clock>,
}

impl BenchOptions {
    /// Long enough for a shell to start and be stopped.
    pub const EARLY: Duration = Duration::from_millis(150);

    /// The notification that an item has started, for tools that begin one because nothing of it is decided about.
    pub(crate) fn item_started(
        &self,
        thread_id: &ThreadId,
        turn_id: &TurnId,
        item: ThreadItem,
    ) -> ServerNotification {
        ServerNotification::ItemStarted(ItemStartedNotification {
            item,
            thread_id: thread_id.clone(),
            turn_id: turn_id.clone(),
            started_at_ms: self.clock.now_ms(),
        })
    }

    /// The least a thread's tools can have: this shell, an empty environment, no rules, no features. To build on.
    pub fn bare(shell: &str) -> Self {
        Self {
            shell: shell.into(),
            login_shell: false,
            env: BTreeMap::new(),
            rule_folders: Vec::new(),
            project_rules: Vec::new(),
            required_rules: Vec::new(),
            rules_file: "/nonexistent/rules/default.rules".into(),
            outputs: None,
            off_limits: OffLimits::default(),
            landlock_only: false,
            features: BTreeSet::new(),
            max_background_wait_ms: 300_000,
            early: Self::EARLY,
            ask_always: false,
            ask_for: BTreeSet::new(),
            no_patches: false,
            node: None,
            suggestions: Arc::new([]),
            jobs: None,
            job_seconds: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// A client is asked about every call of a tool, whatever the policy says.
    pub(crate) fn asks_about(&self, tool: &str) -> bool {
        self.ask_always || self.ask_for.contains(tool)
    }
}

/// Kept by the thread; every call gets to see it.
#[derive(Debug)]
pub struct Bench {
    options: Arc<BenchOptions>,
    rules: Arc<RuleBook>,
    terminals: Arc<Terminals>,
    states: ToolStates,
    diffs: TurnDiffs,
    discovered: Mutex<Vec<String>>,
    clock: CommandClock,
    profile: Arc<Profile>,
    roots: Arc<KnownRoots>,
    /// Set once, when the thread is there to have children.
    agents: Option<Arc<dyn ChildAgents>>,
    /// The sources of tools beside the built-in ones.
    sources: Vec<Arc<dyn ToolSource>>,
}

impl Bench {
    pub fn new(options: BenchOptions) -> Self {
        Self {
            rules: Arc::new(
                RuleBook::new(&options.rule_folders, &options.rules_file)
                    .with(&options.project_rules, &options.required_rules),
            ),
            options: Arc::new(options),
            terminals: Arc::default(),
            states: ToolStates::default(),
            diffs: TurnDiffs::default(),
            discovered: Mutex::default(),
            clock: CommandClock::default(),
            profile: Arc::default(),
            roots: Arc::default(),
            agents: None,
            sources: Vec::new(),
        }
    }

    /// The thread can have child agents.
    pub fn with_agents(self, agents: Arc<dyn ChildAgents>) -> Self {
        Self { agents: Some(agents), ..self }
    }

    pub fn agents(&self) -> Option<Arc<dyn ChildAgents>> {
        self.agents.clone()
    }

    /// The thread has the tools of these sources, in this order, beside the built-in ones.
    pub fn with_sources(self, sources: Vec<Arc<dyn ToolSource>>) -> Self {
        Self { sources, ..self }
    }

    pub fn sources(&self) -> &[Arc<dyn ToolSource>] {
        &self.sources
    }

    /// Set while a source starts: resolves when the next step can list the tools of all of them.
    pub fn starting_sources(&self) -> Option<BoxFuture<'static, ()>> {
        let starting: Vec<_> = self.sources.iter().filter_map(|source| source.starting()).collect();
        (!starting.is_empty()).then(|| {
            let all: BoxFuture<'static, ()> = Box::pin(async move {
                futures_util::future::join_all(starting).await;
            });
            all
        })
    }

    /// Ends what the sources run.
    pub async fn close_sources(&self) {
        futures_util::future::join_all(self.sources.iter().map(|source| source.close())).await;
    }

    pub fn options(&self) -> &BenchOptions {
        &self.options
    }

    pub(crate) fn shared_options(&self) -> Arc<BenchOptions> {
        self.options.clone()
    }

    /// Saves a rule that a client agreed to. When that fails it holds for as long as the thread is loaded, and the error is
    /// what clients are notified of. Waits for the disk.
    pub fn save_rule(&self, prefix: &[String]) -> Result<(), ConfigWarningNotification> {
        self.rules.save(prefix)
    }

    /// Allows commands that begin with these words in this thread, and nowhere else.
    pub fn allow(&self, prefix: &[String]) {
        self.rules.allow(prefix);
    }

    pub(crate) fn rules(&self) -> Arc<RuleBook> {
        self.rules.clone()
    }

    /// Beginnings of commands that need no question, as rules say. None where every command is asked about. Reads the
    /// rule files when it comes first.
    pub fn approved_prefixes(&self) -> Arc<[Vec<Vec<String>>]> {
        match self.options.ask_always {
            true => Arc::new([]),
            false => self.rules.rules().approved().into(),
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// The clock that measures time limits. Held while a client asks the user something by a way of its own.
    pub fn clock(&self) -> &CommandClock {
        &self.clock
    }

    /// For tests: waits until it is known, or known not to be knowable, what the user's profile comes to.
    #[doc(hidden)]
    pub async fn profile_settled(&self) {
        self.profile.settled().await;
    }

    pub(crate) fn profile(&self) -> Arc<Profile> {
        self.profile.clone()
    }

    pub(crate) fn roots(&self) -> Arc<KnownRoots> {
        self.roots.clone()
    }

    pub(crate) fn terminals(&self) -> &Arc<Terminals> {
        &self.terminals
    }

    /// The state that tools of one kind keep between calls.
    pub(crate) fn state<T: ToolState + Default>(&self) -> Arc<T> {
        self.states.get()
    }

    pub(crate) fn diffs(&self) -> &TurnDiffs {
        &self.diffs
    }

    /// From the next step on this tool is advertised, and can be called.
    pub fn discover(&self, name: &str) {
        let mut discovered = self.discovered.lock();
        if !discovered.iter().any(|other| other == name) {
            discovered.push(name.to_owned());
        }
    }

    /// The tools the model looked for and found, in the order it did: what was advertised once keeps its place.
    pub fn discovered(&self) -> Vec<String> {
        self.discovered.lock().clone()
    }

    /// Whether processes of the thread's tools run, or have ended without the model having read of it.
    pub fn has_terminals(&self) -> bool {
        !self.terminals.is_empty()
    }

    /// Ends every process the thread's tools left running, and waits, though not for long, until clients know.
    pub async fn clear_terminals(&self) {
        self.states.clear();
        self.terminals.clear().await;
    }
}
