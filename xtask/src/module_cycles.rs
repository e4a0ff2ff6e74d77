//! The top modules of a crate point one way: modules that all need each other can only be understood at once. Up to
//! five may form a cycle, which is about what a reader can hold in the head.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::Problems;
use crate::known::{self, Known};
use crate::rust_source::{Source, Token, product_sources};

const MAX_MODULES: usize = 5;

const KNOWN: Known = Known {
    file: "xtask/known/module_cycles.txt",
    what: "a crate with the number of top modules in its largest dependency cycle",
};

/// For each top module of a crate, the top modules that its code names.
type Graph = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn check() -> Result<Problems> {
    let cycles = cycles_by_crate(product_sources()?);
    known::compare(&KNOWN, &too_large(&cycles), |name, count| {
        format!(
            "{count} top modules of `{name}` depend on each other, {MAX_MODULES} may: {}",
            cycles[name][0].join(", ")
        )
    })
}

pub(crate) fn shrink() -> Result<()> {
    known::shrink(&KNOWN, &too_large(&cycles_by_crate(product_sources()?)))
}

/// Every cycle of two or more modules, with the uses that hold it together.
pub(crate) fn print() -> Result<()> {
    for (name, sources) in &by_crate(product_sources()?) {
        let uses = uses(sources);
        let graph = graph(&uses);
        for cycle in cycles(&graph) {
            println!("{name}: {} of {} top modules: {}", cycle.len(), graph.len(), cycle.join(" "));
            for (from, to) in
                uses.keys().filter(|(from, to)| from != to && cycle.contains(from) && cycle.contains(to))
            {
                println!("  {from} -> {to}: {}", uses[&(from.clone(), to.clone())].join(" "));
            }
        }
    }
    Ok(())
}

fn too_large(cycles: &BTreeMap<String, Vec<Vec<String>>>) -> BTreeMap<String, usize> {
    let largest = |cycles: &Vec<Vec<String>>| cycles.first().map(Vec::len).filter(|size| *size > MAX_MODULES);
    cycles.iter().filter_map(|(name, cycles)| Some((name.clone(), largest(cycles)?))).collect()
}

fn cycles_by_crate(sources: &[Source]) -> BTreeMap<String, Vec<Vec<String>>> {
    by_crate(sources).iter().map(|(name, sources)| (name.clone(), cycles(&graph(&uses(sources))))).collect()
}

fn by_crate(sources: &[Source]) -> BTreeMap<String, Vec<&Source>> {
    let mut by_crate: BTreeMap<String, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.module().first() != Some(&"bin")) {
        by_crate.entry(source.crate_name().to_owned()).or_default().push(source);
    }
    by_crate
}

/// `path:line` of every place where one top module names another, by the two. A module that uses itself is in here
/// too, so that every module is.
fn uses(sources: &[&Source]) -> BTreeMap<(String, String), Vec<String>> {
    let modules: BTreeSet<&str> =
        sources.iter().filter_map(|source| source.module().first().copied()).collect();
    let roots = sources.iter().filter(|source| source.module().is_empty());
    let shown: BTreeMap<String, String> =
        roots.flat_map(|root| shown_at_the_root(&root.tokens(), &modules)).collect();
    let mut uses: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for source in sources {
        let module = source.module();
        let Some(from) = module.first() else {
            continue; // The root may name all of its modules.
        };
        uses.entry(((*from).to_owned(), (*from).to_owned())).or_default();
        for name in names_at_the_root(&source.tokens(), module.len()) {
            let to = modules.get(name.text).copied().or(shown.get(name.text).map(String::as_str));
            if let Some(to) = to.filter(|to| to != from) {
                let places = uses.entry(((*from).to_owned(), to.to_owned())).or_default();
                places.push(format!("{}:{}", source.path, name.line));
            }
        }
    }
    uses
}

fn graph(uses: &BTreeMap<(String, String), Vec<String>>) -> Graph {
    let mut graph = Graph::new();
    for (from, to) in uses.keys() {
        graph.entry(from.clone()).or_default().insert(to.clone());
    }
    graph
}

/// The names that follow `crate::`, or as many `super::` as lead to the root of the crate.
fn names_at_the_root<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    let mut supers = 0;
    for (at, pair) in tokens.windows(2).enumerate() {
        let is_path = pair[1].text == "::";
        supers = match pair[0].text {
            "super" if is_path => supers + 1,
            "::" => supers,
            _ => 0,
        };
        if is_path && (pair[0].text == "crate" || (supers == depth && pair[0].text == "super")) {
            found.extend(first_names(&tokens[at + 2..]));
        }
    }
    found
}

/// `a` of `a::b`; `a` and `c` of `{a::b, c::{d, e}}`.
fn first_names<'a>(path: &[Token<'a>]) -> Vec<Token<'a>> {
    if path.first().is_none_or(|first| first.text != "{") {
        return path.first().copied().into_iter().collect();
    }
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in path.iter().enumerate() {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 1 => break,
            "}" => depth -= 1,
            _ if depth == 1 && matches!(path[at - 1].text, "{" | ",") => found.push(*token),
            _ => {}
        }
    }
    found
}

/// The names that the root takes from its modules with `use`, each with its module.
fn shown_at_the_root(tokens: &[Token<'_>], modules: &BTreeSet<&str>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "use") {
        let end =
            tokens[at..].iter().position(|token| token.text == ";").map_or(tokens.len(), |end| at + end);
        let path: Vec<&str> = tokens[at + 1..end].iter().map(|token| token.text).collect();
        let path =
            path.strip_prefix(&["crate", "::"]).or(path.strip_prefix(&["self", "::"])).unwrap_or(&path);
        let Some(module) = path.first().filter(|first| modules.contains(*first)) else {
            continue;
        };
        for (at, name) in path.iter().enumerate() {
            let is_last = path.get(at + 1).is_none_or(|next| matches!(*next, "," | "}"));
            if is_last && name.starts_with(|first: char| first.is_alphabetic()) {
                found.push(((*name).to_owned(), (*module).to_owned()));
            }
        }
    }
    found
}

/// The groups of modules that can all reach each other, the largest first; modules by themselves are left out.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|from| (from.as_str(), reachable(graph, from))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (from, to) in &reached {
        let is_mutual = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(from));
        let group: BTreeSet<&str> = to.iter().filter(is_mutual).copied().chain([*from]).collect();
        if group.len() > 1 {
            found.insert(group.into_iter().map(str::to_owned).collect());
        }
    }
    let mut cycles: Vec<Vec<String>> = found.into_iter().collect();
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    cycles
}

fn reachable<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = graph.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(graph.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_modules_point_one_way_but_for_the_known_cycles() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    /// A crate `a` of these files, and its cycles, modules apart by spaces.
    fn check_cycles(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(&format!("crates/a/src/{path}"), text)).collect();
        let found: Vec<String> = cycles_by_crate(&sources)["a"].iter().map(|cycle| cycle.join(" ")).collect();
        assert_eq!(found, expected, "in {files:?}");
    }

    #[test]
    fn modules_that_point_one_way_pass() {
        check_cycles(
            &[("lib.rs", "mod b;\nuse crate::c::X;"), ("b.rs", "use crate::c::X;"), ("c.rs", "struct X;")],
            &[],
        );
    }

    #[test]
    fn a_cycle_of_three_is_found() {
        check_cycles(
            &[
                ("b.rs", "use crate::c::X;"),
                ("c.rs", "crate::d::f()"),
                ("d/e.rs", "use crate::b;"),
                ("f.rs", ""),
            ],
            &["b c d"],
        );
    }

    #[test]
    fn nested_groups_are_read() {
        check_cycles(
            &[("b.rs", "use crate::{d::{c, e}, f};"), ("c.rs", "crate::b"), ("d.rs", "crate::b")],
            &["b d"],
        );
    }

    #[test]
    fn names_shown_at_the_root_belong_to_their_module() {
        check_cycles(
            &[
                ("lib.rs", "pub use c::{X, d::Y};\nuse crate::e::Z;"),
                ("b.rs", "crate::Y"),
                ("c.rs", "crate::b"),
            ],
            &["b c"],
        );
    }

    #[test]
    fn super_leads_to_the_root() {
        check_cycles(&[("b/x.rs", "use super::super::c;"), ("c.rs", "super::b")], &["b c"]);
        check_cycles(&[("b/x.rs", "use super::c;"), ("c.rs", "super::b")], &[]);
    }

    #[test]
    fn visibility_and_test_code_are_no_uses() {
        check_cycles(
            &[
                ("b.rs", "pub(crate) struct X;\n#[cfg(test)]\nmod tests { use crate::c; }"),
                ("c.rs", "crate::b"),
            ],
            &[],
        );
    }

    #[test]
    fn only_cycles_over_the_limit_count() {
        let cycle = |size: usize| vec![vec!["m".to_owned(); size]];
        let cycles = BTreeMap::from([
            ("a".to_owned(), cycle(5)),
            ("b".to_owned(), cycle(6)),
            ("c".to_owned(), vec![]),
        ]);
        assert_eq!(too_large(&cycles), BTreeMap::from([("b".to_owned(), 6)]));
    }
}
