//! Rule files: which commands and hosts are allowed, asked about or forbidden.

mod append;
mod check;
mod definitions;
mod example;
mod lexer;
mod load;
mod network;
mod parser;
mod strings;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use append::append_allow_prefix;
pub use check::{Evaluation, RuleMatch, Unheld};
pub use load::{RuleFile, RuleWarning, WarningCause};

/// The decision of a rule, from lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleDecision {
    Allow,
    Prompt,
    Forbidden,
}

impl RuleDecision {
    fn named(name: &str) -> Option<Self> {
        match name {
            "allow" => Some(Self::Allow),
            "prompt" => Some(Self::Prompt),
            "forbidden" => Some(Self::Forbidden),
            _ => None,
        }
    }
}

impl fmt::Display for RuleDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Prompt => "prompt",
            Self::Forbidden => "forbidden",
        })
    }
}

/// The position of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleSource {
    pub file: String,
    /// Starts at 1; 0 for a rule that was added at run time.
    pub line: usize,
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Matches commands with this prefix. Each position lists its possible words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixRule {
    pub pattern: Vec<Vec<String>>,
    pub decision: RuleDecision,
    pub justification: Option<String>,
    pub source: RuleSource,
    /// Saved by an approval, or possibly so.
    pub by_approval: bool,
}

/// All active rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    prefixes: Vec<PrefixRule>,
    /// Rules about hosts, which are not enforced.
    networks: Vec<RuleSource>,
    /// The absolute paths of a program name.
    executables: BTreeMap<String, Vec<String>>,
}

/// A rule file that cannot be used. Line and column start at 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct RuleError {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl Rules {
    /// Parses one file's text. `name` is its name in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, RuleError> {
        let statements = parser::parse(text);
        statements.and_then(definitions::define(name)).map_err(|fault| RuleError {
            file: name.to_owned(),
            line: fault.place.line,
            column: fault.place.column,
            message: fault.message,
        })
    }

    /// Adds rules that come after these.
    pub fn merge(&mut self, later: Self) {
        self.prefixes.extend(later.prefixes);
        self.networks.extend(later.networks);
        self.executables.extend(later.executables);
    }

    /// Allows commands with this prefix. `source` is the rule's name in explanations.
    pub fn add_prefix(&mut self, prefix: &[String], source: &str) {
        self.prefixes.push(PrefixRule {
            pattern: prefix.iter().map(|word| vec![word.clone()]).collect(),
            decision: RuleDecision::Allow,
            justification: None,
            source: RuleSource { file: source.to_owned(), line: 0 },
            by_approval: true,
        });
    }

    pub fn prefixes(&self) -> &[PrefixRule] {
        &self.prefixes
    }

    /// The patterns of allowed commands, except those that a stricter rule covers completely.
    pub fn approved(&self) -> Vec<Vec<Vec<String>>> {
        let stricter: Vec<_> =
            self.prefixes.iter().filter(|rule| rule.decision > RuleDecision::Allow).collect();
        let allowed = self.prefixes.iter().filter(|rule| rule.decision == RuleDecision::Allow);
        let open = allowed.filter(|rule| !stricter.iter().any(|other| other.covers(rule)));
        open.map(|rule| rule.pattern.clone()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }
}

impl PrefixRule {
    /// Whether it matches every command that the other matches.
    fn covers(&self, other: &Self) -> bool {
        let has_all =
            |(mine, theirs): (&Vec<String>, &Vec<String>)| theirs.iter().all(|word| mine.contains(word));
        self.pattern.len() <= other.pattern.len() && self.pattern.iter().zip(&other.pattern).all(has_all)
    }
}

/// A position in a rule file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SourcePosition {
    line: usize,
    column: usize,
}

/// An error in a rule file, and its position.
#[derive(Debug)]
struct Fault {
    place: SourcePosition,
    message: String,
}

impl Fault {
    fn at(place: SourcePosition, message: impl Into<String>) -> Self {
        Self { place, message: message.into() }
    }
}
