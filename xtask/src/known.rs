//! Lists of what still breaks a rule. A list can only shrink: what is not in it fails, and so does an entry that is no
//! longer needed, or that allows more than there is. `cargo xtask shrink` takes such entries out.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use crate::{Problems, workspace};

/// A list of `name count` lines; lines that begin with `#` explain it.
#[derive(Debug)]
pub(crate) struct Known {
    pub file: &'static str,
    /// The sense of a line, for the head of the file.
    pub what: &'static str,
}

/// Holds what was found against the list; `complain` words what is in no list.
pub(crate) fn compare(
    known: &Known,
    found: &BTreeMap<String, usize>,
    complain: impl Fn(&str, usize) -> String,
) -> Result<Problems> {
    Ok(differences(known.file, &parse(&workspace::read_text(known.file)?)?, found, complain))
}

/// Takes out of the list what is no longer needed. Never adds to it.
pub(crate) fn shrink(known: &Known, found: &BTreeMap<String, usize>) -> Result<()> {
    let listed = parse(&workspace::read_text(known.file)?)?;
    let shrunk = shrunk(&listed, found);
    let total = |counts: &BTreeMap<String, usize>| counts.values().sum::<usize>();
    println!(
        "{}: from {} entries ({}) to {} ({})",
        known.file,
        listed.len(),
        total(&listed),
        shrunk.len(),
        total(&shrunk)
    );
    fs::write(workspace::root().join(known.file), print(known, &shrunk))
        .with_context(|| format!("cannot write {}", known.file))
}

fn differences(
    file: &str,
    listed: &BTreeMap<String, usize>,
    found: &BTreeMap<String, usize>,
    complain: impl Fn(&str, usize) -> String,
) -> Problems {
    let mut problems = Vec::new();
    for (name, &count) in found {
        if count > listed.get(name).copied().unwrap_or(0) {
            problems.push(complain(name, count));
        }
    }
    for (name, &allowed) in listed {
        let count = found.get(name).copied().unwrap_or(0);
        if count < allowed {
            problems.push(format!(
                "{file} allows {allowed} of `{name}`, there are {count}; run `cargo xtask shrink`"
            ));
        }
    }
    problems
}

fn shrunk(listed: &BTreeMap<String, usize>, found: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let smaller =
        |(name, allowed): (&String, &usize)| found.get(name).map(|count| (name.clone(), *count.min(allowed)));
    listed.iter().filter_map(smaller).collect()
}

fn parse(text: &str) -> Result<BTreeMap<String, usize>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &str| -> Result<(String, usize)> {
        let (name, count) = line.rsplit_once(' ').context("not a name and a number")?;
        Ok((name.to_owned(), count.parse()?))
    };
    let mut entries = BTreeMap::new();
    for line in lines {
        let (name, count) = entry(line).with_context(|| format!("cannot read the line `{line}`"))?;
        // A merge can leave a name twice; the larger number is the one that `shrink` can settle.
        let known = entries.entry(name).or_insert(count);
        *known = count.max(*known);
    }
    Ok(entries)
}

fn print(known: &Known, entries: &BTreeMap<String, usize>) -> String {
    let head = format!("# Each line: {}. This list only shrinks: `cargo xtask shrink`.\n", known.what);
    head + &entries.iter().map(|(name, count)| format!("{name} {count}\n")).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> BTreeMap<String, usize> {
        parse(&text.replace(", ", "\n")).unwrap()
    }

    fn check_list(listed: &str, found: &str) -> Problems {
        differences("list.txt", &entries(listed), &entries(found), |name, count| {
            format!("new: {name} {count}")
        })
    }

    #[test]
    fn what_is_listed_passes() {
        assert_eq!(check_list("A 2, B 3", "A 2, B 3"), Problems::new());
    }

    #[test]
    fn what_is_not_listed_fails() {
        assert_eq!(check_list("A 2", "A 2, B 3"), ["new: B 3"]);
    }

    #[test]
    fn more_than_is_listed_fails() {
        assert_eq!(check_list("A 2", "A 3"), ["new: A 3"]);
    }

    #[test]
    fn an_entry_that_is_too_large_fails() {
        assert_eq!(
            check_list("A 3", "A 2"),
            ["list.txt allows 3 of `A`, there are 2; run `cargo xtask shrink`"]
        );
    }

    #[test]
    fn an_entry_that_is_not_needed_fails() {
        assert_eq!(
            check_list("A 3", ""),
            ["list.txt allows 3 of `A`, there are 0; run `cargo xtask shrink`"]
        );
    }

    #[test]
    fn shrinking_adds_nothing() {
        let shrunk = shrunk(&entries("A 3, B 2, C 2"), &entries("A 2, C 5, D 2"));
        assert_eq!(shrunk, entries("A 2, C 2"));
    }

    #[test]
    fn a_printed_list_reads_back() {
        let known = Known { file: "list.txt", what: "a name" };
        assert_eq!(parse(&print(&known, &entries("A 2, b/c 3"))).unwrap(), entries("A 2, b/c 3"));
        assert_eq!(entries("A 2, A 3, A 1"), entries("A 3"));
        assert!(parse("A").is_err());
        assert!(parse("A b").is_err());
    }
}
