//! Fragments that report events.

use super::neutral::{contained, contained_in};
use super::{Fragment, Role};

/// The previous turn was interrupted.
pub(crate) struct TurnAborted {
    /// Otherwise the process stopped.
    pub(crate) by_user: bool,
}

impl Fragment for TurnAborted {
    const NAME: &'static str = "turn aborted";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<turn_aborted>";
    const END: &'static str = "</turn_aborted>";

    fn body(&self) -> String {
        let cause = match self.by_user {
            true => "The user stopped the previous turn on purpose.",
            false => {
                "The previous turn was cut off: the program that ran it stopped or put the thread away, which the user did not \
                 ask for."
            }
        };
        format!(
            "\n{cause} Commands and tools it had begun may have done part of their work, and terminals it opened may \
             still be running: look before you repeat anything.\n"
        )
    }
}

/// A command that the user ran, with its result.
pub(crate) struct UserShellCommand<'a> {
    pub(crate) command: &'a str,
    pub(crate) result: &'a str,
}

impl Fragment for UserShellCommand<'_> {
    const NAME: &'static str = "user shell command";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<user_shell_command>";
    const END: &'static str = "</user_shell_command>";

    fn body(&self) -> String {
        let inside = |text: &str| contained_in(&["command", "result"], text);
        let (command, result) = (inside(self.command), inside(self.result));
        format!("\n<command>\n{command}\n</command>\n<result>\n{result}\n</result>\n")
    }
}

/// A warning of the runtime for the model.
pub(crate) struct RuntimeWarning<'a>(pub(crate) &'a str);

impl Fragment for RuntimeWarning<'_> {
    const NAME: &'static str = "warning";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<runtime_warning>";
    const END: &'static str = "</runtime_warning>";

    fn body(&self) -> String {
        format!("Warning: {}", contained(self.0))
    }
}

/// An image from the provider was saved as a file.
pub(crate) struct SavedImage<'a>(pub(crate) &'a str);

impl Fragment for SavedImage<'_> {
    const NAME: &'static str = "saved image";
    const ROLE: Role = Role::Developer;

    fn body(&self) -> String {
        format!(
            "The image was saved to {}. Copy it from there if it is to be part of the project, and name the file when \
             you speak of it.",
            self.0
        )
    }
}

/// The user permanently approved commands with this prefix.
pub(crate) struct SavedPrefix<'a>(pub(crate) &'a [String]);

impl Fragment for SavedPrefix<'_> {
    const NAME: &'static str = "approved prefix";
    const ROLE: Role = Role::Developer;

    fn body(&self) -> String {
        let words: Vec<_> =
            self.0.iter().map(|word| serde_json::Value::from(word.as_str()).to_string()).collect();
        format!("Approved command prefix saved:\n- [{}]", words.join(", "))
    }
}
