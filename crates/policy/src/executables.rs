//! Which file a program's name means, and whether the workspace could have put it there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folders whose programs are what their names say.
pub const TRUSTED_FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/// Finds programs the way the command's shell will.
#[derive(Debug, Clone)]
pub struct Executables {
    search: Vec<PathBuf>,
    cwd: PathBuf,
    trusted: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

/// A program file, by name and by identity: another file under the same name is another program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

impl Executables {
    /// `path` is the `PATH` the command will have. Nothing under `writable` is trusted, wherever it lies.
    pub fn new(path: &OsStr, cwd: &Path, writable: &[PathBuf]) -> Self {
        Self {
            search: std::env::split_paths(path).collect(),
            cwd: cwd.to_owned(),
            trusted: Vec::new(),
            writable: writable.iter().map(|root| real(root)).collect(),
        }
        .trusting(TRUSTED_FOLDERS.iter().map(Path::new))
    }

    /// Trusts these folders instead of the usual ones.
    #[must_use]
    pub fn trusting<'a>(mut self, folders: impl IntoIterator<Item = &'a Path>) -> Self {
        self.trusted = folders.into_iter().map(real).collect();
        self
    }

    /// The file a bare name or an absolute path means, if it lies in a trusted folder and only the system can
    /// change it.
    pub fn trusted(&self, program: &str) -> Option<PathBuf> {
        let file = if program.contains('/') {
            Path::new(program).is_absolute().then(|| PathBuf::from(program))?
        } else {
            self.first_on_path(program)?
        };
        trusted_executable(&file, &self.trusted, &self.writable)
    }

    /// The file that would run, trusted or not.
    pub fn program(&self, program: &str) -> Option<Program> {
        let file = if program.contains('/') {
            self.cwd.join(program)
        } else {
            let folders = self.search.iter().map(|folder| self.cwd.join(folder).join(program));
            folders.into_iter().find(|file| is_executable(file))?
        };
        let path = fs::canonicalize(file).ok()?;
        let metadata = fs::metadata(&path).ok()?;
        Some(Program { path, device: metadata.dev(), inode: metadata.ino() })
    }

    /// A relative entry of `PATH` ends the search: a script may change the folder it is relative to.
    fn first_on_path(&self, name: &str) -> Option<PathBuf> {
        let absolute = self.search.iter().take_while(|folder| folder.is_absolute());
        absolute.map(|folder| folder.join(name)).find(|file| is_executable(file))
    }
}

/// The real path of `file`, if it lies right in one of `folders` (given as real paths), can be run, and neither
/// lies below a writable root nor can be changed by everybody.
fn trusted_executable(file: &Path, folders: &[PathBuf], writable: &[PathBuf]) -> Option<PathBuf> {
    let folder = fs::canonicalize(file.parent()?).ok()?;
    if !folders.contains(&folder) || !is_executable(file) {
        return None;
    }
    let path = fs::canonicalize(file).ok()?;
    let ours_alone =
        [file.parent()?, &path, path.parent()?].into_iter().all(|part| !changed_by_everybody(part));
    let outside =
        [&folder, &path].into_iter().all(|part| !writable.iter().any(|root| part.starts_with(root)));
    (ours_alone && outside).then_some(path)
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn changed_by_everybody(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o002 != 0)
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
