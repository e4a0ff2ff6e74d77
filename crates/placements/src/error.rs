//! How a placement fails: one sentence each, with the command and its last line of stderr where a tool was asked.

use std::fmt::Write as _;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    #[error("`{tool}` is not installed on this machine, or not on the PATH: {action} needs it (`{command}`)")]
    MissingTool { tool: String, action: String, command: String },
    #[error("{action} failed (`{command}`): {line}")]
    Failed { action: String, command: String, line: String },
    /// The place does not run what it is given: it is gone, suspended, or cannot be reached.
    #[error("the placement cannot be reached (`{command}`): {line}")]
    Unreachable { command: String, line: String },
    #[error("{action} took longer than {} s (`{command}`)", limit.as_secs())]
    TimedOut { action: String, command: String, limit: Duration },
    #[error("{field}: {problem}")]
    Invalid { field: String, problem: String },
    #[error("{what} is larger than the {limit} that are allowed")]
    TooLarge { what: String, limit: String },
    #[error("{action}: {source}")]
    Io { action: String, source: std::io::Error },
}

impl PlacementError {
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), problem: problem.into() }
    }

    /// Whether the place may be at rest or gone, or its connection broken: looking at it tells.
    pub fn may_mean_loss(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Failed { .. } | Self::TimedOut { .. })
    }

    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    /// The same error with every one of these texts replaced, for commands that were given secrets.
    pub(crate) fn without(self, secrets: &[&str]) -> Self {
        match self {
            Self::Failed { action, command, line } => Self::Failed {
                action: hide(&action, secrets),
                command: hide(&command, secrets),
                line: hide(&line, secrets),
            },
            Self::Unreachable { command, line } => {
                Self::Unreachable { command: hide(&command, secrets), line: hide(&line, secrets) }
            }
            other => other,
        }
    }
}

/// Replaces each secret by `***`. Values of fewer than four bytes are left: they would hide half of every sentence.
pub(crate) fn hide(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        // A value of several lines may be printed one line at a time.
        for line in std::iter::once(*secret).chain(secret.lines()).filter(|line| line.len() >= 4) {
            text = text.replace(line, "***");
        }
    }
    text
}

/// A command as a person would type it, cut where it becomes long.
pub(crate) fn shown(argv: &[String]) -> String {
    const LONGEST: usize = 160;
    let mut text = String::new();
    for word in argv {
        let is_plain = !word.is_empty()
            && word.chars().all(|letter| letter.is_alphanumeric() || "-_./:=@,+%{}".contains(letter));
        let _ = match is_plain {
            true => write!(text, "{word} "),
            false => write!(text, "'{word}' "),
        };
        if text.len() > LONGEST {
            let cut = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(cut);
            text.push('…');
            break;
        }
    }
    text.trim_end().replace(char::is_control, " ")
}

/// The last line of stderr that says something, for an error's sentence.
pub(crate) fn last_line(stderr: &[u8]) -> Option<String> {
    const LONGEST: usize = 400;
    let text = String::from_utf8_lossy(stderr);
    // Docker and kubectl end a failure with an advice to read their help.
    let says_something =
        |line: &&str| !line.trim().is_empty() && !line.contains("--help'") && !line.starts_with("See '");
    let line = text.lines().rfind(says_something)?;
    Some(line.trim().chars().filter(|letter| !letter.is_control()).take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_has_the_last_line_that_says_something() {
        let stderr =
            b"Unable to find image\ndocker: Error response: pull denied.\nSee 'docker run --help'.\n\n";
        assert_eq!(last_line(stderr).as_deref(), Some("docker: Error response: pull denied."));
        assert_eq!(last_line(b"\n \n"), None);
    }

    #[test]
    fn secrets_are_hidden_in_whole_and_line_by_line() {
        assert_eq!(
            hide("got hunter22 and second-line", &["hunter22", "first\nsecond-line"]),
            "got *** and ***"
        );
        let error = PlacementError::Failed {
            action: "setup".into(),
            command: "x".into(),
            line: "bad key hunter22".into(),
        };
        assert_eq!(error.without(&["hunter22"]).to_string(), "setup failed (`x`): bad key ***");
    }

    #[test]
    fn long_commands_are_cut() {
        assert_eq!(shown(&["docker".into(), "pull".into(), "a b".into()]), "docker pull 'a b'");
        assert!(shown(&["x".repeat(500)]).len() < 200);
    }
}
