//! Scores exported JSON Schemas against a reference with the reference's own tool, and allows the missing facts that
//! `docs/differences.md` lists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{Problems, workspace};

const SURFACES: &[&str] = &["stable", "experimental"];
const LIST: &str = "docs/differences.md";
const HEADING: &str = "schema facts";
/// A longer list would no longer be a list of exceptions.
const MAX_ALLOWED: usize = 20;
const SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folder of the reference, with `stable` and `experimental` in it.
    #[arg(long, value_name = "DIR")]
    reference: PathBuf,
    /// Folder of our exports, with the same two in it.
    #[arg(long, value_name = "DIR", default_value = ".cache/schema")]
    ours: PathBuf,
    /// The tool that compares two folders; by default the one beside the reference.
    #[arg(long, value_name = "FILE")]
    tool: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let tool = options.tool.clone().unwrap_or_else(|| options.reference.join("../tools/schema_score.py"));
    let mut missing = BTreeSet::new();
    for surface in SURFACES {
        let report = report(&tool, &options.reference.join(surface), &options.ours.join(surface))?;
        println!("{surface}: {}", report.lines().last().unwrap_or_default());
        missing.extend(missing_facts(surface, &report));
    }
    let allowed = match workspace::root().join(LIST).exists() {
        true => allowed_facts(&workspace::read_text(LIST)?),
        false => Vec::new(),
    };
    let problems = problems(&missing, &allowed);
    if problems.is_empty() {
        println!("schema facts: {} missing, all of them listed in {LIST}", missing.len());
        return Ok(());
    }
    for problem in problems.iter().take(SHOWN) {
        println!("{problem}");
    }
    bail!("{} schema facts are not as {LIST} says", problems.len())
}

fn report(tool: &Path, reference: &Path, ours: &Path) -> Result<String> {
    for folder in [reference, ours] {
        if !folder.is_dir() {
            bail!("{} is not a folder", folder.display());
        }
    }
    let command = Command::new("python3").arg(tool).args([reference, ours]).arg("--all").output();
    let done = command.context("cannot run python3")?;
    let report = String::from_utf8_lossy(&done.stdout).into_owned();
    // The tool also fails when facts are missing, so it is its closing line that tells a run from a crash.
    if !report.lines().last().is_some_and(|line| line.starts_with("schema score: ")) {
        bail!("{} did not finish: {}", tool.display(), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(report)
}

/// `SURFACE/FILE: FACT` for each fact the report calls missing: a line per file, its facts indented below.
fn missing_facts(surface: &str, report: &str) -> Vec<String> {
    let mut file = "";
    let mut facts = Vec::new();
    for line in report.lines() {
        if let Some(fact) = line.strip_prefix("    ") {
            facts.push(format!("{surface}/{file}: {fact}"));
        } else if let Some((name, _)) = line.split_once(": ") {
            file = name;
        }
    }
    facts
}

/// The lines of the fenced block that is headed, or marked after its fence, `schema facts`.
fn allowed_facts(page: &str) -> Vec<String> {
    let is_headed = |line: &str| line.to_lowercase().contains(HEADING);
    let (mut under_heading, mut in_any_block, mut in_our_block) = (false, false, false);
    let mut facts = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            in_our_block = !in_any_block && (under_heading || is_headed(line));
            in_any_block = !in_any_block;
        } else if in_our_block && !line.trim().is_empty() {
            facts.push(line.trim().to_owned());
        } else if !in_any_block && line.starts_with('#') {
            under_heading = is_headed(line);
        }
    }
    facts
}

fn problems(missing: &BTreeSet<String>, allowed: &[String]) -> Problems {
    let mut problems = Vec::new();
    if allowed.len() > MAX_ALLOWED {
        problems.push(format!("{LIST} lists {} facts; {MAX_ALLOWED} are allowed", allowed.len()));
    }
    let unlisted = missing.iter().filter(|fact| !allowed.contains(fact));
    problems.extend(unlisted.map(|fact| format!("missing: {fact}")));
    let met = allowed.iter().filter(|fact| !missing.contains(*fact));
    problems.extend(met.map(|fact| format!("no longer missing, take it off the list: {fact}")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
v2/Thread.json: 2 missing \n    .id!required\n    .name:string\nGone.json: 1 missing no such file\n    :object
schema score: 7/10 facts = 70.00%  (2 files short, 4 facts of our own)\n";

    #[test]
    fn reads_the_missing_facts_of_each_file() {
        assert_eq!(
            missing_facts("stable", REPORT),
            [
                "stable/v2/Thread.json: .id!required",
                "stable/v2/Thread.json: .name:string",
                "stable/Gone.json: :object"
            ]
        );
    }

    #[test]
    fn reads_the_headed_block_and_no_other() {
        for page in [
            "# Other\n```\nno: .a\n```\n## Schema facts\nWhy.\n```text\na.json: .x\n\nb.json: .y\n```\n# End\n```\nno: .b\n```\n",
            "```json\nno: .a\n```\n```schema facts\na.json: .x\nb.json: .y\n```\n",
        ] {
            assert_eq!(allowed_facts(page), ["a.json: .x", "b.json: .y"], "in {page}");
        }
    }

    fn check(missing: &[&str], allowed: &[&str]) -> Problems {
        let missing = missing.iter().map(|fact| (*fact).to_owned()).collect();
        problems(&missing, &Vec::from_iter(allowed.iter().map(|fact| (*fact).to_owned())))
    }

    #[test]
    fn listed_facts_may_be_missing() {
        assert_eq!(check(&["a: .x"], &["a: .x"]), Problems::new());
    }

    #[test]
    fn any_other_missing_fact_fails() {
        assert_eq!(check(&["a: .x", "a: .y"], &["a: .x"]), ["missing: a: .y"]);
    }

    #[test]
    fn a_listed_fact_that_is_there_fails() {
        assert_eq!(check(&[], &["a: .x"]), ["no longer missing, take it off the list: a: .x"]);
    }

    #[test]
    fn the_list_stays_short() {
        let facts: Vec<String> = (0..=MAX_ALLOWED).map(|number| format!("a: .{number}")).collect();
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        assert_eq!(check(&facts, &facts), ["docs/differences.md lists 21 facts; 20 are allowed"]);
    }
}
