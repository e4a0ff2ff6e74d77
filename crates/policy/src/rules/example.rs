//! The examples of a rule: what it must and must not match. They are checked when the file is read.

use std::collections::BTreeMap;

use super::definitions::texts;
use super::parser::Value;
use super::{Fault, PrefixRule, SourcePosition};
use crate::quote::{shell_line, split_line};

#[derive(Debug, Default)]
pub(super) struct Examples {
    matching: Vec<(Vec<String>, SourcePosition)>,
    others: Vec<(Vec<String>, SourcePosition)>,
}

impl Examples {
    pub(super) fn of(
        matching: Option<(&Value, SourcePosition)>,
        others: Option<(&Value, SourcePosition)>,
    ) -> Result<Self, Fault> {
        Ok(Self { matching: commands("match", matching)?, others: commands("not_match", others)? })
    }

    pub(super) fn check(
        &self,
        rule: &PrefixRule,
        executables: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), Fault> {
        let about = |words: &[String]| rule.find(words, executables).is_some();
        for (words, place) in &self.matching {
            if !about(words) {
                return Err(Fault::at(*place, format!("the rule is not about `{}`", shell_line(words))));
            }
        }
        for (words, place) in &self.others {
            if about(words) {
                return Err(Fault::at(*place, format!("the rule is about `{}`", shell_line(words))));
            }
        }
        Ok(())
    }
}

/// Each example is a list of words or a shell line.
fn commands(
    name: &str,
    given: Option<(&Value, SourcePosition)>,
) -> Result<Vec<(Vec<String>, SourcePosition)>, Fault> {
    let Some((value, place)) = given else { return Ok(Vec::new()) };
    let Value::List(values) = value else {
        return Err(Fault::at(place, format!("`{name}` is a list of commands, not {}", value.kind())));
    };
    let words = |value: &Value| match value {
        Value::Text(line) => split_line(line),
        other => texts(other),
    };
    values
        .iter()
        .map(|value| match words(value).filter(|words| !words.is_empty()) {
            Some(words) => Ok((words, place)),
            None => Err(Fault::at(place, format!("each example of `{name}` is a command"))),
        })
        .collect()
}
