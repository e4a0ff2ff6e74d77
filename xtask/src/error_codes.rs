//! The table of every `data.code` in docs/delegation.md, from `ErrorDataCode` of the protocol crate; and the check that the
//! sources use these words and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result};
use protocol::schemas::{self, Contract};

use crate::rust_source::product_sources;
use crate::{Problems, workspace};

const TYPE: &str = "ErrorDataCode";

/// The crates whose errors have codes.
const FOLDERS: &[&str] = &[
    "crates/server/src/",
    "crates/host/src/",
    "crates/delegation/src/",
    "crates/runtime/src/agents/",
    "crates/runtime/src/open/",
    "crates/driver/src/thread/",
];

/// Files whose codes are those of model providers.
const OF_PROVIDERS: &[&str] = &["crates/delegation/src/failure.rs", "crates/delegation/src/reading.rs"];

/// The text before a code in the sources, with all white space taken out.
const BEFORE: &[&str] = &[
    "\"code\":\"",
    "coded(\"",
    "refusal(\"",
    "coded_failure(\"",
    "invalid(\"",
    "Err((\"",
    "(code,field)=(\"",
];

/// In the file where a function names the codes of an enum.
const ARMS: (&str, &str) = ("crates/delegation/src/error.rs", "=>\"");

/// Each code with when it comes and what to do.
fn codes() -> Result<BTreeMap<String, (String, String)>> {
    let definitions = schemas::definitions(Contract::Read);
    let schema = definitions.get(TYPE).with_context(|| format!("there is no {TYPE}"))?;
    let mut found = BTreeMap::new();
    for arm in schema["oneOf"].as_array().into_iter().flatten() {
        let code = arm["const"].as_str().or(arm["enum"][0].as_str());
        let code = code.with_context(|| format!("a variant of {TYPE} has no word"))?;
        let about = arm["description"].as_str().unwrap_or_default();
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        let (when, remedy) = about.split_once(" Do: ").with_context(|| format!("{code} has no `Do:`"))?;
        found.insert(code.to_owned(), (when.trim_end_matches('.').to_owned(), remedy.to_owned()));
    }
    Ok(found)
}

pub(crate) fn text() -> Result<String> {
    let mut text = "| code | when | what to do |\n|---|---|---|\n".to_owned();
    for (code, (when, remedy)) in codes()? {
        let remedy = remedy.trim_end_matches('.');
        let _ =
            writeln!(text, "| `{code}` | {} | {} |", when.replace('|', "\\|"), remedy.replace('|', "\\|"));
    }
    Ok(text)
}

pub(crate) fn check() -> Result<Problems> {
    let mut used = BTreeMap::new();
    for source in product_sources()? {
        let path = source.path.as_str();
        if FOLDERS.iter().any(|folder| path.starts_with(folder)) && !OF_PROVIDERS.contains(&path) {
            for code in codes_in(path, &workspace::read_text(path)?) {
                used.entry(code).or_insert(path.to_owned());
            }
        }
    }
    Ok(compare(&codes()?.into_keys().collect(), &used))
}

fn codes_in(path: &str, text: &str) -> BTreeSet<String> {
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    let dense: String = product.split_whitespace().collect();
    let (arms, arm) = ARMS;
    let before = BEFORE.iter().copied().chain((path == arms).then_some(arm));
    let mut found = BTreeSet::new();
    for before in before {
        for rest in dense.split(before).skip(1) {
            let word: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            if rest[word.len()..].starts_with('"')
                && word.starts_with(|first: char| first.is_ascii_lowercase())
            {
                found.insert(word);
            }
        }
    }
    found
}

fn compare(listed: &BTreeSet<String>, used: &BTreeMap<String, String>) -> Problems {
    let missing = used.iter().filter(|(code, _)| !listed.contains(*code));
    let missing =
        missing.map(|(code, path)| format!("{path} has the code `{code}`, which {TYPE} does not list"));
    let unused = listed.iter().filter(|code| !used.contains_key(*code));
    missing.chain(unused.map(|code| format!("{TYPE} lists `{code}`, which no error has"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_use_the_codes_that_are_listed() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    #[test]
    fn codes_are_found_where_errors_are_made() {
        let text = "coded(\n  \"oneWord\", x); json!({ \"code\": \"two\" }); json!({\"code\": error.code}); \
                    Err((\n\"three\", y)) => \"notHere\" #[cfg(test)] json!({\"code\": \"later\"})";
        let found: Vec<String> = codes_in("crates/a.rs", text).into_iter().collect();
        assert_eq!(found, ["oneWord", "three", "two"]);
        assert!(codes_in(ARMS.0, text).contains("notHere"));
    }

    #[test]
    fn words_on_one_side_alone_are_told() {
        let used = BTreeMap::from([("new".to_owned(), "a.rs".to_owned())]);
        let problems = compare(&BTreeSet::from(["old".to_owned()]), &used);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn every_row_has_three_cells() {
        for line in text().unwrap().lines() {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 4, "{line}");
        }
    }
}
