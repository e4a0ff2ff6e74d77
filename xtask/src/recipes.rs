//! The recipes in CONTRIBUTING.md, followed: each names an example, and the files that know of the example must be
//! exactly the files that the recipe's steps name. A step that leads nowhere fails, and so does a place that a
//! contributor would have to find alone. Every other path on that page must exist, and hold what is said to be in it; so
//! must the files and tests that the pages about invariants and security name.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::Problems;
use crate::rust_source::{Source, product_sources};
use crate::workspace;

const PAGE: &str = "CONTRIBUTING.md";

/// Pages that name files of this tree, and what is in them.
const PAGES: &[&str] = &[PAGE, "ARCHITECTURE.md", "docs/security.md", "docs/security-tests.md"];

/// The sections that are recipes.
const RECIPES: &[&str] = &["Adding a method", "Adding a tool"];

/// Only words in backticks that begin so are taken for paths.
const FOLDERS: &[&str] = &["crates/", "docs/", "xtask/", "scripts/", "tests/", "sdk/", "examples/"];

/// An example of what is added, and where its recipe says it shows.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    /// The names by which the code knows the example.
    names: BTreeSet<String>,
    /// A file, or a folder if it ends with `/`, for each step.
    steps: Vec<String>,
}

/// The tree that a page speaks of.
struct Tree<'a> {
    sources: &'a [Source],
    paths: &'a [String],
    read: &'a dyn Fn(&str) -> Result<String>,
}

pub(crate) fn check() -> Result<Problems> {
    let paths = workspace::files()?;
    let tree = Tree { sources: product_sources()?, paths: &paths, read: &workspace::read_text };
    let mut problems = Vec::new();
    for name in PAGES {
        problems.extend(lost_paths(name, &workspace::read_text(name)?, &tree)?);
    }
    let page = workspace::read_text(PAGE)?;
    for heading in RECIPES {
        let recipe =
            recipe(&page, heading).with_context(|| format!("in the section `{heading}` of {PAGE}"))?;
        let found = follow(&recipe, &tree)?;
        problems.extend(found.into_iter().map(|problem| format!("{PAGE}, {heading}: {problem}")));
    }
    Ok(problems)
}

/// Reads a section: a line `Example: ...` with names and, after `<word>`, what stands for it; then numbered steps that
/// each begin with a path.
fn recipe(page: &str, heading: &str) -> Result<Recipe> {
    let start = format!("\n## {heading}\n");
    let section = page.split_once(&start).context("there is no such section")?.1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let example = section.lines().find_map(|line| line.strip_prefix("Example: "));
    let mut names = BTreeSet::new();
    let mut stands_for = Vec::new();
    let mut words = quoted(example.context("there is no line that begins with `Example: `")?).into_iter();
    while let Some(word) = words.next() {
        if word.starts_with('<') {
            stands_for.push((word, words.next().context("a `<word>` is followed by what stands for it")?));
        } else {
            names.insert(word.to_owned());
        }
    }
    let steps = section.lines().filter(|line| is_step(line)).filter_map(|line| quoted(line).first().copied());
    let fill =
        |path: &str| stands_for.iter().fold(path.to_owned(), |path, (word, text)| path.replace(word, text));
    let steps: Vec<String> = steps.filter(|path| path.contains('/')).map(fill).collect();
    Ok(Recipe { names, steps })
}

fn is_step(line: &str) -> bool {
    line.split_once(". `")
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The words in backticks.
fn quoted(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

fn follow(recipe: &Recipe, tree: &Tree<'_>) -> Result<Problems> {
    let mut problems = Vec::new();
    let mut knowing = BTreeSet::new();
    for source in tree.sources {
        if source.tokens().iter().any(|token| recipe.names.contains(token.text)) {
            knowing.insert(source.path.as_str());
        }
    }
    for step in &recipe.steps {
        let is_known = knowing.iter().any(|path| covers(step, path)) || text_names(recipe, tree, step)?;
        if !is_known {
            problems.push(format!("the example is not in {step}, where a step leads"));
        }
    }
    let unnamed = knowing.iter().filter(|path| !recipe.steps.iter().any(|step| covers(step, path)));
    problems.extend(unnamed.map(|path| format!("the example is also in {path}, where no step leads")));
    Ok(problems)
}

/// For steps that lead to something else than the sources of a crate, such as a fixture.
fn text_names(recipe: &Recipe, tree: &Tree<'_>, step: &str) -> Result<bool> {
    let is_source = tree.sources.iter().any(|source| source.path == step);
    if is_source || !tree.paths.iter().any(|path| path == step) {
        return Ok(false);
    }
    let text = (tree.read)(step)?;
    Ok(recipe.names.iter().any(|name| text.contains(name.as_str())))
}

fn covers(step: &str, path: &str) -> bool {
    path == step || (step.ends_with('/') && path.starts_with(step))
}

/// Paths of the page that do not exist, and `name` in `path` where the path does not have the name.
fn lost_paths(name: &str, page: &str, tree: &Tree<'_>) -> Result<Problems> {
    let mut problems = Vec::new();
    // The text between two pairs of backticks decides, so a line break there counts as a space.
    let parts: Vec<&str> = page.split('`').collect();
    for (at, word) in parts.iter().enumerate().skip(1).step_by(2) {
        if !FOLDERS.iter().any(|folder| word.starts_with(folder)) || word.contains(' ') {
            continue;
        }
        let meant: Vec<&String> = tree.paths.iter().filter(|path| matches(word, path)).collect();
        if meant.is_empty() {
            problems.push(format!("{name} names {word}, which does not exist"));
        } else if at >= 2 && parts[at - 1].trim() == "in" {
            let held = parts[at - 2].rsplit("::").next().unwrap_or_default().trim_end_matches("()");
            let texts: Vec<String> = meant.iter().map(|path| (tree.read)(path)).collect::<Result<_>>()?;
            if !texts.iter().any(|text| text.contains(held)) {
                problems.push(format!("{name} says that `{held}` is in {word}; it is not"));
            }
        }
    }
    Ok(problems)
}

/// Whether a path of the page means this file: `<word>` stands for any part of a name, a folder for all in it.
fn matches(word: &str, path: &str) -> bool {
    let mut rest = path;
    let mut pieces = word.split('<');
    let first = pieces.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    for piece in pieces {
        let fixed = piece.split_once('>').map_or("", |(_, fixed)| fixed);
        let name = rest.find('/').unwrap_or(rest.len());
        let Some(at) = rest.find(fixed).filter(|at| *at > 0 && *at <= name) else {
            return false;
        };
        rest = &rest[at + fixed.len()..];
    }
    rest.is_empty() || word.ends_with('/') || rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipes_lead_to_every_place_and_to_no_other() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    const RECIPE: &str = "\n## Adding a tool\n\nExample: `Plan` and `make_plan`, where `<tool>` is `plan`.\n\n\
        1. `crates/a/src/<tool>.rs`: the tool.\n2. `crates/a/src/list.rs`: a line in `all()`.\n\
        3. `crates/a/tests/wire/<tool>.jsonl`: a message.\n4. `cargo xtask generate`\n\n## Next\n\n1. `crates/b/`\n";

    /// The problems of `RECIPE` in a tree of these files.
    fn check_recipe(files: &[(&str, &str)]) -> Problems {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let sources = files.iter().filter(|(path, _)| path.ends_with(".rs"));
        let sources: Vec<Source> = sources.map(|(path, text)| Source::new(path, text)).collect();
        let read = |path: &str| {
            let found = files.iter().find(|(known, _)| *known == path).context("no such file")?;
            Ok(found.1.to_owned())
        };
        let tree = Tree { sources: &sources, paths: &paths, read: &read };
        follow(&recipe(RECIPE, "Adding a tool").unwrap(), &tree).unwrap()
    }

    const TOOL: (&str, &str) = ("crates/a/src/plan.rs", "struct Plan;");
    const LIST: (&str, &str) = ("crates/a/src/list.rs", "fn all() { Plan }");
    const WIRE: (&str, &str) = ("crates/a/tests/wire/plan.jsonl", "{\"a\": \"make_plan\"}");

    #[test]
    fn a_recipe_that_names_every_place_passes() {
        assert_eq!(
            check_recipe(&[TOOL, LIST, WIRE, ("crates/a/src/other.rs", "// Plan\nstruct Planner;")]),
            Problems::new()
        );
    }

    #[test]
    fn a_step_that_leads_nowhere_fails() {
        assert_eq!(
            check_recipe(&[LIST, WIRE]),
            ["the example is not in crates/a/src/plan.rs, where a step leads"]
        );
        assert_eq!(
            check_recipe(&[TOOL, ("crates/a/src/list.rs", "// Plan"), WIRE]),
            ["the example is not in crates/a/src/list.rs, where a step leads"]
        );
    }

    #[test]
    fn a_place_without_a_step_fails() {
        assert_eq!(
            check_recipe(&[TOOL, LIST, WIRE, ("crates/b/src/lib.rs", "fn make_plan() {}")]),
            ["the example is also in crates/b/src/lib.rs, where no step leads"]
        );
    }

    #[test]
    fn a_section_without_an_example_is_refused() {
        assert!(recipe(RECIPE, "Next").is_err());
        assert!(recipe(RECIPE, "Adding a wire").is_err());
    }

    fn check_page(page: &str) -> Problems {
        let paths = ["crates/a/src/list.rs".to_owned(), "crates/a/src/b/c.rs".to_owned()];
        let read = |_: &str| Ok("fn all() {}".to_owned());
        lost_paths("page", page, &Tree { sources: &[], paths: &paths, read: &read }).unwrap()
    }

    #[test]
    fn paths_that_exist_pass() {
        for page in [
            "`crates/a/src/list.rs`",
            "`crates/a/src` and `crates/a/src/`",
            "`crates/<crate>/src/<file>.rs`",
            "`List::all()` in `crates/a/src/list.rs`",
            "`all` in\n`crates/a/src/list.rs`",
            "`all` in `crates/a/src/`",
            "`some/where` and `cargo run docs/x`",
        ] {
            assert_eq!(check_page(page), Problems::new(), "{page}");
        }
    }

    #[test]
    fn lost_paths_and_names_fail() {
        for page in [
            "`crates/a/src/lis`",
            "`crates/a/src/list.rs/`",
            "`crates/<crate>/<file>.rs`",
            "`List::none()` in `crates/a/src/list.rs`",
        ] {
            assert_eq!(check_page(page).len(), 1, "{page}");
        }
    }
}
