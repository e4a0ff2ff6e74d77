//! `[[skills.config]]`, in any TOML notation.

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::paths::PathBase;
use crate::skills::selector_of;
use crate::{ConfigError, SkillSelector};

/// Removes every rule with this selector. Relative paths refer to `base`.
pub(crate) fn remove_rule(
    document: &mut DocumentMut,
    selector: &SkillSelector,
    base: PathBase<'_>,
) -> Result<(), ConfigError> {
    let Some(skills) = document.get_mut("skills") else { return Ok(()) };
    let skills = skills.as_table_like_mut().ok_or_else(|| wrong("skills"))?;
    let is_it = |table: &dyn TableLike| {
        let text = |key| table.get(key).and_then(Item::as_str);
        selector_of(text("path"), text("name"), base).as_ref() == Some(selector)
    };
    match skills.get_mut("config") {
        None => {}
        Some(Item::ArrayOfTables(tables)) => tables.retain(|table| !is_it(table)),
        Some(Item::Value(Value::Array(values))) => {
            values.retain(|value| !value.as_inline_table().is_some_and(|table| is_it(table)));
        }
        Some(_) => return Err(wrong("skills.config")),
    }
    if skills.get("config").is_some_and(is_empty) {
        skills.remove("config");
    }
    // A header that the user wrote stays.
    if document["skills"].as_table().is_some_and(|skills| skills.is_implicit() && skills.is_empty()) {
        document.remove("skills");
    }
    Ok(())
}

/// Adds a rule after all others, so that it overrides them.
pub(crate) fn set_rule(
    document: &mut DocumentMut,
    selector: &SkillSelector,
    enabled: bool,
) -> Result<(), ConfigError> {
    let (key, text) = match selector {
        SkillSelector::Path(path) => ("path", path.to_string_lossy().into_owned()),
        SkillSelector::Name(name) => ("name", name.clone()),
    };
    let skills = document.entry("skills").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let is_inline = skills.is_inline_table();
    let skills = skills.as_table_like_mut().ok_or_else(|| wrong("skills"))?;
    let rules = skills.entry("config").or_insert_with(|| {
        if is_inline { Array::new().into() } else { Item::ArrayOfTables(ArrayOfTables::new()) }
    });
    match rules {
        Item::ArrayOfTables(tables) => {
            let mut table = Table::new();
            table.insert(key, text.into());
            table.insert("enabled", enabled.into());
            tables.push(table);
        }
        Item::Value(Value::Array(values)) => {
            let mut table = InlineTable::new();
            table.insert(key, text.into());
            table.insert("enabled", enabled.into());
            values.push(table);
        }
        _ => return Err(wrong("skills.config")),
    }
    Ok(())
}

fn is_empty(item: &Item) -> bool {
    match item {
        Item::ArrayOfTables(tables) => tables.is_empty(),
        Item::Value(Value::Array(values)) => values.is_empty(),
        _ => false,
    }
}

fn wrong(key: &str) -> ConfigError {
    ConfigError::value(format!("{key} has another shape than [[skills.config]]; mend it by hand"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn change(text: &str, selector: &SkillSelector, enabled: Option<bool>) -> Result<String, String> {
        let mut document: DocumentMut = text.parse().expect("TOML");
        let base = PathBase { folder: Path::new("/base"), user: Some(Path::new("/users/u")) };
        remove_rule(&mut document, selector, base).map_err(|error| error.to_string())?;
        if let Some(enabled) = enabled {
            set_rule(&mut document, selector, enabled).map_err(|error| error.to_string())?;
        }
        Ok(document.to_string())
    }

    #[test]
    fn rules_are_added_and_taken_out() {
        let path = SkillSelector::Path("/base/a/SKILL.md".into());
        let name = SkillSelector::Name("a".into());
        let rule = "[[skills.config]]\npath = \"/base/a/SKILL.md\"\nenabled = false\n";
        let other = "[[skills.config]]\nname = \"b\" # why\nenabled = false\n";
        let cases = [
            ("", &path, Some(false), rule.to_owned()),
            ("", &path, None, String::new()),
            (rule, &path, None, String::new()),
            (rule, &path, Some(true), rule.replace("false", "true")),
            ("[[skills.config]]\npath = \"a/SKILL.md\"\n", &path, None, String::new()),
            ("x = 1\n", &path, Some(false), format!("x = 1\n\n{rule}")),
            (other, &path, Some(false), format!("{other}\n{rule}")),
            (other, &name, None, other.to_owned()),
            ("skills.bundled.enabled = false\n", &path, None, "skills.bundled.enabled = false\n".to_owned()),
            (
                "[skills]\nconfig = [{ name = \"a\", enabled = true }]\n",
                &name,
                Some(false),
                "[skills]\n\n[[skills.config]]\nname = \"a\"\nenabled = false\n".to_owned(),
            ),
            (
                "skills = { config = [{ name = \"b\", enabled = true }] }\n",
                &name,
                Some(false),
                "skills = { config = [{ name = \"b\", enabled = true }, { name = \"a\", enabled = false }] }\n"
                    .to_owned(),
            ),
        ];
        for (text, selector, enabled, expected) in cases {
            assert_eq!(change(text, selector, enabled).as_deref(), Ok(expected.as_str()), "{text}");
        }
    }

    #[test]
    fn a_shape_that_is_not_known_is_left_alone() {
        let name = SkillSelector::Name("a".into());
        for text in ["skills = 1\n", "[skills]\nconfig = true\n"] {
            assert!(change(text, &name, Some(false)).is_err(), "{text}");
        }
    }
}
