//! Changes the user's config.toml and leaves everything else in it unchanged: order, comments, spacing.

mod file;
mod fill;
mod plugins;
mod review;
mod skills;
mod values;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use toml_edit::DocumentMut;

use crate::layer::read_optional;
use crate::{ConfigError, Home};

pub(crate) use file::real_place;
pub(crate) use fill::{fill_config, missing_keys};
pub use plugins::{forget_plugin, switch_plugin_on};
pub(crate) use review::{record, trust};
pub(crate) use skills::{remove_rule, set_rule};
pub(crate) use values::{clear_value, set_value};

/// Reads the settings file that we may write, applies `change`, and replaces the file. Nothing is written if nothing
/// changed or the file is not TOML. Writers are serialised, also across processes.
pub(crate) fn edit<T>(
    home: &Home,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    home.create_state()?;
    edit_file(&home.own_config_file(), change)
}

/// Like [`edit`], for any file in an existing folder.
pub(crate) fn edit_file<T>(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    let target = file::real_place(path).map_err(|error| ConfigError::write(path, error))?;
    let _turn = turn(&target);
    let text = read_optional(&target)?.unwrap_or_default();
    // Reported with its position, as everywhere.
    if let Err(error) = toml::from_str::<toml::Table>(&text) {
        return Err(ConfigError::in_file(path, &text, &error));
    }
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| ConfigError::value(one_line(&error)))?;
    let outcome = change(&mut document)?;
    let changed = document.to_string();
    if changed != text {
        file::replace(path, &target, changed.as_bytes()).map_err(|error| ConfigError::write(path, error))?;
    }
    Ok(outcome)
}

fn one_line(error: &toml_edit::TomlError) -> String {
    crate::error::one_line(&error.to_string())
}

/// How long to wait for another writer. Writing takes milliseconds.
const LONGEST_TURN: Duration = Duration::from_secs(5);

/// Locks the folder, so that no lock file is left. Without lock support the last writer wins.
fn turn(target: &Path) -> Option<File> {
    let folder = File::open(target.parent()?).ok()?;
    let deadline = Instant::now() + LONGEST_TURN;
    // Any process that can read the folder can hold the lock indefinitely.
    while let Err(TryLockError::WouldBlock) = folder.try_lock() {
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::at(dir.path().join("home"));
        (dir, home)
    }

    fn add(home: &Home, key: &str) -> Result<(), ConfigError> {
        edit(home, |document| {
            document[key] = toml_edit::value(true);
            Ok(())
        })
    }

    #[test]
    fn a_file_is_made_for_its_owner_alone() {
        let (_dir, home) = home();
        add(&home, "a").expect("written");
        let file = home.own_config_file();
        assert_eq!(fs::read_to_string(&file).expect("readable"), "a = true\n");
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_rest_of_the_file_stays_as_it_is() {
        let (_dir, home) = home();
        home.create_state().expect("made");
        let file = home.own_config_file();
        let text = "# mine\nz = 1   # last letter\n\n[t]\n  x = [ 1,\n  2 ]\n";
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
        add(&home, "a").expect("written");
        assert_eq!(
            fs::read_to_string(&file).expect("readable"),
            "# mine\nz = 1   # last letter\na = true\n\n[t]\n  x = [ 1,\n  2 ]\n"
        );
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
        let left: Vec<_> = fs::read_dir(home.state()).expect("readable").collect();
        assert_eq!(left.len(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_link_stays_a_link() {
        let (dir, home) = home();
        home.create_state().expect("made");
        let real = dir.path().join("dotfiles.toml");
        for exists in [false, true] {
            if exists {
                fs::write(&real, "b = 1\n").expect("written");
            }
            let file = home.own_config_file();
            let _ = fs::remove_file(&file);
            symlink("../dotfiles.toml", &file).expect("linked");
            add(&home, "a").expect("written");
            assert!(fs::symlink_metadata(&file).expect("there").is_symlink());
            assert!(fs::read_to_string(&real).expect("readable").contains("a = true"), "{exists}");
        }
    }

    #[test]
    fn nothing_half_written_lies_where_a_link_leads() {
        let (dir, home) = home();
        home.create_state().expect("made");
        let theirs = dir.path().join("dotfiles");
        fs::create_dir(&theirs).expect("made");
        symlink("../dotfiles/mine.toml", home.own_config_file()).expect("linked");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut seen = std::collections::BTreeSet::new();
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    seen.extend(
                        fs::read_dir(&theirs).expect("listed").flatten().map(|entry| entry.file_name()),
                    );
                }
                seen
            });
            (0..100).for_each(|round| add(&home, &format!("k{round}")).expect("written"));
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            looking.join().expect("it ends")
        });
        assert!(seen.iter().all(|name| name == "mine.toml"), "a command could swap it: {seen:?}");
        let text = fs::read_to_string(theirs.join("mine.toml")).expect("readable");
        assert_eq!(text.lines().count(), 100);
    }

    #[test]
    fn what_is_no_toml_is_left_alone() {
        let (_dir, home) = home();
        home.create_state().expect("made");
        fs::write(home.own_config_file(), "a = [\n").expect("written");
        let error = add(&home, "a").expect_err("not TOML").to_string();
        assert!(error.contains("config.toml:"), "{error}");
        assert_eq!(fs::read_to_string(home.own_config_file()).expect("readable"), "a = [\n");
    }

    #[test]
    fn a_circle_of_links_is_refused() {
        let (_dir, home) = home();
        home.create_state().expect("made");
        symlink("config.toml", home.own_config_file()).expect("linked");
        assert!(add(&home, "a").is_err());
    }

    #[test]
    fn writers_take_turns() {
        let (_dir, home) = home();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let home = &home;
                scope.spawn(move || {
                    for round in 0..5 {
                        add(home, &format!("k{writer}{round}")).expect("written");
                    }
                });
            }
        });
        let text = fs::read_to_string(home.own_config_file()).expect("readable");
        assert_eq!(text.lines().count(), 20, "{text}");
    }
}
