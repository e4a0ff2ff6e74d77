//! Stores the user's decision about project settings in the settings file that we may write.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use crate::{ConfigError, Review};

/// Trusts the project of a review, and records what was reviewed.
pub(crate) fn record(document: &mut DocumentMut, review: &Review) -> Result<(), ConfigError> {
    let projects = table(document.as_table_mut(), "projects", true)?;
    let project = table(projects, &review.root.to_string_lossy(), false)?;
    project.insert("trust_level", value("trusted"));
    let reviewed = table(project, "reviewed", false)?;
    reviewed.insert(&review.settings.to_string_lossy(), value(review.digest.as_str()));
    Ok(())
}

/// Trusts a project without any review.
pub(crate) fn trust(document: &mut DocumentMut, root: &Path) -> Result<(), ConfigError> {
    let projects = table(document.as_table_mut(), "projects", true)?;
    table(projects, &root.to_string_lossy(), false)?.insert("trust_level", value("trusted"));
    Ok(())
}

fn table<'a>(
    within: &'a mut dyn TableLike,
    key: &str,
    implicit: bool,
) -> Result<&'a mut dyn TableLike, ConfigError> {
    let new = || {
        let mut table = Table::new();
        table.set_implicit(implicit);
        Item::Table(table)
    };
    let item = within.entry(key).or_insert_with(new);
    item.as_table_like_mut()
        .ok_or_else(|| ConfigError::value(format!("`{key}` under projects is not a table")))
}
