//! `Runtime` is the face of its crate. Its methods are in one file and one folder, so that a reader sees all of it
//! there, and so that other modules take what they need instead of the whole runtime.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::Problems;
use crate::known::{self, Known};
use crate::rust_source::{Source, Token, product_sources};

const CRATE: &str = "runtime";
const TYPE: &str = "Runtime";

const KNOWN: Known = Known {
    file: "xtask/known/impl_runtime.txt",
    what: "a crate with the number of its files that have an `impl Runtime` and should not",
};

pub(crate) fn check() -> Result<Problems> {
    let paths = elsewhere(product_sources()?);
    known::compare(&KNOWN, &count(&paths), |_, count| {
        format!(
            "{count} files have an `impl {TYPE}`, which belongs to crates/{CRATE}/src/runtime.rs and \
             crates/{CRATE}/src/methods/: {}",
            paths.join(", ")
        )
    })
}

pub(crate) fn shrink() -> Result<()> {
    known::shrink(&KNOWN, &count(&elsewhere(product_sources()?)))
}

fn count(paths: &[&str]) -> BTreeMap<String, usize> {
    [(CRATE.to_owned(), paths.len())].into_iter().filter(|(_, count)| *count > 0).collect()
}

/// The files that should have no such block and have one.
fn elsewhere(sources: &[Source]) -> Vec<&str> {
    let is_outside = |source: &&Source| {
        source.crate_name() == CRATE && !matches!(source.module().as_slice(), ["runtime"] | ["methods", ..])
    };
    let outside = sources.iter().filter(is_outside);
    outside.filter(|source| has_block(&source.tokens())).map(|source| source.path.as_str()).collect()
}

/// An implementation of a trait for `Runtime` is no such block.
fn has_block(tokens: &[Token<'_>]) -> bool {
    let is_block = |three: &[Token<'_>]| {
        three[0].text == "impl" && three[1].text == TYPE && matches!(three[2].text, "{" | "where")
    };
    tokens.windows(3).any(is_block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_of_the_runtime_are_in_their_places_but_for_the_known_ones() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    fn check_source(path: &str, text: &str, is_fine: bool) {
        let sources = [Source::new(path, text)];
        assert_eq!(elsewhere(&sources).is_empty(), is_fine, "{text} in {path}");
    }

    #[test]
    fn the_file_and_the_folder_pass() {
        check_source("crates/runtime/src/runtime.rs", "impl Runtime {}", true);
        check_source("crates/runtime/src/methods/thread.rs", "impl Runtime {}", true);
        check_source("crates/runtime/src/methods/thread/fork.rs", "impl Runtime {}", true);
        check_source("crates/other/src/lib.rs", "impl Runtime {}", true);
    }

    #[test]
    fn every_other_file_fails() {
        check_source("crates/runtime/src/lib.rs", "impl Runtime {}", false);
        check_source("crates/runtime/src/open/start.rs", "impl Runtime where A: B {}", false);
    }

    #[test]
    fn traits_other_types_and_tests_pass() {
        check_source(
            "crates/runtime/src/open.rs",
            "impl Drop for Runtime {}\nimpl RuntimeOptions {}\n#[cfg(test)]\nimpl Runtime {}\n// impl Runtime {}",
            true,
        );
    }

    #[test]
    fn every_file_counts_once() {
        assert_eq!(count(&[]), BTreeMap::new());
        assert_eq!(count(&["a.rs", "b.rs"]), BTreeMap::from([("runtime".to_owned(), 2)]));
    }
}
