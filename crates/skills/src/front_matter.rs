//! The front matter of a `SKILL.md`: YAML between two lines of three dashes.

use super::one_line;
use super::yaml::{self, Yaml, YamlError};

pub(super) const MAX_NAME: usize = 64;
pub(super) const MAX_DESCRIPTION: usize = 1_024;

/// The values of the front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) short_description: Option<String>,
}

/// Why a file is not a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrontMatterError {
    /// Existing clients show this text unchanged.
    #[error("missing YAML frontmatter delimited by ---")]
    NoFrontMatter,
    #[error("invalid YAML in the front matter: {0}")]
    Yaml(YamlError),
    #[error("the front matter must be a list of keys with their values")]
    NotMapping,
    #[error("the front matter has no `{0}`")]
    Missing(&'static str),
    #[error("`{0}` must be a text")]
    NotText(&'static str),
    #[error("`{key}` has {actual} characters; at most {most} are allowed")]
    TooLong { key: &'static str, most: usize, actual: usize },
}

/// `folder` names the skill if the front matter does not.
pub(super) fn read(text: &str, folder: &str) -> Result<FrontMatter, FrontMatterError> {
    let head = head(text).ok_or(FrontMatterError::NoFrontMatter)?;
    let head = yaml::read(head).map_err(|error| {
        // Counted from the top of the file.
        FrontMatterError::Yaml(YamlError { line: error.line + 1, ..error })
    })?;
    if !matches!(head, Yaml::Map(_)) {
        return Err(FrontMatterError::NotMapping);
    }
    let name = line(&head, "name", "name", MAX_NAME)?.unwrap_or_else(|| one_line(folder));
    let description = line(&head, "description", "description", MAX_DESCRIPTION)?;
    let more = head.get("metadata").unwrap_or(&Yaml::Null);
    let short = line(more, "short-description", "metadata.short-description", MAX_DESCRIPTION)?;
    check_length("name", &name, MAX_NAME)?;
    Ok(FrontMatter {
        name,
        description: description.ok_or(FrontMatterError::Missing("description"))?,
        short_description: short,
    })
}

/// The lines between the first line and the next one of three dashes.
fn head(text: &str) -> Option<&str> {
    split(text).map(|(head, _)| head).filter(|head| !head.trim().is_empty())
}

/// The front matter, and the text after it.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// A text on one line; an empty one counts as missing.
fn line(map: &Yaml, key: &str, path: &'static str, most: usize) -> Result<Option<String>, FrontMatterError> {
    let text = match map.get(key) {
        None | Some(Yaml::Null) => return Ok(None),
        Some(value) => one_line(value.as_str().ok_or(FrontMatterError::NotText(path))?),
    };
    check_length(path, &text, most)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn check_length(key: &'static str, text: &str, most: usize) -> Result<(), FrontMatterError> {
    match text.chars().count() {
        actual if actual > most => Err(FrontMatterError::TooLong { key, most, actual }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: Result<(&str, &str, Option<&str>), &str>) {
        let text = format!("---\n{head}\n---\nbody\n");
        let got = read(&text, "folder").map_err(|error| error.to_string());
        let got = got
            .as_ref()
            .map(|read| (read.name.as_str(), read.description.as_str(), read.short_description.as_deref()));
        assert_eq!(got.map_err(String::as_str), expected, "{head}");
    }

    #[test]
    fn keys_are_read() {
        let long = "é".repeat(MAX_DESCRIPTION);
        let name = "n".repeat(MAX_NAME);
        check("name: a\ndescription: b", Ok(("a", "b", None)));
        check("description: b", Ok(("folder", "b", None)));
        check("name: ''\ndescription: b", Ok(("folder", "b", None)));
        check("name: 7\ndescription: true", Ok(("7", "true", None)));
        check(
            "name: a\ndescription: >\n  two\n  lines\n\n  and more\n",
            Ok(("a", "two lines and more", None)),
        );
        check(
            "name: \" a \\t b \"\ndescription: \"x\\u0000\\e[1m\\n\\u202ey\"",
            Ok(("a b", "x [1m \u{202e}y", None)),
        );
        check(
            "description: b\nmetadata:\n  short-description: c\n  other: d",
            Ok(("folder", "b", Some("c"))),
        );
        check("description: b\nallowed-tools: [x, y]\nlicense: MIT", Ok(("folder", "b", None)));
        check(&format!("name: {name}\ndescription: {long}"), Ok((&name, &long, None)));
    }

    #[test]
    fn errors_are_explained() {
        let (name, long) = ("n".repeat(MAX_NAME + 1), "é".repeat(MAX_DESCRIPTION + 1));
        check("name: a", Err("the front matter has no `description`"));
        check("description: \" \"", Err("the front matter has no `description`"));
        check("description: [a]", Err("`description` must be a text"));
        check("- a", Err("the front matter must be a list of keys with their values"));
        check(
            "description: a: b",
            Err("invalid YAML in the front matter: line 2: a value with a colon in it must stand in quotes"),
        );
        check(
            &format!("name: {name}\ndescription: b"),
            Err("`name` has 65 characters; at most 64 are allowed"),
        );
        check(
            &format!("description: {long}"),
            Err("`description` has 1025 characters; at most 1024 are allowed"),
        );
        check(
            &format!("description: b\nmetadata:\n  short-description: {long}"),
            Err("`metadata.short-description` has 1025 characters; at most 1024 are allowed"),
        );
        let folder = "f".repeat(MAX_NAME + 1);
        assert!(matches!(
            read("---\ndescription: b\n---\n", &folder),
            Err(FrontMatterError::TooLong { key: "name", .. })
        ));
    }

    #[test]
    fn the_head_is_the_first_thing_and_is_closed() {
        for text in [
            "",
            "---",
            "no head",
            "\n---\ndescription: b\n---\n",
            "---\ndescription: b\n",
            "---\n---\n",
            "---\n \n---",
        ] {
            assert_eq!(read(text, "folder"), Err(FrontMatterError::NoFrontMatter), "{text:?}");
        }
        for text in ["\u{feff}---\ndescription: b\n---", "--- \r\ndescription: b\r\n---\r\nbody"] {
            assert!(read(text, "folder").is_ok(), "{text:?}");
        }
    }
}
