//! Which side carries out a method: read from the tables of routes for requests of clients, and from the sources that make
//! a payload for what a server sends.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use crate::rust_source::{Source, product_sources};
use crate::workspace;

const METHODS: &str = "crates/protocol/src/methods.rs";
const ROUTES: &str = "crates/server/src/routes.rs";
const HOST_ROUTES: &str = "crates/server/src/host_face/routes.rs";

/// Crates that only read what servers send.
const READERS: &[&str] =
    &["protocol", "protocol-export", "turn-view", "terminal", "testkit", "cli", "core-api", "mcp-server"];

/// By the names of methods.
#[derive(Debug, Default)]
pub(crate) struct CarriedOut {
    app_server: BTreeSet<String>,
    host: BTreeSet<String>,
    sent: BTreeSet<String>,
}

impl CarriedOut {
    pub(crate) fn read() -> Result<Self> {
        let names = names(&workspace::read_text(METHODS)?);
        let sources = product_sources()?;
        let routed = |path: &str| -> Result<BTreeSet<String>> {
            let source = sources.iter().find(|source| source.path == path);
            let found = markers(source.with_context(|| format!("{path} is gone"))?, &names);
            if found.is_empty() {
                bail!("no routes are found in {path}");
            }
            Ok(found)
        };
        let mut app_server = routed(ROUTES)?;
        let mut host = routed(HOST_ROUTES)?;
        // The connection itself carries it out.
        for table in [&mut app_server, &mut host] {
            table.insert("initialize".to_owned());
        }
        let makers = sources.iter().filter(|source| !READERS.contains(&source.crate_name()));
        let made: BTreeSet<&str> = makers.flat_map(made).collect();
        let is_made = |marker: &str| {
            ["Params", "Notification"].iter().any(|end| made.contains(format!("{marker}{end}").as_str()))
                || made.contains(marker)
        };
        let sent = names.iter().filter(|(marker, _)| is_made(marker)).map(|(_, name)| name.clone()).collect();
        Ok(Self { app_server, host, sent })
    }

    /// Who carries out a request of a client.
    pub(crate) fn served_by(&self, name: &str) -> &'static str {
        match (self.app_server.contains(name), self.host.contains(name)) {
            (true, true) => "both",
            (true, false) => "app-server",
            (false, true) => "host",
            (false, false) => "nobody",
        }
    }

    pub(crate) fn is_sent(&self, name: &str) -> bool {
        self.sent.contains(name)
    }
}

/// The markers of the methods, with the names they stand for.
fn names(text: &str) -> BTreeMap<String, String> {
    let row = |line: &str| {
        let (marker, rest) = line.trim().split_once(" = \"")?;
        let name = rest.split('"').next()?;
        let is_marker = !marker.is_empty() && marker.chars().all(char::is_alphanumeric);
        is_marker.then(|| (marker.to_owned(), name.to_owned()))
    };
    text.lines().filter_map(row).collect()
}

/// The methods whose markers a table of routes names outside of its imports.
fn markers(source: &Source, names: &BTreeMap<String, String>) -> BTreeSet<String> {
    let tokens = source.tokens();
    let mut is_import = false;
    let mut found = BTreeSet::new();
    for token in &tokens {
        match token.text {
            "use" => is_import = true,
            ";" => is_import = false,
            _ => {}
        }
        if let Some(name) = names.get(token.text).filter(|_| !is_import) {
            found.insert(name.clone());
        }
    }
    found
}

/// The types of which this source makes a value, or asks somebody with.
fn made(source: &Source) -> Vec<&str> {
    let code = source.code();
    let mut found = Vec::new();
    for (at, _) in code.match_indices('{') {
        let before = code[..at].trim_end();
        let start = before.rfind(|letter: char| !letter.is_alphanumeric()).map_or(0, |at| at + 1);
        let after = code[at + 1..].trim_start();
        // A pattern that looks at nothing, or the body of a function that returns the type.
        let is_value = !after.starts_with("..") && !before[..start].trim_end().ends_with("->");
        if is_value && start < before.len() {
            found.push(&before[start..]);
        }
    }
    for begin in ["::<", "ask::<"] {
        for (at, _) in code.match_indices(begin) {
            let rest = &code[at + begin.len()..];
            found.push(&rest[..rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len())]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sorted_by_who_carries_them_out() {
        let carried_out = CarriedOut::read().unwrap();
        for (name, expected) in [
            ("initialize", "both"),
            ("turn/start", "both"),
            ("model/list", "both"),
            ("rollout/load", "app-server"),
            ("config/value/write", "app-server"),
            ("task/list", "host"),
            ("no/such", "nobody"),
        ] {
            assert_eq!(carried_out.served_by(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_sent_is_told_from_what_never_is() {
        let carried_out = CarriedOut::read().unwrap();
        for name in ["turn/started", "item/completed", "operation/updated", "item/tool/call", "model/request"]
        {
            assert!(carried_out.is_sent(name), "{name}");
        }
        assert!(!carried_out.is_sent("windows/worldWritableWarning"));
    }

    #[test]
    fn a_value_is_made_by_its_fields_or_by_a_question() {
        let text = "fn a() -> Told { x(Told { id }); match y { Seen { .. } => {} } ask::<Asked>(z) }";
        let source = Source::new("crates/a/src/lib.rs", text);
        let found: BTreeSet<&str> = made(&source).into_iter().collect();
        assert!(found.contains("Told") && found.contains("Asked") && !found.contains("Seen"), "{found:?}");
    }
}
