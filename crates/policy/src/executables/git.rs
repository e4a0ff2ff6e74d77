//! Whether git would read settings or run hooks that commands can write.

use std::path::{Path, PathBuf};

use super::{Executables, PassedPaths, real};
use crate::git_folders::GitFolders;
use crate::git_settings::{GitSettings, has_hooks};

/// Git commands that run no hook.
const WITHOUT_HOOKS: &[&str] =
    &["blame", "grep", "log", "ls-files", "ls-remote", "ls-tree", "rev-parse", "shortlog", "show"];

/// Commands that run only [`RARE_HOOKS`]: those for writing the index or a reference.
const WITH_RARE_HOOKS: &[&str] = &["describe", "diff", "fetch", "status"];

const RARE_HOOKS: &[&str] = &["post-index-change", "pre-auto-gc", "reference-transaction"];

/// An empty settings file.
pub(crate) const NO_SETTINGS: &str = "/dev/null";

impl Executables {
    /// Whether git would read settings from a file that commands can write: of a folder that looks like a repository,
    /// or of a home folder that commands can write. They could name any program.
    pub(crate) fn repository_is_open(&self) -> bool {
        !self.by_name_alone
            && (self.folders().any(|folder| self.is_open_repository(folder)) || self.git_settings_are_open())
    }

    /// Like `repository_is_open`, for the settings of the user and the system only.
    pub fn git_settings_are_open(&self) -> bool {
        self.user_settings().files.iter().any(|file| self.are_open_settings(file))
    }

    /// Whether a git command may run a hook that uses files that commands can write, as most hooks do: they run the
    /// formatters and tests of the project. So every active hook counts, and every configured hook folder.
    pub(crate) fn runs_hooks(&self, command: &str) -> bool {
        if self.by_name_alone || WITHOUT_HOOKS.contains(&command) {
            return false;
        }
        let of_user = self.user_settings().name_hooks;
        let names = WITH_RARE_HOOKS.contains(&command).then_some(RARE_HOOKS);
        let repositories =
            self.folders().filter_map(|folder| real(folder).ancestors().find_map(GitFolders::of));
        repositories.into_iter().any(|repository| {
            let mut settings = GitSettings::default();
            repository.settings().iter().for_each(|file| settings.read(file, 0));
            let hooks = repository.common.join("hooks");
            of_user || settings.name_hooks || self.are_open_settings(&hooks) || has_hooks(&hooks, names)
        })
    }

    fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.cwd).chain(&self.entered)
    }

    fn user_settings(&self) -> GitSettings {
        GitSettings::of_user(&self.environment, &self.cwd, &|file| self.are_open_settings(file))
    }

    /// Whether a command can write the file, or replace it.
    fn are_open_settings(&self, file: &Path) -> bool {
        if file == Path::new(NO_SETTINGS) {
            return false;
        }
        let Some(way) = PassedPaths::to(file) else { return true };
        // Without a link on its path, which a command could change.
        let is_straight =
            way.passed.last() == Some(&way.end) && way.passed.len() + 1 == way.end.components().count();
        self.is_open(&way) && !(is_straight && is_named(&way.end))
    }

    fn is_open_repository(&self, folder: &Path) -> bool {
        let folder = real(folder);
        let is_writable = |place: &Path| self.writable.iter().any(|root| place.starts_with(root));
        for place in folder.ancestors() {
            let has = |name: &str| std::fs::symlink_metadata(place.join(name)).is_ok();
            if has(".git") {
                // A folder of that name is protected. A file or a link may lead to one that is not.
                let behind = GitFolders::of(place);
                let is_open = |folder: &PathBuf| is_writable(folder) && !is_named(folder);
                return behind.is_some_and(|behind| {
                    let includes = self.includes_are_open(&behind);
                    is_open(&behind.own) || is_open(&behind.common) || includes
                });
            }
            if has("HEAD") && (has("commondir") || (has("objects") && has("refs"))) {
                return is_writable(place) && !is_named(place);
            }
        }
        false
    }

    fn includes_are_open(&self, repository: &GitFolders) -> bool {
        let own = repository.settings();
        let mut settings = GitSettings::default();
        own.iter().for_each(|file| settings.read(file, 0));
        settings.files.iter().any(|file| !own.contains(file) && self.are_open_settings(file))
    }
}

/// Whether no command can create anything here, because a parent folder has a protected name.
fn is_named(place: &Path) -> bool {
    place.components().any(|part| names::is_protected(part.as_os_str()))
}
