//! Git's settings outside the repository, and whether any settings configure hooks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use support::read_plain;

use crate::executables::{NO_SETTINGS, is_executable};

/// Limit of a settings file.
const MOST_BYTES: u64 = 256 * 1024;

/// Git's own limit of nested includes.
const DEEPEST: usize = 10;

const MOST_FILES: usize = 64;

/// System-wide settings, by git's installation.
const OF_SYSTEM: &[&str] = &["/etc/gitconfig", "/usr/local/etc/gitconfig"];

/// Git's settings, as far as they affect what it runs.
#[derive(Debug, Default)]
pub(crate) struct GitSettings {
    /// The files that were read, including those they include, whether or not they exist.
    pub(crate) files: Vec<PathBuf>,
    /// They configure hooks or a hook folder, or cannot be parsed like git does.
    pub(crate) name_hooks: bool,
    home: Option<PathBuf>,
}

impl GitSettings {
    /// The settings of the system and of the user. `is_open` says which files commands can write: a variable with such
    /// a file is removed from commands outside the sandbox, and then the default files apply.
    pub(crate) fn of_user(
        env: &BTreeMap<String, String>,
        cwd: &Path,
        is_open: &dyn Fn(&Path) -> bool,
    ) -> Self {
        let folder =
            |name: &str| env.get(name).filter(|value| !value.is_empty()).map(|value| cwd.join(value));
        let mut settings = Self { home: folder("HOME"), ..Self::default() };
        let of_system = folder("GIT_CONFIG_SYSTEM").filter(|file| !is_open(file));
        match of_system {
            Some(file) => settings.read(&file, 0),
            None => OF_SYSTEM.iter().for_each(|file| settings.read(Path::new(file), 0)),
        }
        if let Some(file) = folder("GIT_CONFIG_GLOBAL").filter(|file| !is_open(file)) {
            settings.read(&file, 0);
        } else {
            let home = settings.home.clone();
            let config = folder("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
            let files =
                [config.map(|config| config.join("git/config")), home.map(|home| home.join(".gitconfig"))];
            files.into_iter().flatten().for_each(|file| settings.read(&file, 0));
        }
        // Settings can be in variables too; GIT_DIR changes the repository, and with it the hooks.
        settings.name_hooks |= env.iter().any(|(name, value)| {
            name == "GIT_DIR" || name.starts_with("GIT_CONFIG") && names_hooks(&value.to_ascii_lowercase())
        });
        settings
    }

    /// Adds a settings file and its includes.
    pub(crate) fn read(&mut self, file: &Path, depth: usize) {
        if self.files.iter().any(|known| known == file) || file == Path::new(NO_SETTINGS) {
            return;
        }
        if depth > DEEPEST || self.files.len() >= MOST_FILES {
            self.name_hooks = true;
            return;
        }
        self.files.push(file.to_owned());
        let text = match read_plain(file, MOST_BYTES) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => {
                use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
                // A file that git cannot read has no effect. On any other error assume hooks.
                self.name_hooks |= !matches!(error.kind(), NotFound | NotADirectory | PermissionDenied);
                return;
            }
        };
        self.name_hooks |= names_hooks(&text.to_ascii_lowercase());
        for value in includes(&text) {
            match self.resolved(value, file) {
                Some(included) => self.read(&included, depth + 1),
                None => self.name_hooks = true,
            }
        }
    }

    /// The path of an include. `None` if it needs more of git's rules.
    fn resolved(&self, value: &str, file: &Path) -> Option<PathBuf> {
        match value.strip_prefix("~/") {
            Some(rest) => Some(self.home.as_ref()?.join(rest)),
            None if value.contains('\\') || value.starts_with(['~', '%']) => None,
            None => Some(file.parent()?.join(value)),
        }
    }
}

/// `core.hooksPath`, and the hooks that newer releases configure by settings, in files and in variables.
fn names_hooks(text: &str) -> bool {
    ["hookspath", "[hook", "hook."].iter().any(|sign| text.contains(sign))
}

/// The values of `path` in sections `include` and `includeIf`, whatever their conditions.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let mut rest = line.trim();
        if let Some(header) = rest.strip_prefix('[') {
            inside = header.get(..7).is_some_and(|name| name.eq_ignore_ascii_case("include"));
            rest = header.split_once("\"]").or_else(|| header.split_once(']'))?.1.trim();
        }
        let (key, value) = rest.split_once('=').filter(|_| inside)?;
        let value = value.trim();
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => value.split(['#', ';']).next()?.trim(),
        };
        (key.trim().eq_ignore_ascii_case("path") && !value.is_empty()).then_some(value)
    })
}

/// Whether a folder has an active hook: with one of these names, if any are given.
pub(crate) fn has_hooks(folder: &Path, names: Option<&[&str]>) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let is_meant = match names {
            Some(names) => names.iter().any(|known| *known == name),
            None => Path::new(&name).extension().is_none_or(|extension| extension != "sample"),
        };
        is_meant && is_executable(&entry.path())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_like_git_does() {
        let text = "[core]\n path = no\n[include]\n path = one ; comment\n\tPATH=\"two #2\"\n other = x\n\
                    [includeIf \"gitdir:~/a]b/\"] path = three\n[user]\n path = no\n[INCLUDE]\npath=~/four\n path =\n";
        assert_eq!(includes(text).collect::<Vec<_>>(), ["one", "two #2", "three", "~/four"]);
    }

    #[test]
    fn cyclic_and_deep_includes_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("circle"), "[include]\npath = circle\n").expect("written");
        let mut settings = GitSettings::default();
        settings.read(&at("circle"), 0);
        assert!(settings.files == [at("circle")] && !settings.name_hooks);
        for n in 0..20 {
            std::fs::write(at(&n.to_string()), format!("[include]\npath = {}\n", n + 1)).expect("written");
        }
        settings.read(&at("0"), 0);
        assert!(settings.name_hooks, "the rest is not known");
    }

    #[test]
    fn unparsable_settings_count_as_hooks() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config");
        for (text, expected) in [
            ("[core]\n\teditor = vi\n", false),
            ("[core]\n\thooksPath = .husky\n", true),
            ("[Hook \"check\"]\n\tcommand = x\n", true),
            ("[include]\n\tpath = ~other/config\n", true),
            ("[include]\n\tpath = none\n", false),
        ] {
            std::fs::write(&file, text).expect("written");
            let mut settings = GitSettings::default();
            settings.read(&file, 0);
            assert_eq!(settings.name_hooks, expected, "{text}");
        }
        let mut settings = GitSettings::default();
        settings.read(folder.path(), 0);
        assert!(settings.name_hooks, "a folder is no file of settings");
    }
}
