//! One way for each small job. Where two stand beside each other, a reader has to find out why, and a test that sets one
//! clock does not reach the other.

use anyhow::Result;

use crate::Problems;
use crate::rust_source::{Source, Token, product_sources};

/// A way that is not ours, as the words of a source name it.
struct OtherWay {
    words: &'static [&'static str],
    instead: &'static str,
    /// The one file that goes this way for all others.
    only_in: &'static str,
}

const CLOCK: &str = "crates/support/src/clock.rs";
const TIME: &str = "take the time of day from the `support::Clock` that is passed down";

const OTHER_WAYS: &[OtherWay] = &[
    OtherWay { words: &["SystemTime", "::", "now"], instead: TIME, only_in: CLOCK },
    OtherWay { words: &["Timestamp", "::", "now"], instead: TIME, only_in: CLOCK },
    OtherWay { words: &["Zoned", "::", "now"], instead: TIME, only_in: CLOCK },
];

/// Locks that are poisoned by a panic, which no caller here can do anything about.
const POISONED: &[&str] = &["Mutex", "RwLock", "Condvar"];

pub(crate) fn check() -> Result<Problems> {
    Ok(product_sources()?.iter().flat_map(problems_of).collect())
}

fn problems_of(source: &Source) -> Problems {
    let tokens = source.tokens();
    let is_at = |at: usize, words: &[&str]| {
        tokens[at..].iter().map(|token| token.text).take(words.len()).eq(words.iter().copied())
    };
    let mut problems = Problems::new();
    for (at, token) in tokens.iter().enumerate() {
        for way in OTHER_WAYS.iter().filter(|way| way.only_in != source.path && is_at(at, way.words)) {
            problems.push(format!(
                "{}:{} calls {}: {}",
                source.path,
                token.line,
                way.words.concat(),
                way.instead
            ));
        }
        if is_at(at, &["std", "::", "sync", "::"])
            && let Some(lock) = named(&tokens[at + 4..]).find(|token| POISONED.contains(&token.text))
        {
            let (path, line, lock) = (&source.path, lock.line, lock.text);
            problems.push(format!("{path}:{line} uses std::sync::{lock}: take the one of parking_lot"));
        }
    }
    problems
}

/// The names behind a path: one, or those in braces.
fn named<'a>(after: &'a [Token<'a>]) -> impl Iterator<Item = &'a Token<'a>> {
    let count = match after.first().map(|token| token.text) {
        Some("{") => after.iter().take_while(|token| token.text != "}").count(),
        _ => 1,
    };
    after.iter().take(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_way() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    fn check_text(path: &str, text: &str) -> Vec<String> {
        problems_of(&Source::new(path, text))
    }

    #[test]
    fn other_clocks_are_named() {
        let text = "fn f() {\n    jiff::Timestamp::now();\n    tokio::time::Instant::now();\n}\n";
        assert_eq!(
            check_text("crates/a/src/b.rs", text),
            [format!("crates/a/src/b.rs:2 calls Timestamp::now: {TIME}")]
        );
        assert!(check_text(CLOCK, "fn f() { SystemTime::now(); }").is_empty());
        assert!(
            check_text("crates/a/src/b.rs", "#[cfg(test)]\nmod tests { fn f() { SystemTime::now(); } }")
                .is_empty()
        );
    }

    #[test]
    fn other_locks_are_named() {
        for text in ["use std::sync::{Arc, Mutex, mpsc};", "static A: std::sync::Mutex<u8> = x();"] {
            let expected = "crates/a/src/b.rs:1 uses std::sync::Mutex: take the one of parking_lot";
            assert_eq!(check_text("crates/a/src/b.rs", text), [expected]);
        }
        for text in ["use std::sync::{Arc, mpsc};\nuse parking_lot::Mutex;", "use tokio::sync::Mutex;"] {
            assert!(check_text("crates/a/src/b.rs", text).is_empty(), "{text}");
        }
    }
}
