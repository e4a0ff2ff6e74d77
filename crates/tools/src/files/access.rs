//! File access of read-only tools: the step's sandbox, grants beyond it, and paths that are never readable.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::SandboxChoice;
use rustix::fs::OFlags;
use sandbox::ReadAccess;
use workspace::{Access, Entry, OpenedFile, READ_LIMIT, ReadError, ReadProblem, Reader, within};

use crate::exec::{Setting, confinement};
use crate::{ToolCx, ToolError};

/// The system's limit of a path.
const LONGEST_PATH: usize = 4_096;

/// Folders that programs need to run at all.
const PLATFORM: &[&str] =
    &["/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw"];

/// Runs blocking work on a separate thread, with the rights of commands. Dropping the future requests a stop.
pub(crate) async fn with_file_access<T: Send + 'static>(
    cx: &ToolCx,
    work: impl FnOnce(&FileAccess, &StopFlag) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let (access, stop) = (FileAccess::of(cx), StopFlag::default());
    let _stops_when_dropped = StopOnDrop(stop.clone());
    let task = tokio::task::spawn_blocking(move || with_command_rights(|| work(&access, &stop)));
    task.await.unwrap_or_else(|error| Err(ToolError::Failed(format!("the work broke off: {error}"))))
}

/// Like [`with_file_access`], for short work on one path. If its file system hangs, the work is abandoned: the model
/// gets an error, and the turn continues.
pub(crate) async fn look_soon<T: Send + 'static>(
    cx: &ToolCx,
    given: &str,
    work: impl FnOnce(&FileAccess, &StopFlag) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let path = absolute(cx.cwd(), given)?;
    with_file_access(cx, move |access, stop| look_within(READ_LIMIT, &path, (access, stop), work)).await
}

/// Does work on files that a command of this place could do as well: where commands have a user of their own, a link that one of
/// them has put in the way leads to nothing that only this process may touch. Threads that the work makes have the same rights.
pub(crate) fn with_command_rights<T>(work: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    sandbox::as_command_user(work).unwrap_or_else(|error| {
        Err(ToolError::Failed(format!("the rights of commands cannot be taken on: {error}")))
    })
}

fn look_within<T: Send + 'static>(
    limit: Duration,
    path: &Path,
    (access, stop): (&FileAccess, &StopFlag),
    work: impl FnOnce(&FileAccess, &StopFlag) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let (access, stop) = (access.clone(), stop.clone());
    within(path, limit, move || work(&access, &stop)).unwrap_or_else(|error| Err(unread(error)))
}

/// Whether the result is still needed.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Fails when the result is no longer needed.
#[derive(Debug)]
pub(crate) struct Stoppable<'a, R> {
    pub(crate) inner: R,
    pub(crate) stop: &'a StopFlag,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.requested() {
            return Err(io::Error::other("nobody waits for the result any more"));
        }
        self.inner.read(buffer)
    }
}

/// Decides which paths may be read.
#[derive(Debug, Clone)]
pub(crate) struct FileAccess {
    cwd: PathBuf,
    reader: Reader,
}

impl FileAccess {
    fn of(cx: &ToolCx) -> Self {
        let setting = Setting::of(cx);
        let off_limits = &setting.options.off_limits;
        let access = match confinement(&setting, SandboxChoice::AsPolicy, None) {
            Some(confined) => {
                Access { readable: roots_of(confined.read), hidden: confined.hidden, shown: confined.shown }
            }
            // Without a sandbox the user's credentials are readable like everything else; ours are not.
            None => {
                let hidden = off_limits.sealed_in(Path::new(&setting.cwd));
                Access { readable: None, hidden, shown: off_limits.shown.clone() }
            }
        };
        Self { cwd: cx.cwd().to_owned(), reader: Reader::new(access) }
    }

    /// The resolved path, if it may be read.
    pub(crate) fn find(&self, given: &str) -> Result<PathBuf, ToolError> {
        let path = self.cwd.join(well_formed(given)?);
        Ok(self.reader.find(&path).map_err(unread)?.path)
    }

    /// Takes a path without links.
    pub(crate) fn allows(&self, real: &Path) -> bool {
        self.reader.allows(real)
    }

    /// Lists and opens within the same limits.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The readable entries of a folder, even if it was replaced since its name was checked.
    pub(crate) fn each_entry(&self, folder: &Path, take: &mut dyn FnMut(Entry) -> bool) -> io::Result<()> {
        self.reader.each_entry(folder, take).map_err(ReadError::into_io)
    }

    /// Never blocks, whatever the path is.
    pub(crate) fn open(&self, given: &str) -> Result<OpenedFile, ToolError> {
        let found = self.reader.find(&self.cwd.join(well_formed(given)?)).map_err(unread)?;
        if found.metadata.is_dir() {
            return Err(ToolError::Failed(format!("{} is a folder, not a file", found.path.display())));
        }
        self.reader.open(&found.path).map_err(|error| match error.problem {
            ReadProblem::NotAFile => {
                ToolError::Failed(format!("{} is not a regular file", found.path.display()))
            }
            _ => unread(error),
        })
    }
}

fn unread(error: ReadError) -> ToolError {
    let path = error.path.clone();
    if error.is_refused() { refused(&path) } else { failed(&path, &error.into_io()) }
}

/// For a resolved path of a regular file. If it was replaced, this fails without blocking.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// `None` if everything may be read.
pub(crate) fn readable_roots(cx: &ToolCx) -> Option<Vec<PathBuf>> {
    roots_of(confinement(&Setting::of(cx), SandboxChoice::AsPolicy, None)?.read)
}

/// The folders that a command with this access can read; `None` for all.
pub fn roots_of(read: ReadAccess) -> Option<Vec<PathBuf>> {
    match read {
        ReadAccess::Everything => None,
        ReadAccess::Exactly(roots) => Some(roots),
        ReadAccess::Only(mut roots) => {
            roots.extend(PLATFORM.iter().map(PathBuf::from));
            Some(roots)
        }
    }
}

/// Refuses what the system would not accept as a path.
pub(crate) fn well_formed(path: &str) -> Result<&Path, ToolError> {
    let problem = match path {
        "" => "it is empty",
        path if path.contains('\0') => "it contains a NUL character",
        path if path.len() > LONGEST_PATH => "it is longer than 4096 bytes",
        path => return Ok(Path::new(path)),
    };
    Err(ToolError::Failed(format!("this is not a usable path: {problem}")))
}

/// Absolute, without `.` and `..`. Links are not followed: it is the path as a person reads it.
pub(crate) fn absolute(cwd: &Path, given: &str) -> Result<PathBuf, ToolError> {
    let mut path = PathBuf::from("/");
    for part in cwd.join(well_formed(given)?).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(path)
}

pub(crate) fn failed(path: &Path, error: &io::Error) -> ToolError {
    let path = path.display();
    ToolError::Failed(match error.kind() {
        io::ErrorKind::NotFound => format!("{path} does not exist"),
        io::ErrorKind::PermissionDenied => format!("{path} cannot be read: permission denied"),
        _ => format!("{path} cannot be read: {error}"),
    })
}

fn refused(path: &Path) -> ToolError {
    ToolError::Refused(format!("{} is not among what you may read", path.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::scene::Scene;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_stops_when_its_call_is_dropped() {
        let (began, begins) = tokio::sync::oneshot::channel();
        let (ended, ends) = mpsc::channel();
        let scene = Scene::in_folder(Path::new("/"));
        let cx = scene.cx();
        let call = tokio::spawn(async move {
            with_file_access(&cx, move |_, stop| {
                began.send(()).expect("the test waits");
                while !stop.requested() {
                    std::thread::yield_now();
                }
                ended.send(()).expect("the test waits");
                Ok(())
            })
            .await
        });
        begins.await.expect("it begins");
        call.abort();
        ends.recv().expect("it ends");
    }

    #[test]
    fn a_path_on_a_hanging_file_system_is_abandoned() {
        let (let_go, hangs) = mpsc::channel::<()>();
        let scene = Scene::in_folder(Path::new("/"));
        let (access, stop) = (FileAccess::of(&scene.cx()), StopFlag::default());
        let path = Path::new("/net/hangs");
        let look = |limit, work: Box<dyn FnOnce() -> bool + Send>| {
            look_within(limit, path, (&access, &stop), move |_, _| Ok(work()))
                .map_err(|error| error.to_string())
        };
        let error =
            look(Duration::from_millis(20), Box::new(move || hangs.recv().is_ok())).expect_err("it hangs");
        assert!(error.contains("/net/hangs cannot be read: it could not be read within"), "{error}");
        // No call waits for it a second time, and other paths can be read.
        let error = look(READ_LIMIT, Box::new(|| true)).expect_err("it hangs still");
        assert!(error.contains("an earlier read has not returned"), "{error}");
        let other = look_within(READ_LIMIT, Path::new("/other"), (&access, &stop), |_, _| Ok(true));
        assert!(other.is_ok_and(|read| read));
        let_go.send(()).expect("it waits");
    }

    #[test]
    fn the_nearest_parent_decides() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there");
        for name in ["home/skills/s", "home/skills/key", "home/log", "ws"] {
            std::fs::create_dir_all(root.join(name)).expect("made");
        }
        std::os::unix::fs::symlink(&root, root.join("home/prompts")).expect("linked");
        let hidden = ["home", "home/skills/key"].map(|name| root.join(name)).to_vec();
        let shown = ["home/skills", "home/prompts"].map(|name| root.join(name)).to_vec();
        let reader = Reader::new(Access { readable: None, hidden, shown });
        let access = FileAccess { cwd: root.clone(), reader };
        for (name, allowed) in [
            ("ws", true),
            ("home", false),
            ("home/new", false),
            ("home/log", false),
            ("home/skills/s", true),
            ("home/skills/key", false),
            ("home/prompts/ws", true),
            ("home/prompts/home/log", false),
        ] {
            let found = root.join(name);
            let found = found.canonicalize().unwrap_or(found);
            assert_eq!(access.allows(&found), allowed, "{name}");
        }
    }

    #[test]
    fn a_path_is_normalised_as_text() {
        for (given, expected) in
            [("a", "/w/a"), ("../x/./y/", "/x/y"), ("/a//b/../..", "/"), ("../../..", "/"), (".", "/w")]
        {
            assert_eq!(absolute(Path::new("/w"), given).expect("a path"), Path::new(expected));
        }
        assert!(absolute(Path::new("/w"), "a\0").is_err());
    }

    #[tokio::test]
    async fn a_panic_in_the_work_is_an_error_of_the_call() {
        let cx = Scene::in_folder(Path::new("/")).cx();
        let result: Result<(), _> = with_file_access(&cx, |_, _| panic!("on purpose")).await;
        assert!(matches!(result, Err(ToolError::Failed(_))));
    }
}
