//! Which tools a step offers, given configuration, features and model.

use std::collections::BTreeSet;

use crate::Suggestion;
use protocol::{ModeKind, WebSearchMode, WebSearchToolConfig};

/// The facts that decide whether a tool is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Only these. Unset: all.
    pub allow: Option<Vec<String>>,
    /// Never these, whatever `allow` says.
    pub deny: Vec<String>,
    /// Keys of the enabled features.
    pub features: BTreeSet<String>,
    pub shell: ShellForm,
    /// The form in which the model writes patches; unset: it cannot.
    pub patch: Option<PatchForm>,
    /// Tools this model was trained with beyond the usual ones.
    pub experimental: Vec<String>,
    /// The model accepts images.
    pub images: bool,
    pub web_search: WebSearchMode,
    pub web_search_options: Option<WebSearchToolConfig>,
    /// Searches may return images.
    pub web_search_images: bool,
    /// The provider generates images.
    pub image_generation: bool,
    pub mode: ModeKind,
    /// The thread works for another thread, not for a user.
    pub is_child: bool,
    /// The thread may start agents.
    pub may_spawn: bool,
    /// The roles of agents, with descriptions.
    pub roles: Vec<(String, String)>,
    /// The model may request a login shell.
    pub login_shell: bool,
    /// There are tools that must be searched for.
    pub has_deferred: bool,
    /// The model searches for tools in the provider's own form.
    pub tool_search: bool,
    /// Plugins that may be suggested to the user.
    pub suggestions: Vec<Suggestion>,
    /// Node.js for scripts is available where the tools run.
    pub node: bool,
    /// The provider supports tools with plain text input.
    pub freeform: bool,
    /// An environment is attached. Without one, tools that need it are not offered.
    pub has_environment: bool,
    /// The thread has an active goal.
    pub has_goal: bool,
}

/// The shell tool a model was trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellForm {
    /// `exec_command` and `write_stdin`.
    Terminals,
    /// `shell`, with a list of words.
    Words,
    /// `shell_command`, with one string.
    Script,
    /// The provider's own `local_shell`.
    Local,
    Disabled,
}

/// The form in which a model writes patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchForm {
    /// As free text, restricted by a grammar.
    Freeform,
    /// As a JSON argument.
    Function,
}

/// Whether a tool is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Offered,
    /// It can be called, but is not advertised.
    Unadvertised,
    Absent,
}

impl Standing {
    pub(crate) fn offered_if(condition: bool) -> Self {
        if condition { Self::Offered } else { Self::Absent }
    }
}

impl Default for Offer {
    /// The offer for a current model with default configuration.
    fn default() -> Self {
        Self {
            allow: None,
            deny: Vec::new(),
            features: BTreeSet::new(),
            shell: ShellForm::Terminals,
            patch: Some(PatchForm::Freeform),
            experimental: Vec::new(),
            images: true,
            web_search: WebSearchMode::Disabled,
            web_search_options: None,
            web_search_images: false,
            image_generation: false,
            mode: ModeKind::Default,
            is_child: false,
            may_spawn: true,
            roles: Vec::new(),
            login_shell: true,
            has_deferred: false,
            tool_search: false,
            suggestions: Vec::new(),
            node: false,
            freeform: true,
            has_environment: true,
            has_goal: false,
        }
    }
}

impl Offer {
    pub(crate) fn includes(&self, name: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|other| other == name);
        self.allow.as_deref().is_none_or(named) && !named(&self.deny)
    }

    pub(crate) fn has_feature(&self, key: &str) -> bool {
        self.features.contains(key)
    }

    /// Whether the model was trained with this tool, or the user asked for it by name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.experimental.iter().any(|other| other == name)
            || self.allow.as_ref().is_some_and(|names| names.iter().any(|other| other == name))
    }

    pub(crate) fn has_shell(&self) -> bool {
        self.shell != ShellForm::Disabled
    }
}
