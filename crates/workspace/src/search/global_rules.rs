//! The user's global ignore file, found like git does.

use std::env;
use std::path::{Path, PathBuf};

use crate::Reader;

/// Limit of git's settings files.
const MAX_SETTINGS_BYTES: u64 = 256 << 10;

/// The file named by the first settings file that names one, or the default one.
pub(super) fn global_rules_file(reader: &Reader) -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME");
    let folder = variable("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    let own = folder.map(|folder| folder.join("git"));
    let settings = [
        variable("GIT_CONFIG_GLOBAL"),
        home.as_ref().map(|home| home.join(".gitconfig")),
        own.as_ref().map(|own| own.join("config")),
        Some(variable("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into())),
    ];
    let named = settings.into_iter().flatten().find_map(|file| {
        let text = reader.read_start(&file, MAX_SETTINGS_BYTES).ok()?;
        named_file(&String::from_utf8_lossy(&text), home.as_deref())
    });
    named.or_else(|| own.map(|own| own.join("ignore")))
}

/// The value of `core.excludesFile`.
fn named_file(settings: &str, home: Option<&Path>) -> Option<PathBuf> {
    let mut is_core = false;
    let value = settings.lines().map(str::trim).find_map(|line| {
        if let Some(section) = line.strip_prefix('[') {
            is_core = section.trim_start().to_ascii_lowercase().starts_with("core]");
        }
        let (name, value) = line.split_once('=')?;
        let is_it = is_core && name.trim().eq_ignore_ascii_case("excludesfile");
        is_it.then(|| value.trim().trim_matches('"').trim()).filter(|value| !value.is_empty())
    })?;
    match value.strip_prefix("~/") {
        Some(beneath) => Some(home?.join(beneath)),
        None => Some(PathBuf::from(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_settings_name_is_found() {
        let home = Some(Path::new("/h"));
        for (settings, expected) in [
            ("[core]\n\texcludesFile = ~/.ignored\n", Some("/h/.ignored")),
            ("[user]\n excludesfile = /x\n[core]\nexcludesfile=\"/y\"", Some("/y")),
            ("[core \"a\"]\nexcludesfile = /x\n", None),
            ("[core]\nexcludesfile =\n", None),
            ("excludesfile = /x\n", None),
        ] {
            assert_eq!(named_file(settings, home).as_deref(), expected.map(Path::new), "{settings}");
        }
    }
}
