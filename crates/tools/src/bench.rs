//! What the tools of one thread share from call to call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sandbox::{Clock, OffLimits};

use crate::agents::Agents;
use crate::orchestrate::{KnownRoots, Profile, RuleBook};
use crate::terminals::Terminals;
use crate::turn_diffs::TurnDiffs;

/// What a thread's tools are set up with. Fixed for as long as the thread is loaded.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// The user's shell.
    pub shell: PathBuf,
    /// Commands may run in a login shell.
    pub login_shell: bool,
    /// What every child process gets; nothing else is inherited.
    pub env: BTreeMap<String, String>,
    /// Folders whose `rules/*.rules` count, lowest precedence first.
    pub rule_folders: Vec<PathBuf>,
    /// The rules of projects, which were read with their configuration.
    pub project_rules: Vec<policy::RuleFile>,
    /// Where rules go that a client adds.
    pub rules_file: PathBuf,
    /// Where outputs are kept that are too long to be shown. Unset: nowhere.
    pub outputs: Option<PathBuf>,
    /// What no sandboxed command may reach, such as stored credentials.
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
}

impl BenchOptions {
    /// Long enough for a shell to start and be stopped.
    pub const EARLY: Duration = Duration::from_millis(150);

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
    diffs: TurnDiffs,
    discovered: Mutex<Vec<String>>,
    clock: Clock,
    profile: Arc<Profile>,
    roots: Arc<KnownRoots>,
    /// Set once, when the thread is there to have children.
    agents: Option<Arc<dyn Agents>>,
}

impl Bench {
    pub fn new(options: BenchOptions) -> Self {
        Self {
            rules: Arc::new(
                RuleBook::new(&options.rule_folders, &options.rules_file)
                    .with_projects(&options.project_rules),
            ),
            options: Arc::new(options),
            terminals: Arc::default(),
            diffs: TurnDiffs::default(),
            discovered: Mutex::default(),
            clock: Clock::default(),
            profile: Arc::default(),
            roots: Arc::default(),
            agents: None,
        }
    }

    /// The thread can have child agents.
    pub fn with_agents(self, agents: Arc<dyn Agents>) -> Self {
        Self { agents: Some(agents), ..self }
    }

    pub fn agents(&self) -> Option<Arc<dyn Agents>> {
        self.agents.clone()
    }

    pub fn options(&self) -> &BenchOptions {
        &self.options
    }

    pub(crate) fn shared_options(&self) -> Arc<BenchOptions> {
        self.options.clone()
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

    /// What limits of time are measured by. Held while a client asks the user something by a way of its own.
    pub fn clock(&self) -> &Clock {
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

    pub(crate) fn diffs(&self) -> &TurnDiffs {
        &self.diffs
    }

    /// From the next step on this tool is advertised, and can be called.
    pub fn discover(&self, name: &str) {
        let mut discovered = self.discovered.lock().unwrap_or_else(PoisonError::into_inner);
        if !discovered.iter().any(|other| other == name) {
            discovered.push(name.to_owned());
        }
    }

    /// The tools the model looked for and found, in the order it did: what was advertised once keeps its place.
    pub fn discovered(&self) -> Vec<String> {
        self.discovered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether processes of the thread's tools run, or have ended without the model having read of it.
    pub fn has_terminals(&self) -> bool {
        !self.terminals.is_empty()
    }

    /// Ends every process the thread's tools left running, and waits, though not for long, until clients know.
    pub async fn clear_terminals(&self) {
        self.terminals.clear().await;
    }
}
