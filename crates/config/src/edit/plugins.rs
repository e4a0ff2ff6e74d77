//! `[plugins]` in the user's own file.

use toml_edit::{Item, Table, value};

use super::edit;
use crate::{ConfigError, Home};

/// Switches a plugin on.
pub fn switch_plugin_on(home: &Home, id: &str) -> Result<(), ConfigError> {
    edit(home, |document| {
        let mut implicit = Table::new();
        implicit.set_implicit(true);
        let plugins = document.entry("plugins").or_insert(Item::Table(implicit));
        let plugins =
            plugins.as_table_like_mut().ok_or_else(|| ConfigError::value("`plugins` is not a table"))?;
        let plugin = plugins.entry(id).or_insert(Item::Table(Table::new()));
        let wrong = || ConfigError::value(format!("`plugins.\"{id}\"` is not a table"));
        plugin.as_table_like_mut().ok_or_else(wrong)?.insert("enabled", value(true));
        Ok(())
    })
}

/// Takes a plugin out of the file.
pub fn forget_plugin(home: &Home, id: &str) -> Result<(), ConfigError> {
    edit(home, |document| {
        if let Some(plugins) = document.get_mut("plugins").and_then(Item::as_table_like_mut) {
            plugins.remove(id);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_switched_on_and_forgotten_beside_what_is_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::at(dir.path().join("home"));
        home.create_state().expect("made");
        let own = "# mine\nmodel = \"m\"\n\n[plugins.\"a@m\"]\nenabled = false # not now\n";
        std::fs::write(home.own_config_file(), own).expect("written");
        switch_plugin_on(&home, "b@m").expect("written");
        switch_plugin_on(&home, "b@m").expect("written again");
        let text = std::fs::read_to_string(home.own_config_file()).expect("readable");
        assert_eq!(text, format!("{own}\n[plugins.\"b@m\"]\nenabled = true\n"));
        forget_plugin(&home, "b@m").expect("written");
        forget_plugin(&home, "c@m").expect("nothing to forget");
        assert_eq!(std::fs::read_to_string(home.own_config_file()).expect("readable"), own);
    }
}
