//! Context that a client adds to the user's messages.

use std::collections::BTreeMap;

use protocol::{AdditionalContextEntry, AdditionalContextKind, ResponseItem};

use super::{Fragment, Role, alone};
use crate::{Truncation, truncate_middle};

/// The limit of one value; the middle is cut.
const MOST: Truncation = Truncation::Tokens(1_000);

/// The client's last complete map. Only differences are sent to the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AdditionalStore(BTreeMap<String, AdditionalContextEntry>);

impl AdditionalStore {
    /// Replaces the known map and returns the messages for the model, by key.
    pub(crate) fn replace(&mut self, given: BTreeMap<String, AdditionalContextEntry>) -> Vec<ResponseItem> {
        let is_new = |(key, entry): &(&String, &AdditionalContextEntry)| self.0.get(*key) != Some(*entry);
        let told = given.iter().filter(is_new).map(|(key, entry)| message(key, entry)).collect();
        self.0 = given;
        told
    }

    /// The model's history no longer contains the context.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

fn message(key: &str, entry: &AdditionalContextEntry) -> ResponseItem {
    let value = truncate_middle(&entry.value, MOST);
    match entry.kind {
        AdditionalContextKind::Untrusted => alone(&External { key, value }),
        AdditionalContextKind::Application => alone(&ApplicationContext { key, value }),
    }
}

/// From outside the application: a web page, an email.
struct External<'a> {
    key: &'a str,
    value: String,
}

impl Fragment for External<'_> {
    const NAME: &'static str = "additional context (untrusted)";
    const ROLE: Role = Role::ContextualUser;

    fn body(&self) -> String {
        wrapped(&format!("external_{}", self.key), &self.value)
    }
}

/// From the application itself.
struct ApplicationContext<'a> {
    key: &'a str,
    value: String,
}

impl Fragment for ApplicationContext<'_> {
    const NAME: &'static str = "additional context (application)";
    const ROLE: Role = Role::Developer;

    fn body(&self) -> String {
        wrapped(self.key, &self.value)
    }
}

/// A value in its tag. The value cannot close the tag.
fn wrapped(tag: &str, value: &str) -> String {
    format!("<{tag}>{}</{tag}>", contained(tag, value))
}

fn contained(tag: &str, value: &str) -> String {
    let mut safe = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find("</") {
        let after = &rest[at + 2..];
        let name = after.trim_start();
        let closes = name.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag));
        safe.push_str(&rest[..at]);
        safe.push_str(if closes { "&lt;/" } else { "</" });
        rest = after;
    }
    safe.push_str(rest);
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_end_its_wrapper() {
        for (value, expected) in [
            ("plain </b> text", "plain </b> text"),
            ("a</external_x>b", "a&lt;/external_x>b"),
            ("a</ External_X >b", "a&lt;/ External_X >b"),
            ("</external_x</external_x>", "&lt;/external_x&lt;/external_x>"),
            ("</", "</"),
            ("é</é", "é</é"),
        ] {
            assert_eq!(contained("external_x", value), expected, "{value}");
        }
    }
}
