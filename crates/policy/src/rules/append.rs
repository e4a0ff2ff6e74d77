//! Saves rules from approvals.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// More links than this are a cycle.
const MOST_LINKS: usize = 16;

/// Adds a rule that allows commands with this prefix. False if the file has it already.
pub fn append_allow_prefix(file: &Path, prefix: &[String]) -> io::Result<bool> {
    if prefix.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a rule without words would allow every command",
        ));
    }
    let words: Vec<_> = prefix.iter().map(|word| literal(word)).collect();
    append_line(file, &format!("prefix_rule(pattern=[{}], decision=\"allow\")", words.join(", ")))
}

/// Uses a lock, so that two processes neither add a line twice nor lose one. Readers see the file before or after,
/// never a partial line, which would invalidate all of it. A new file is for its owner only: whoever can write it
/// decides what runs outside the sandbox.
fn append_line(file: &Path, line: &str) -> io::Result<bool> {
    let target = real_place(file)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let lock = File::open(folder)?;
    // Without lock support, the last writer wins.
    let _ = lock.lock();
    let text = match fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    if text.lines().any(|known| known == line) {
        return Ok(false);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    replace(&target, &format!("{text}{gap}{line}\n"))?;
    let _ = lock.sync_all();
    Ok(true)
}

/// Writes a temporary file and renames it.
fn replace(target: &Path, text: &str) -> io::Result<()> {
    let temporary = target.with_extension(format!("{}.tmp", std::process::id()));
    // Left by a process with our id that died.
    let _ = fs::remove_file(&temporary);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        if let Ok(before) = fs::metadata(target) {
            // With the owner's permissions, but not writable by others.
            file.set_permissions(fs::Permissions::from_mode(before.mode() & 0o7755))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&temporary, target)
    };
    write().inspect_err(|_| _ = fs::remove_file(&temporary))
}

/// The target of links, even if the file does not exist yet: users keep their rules elsewhere and link to them.
fn real_place(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&place) else { return Ok(place) };
        place = place.parent().unwrap_or(Path::new("/")).join(target);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a circle of links"))
}

/// A string literal of rule files with this text.
fn literal(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn new_files_are_for_their_owner_and_links_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules/default.rules");
        assert!(append_allow_prefix(&file, &words("git fetch")).unwrap());
        assert_eq!((mode(file.parent().unwrap()), mode(&file)), (0o700, 0o600));
        assert!(!append_allow_prefix(&file, &words("git fetch")).unwrap());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(append_allow_prefix(&file, &words("git pull")).unwrap());
        assert_eq!(mode(&file), 0o644, "nobody else writes it any more");
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
        let link = folder.path().join("link.rules");
        symlink("rules/default.rules", &link).unwrap();
        assert!(append_allow_prefix(&link, &words("ls")).unwrap());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    /// Concurrent readers and writers: no line is lost, and every state that is read is complete.
    #[test]
    fn readers_never_see_a_partial_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("default.rules");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..10 {
                        append_allow_prefix(file, &words(&format!("run {writer} {round}"))).unwrap();
                    }
                });
            }
            for _ in 0..200 {
                let text = fs::read_to_string(&file).unwrap_or_default();
                assert!(text.lines().all(|line| line.ends_with("decision=\"allow\")")), "{text}");
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 40);
    }
}
