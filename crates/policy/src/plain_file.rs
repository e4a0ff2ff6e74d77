//! Reading files that a command may have put there, or puts something else in their place while they are looked at.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The content of a regular file of at most `max` bytes. Looks at what was opened and not at its name, and never waits:
/// not for the other end of a pipe, and not for a device to say everything.
pub(crate) fn read_plain(file: &Path, max: u64) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    opened.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= max {
        true => Ok(bytes),
        false => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_short_regular_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("four"), "four").expect("written");
        symlink("/dev/zero", at("zero")).expect("linked");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), pipe, mode, 0).expect("made");
        assert_eq!(read_plain(&at("four"), 4).expect("read"), b"four");
        assert_eq!(read_plain(&at("four"), 3).expect_err("longer").kind(), io::ErrorKind::FileTooLarge);
        for name in ["zero", "pipe", ".", "none"] {
            assert!(read_plain(&at(name), 4).is_err(), "{name}");
        }
    }

    /// A file that turns into a pipe between two looks at its name would be waited for.
    #[test]
    fn a_file_that_becomes_a_pipe_while_it_is_looked_at_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = folder.path().join("behind");
        std::fs::create_dir(&git).expect("made");
        std::fs::write(folder.path().join(".git"), "gitdir: behind\n").expect("written");
        let (file, pipe, place) = (git.join("file"), git.join("pipe"), git.join("commondir"));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).expect("made");
        let (done, is_done) = std::sync::mpsc::channel();
        let top = folder.path().to_owned();
        std::thread::spawn(move || {
            for _ in 0..20_000 {
                let _ = crate::git_folders::GitFolders::of(&top);
            }
            let _ = done.send(());
        });
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let _ = std::fs::write(&file, ".");
            let _ = std::fs::rename(&file, &place);
            let _ = std::fs::hard_link(&pipe, &file);
            let _ = std::fs::rename(&file, &place);
            match is_done.try_recv() {
                Ok(()) => break,
                Err(_) => assert!(std::time::Instant::now() < end, "a pipe was waited for"),
            }
        }
    }
}
