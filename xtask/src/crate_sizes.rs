//! A crate that one person can know: no more than 10,000 lines of source. Test code does not count, comments and empty
//! lines do.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::Problems;
use crate::rust_source::{Source, product_sources};

const MAX_LINES: usize = 10_000;

/// Crates that may be larger, with the reason.
const LARGER: &[(&str, usize)] = &[
    // One file per built-in tool: a table in the form of a folder.
    ("tools", 15_000),
];

pub(crate) fn check() -> Result<Problems> {
    Ok(too_large(product_sources()?))
}

fn too_large(sources: &[Source]) -> Problems {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        *lines.entry(source.crate_name()).or_default() += source.product_lines();
    }
    let limit =
        |name: &str| LARGER.iter().find(|(larger, _)| *larger == name).map_or(MAX_LINES, |(_, lines)| *lines);
    let over = lines.into_iter().filter(|(name, lines)| *lines > limit(name));
    over.map(|(name, lines)| {
        format!(
            "crates/{name} has {lines} lines of source, {} are allowed: move a subject of its own to another crate",
            limit(name)
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_crate_is_too_large() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    fn check_lines(files: &[(&str, usize)], text: &str) -> Problems {
        let sources: Vec<Source> =
            files.iter().map(|(path, lines)| Source::new(path, &text.repeat(*lines))).collect();
        too_large(&sources)
    }

    #[test]
    fn the_files_of_a_crate_count_together() {
        let files =
            [("crates/a/src/lib.rs", 6_000), ("crates/a/src/b.rs", 4_000), ("crates/c/src/lib.rs", 1)];
        assert_eq!(check_lines(&files, "// a\n"), Problems::new());
        assert_eq!(
            check_lines(&[files[0], ("crates/a/src/b.rs", 4_001)], "\n"),
            [
                "crates/a has 10001 lines of source, 10000 are allowed: move a subject of its own to another crate"
            ]
        );
    }

    #[test]
    fn tests_do_not_count() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n";
        assert_eq!(Source::new("crates/a/src/lib.rs", text).product_lines(), 2);
        assert_eq!(check_lines(&[("crates/a/src/lib.rs", 5_000)], text), Problems::new());
        assert_eq!(check_lines(&[("crates/a/src/lib.rs", 5_001)], text).len(), 1);
    }
}
