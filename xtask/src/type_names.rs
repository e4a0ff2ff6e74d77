//! One type name, one meaning: a name that two places of the workspace declare sends every reader to the wrong one.
//! Types of tests and of the test kit do not count, nor do types that belong to a trait. A built-in tool names its
//! arguments `Args`, one file per tool; these do not count either.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::Problems;
use crate::known::{self, Known};
use crate::rust_source::{Source, Token, product_sources};

/// `path:line` of every declaration, by name.
type Declarations = BTreeMap<String, Vec<String>>;

/// The folder with one file per built-in tool, each with a type `Args`.
const TOOLS: &str = "crates/tools/src/builtin/";
const TOOL_ARGS: &str = "Args";

const KNOWN: Known =
    Known { file: "xtask/known/type_names.txt", what: "a type name with the number of types that share it" };

pub(crate) fn check() -> Result<Problems> {
    let repeated = repeated(product_sources()?);
    known::compare(&KNOWN, &counts(&repeated), |name, count| {
        format!(
            "{count} types are named `{name}`: {}; give each meaning its own name",
            repeated[name].join(", ")
        )
    })
}

pub(crate) fn shrink() -> Result<()> {
    known::shrink(&KNOWN, &counts(&repeated(product_sources()?)))
}

pub(crate) fn print() -> Result<()> {
    for (name, places) in repeated(product_sources()?) {
        println!("{name} {}", places.len());
        for place in places {
            println!("  {place}");
        }
    }
    Ok(())
}

fn counts(repeated: &Declarations) -> BTreeMap<String, usize> {
    repeated.iter().map(|(name, places)| (name.clone(), places.len())).collect()
}

/// The names that more than one place declares.
fn repeated(sources: &[Source]) -> Declarations {
    let mut all = Declarations::new();
    for source in sources.iter().filter(|source| source.crate_name() != "testkit") {
        let tokens = source.tokens();
        // The tables of the protocol declare a type with each row.
        let rows = if source.crate_name() == "protocol" { table_rows(&tokens) } else { Vec::new() };
        for (name, line) in declared(&tokens).into_iter().chain(rows) {
            if name == TOOL_ARGS && source.path.starts_with(TOOLS) {
                continue;
            }
            all.entry(name.to_owned()).or_default().push(format!("{}:{line}", source.path));
        }
    }
    all.retain(|_, places| places.len() > 1);
    all
}

/// The types a file declares, with their lines.
fn declared<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    // For each open brace: whether it holds the items of a trait or an impl.
    let mut members = vec![false];
    let mut statement = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => {
                members.push(holds_members(&tokens[statement..at]));
                statement = at + 1;
            }
            "}" => {
                if members.len() > 1 {
                    members.pop();
                }
                statement = at + 1;
            }
            ";" => statement = at + 1,
            keyword => {
                let is_alias = keyword == "type" && members.last() == Some(&false);
                let is_type = is_alias || matches!(keyword, "struct" | "enum" | "trait" | "union");
                if let Some(name) = tokens.get(at + 1).filter(|_| is_type && is_declaration(tokens, at)) {
                    found.push((name.text, name.line));
                }
            }
        }
    }
    found
}

/// `A` of the rows `A = "a/b" (Params);` and `A;`.
fn table_rows<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let is_row = |four: &&[Token<'a>]| {
        let starts_row = matches!(four[0].text, "{" | ";");
        let is_type = four[1].text.starts_with(|first: char| first.is_ascii_uppercase());
        starts_row && is_type && (four[2].text == ";" || (four[2].text == "=" && four[3].text == "("))
    };
    tokens.windows(4).filter(is_row).map(|four| (four[1].text, four[1].line)).collect()
}

/// Tells a declaration from a raw identifier, a macro's `$name`, words in a macro's input and a variable named `union`.
fn is_declaration(tokens: &[Token<'_>], at: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let is_raw = at > 0 && text(at - 1) == "#";
    let is_name = text(at + 1).starts_with(|first: char| first.is_uppercase());
    let is_union = text(at) != "union" || matches!(text(at + 2), "{" | "<");
    !is_raw && is_name && is_union
}

/// Whether these tokens, before an opening brace, are the head of a trait or an impl.
fn holds_members(head: &[Token<'_>]) -> bool {
    let mut depth = 0_usize;
    for token in head {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "impl" | "trait" if depth == 0 => return true,
            "#" | "pub" | "unsafe" | "default" => {}
            _ if depth > 0 => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_name_has_one_meaning_but_for_the_known_ones() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    /// `name path:line path:line` for each repeated name.
    fn check_sources(sources: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<Source> = sources.iter().map(|(path, text)| Source::new(path, text)).collect();
        let found: Vec<String> =
            repeated(&sources).iter().map(|(name, places)| format!("{name} {}", places.join(" "))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn different_names_pass() {
        check_sources(&[("crates/a/src/lib.rs", "struct A;"), ("crates/b/src/lib.rs", "enum B { A }")], &[]);
    }

    #[test]
    fn a_name_in_two_crates_fails() {
        check_sources(
            &[("crates/a/src/lib.rs", "struct A;"), ("crates/b/src/c.rs", "\npub(crate) enum A {}")],
            &["A crates/a/src/lib.rs:1 crates/b/src/c.rs:2"],
        );
    }

    #[test]
    fn every_kind_of_type_counts() {
        check_sources(
            &[(
                "crates/a/src/lib.rs",
                "struct A<T>(T);\nenum A {}\ntrait A {}\nunion A { a: u8 }\ntype A = u8;\nfn f() {\n    struct A;\n    type A = u8;\n}",
            )],
            &["A crates/a/src/lib.rs:1 crates/a/src/lib.rs:2 crates/a/src/lib.rs:3 crates/a/src/lib.rs:4 \
               crates/a/src/lib.rs:5 crates/a/src/lib.rs:7 crates/a/src/lib.rs:8"],
        );
    }

    #[test]
    fn types_of_a_trait_do_not_count() {
        check_sources(
            &[(
                "crates/a/src/lib.rs",
                "pub trait A { type X; }\n#[a(b)]\nunsafe impl<T: Fn(u8)> A for B<T> { type X = u8; }\nimpl A for C { type X = u8; }",
            )],
            &[],
        );
    }

    #[test]
    fn rows_of_the_protocols_tables_count() {
        check_sources(
            &[
                ("crates/protocol/src/methods.rs", "requests! {\n    /// Doc.\n    A = \"a/b\" (P) -> R;\n}"),
                ("crates/protocol/src/scalar.rs", "ids! {\n    /// Doc.\n    B;\n    C;\n}"),
                ("crates/a/src/lib.rs", "struct A;\nstruct C;"),
            ],
            &[
                "A crates/protocol/src/methods.rs:3 crates/a/src/lib.rs:1",
                "C crates/protocol/src/scalar.rs:4 crates/a/src/lib.rs:2",
            ],
        );
    }

    #[test]
    fn test_code_and_the_test_kit_do_not_count() {
        check_sources(
            &[
                ("crates/a/src/lib.rs", "struct A;\n#[cfg(test)]\nmod tests { struct A; }"),
                ("crates/testkit/src/lib.rs", "struct A;"),
            ],
            &[],
        );
    }

    #[test]
    fn arguments_of_built_in_tools_do_not_count() {
        check_sources(
            &[
                ("crates/tools/src/builtin/a.rs", "struct Args;\nstruct Other;"),
                ("crates/tools/src/builtin/b/mod.rs", "struct Args;\nstruct Other;"),
                ("crates/tools/src/c.rs", "struct Args;"),
            ],
            &["Other crates/tools/src/builtin/a.rs:2 crates/tools/src/builtin/b/mod.rs:2"],
        );
    }

    #[test]
    fn words_that_declare_nothing_do_not_count() {
        check_sources(
            &[(
                "crates/a/src/lib.rs",
                "// struct A\nstruct A { r#type: B, r#struct: C }\nmacro_rules! m { ($a:ident) => { struct $a; } }\nlet union = union.a; union B\nmacro_list! { map struct identifier }\nmacro_list! { struct identifier }",
            )],
            &[],
        );
    }
}
