//! How far the code is from plain words: comments that open with a riddle, and names made of the words that this
//! project used where Rust readers know others. Figures to watch, not a check: some uses are right.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::rust_source::{Source, Token, product_sources};
use crate::workspace;

/// A comment that begins so describes the thing instead of naming it.
const OPENINGS: &[&str] = &["What", "Whose", "So many"];

/// Words in names, as in `put_away` and `PutAway`, each with the plain one.
const METAPHORS: &[(&str, &str)] = &[
    ("told", "notified"),
    ("tell", "notify"),
    ("tells", "notifies"),
    ("telling", "notifying"),
    ("put_away", "suspend"),
    ("take_up", "resume"),
    ("taken_up", "resumed"),
    ("wall", "sandbox"),
    ("walls", "sandbox"),
    ("sit_down", "attach"),
    ("sits_down", "attach"),
    ("seat", "host session"),
    ("seats", "host sessions"),
    ("overhear", "observe"),
    ("overheard", "observer"),
    ("brought", "imported history"),
    ("wishes", "request"),
    ("surroundings", "step builder"),
    ("clearing", "authorization"),
];

/// `path:line` of each find, by what was found.
type Places = BTreeMap<String, Vec<String>>;

pub(crate) fn print(with_places: bool) -> Result<()> {
    let mut comments = Places::new();
    for path in workspace::files()?.iter().filter(|path| path.ends_with(".rs")) {
        for (opening, line) in riddles(&workspace::read_text(path)?) {
            comments.entry(opening.to_owned()).or_default().push(format!("{path}:{line}"));
        }
    }
    show("comments that begin with", &comments, with_places);
    show("names with", &metaphors(product_sources()?), with_places);
    Ok(())
}

/// A line with the total and its parts; `with_places` adds a line for each find.
fn show(kind: &str, places: &Places, with_places: bool) {
    let total: usize = places.values().map(Vec::len).sum();
    let parts: Vec<String> = places.iter().map(|(word, places)| format!("{word} {}", places.len())).collect();
    println!("{kind}: {total} ({})", parts.join(", "));
    if with_places {
        for (word, places) in places {
            for place in places {
                println!("  {word}: {place}");
            }
        }
    }
}

/// The comments with such an opening, with their lines. Only the first line of a comment counts.
fn riddles(text: &str) -> Vec<(&'static str, usize)> {
    let mut found = Vec::new();
    let mut in_comment = false;
    for (line, number) in text.lines().zip(1..) {
        let comment =
            line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim_start());
        if let Some(comment) = comment.filter(|_| !in_comment) {
            let opening = OPENINGS.iter().find(|opening| begins_with(comment, opening));
            found.extend(opening.map(|opening| (*opening, number)));
        }
        in_comment = comment.is_some();
    }
    found
}

fn begins_with(comment: &str, opening: &str) -> bool {
    comment.strip_prefix(opening).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

fn metaphors(sources: &[Source]) -> Places {
    let mut found = Places::new();
    for source in sources {
        for name in declared(&source.tokens()) {
            let words = words(name.text);
            for (word, plain) in METAPHORS.iter().filter(|(word, _)| words.contains(&format!("_{word}_"))) {
                let place = format!("{}:{} {}", source.path, name.line, name.text);
                found.entry(format!("{word} (better: {plain})")).or_default().push(place);
            }
        }
    }
    found
}

/// The names of functions, types, modules and constants.
fn declared<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let keywords = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];
    tokens.windows(2).filter(|pair| keywords.contains(&pair[0].text)).map(|pair| pair[1]).collect()
}

/// `_put_away_` for `put_away`, `PutAway` and `PUT_AWAY`.
fn words(name: &str) -> String {
    let mut words = String::from("_");
    let mut was_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && was_lower {
            words.push('_');
        }
        was_lower = letter.is_lowercase();
        words.extend(letter.to_lowercase());
    }
    words + "_"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_of_a_comment_counts() {
        let text = "/// What it is.\n/// What else.\nfn a() {} // What now\n    // Whose\n\n//! So many things\n// Whatever\n";
        assert_eq!(riddles(text), [("What", 1), ("Whose", 4), ("So many", 6)]);
    }

    #[test]
    fn names_are_split_into_words() {
        for name in ["put_away", "PutAway", "PUT_AWAY"] {
            assert_eq!(words(name), "_put_away_");
        }
    }

    #[test]
    fn metaphors_are_found_in_declared_names() {
        let text =
            "fn tell_all() { told(); }\nstruct Seat;\nmod wallet;\n#[cfg(test)]\nmod tests { fn told() {} }";
        let found = metaphors(&[Source::new("crates/a/src/lib.rs", text)]);
        let found: Vec<&String> = found.values().flatten().collect();
        assert_eq!(found, ["crates/a/src/lib.rs:2 Seat", "crates/a/src/lib.rs:1 tell_all"]);
    }
}
