//! Every package may be used under a licence of the list in `deny.toml`. Holds without `cargo deny` installed, and
//! reads the same list, so the two cannot disagree.

use anyhow::{Context, Result, bail};

use crate::Problems;
use crate::workspace::{self, Metadata};

pub(crate) fn check() -> Result<Problems> {
    let allowed = allowed(&workspace::read_text("deny.toml")?)?;
    let metadata = Metadata::with_dependencies()?;
    let packages = metadata.packages.iter();
    Ok(packages
        .filter_map(|package| {
            let reason = refusal(package.license.as_deref(), &allowed)?;
            Some(format!("{} {}: {reason}", package.name, package.version))
        })
        .collect())
}

fn refusal(licence: Option<&str>, allowed: &[String]) -> Option<String> {
    let Some(licence) = licence else {
        return Some("names no licence".to_owned());
    };
    match is_satisfied(licence, allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!("`{licence}` asks for more than the licences deny.toml allows")),
        Err(error) => Some(format!("cannot read the licence `{licence}`: {error}")),
    }
}

/// The strings of `allow` in the section `[licenses]`.
fn allowed(deny: &str) -> Result<Vec<String>> {
    let mut section = "";
    let mut list: Option<String> = None;
    for line in deny.lines().map(without_comment) {
        if let Some(list) = &mut list {
            list.push_str(line);
        } else if line.starts_with('[') {
            section = line;
        } else if section == "[licenses]"
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "allow"
        {
            list = Some(value.to_owned());
        }
        if list.as_ref().is_some_and(|list| list.ends_with(']')) {
            break;
        }
    }
    let list = list.context("deny.toml has no `allow` in its section [licenses]")?;
    let items = list.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let items = items.context("`allow` in deny.toml is not a list")?.split(',').map(str::trim);
    Ok(items.map(|item| item.trim_matches('"').to_owned()).filter(|item| !item.is_empty()).collect())
}

/// No licence has a `#` in its name, so nothing is quoted that could be mistaken for a comment.
fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// Whether an SPDX expression can be met with the allowed licences alone.
fn is_satisfied(expression: &str, allowed: &[String]) -> Result<bool> {
    // An older way to write OR, still found in a few manifests.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut reader = Reader { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let met = reader.any_of()?;
    match reader.next() {
        None => Ok(met),
        Some(word) => bail!("`{word}` is out of place"),
    }
}

/// Reads one word after the other; `AND` binds tighter than `OR`.
struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [String],
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn any_of(&mut self) -> Result<bool> {
        let mut met = self.all_of()?;
        while self.take("OR") {
            met |= self.all_of()?;
        }
        Ok(met)
    }

    fn all_of(&mut self) -> Result<bool> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Ok(met)
    }

    fn one(&mut self) -> Result<bool> {
        if self.take("(") {
            let met = self.any_of()?;
            if !self.take(")") {
                bail!("a parenthesis is not closed");
            }
            return Ok(met);
        }
        let mut licence = match self.next() {
            Some("OR" | "AND" | "WITH" | ")") | None => bail!("a licence is missing"),
            Some(word) => word.to_owned(),
        };
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.next().context("an exception is missing")?);
        }
        Ok(self.allowed.contains(&licence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_an_allowed_licence() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    /// With MIT and Unicode-3.0 allowed.
    fn check_refusal(licence: &str) -> Option<String> {
        refusal(Some(licence), &["MIT".to_owned(), "Unicode-3.0".to_owned()])
    }

    #[test]
    fn one_allowed_choice_is_enough() {
        for licence in
            ["MIT", "MIT OR GPL-3.0-only", "GPL-3.0-only/MIT", "(GPL-3.0-only OR MIT) AND Unicode-3.0"]
        {
            assert_eq!(check_refusal(licence), None);
        }
    }

    #[test]
    fn every_demand_must_be_allowed() {
        for licence in
            ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR ISC) AND ISC", "MIT WITH LLVM-exception"]
        {
            assert_eq!(
                check_refusal(licence),
                Some(format!("`{licence}` asks for more than the licences deny.toml allows"))
            );
        }
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(check_refusal("MIT OR ISC AND ISC"), None);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for licence in ["", "MIT OR", "(MIT", "MIT ISC", "AND MIT"] {
            let refusal = check_refusal(licence).unwrap();
            assert!(refusal.starts_with("cannot read the licence"), "{refusal}");
        }
        assert_eq!(refusal(None, &[]).as_deref(), Some("names no licence"));
    }

    #[test]
    fn reads_the_list_of_the_right_section() {
        let deny = "[bans]\nallow = [\"x\"]\n[licenses]\n# allow = []\nallow = [\n  \"MIT\", # short\n  \"ISC\",\n]\n\
                    [sources]\nallow = [\"y\"]\n";
        assert_eq!(allowed(deny).unwrap(), ["MIT", "ISC"]);
        assert_eq!(allowed("[licenses]\nallow = [\"MIT\"]\n").unwrap(), ["MIT"]);
        assert!(allowed("[licenses]\n[bans]\nallow = [\"MIT\"]\n").is_err());
    }
}
