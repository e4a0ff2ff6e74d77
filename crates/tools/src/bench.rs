//! State that the tools of one thread share between calls.

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

/// Settings of a thread's tools. Fixed while the thread is loaded.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// The user's shell.
    pub shell: PathBuf,
    /// Commands may use a login shell.
    pub login_shell: bool,
    /// The environment of every child process; nothing else is inherited.
    pub env: BTreeMap<String, String>,
    /// Folders whose `rules/*.rules` apply, lowest precedence first.
    pub rule_folders: Vec<PathBuf>,
    /// The rules of projects, read with their configuration.
    pub project_rules: Vec<policy::RuleFile>,
    /// The administrator's rules.
    pub required_rules: Vec<policy::PrefixRule>,
    /// The file for rules that a client adds.
    pub rules_file: PathBuf,
    /// The folder for outputs that are too long to show. Unset: they are not kept.
    pub outputs: Option<PathBuf>,
    /// Paths that no sandboxed command may reach, such as stored credentials.
    pub off_limits: OffLimits,
    /// Landlock alone suffices where namespaces are not available.
    pub landlock_only: bool,
    /// Keys of the enabled features.
    pub features: BTreeSet<String>,
    /// Limit of a wait for a background command.
    pub max_background_wait_ms: u64,
    /// A terminal command that ends within this time may have been stopped by its sandbox at the start. Clients get its
    /// output only with its end.
    pub early: Duration,
    /// Ask a client about every command and every patch, whatever the policy says.
    pub ask_always: bool,
    /// Ask a client about calls of these tools only.
    pub ask_for: BTreeSet<String>,
    /// Refuse all patches, including those inside commands.
    pub no_patches: bool,
    /// The Node.js that runs scripts. Unset: there is none.
    pub node: Option<PathBuf>,
    /// Plugins that may be suggested to the user.
    pub suggestions: Arc<[Suggestion]>,
    /// The folder for job reports while jobs run. Unset: jobs are not available.
    pub jobs: Option<PathBuf>,
    /// The default time limit of a job's agents, in seconds.
    pub job_seconds: Option<u64>,
    /// The time of day in items and reports.
    pub clock: Arc<dyn Clock>,
}

impl BenchOptions {
    /// Long enough for a shell to start and be stopped.
    pub const EARLY: Duration = Duration::from_millis(150);

    /// The notification that an item started, for tools that show an item without a proposal.
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

    /// Minimal options to build on: this shell, an empty environment, no rules, no features.
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

    /// Whether a client is asked about every call of a tool, whatever the policy says.
    pub(crate) fn asks_about(&self, tool: &str) -> bool {
        self.ask_always || self.ask_for.contains(tool)
    }
}

/// Owned by the thread and visible to every call.
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
    /// Set once, when the thread can have children.
    agents: Option<Arc<dyn ChildAgents>>,
    /// The sources of further tools.
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

    /// Enables child agents for the thread.
    pub fn with_agents(self, agents: Arc<dyn ChildAgents>) -> Self {
        Self { agents: Some(agents), ..self }
    }

    pub fn agents(&self) -> Option<Arc<dyn ChildAgents>> {
        self.agents.clone()
    }

    /// Adds tool sources, whose tools follow the built-in ones in this order.
    pub fn with_sources(self, sources: Vec<Arc<dyn ToolSource>>) -> Self {
        Self { sources, ..self }
    }

    pub fn sources(&self) -> &[Arc<dyn ToolSource>] {
        &self.sources
    }

    /// Set while a source starts: resolves when the next step can list the tools of all sources.
    pub fn starting_sources(&self) -> Option<BoxFuture<'static, ()>> {
        let starting: Vec<_> = self.sources.iter().filter_map(|source| source.starting()).collect();
        (!starting.is_empty()).then(|| {
            let all: BoxFuture<'static, ()> = Box::pin(async move {
                futures_util::future::join_all(starting).await;
            });
            all
        })
    }

    /// Closes the sources.
    pub async fn close_sources(&self) {
        futures_util::future::join_all(self.sources.iter().map(|source| source.close())).await;
    }

    pub fn options(&self) -> &BenchOptions {
        &self.options
    }

    pub(crate) fn shared_options(&self) -> Arc<BenchOptions> {
        self.options.clone()
    }

    /// Saves a rule that a client approved. If that fails, the rule applies while the thread is loaded, and the
    /// returned warning is for clients. Blocking.
    pub fn save_rule(&self, prefix: &[String]) -> Result<(), ConfigWarningNotification> {
        self.rules.save(prefix)
    }

    /// Allows commands with this prefix in this thread only.
    pub fn allow(&self, prefix: &[String]) {
        self.rules.allow(prefix);
    }

    pub(crate) fn rules(&self) -> Arc<RuleBook> {
        self.rules.clone()
    }

    /// Command prefixes that rules approve. Empty if a client is asked about every command. Reads the rule files on the
    /// first call.
    pub fn approved_prefixes(&self) -> Arc<[Vec<Vec<String>>]> {
        match self.options.ask_always {
            true => Arc::new([]),
            false => self.rules.rules().approved().into(),
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// The clock for time limits. Paused while a client asks the user something outside the protocol.
    pub fn clock(&self) -> &CommandClock {
        &self.clock
    }

    /// For tests: waits until the search for the profile's effect has ended.
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

    /// The state of this type, shared between calls.
    pub(crate) fn state<T: ToolState + Default>(&self) -> Arc<T> {
        self.states.get()
    }

    pub(crate) fn diffs(&self) -> &TurnDiffs {
        &self.diffs
    }

    /// Advertises this tool from the next step on.
    pub fn discover(&self, name: &str) {
        let mut discovered = self.discovered.lock();
        if !discovered.iter().any(|other| other == name) {
            discovered.push(name.to_owned());
        }
    }

    /// The tools that the model found by searching, in the order found: an advertised tool keeps its position.
    pub fn discovered(&self) -> Vec<String> {
        self.discovered.lock().clone()
    }

    /// Whether processes of the thread's tools are running, or have ended with unread output.
    pub fn has_terminals(&self) -> bool {
        !self.terminals.is_empty()
    }

    /// Ends every process that the thread's tools left running, and waits briefly until clients are notified.
    pub async fn clear_terminals(&self) {
        self.states.clear();
        self.terminals.clear().await;
    }
}
