//! How much there is: third-party packages, and the largest functions.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;

use crate::Problems;
use crate::rust_functions::{Function, functions};
use crate::workspace::{self, Metadata, Once};

/// The binary's tree stays below this, so that a person can still read the list.
const MAX_PACKAGES: usize = 200;

const BINARY: &str = "oarlock-cli";
const LARGEST_SHOWN: usize = 10;

pub(crate) fn check() -> Result<Problems> {
    Ok(too_many(binary_packages()?.len()))
}

fn too_many(packages: usize) -> Problems {
    if packages < MAX_PACKAGES {
        return Vec::new();
    }
    vec![format!("the binary needs {packages} third-party packages; fewer than {MAX_PACKAGES} are allowed")]
}

pub(crate) fn text() -> Result<String> {
    let in_binary = binary_packages()?.len();
    let in_lock = third_party_in_lock(&workspace::read_text("Cargo.lock")?);
    let mut text =
        format!("packages: {in_binary} third-party in the oarlock binary, {in_lock} in Cargo.lock\n");
    text.push_str("largest functions, in lines:\n");
    for (path, Function { name, line, lines }) in largest(&sources()?, LARGEST_SHOWN) {
        let _ = writeln!(text, "{lines:5}  {name}  {path}:{line}");
    }
    Ok(text)
}

/// The packages compiled for the binary on this platform, the macros of its crates included, `name version` each. Cargo is
/// asked once.
fn binary_packages() -> Result<&'static BTreeSet<String>> {
    static PACKAGES: Once<BTreeSet<String>> = Once::new(|| {
        let metadata = Metadata::members_only()?;
        let own: BTreeSet<&str> = metadata.members().map(|member| member.name.as_str()).collect();
        let arguments = ["tree", "--locked", "--package", BINARY, "--edges", "normal", "--prefix", "none"];
        Ok(third_party_in_tree(&workspace::cargo(&arguments)?, &own))
    });
    PACKAGES.get()
}

fn third_party_in_tree(tree: &str, own: &BTreeSet<&str>) -> BTreeSet<String> {
    let name_and_version = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    let packages = tree.lines().filter_map(name_and_version);
    packages
        .filter(|(name, _)| !own.contains(name.as_str()))
        .map(|(name, version)| format!("{name} {version}"))
        .collect()
}

fn third_party_in_lock(lock: &str) -> usize {
    lock.lines().filter(|line| line.starts_with("source = ")).count()
}

fn sources() -> Result<Vec<(String, String)>> {
    let paths = workspace::files()?.into_iter().filter(|path| path.ends_with(".rs"));
    paths.map(|path| workspace::read_text(&path).map(|text| (path, text))).collect()
}

fn largest(sources: &[(String, String)], count: usize) -> Vec<(&str, Function)> {
    let mut all: Vec<(&str, Function)> = sources
        .iter()
        .flat_map(|(path, text)| functions(text).into_iter().map(|function| (path.as_str(), function)))
        .collect();
    all.sort_by_key(|(path, function)| (Reverse(function.lines), *path, function.line));
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_needs_few_packages() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    #[test]
    fn the_limit_itself_is_too_many() {
        assert_eq!(too_many(MAX_PACKAGES - 1), Problems::new());
        assert_eq!(
            too_many(MAX_PACKAGES),
            ["the binary needs 200 third-party packages; fewer than 200 are allowed"]
        );
    }

    #[test]
    fn a_package_counts_once_per_version_and_ours_do_not() {
        let tree = "oarlock-cli v0.1.0 (here/crates/cli)\nsyn v2.0.1\nsyn v3.0.0\nclap_derive v4.0.0 (proc-macro)\n\
                    syn v2.0.1 (*)\n\n";
        let packages = third_party_in_tree(tree, &BTreeSet::from(["oarlock-cli"]));
        assert_eq!(Vec::from_iter(packages), ["clap_derive v4.0.0", "syn v2.0.1", "syn v3.0.0"]);
    }

    #[test]
    fn only_packages_with_a_source_are_third_party() {
        assert_eq!(
            third_party_in_lock(
                "[[package]]\nname = \"a\"\nsource = \"x\"\n\n[[package]]\nname = \"oarlock\"\n"
            ),
            1
        );
    }

    #[test]
    fn the_largest_come_first_and_the_rest_is_left_out() {
        let source = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let sources = [
            source("a.rs", "fn one() {}\nfn three() {\n\n}\n"),
            source("b.rs", "fn two() {\n}\nfn one() {}"),
        ];
        let names: Vec<String> =
            largest(&sources, 2).into_iter().map(|(_, function)| function.name).collect();
        assert_eq!(names, ["three", "two"]);
    }
}
