//! The code map in ARCHITECTURE.md: a picture of the crates in layers, and a table of what each owns and may use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::layers::{ANYTHING, MAY_USE, short};
use crate::workspace::{self, Metadata};

/// A crate of the workspace and its row.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    folder: String,
    owns: String,
    may_use: Vec<String>,
    /// Its row is `ANYTHING`.
    may_use_all: bool,
}

impl Entry {
    /// Programs and the test kit stand above all layers.
    fn is_top(&self) -> bool {
        self.may_use_all || !self.folder.starts_with("crates/")
    }
}

pub(crate) fn text() -> Result<String> {
    let entries = entries(&Metadata::members_only()?)?;
    Ok(format!("\n{}\n{}\n", picture(&entries), table(&entries)))
}

/// The crates that exist, in the order of their rows. A row whose crate is still to come is left out.
fn entries(metadata: &Metadata) -> Result<Vec<Entry>> {
    let mut packages = BTreeMap::new();
    for package in metadata.members() {
        packages.insert(short(&package.name), package);
    }
    let mut entries = Vec::new();
    for (name, may_use) in MAY_USE {
        let Some(package) = packages.get(*name) else {
            continue;
        };
        let folder = package.manifest_path.parent().unwrap_or(&package.manifest_path);
        let folder = folder.strip_prefix(workspace::root()).unwrap_or(folder);
        let owns = package.description.as_deref();
        let owns = owns.with_context(|| format!("{}/Cargo.toml has no description", folder.display()))?;
        entries.push(Entry {
            name: (*name).to_owned(),
            folder: folder.to_string_lossy().into_owned(),
            owns: owns.to_owned(),
            may_use: may_use
                .iter()
                .filter(|used| packages.contains_key(**used))
                .map(|used| (*used).to_owned())
                .collect(),
            may_use_all: *may_use == ANYTHING,
        });
    }
    Ok(entries)
}

/// One line per layer, the highest first. A crate's layer is one above the highest it may use.
fn picture(entries: &[Entry]) -> String {
    let mut layers: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut depths = BTreeMap::new();
    for entry in entries.iter().filter(|entry| !entry.is_top()) {
        layers.entry(depth(entries, entry, &mut depths)).or_default().push(&entry.name);
    }
    let tops: Vec<&str> =
        entries.iter().filter(|entry| entry.is_top()).map(|entry| entry.name.as_str()).collect();
    let mut text = String::from("Each crate uses only crates of lines below its own:\n\n");
    let _ = writeln!(text, "    top   {}", tops.join("  "));
    for (layer, names) in layers.iter().rev() {
        let _ = writeln!(text, "    {layer:>3}   {}", names.join("  "));
    }
    text
}

/// How many crates can stand on top of each other below this one. The rows cannot form a circle: cargo refuses the
/// crates, and a row that points back to a crate above it counts as 0.
fn depth(entries: &[Entry], entry: &Entry, known: &mut BTreeMap<String, usize>) -> usize {
    if let Some(depth) = known.get(&entry.name) {
        return *depth;
    }
    known.insert(entry.name.clone(), 0);
    let used = entries.iter().filter(|other| entry.may_use.contains(&other.name));
    let depth = used.map(|other| 1 + depth(entries, other, known)).max().unwrap_or(0);
    known.insert(entry.name.clone(), depth);
    depth
}

fn table(entries: &[Entry]) -> String {
    let mut text = String::from("| folder | owns | may use |\n|---|---|---|\n");
    for Entry { folder, owns, may_use, may_use_all, .. } in entries {
        let may_use = match (may_use_all, may_use.as_slice()) {
            (true, _) => "anything".to_owned(),
            (false, []) => "–".to_owned(),
            (false, names) => names.join(", "),
        };
        let _ = writeln!(text, "| `{folder}` | {} | {may_use} |", owns.trim_end_matches('.'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name: used used`, or `name: anything`.
    fn entry(line: &str) -> Entry {
        let (name, uses) = line.split_once(':').unwrap();
        Entry {
            name: name.to_owned(),
            folder: format!("crates/{name}"),
            owns: format!("All of {name}."),
            may_use: uses.split_whitespace().map(str::to_owned).collect(),
            may_use_all: uses.trim() == "anything",
        }
    }

    fn small() -> Vec<Entry> {
        ["wire:", "text:", "engine: wire", "server: engine wire text", "cli: anything"].map(entry).to_vec()
    }

    #[test]
    fn a_crate_is_above_all_it_may_use() {
        let lines: Vec<String> = picture(&small()).lines().skip(2).map(str::to_owned).collect();
        assert_eq!(lines, ["    top   cli", "      2   server", "      1   engine", "      0   wire  text"]);
    }

    #[test]
    fn every_crate_has_a_line_in_the_table() {
        let text = table(&small());
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| `crates/wire` | All of wire | – |",
                "| `crates/text` | All of text | – |",
                "| `crates/engine` | All of engine | wire |",
                "| `crates/server` | All of server | engine, wire, text |",
                "| `crates/cli` | All of cli | anything |",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_description_is_refused() {
        let metadata = |description: serde_json::Value| -> Metadata {
            serde_json::from_value(serde_json::json!({
                "packages": [{"id": "1", "name": "oarlock-engine", "version": "0.1.0", "license": null,
                              "description": description, "manifest_path": "crates/engine/Cargo.toml",
                              "dependencies": []}],
                "workspace_members": ["1"]
            }))
            .unwrap()
        };
        assert!(entries(&metadata(serde_json::Value::Null)).is_err());
        assert_eq!(entries(&metadata("Turns.".into())).unwrap()[0].owns, "Turns.");
    }
}
