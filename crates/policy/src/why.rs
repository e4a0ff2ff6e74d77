//! The grounds of a verdict, in words.

use std::fmt;

use crate::display::escape_for_display;
use crate::quote::shell_line;
use crate::rules::{RuleMatch, Unheld};

/// The grounds of a verdict, one for each relevant command of the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Why {
    pub grounds: Vec<Ground>,
}

/// The findings about one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    pub command: Vec<String>,
    pub because: Because,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// A rule applies.
    Rule(RuleMatch),
    /// A rule's words match, but it does not apply to the file that would run.
    Unheld(Unheld),
    /// It is read-only, and its name resolves to the system's own program.
    KnownSafe,
    /// It is read-only, but runs what the repository's settings name, without a sandbox.
    ObeysRepository,
    /// It deletes without confirmation.
    Dangerous,
    /// No rule applies, and it is not known to be safe.
    Unmatched,
    /// It requests more than the sandbox allows.
    Escalation,
    /// A patch changes writable files.
    PatchInside,
    /// A patch changes files that are not writable.
    PatchOutside,
}

impl Why {
    pub(crate) fn single(command: &[String], because: Because) -> Self {
        Self { grounds: vec![Ground { command: command.to_vec(), because }] }
    }

    /// The rules among the grounds.
    pub fn rules(&self) -> impl Iterator<Item = &RuleMatch> {
        self.grounds.iter().filter_map(|ground| match &ground.because {
            Because::Rule(found) => Some(found),
            _ => None,
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, ground) in self.grounds.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{ground}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.command.is_empty() {
            write!(f, "`{}`: ", escape_for_display(&shell_line(&self.command)))?;
        }
        self.because.fmt(f)
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(found) => {
                write!(f, "the rule at {} says {}", found.source, found.decision)?;
                match &found.justification {
                    Some(text) => write!(f, " ({})", escape_for_display(text)),
                    None => Ok(()),
                }
            }
            Self::Unheld(Unheld { rule, reason }) => {
                write!(f, "the rule at {} does not hold for it: {reason}", rule.source)
            }
            Self::KnownSafe => f.write_str("known to be safe"),
            Self::ObeysRepository => {
                f.write_str("safe by itself, but it runs programs that the repository's settings name")
            }
            Self::Dangerous => f.write_str("destroys files without asking"),
            Self::Unmatched => f.write_str("no rule is about it, and it is not known to be safe"),
            Self::Escalation => f.write_str("asks for more than the sandbox gives"),
            Self::PatchInside => f.write_str("the patch changes only what may be written to"),
            Self::PatchOutside => f.write_str("the patch changes files outside of what may be written to"),
        }
    }
}
