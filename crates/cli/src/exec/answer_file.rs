//! The file for the final message. Commands of the turn may write where it lies, and the message is the model's: where it
//! goes is settled before they run, and no link that they put in its place is followed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{Access, Mode, OFlags, access, fcntl_setfl, open, openat};

/// Nothing is made yet: a turn that fails leaves no file.
#[derive(Debug)]
pub(super) struct AnswerFile {
    path: PathBuf,
    place: AnswerPlace,
}

#[derive(Debug)]
enum AnswerPlace {
    /// A pipe, a terminal or a device, opened before the turn.
    Opened(File),
    /// A regular file, or none yet.
    Named { folder: OwnedFd, name: OsString, before: Option<(u64, u64)> },
}

impl AnswerFile {
    /// Whether the message will find its place.
    pub(super) fn prepare(path: &Path) -> Result<Self> {
        let problem =
            |why: &str| format!("--output-last-message {} cannot be written: {why}", path.display());
        let plain = |error: rustix::io::Errno| std::io::Error::from(error);
        let own = |place| Self { path: path.to_owned(), place };
        let found = fs::metadata(path).ok();
        if found.as_ref().is_some_and(fs::Metadata::is_dir) {
            bail!(problem("it is a folder"));
        }
        if let Some(other) = found.as_ref().filter(|found| !found.is_file()) {
            // Opened as a shell does, a pipe would wait for a reader for good, deaf to signals.
            let is_pipe = other.file_type().is_fifo();
            let why = if is_pipe { "nobody reads this pipe" } else { "no permission" };
            let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
            let flags = if is_pipe { flags | OFlags::NONBLOCK } else { flags };
            let opened = open(path, flags, Mode::empty()).map_err(plain).with_context(|| problem(why))?;
            fcntl_setfl(&opened, OFlags::empty()).map_err(plain).with_context(|| problem(why))?;
            return Ok(own(AnswerPlace::Opened(File::from(opened))));
        }
        // A link that is there already is the user's own.
        let real = match &found {
            Some(_) => fs::canonicalize(path).with_context(|| problem("it cannot be found"))?,
            None if path.is_symlink() => bail!(problem("it is a link that leads nowhere")),
            None => path.to_owned(),
        };
        let parent = real.parent().filter(|parent| !parent.as_os_str().is_empty());
        let (parent, name) = (parent.unwrap_or(Path::new(".")), real.file_name().unwrap_or_default());
        if !parent.is_dir() {
            bail!(problem(&format!("there is no folder {}", parent.display())));
        }
        let (place, wanted) = match &found {
            Some(_) => (real.as_path(), Access::WRITE_OK),
            None => (parent, Access::WRITE_OK | Access::EXEC_OK),
        };
        access(place, wanted).map_err(plain).with_context(|| problem("no permission"))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            open(parent, flags, Mode::empty()).map_err(plain).with_context(|| problem("no permission"))?;
        let before = found.map(|found| (found.dev(), found.ino()));
        Ok(own(AnswerPlace::Named { folder, name: name.to_owned(), before }))
    }

    pub(super) fn write(&self, text: &str) -> Result<()> {
        self.try_write(text)
            .with_context(|| format!("--output-last-message {} cannot be written", self.path.display()))
    }

    fn try_write(&self, text: &str) -> Result<()> {
        match &self.place {
            AnswerPlace::Opened(file) => Ok((&*file).write_all(text.as_bytes())?),
            AnswerPlace::Named { folder, name, before } => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
                let file = openat(folder, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
                let mut file = match file {
                    Ok(file) => File::from(file),
                    Err(rustix::io::Errno::LOOP) => bail!("it became a link while the turn ran"),
                    Err(error) => return Err(std::io::Error::from(error).into()),
                };
                let found = file.metadata()?;
                let is_the_same = *before == Some((found.dev(), found.ino()));
                if !found.is_file() || (found.nlink() > 1 && !is_the_same) {
                    bail!("it became something else while the turn ran");
                }
                file.set_len(0)?;
                Ok(file.write_all(text.as_bytes())?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[track_caller]
    fn refused<T: std::fmt::Debug>(result: Result<T>, words: &str) {
        let told = result.map_or_else(|error| format!("{error:#}"), |value| format!("{value:?}"));
        assert!(told.contains(words), "{told}");
    }

    fn pipe(path: &Path) -> Result<()> {
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)?)
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_refused() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("pipe");
        pipe(&path)?;
        refused(AnswerFile::prepare(&path), "nobody reads this pipe");
        let reader = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        AnswerFile::prepare(&path)?.write("read")?;
        assert_eq!(std::io::read_to_string(File::from(reader))?, "read");
        Ok(())
    }

    #[test]
    fn what_cannot_work_is_told_before_the_turn() -> Result<()> {
        let folder = tempfile::tempdir()?;
        refused(AnswerFile::prepare(folder.path()), "it is a folder");
        refused(AnswerFile::prepare(&folder.path().join("no/such/answer.md")), "there is no folder");
        symlink("nowhere", folder.path().join("dangling"))?;
        refused(AnswerFile::prepare(&folder.path().join("dangling")), "leads nowhere");
        let answer = folder.path().join("answer.md");
        let prepared = AnswerFile::prepare(&answer)?;
        assert!(!answer.exists(), "nothing is made by looking");
        prepared.write("longer")?;
        AnswerFile::prepare(&answer)?.write("short")?;
        assert_eq!(fs::read_to_string(&answer)?, "short");
        AnswerFile::prepare(Path::new("/dev/null"))?.write("x")?;
        AnswerFile::prepare(Path::new("relative.md"))?;
        // A link that the user made leads where it led, also when the file is replaced meanwhile.
        symlink("answer.md", folder.path().join("link"))?;
        fs::hard_link(&answer, folder.path().join("hard"))?;
        AnswerFile::prepare(&folder.path().join("link"))?.write("by a link")?;
        assert_eq!(fs::read_to_string(&answer)?, "by a link");
        Ok(())
    }

    #[test]
    fn what_takes_its_place_meanwhile_is_not_written() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub"))?;
        fs::write(at("victim"), "kept")?;
        for exists in [false, true] {
            if exists {
                fs::write(at("sub/answer"), "")?;
            }
            let answer = AnswerFile::prepare(&at("sub/answer"))?;
            let _ = fs::remove_file(at("sub/answer"));
            symlink(at("victim"), at("sub/answer"))?;
            refused(answer.write("theirs"), "it became a link");
            fs::remove_file(at("sub/answer"))?;
            fs::hard_link(at("victim"), at("sub/answer"))?;
            refused(answer.write("theirs"), "it became something else");
            fs::remove_file(at("sub/answer"))?;
            pipe(&at("sub/answer"))?;
            refused(answer.write("theirs"), "cannot be written");
            fs::remove_file(at("sub/answer"))?;
            // Its folder, too: the one that was there before is written to.
            fs::create_dir(at("other"))?;
            fs::rename(at("sub"), at("moved"))?;
            symlink(at("other"), at("sub"))?;
            answer.write("ours")?;
            assert_eq!(
                (fs::read_to_string(at("moved/answer"))?.as_str(), at("other/answer").exists()),
                ("ours", false)
            );
            fs::remove_file(at("sub"))?;
            fs::remove_dir(at("other"))?;
            fs::rename(at("moved"), at("sub"))?;
            fs::remove_file(at("sub/answer"))?;
        }
        assert_eq!(fs::read_to_string(at("victim"))?, "kept");
        Ok(())
    }
}
