//! The pages as a book: every page of docs/ is in docs/SUMMARY.md, every link between pages leads to a file, and to a
//! heading where it names one, and the page of differences has one row for each.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::{Problems, workspace};

const SUMMARY: &str = "docs/SUMMARY.md";
const DIFFERENCES: &str = "docs/differences.md";

pub(crate) fn check() -> Result<Problems> {
    let files: BTreeSet<String> = workspace::files()?.into_iter().collect();
    let is_page = |path: &&String| {
        path.ends_with(".md")
            && (path.starts_with("docs/") || !path.contains('/') || path.starts_with("examples/"))
    };
    let mut problems = Vec::new();
    for page in files.iter().filter(is_page) {
        problems.extend(lost_links(page, &workspace::read_text(page)?, &files, &|path| {
            workspace::read_text(path)
        })?);
    }
    let summary = workspace::read_text(SUMMARY)?;
    problems.extend(unlisted(&summary, &files));
    problems.extend(repeated_rows(&workspace::read_text(DIFFERENCES)?));
    Ok(problems)
}

/// Two rows about one thing come to say different things.
fn repeated_rows(text: &str) -> Problems {
    let mut seen = BTreeSet::new();
    let rows = prose(text).into_iter().filter(|line| line.starts_with("| "));
    let first = rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next());
    let repeated = first.filter(|cell| !seen.insert(*cell));
    repeated.map(|cell| format!("{DIFFERENCES} has two rows that begin with `{cell}`")).collect()
}

fn unlisted(summary: &str, files: &BTreeSet<String>) -> Problems {
    let listed: BTreeSet<String> = links(summary).iter().filter_map(|link| resolve(SUMMARY, link)).collect();
    let pages =
        files.iter().filter(|path| path.starts_with("docs/") && path.ends_with(".md") && *path != SUMMARY);
    pages
        .filter(|page| !listed.contains(*page))
        .map(|page| format!("{SUMMARY} does not list {page}"))
        .collect()
}

type Reader<'a> = &'a dyn Fn(&str) -> Result<String>;

fn lost_links(page: &str, text: &str, files: &BTreeSet<String>, read: Reader<'_>) -> Result<Problems> {
    let mut problems = Vec::new();
    for link in links(text) {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) =
            link.split_once('#').map_or((link.as_str(), None), |(path, at)| (path, Some(at)));
        let target = if path.is_empty() { Some(page.to_owned()) } else { resolve(page, path) };
        let is_there = |target: &String| {
            let folder = format!("{}/", target.trim_end_matches('/'));
            files.contains(target) || files.iter().any(|file| file.starts_with(&folder))
        };
        let Some(target) = target.filter(is_there) else {
            problems.push(format!("{page} links to {link}, which does not exist"));
            continue;
        };
        if let Some(anchor) = anchor.filter(|_| target.ends_with(".md")) {
            let there = if target == page { text.to_owned() } else { read(&target)? };
            if !anchors(&there).contains(anchor) {
                problems.push(format!("{page} links to {link}, and that page has no such heading"));
            }
        }
    }
    Ok(problems)
}

/// The targets of `[text](target)` outside of code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Code in a line is between backticks.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in plain.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push(target.trim().to_owned());
            }
        }
    }
    found
}

/// The lines that are not code.
fn prose(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with("    ") {
            lines.push(line);
        }
    }
    lines
}

/// The names of headings, as sites make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    let name = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(name).collect()
}

/// The path in the repository that a link of a page means; nothing where it leads out of it.
fn resolve(page: &str, link: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or_default();
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_listed_and_every_link_leads_somewhere() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    fn check_links(text: &str) -> Problems {
        let files = ["docs/a.md", "docs/b.md", "README.md", "crates/x/src/lib.rs"].map(str::to_owned).into();
        lost_links("docs/a.md", text, &files, &|_| Ok("# Title\n## Who may: do what?\n".to_owned())).unwrap()
    }

    #[test]
    fn good_links_pass_and_code_is_not_looked_at() {
        for text in [
            "[b](b.md), [b](b.md#who-may-do-what), [up](../README.md) and [site](https://example.com/x)",
            "[crate](../crates/x) [here](#mine)\n\n## Mine\n",
            "`[not](one.md)`\n\n    [nor](this.md)\n\n```text\n[nor](that.md)\n```\n",
        ] {
            assert_eq!(check_links(text), Problems::new(), "{text}");
        }
    }

    #[test]
    fn lost_links_are_told() {
        for text in ["[x](c.md)", "[x](b.md#who)", "[x](../../b.md)", "[x](#nowhere)"] {
            assert_eq!(check_links(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_row_that_is_there_twice_is_told() {
        let rows = "| what | why |\n|---|---|\n| a | 1 |\n| b | 2 |\n```\n| a | code |\n```\n| a | 3 |\n";
        assert_eq!(repeated_rows(rows), [format!("{DIFFERENCES} has two rows that begin with `a`")]);
    }

    #[test]
    fn a_page_that_the_book_leaves_out_is_told() {
        let files = ["docs/SUMMARY.md", "docs/a.md", "docs/b.md", "x.md"].map(str::to_owned).into();
        assert_eq!(unlisted("- [a](a.md)", &files), ["docs/SUMMARY.md does not list docs/b.md"]);
    }
}
