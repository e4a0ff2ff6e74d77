//! Resolves program names to files, and checks whether the workspace could have put them there.

mod git;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::argv::{CommandList, base_name};

pub(crate) use self::git::NO_SETTINGS;

/// Folders whose programs can be trusted by name.
pub const TRUSTED_FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/// Finds programs like the command's shell does.
#[derive(Debug, Clone)]
pub struct Executables {
    search: Vec<PathBuf>,
    cwd: PathBuf,
    trusted: Vec<PathBuf>,
    /// Resolved paths.
    writable: Vec<PathBuf>,
    by_name_alone: bool,
    /// Other folders that the line may change to.
    entered: Vec<PathBuf>,
    /// Variables with the locations of git's settings.
    environment: BTreeMap<String, String>,
}

/// More links than this on one path form a cycle.
const MOST_LINKS: usize = 40;

/// Extensions of files that interpreters and installers accept without execute permission.
const RUNNABLE: &[&str] = &[
    "apk", "appimage", "bash", "bat", "cjs", "class", "cmd", "deb", "dylib", "fish", "gem", "jar", "js",
    "ko", "lua", "mjs", "mk", "mts", "php", "pl", "ps1", "py", "pyc", "pyz", "rb", "rpm", "service", "sh",
    "so", "tcl", "ts", "vsix", "war", "whl", "zsh",
];

/// A program file, by name and identity: another file of the same name is another program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

impl Executables {
    /// `path` is the command's `PATH`. Nothing in `writable` is trusted, wherever it is.
    pub fn new(path: &OsStr, cwd: &Path, writable: &[PathBuf]) -> Self {
        Self {
            search: std::env::split_paths(path).collect(),
            cwd: cwd.to_owned(),
            trusted: Vec::new(),
            writable: writable.iter().map(|root| real(root)).collect(),
            by_name_alone: false,
            entered: Vec::new(),
            environment: BTreeMap::new(),
        }
        .trusting(TRUSTED_FOLDERS.iter().map(Path::new))
    }

    /// Trusts these folders instead of the default ones.
    #[must_use]
    pub fn trusting<'a>(mut self, folders: impl IntoIterator<Item = &'a Path>) -> Self {
        self.trusted = folders.into_iter().map(real).collect();
        self
    }

    /// For commands with these variables, which determine where git finds the user's settings.
    #[must_use]
    pub fn with_environment(mut self, env: &BTreeMap<String, String>) -> Self {
        let is_meant = |name: &str| name == "HOME" || name == "XDG_CONFIG_HOME" || name.starts_with("GIT_");
        let meant = env.iter().filter(|(name, _)| is_meant(name));
        self.environment = meant.map(|(name, value)| (name.clone(), value.clone())).collect();
        self
    }

    /// For commands whose files cannot be checked from here: rules use names alone.
    #[must_use]
    pub fn by_name_alone(self) -> Self {
        Self { by_name_alone: true, ..self }
    }

    /// Whether a rule for this program, a bare name or an absolute path, applies to the file that would run.
    pub(crate) fn vouches(&self, program: &str) -> bool {
        self.by_name_alone || self.unwritable(program).is_some()
    }

    /// Whether the name resolves to one of these files.
    pub(crate) fn vouches_for_one_of(&self, name: &str, paths: &[String]) -> bool {
        let found = self.unwritable(name);
        let is_it = |path: &String| found.is_some() && self.unwritable(path) == found;
        self.by_name_alone || paths.iter().any(is_it)
    }

    /// Whether a rule for the name of this absolute path applies to that file.
    pub(crate) fn vouches_by_name(&self, path: &str) -> bool {
        let by_path = || self.unwritable(base_name(path));
        self.by_name_alone
            || self.trusted(path).is_some()
            || self.unwritable(path).is_some_and(|file| by_path().is_some_and(|found| found == file))
    }

    /// The resolved file of a bare name or an absolute path, if no command of the thread can change it: neither the
    /// file, nor a folder or link on its path, nor an earlier folder in `PATH`.
    pub fn unwritable(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return self.closed_executable(Path::new(program));
        }
        for folder in &self.search {
            let way = PassedPaths::to(folder)?;
            if self.is_open(&way) {
                return None;
            }
            let file = folder.join(program);
            if is_executable(&file) {
                return self.closed_executable(&file);
            }
        }
        None
    }

    fn closed_executable(&self, file: &Path) -> Option<PathBuf> {
        let way = PassedPaths::to(file)?;
        (is_executable(file) && !self.is_open(&way)).then_some(way.end)
    }

    /// Whether a command can write something on the path.
    fn is_open(&self, way: &PassedPaths) -> bool {
        way.passed.iter().any(|part| {
            self.writable.iter().any(|root| part.starts_with(root)) || changed_by_everybody_at_will(part)
        })
    }

    /// Whether a word names a file that a command can write and something may run.
    pub(crate) fn is_open_script(&self, word: &str) -> bool {
        let path = self.cwd.join(word);
        let Ok(found) = fs::metadata(&path) else { return false };
        let extension = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
        let may_run = found.permissions().mode() & 0o111 != 0
            || extension.is_some_and(|extension| RUNNABLE.contains(&extension.as_str()));
        found.is_file() && may_run && PassedPaths::to(&path).is_none_or(|way| self.is_open(&way))
    }

    /// For a line with these commands, including the folders it changes to.
    pub(crate) fn entered_by(&self, commands: &CommandList) -> Self {
        let entered = commands.list.iter().filter(|words| words[0] == "cd").filter_map(|words| words.last());
        self.clone().entering(entered.map(String::as_str))
    }

    /// For a line that changes to these folders, as written.
    #[must_use]
    pub(crate) fn entering<'a>(mut self, folders: impl Iterator<Item = &'a str>) -> Self {
        let mut at = self.cwd.clone();
        for folder in folders {
            at = at.join(folder);
            self.entered.extend([at.clone(), self.cwd.join(folder)]);
        }
        self
    }

    /// The folders of `PATH` that no command can write, in order. For programs that run without a sandbox and find
    /// others by name.
    pub fn closed_search(&self) -> OsString {
        let is_closed = |folder: &&PathBuf| {
            let way = PassedPaths::to(folder);
            way.is_some_and(|way| !self.is_open(&way) && !changed_by_everybody(&way.end))
        };
        let closed = self.search.iter().filter(is_closed);
        // A folder with a colon in its name cannot come from a `PATH`.
        std::env::join_paths(closed).unwrap_or_default()
    }

    /// The file of a bare name or an absolute path, if it is in a trusted folder and only the system can change it.
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

    /// A relative entry of `PATH` ends the search: a script may change the working folder.
    fn first_on_path(&self, name: &str) -> Option<PathBuf> {
        let absolute = self.search.iter().take_while(|folder| folder.is_absolute());
        absolute.map(|folder| folder.join(name)).find(|file| is_executable(file))
    }
}

/// Every folder and link on a path, each by its resolved path.
struct PassedPaths {
    passed: Vec<PathBuf>,
    end: PathBuf,
}

impl PassedPaths {
    /// Parts that do not exist are kept as spelled. None for a relative path, and for cyclic links.
    fn to(path: &Path) -> Option<Self> {
        if !path.is_absolute() {
            return None;
        }
        let (mut passed, mut at, mut links) = (Vec::new(), PathBuf::from("/"), 0);
        let mut ahead: Vec<PathBuf> = reversed(path);
        while let Some(part) = ahead.pop() {
            match part.components().next() {
                Some(Component::Normal(name)) => {
                    let next = at.join(name);
                    passed.push(next.clone());
                    match fs::read_link(&next) {
                        Ok(target) => {
                            links += 1;
                            if links > MOST_LINKS {
                                return None;
                            }
                            ahead.extend(reversed(&target));
                        }
                        Err(_) => at = next,
                    }
                }
                Some(Component::ParentDir) => {
                    at.pop();
                }
                Some(Component::RootDir) => at = PathBuf::from("/"),
                _ => {}
            }
        }
        Some(Self { passed, end: at })
    }
}

fn reversed(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// In a sticky folder everyone can create files, but nobody can replace another's.
fn changed_by_everybody_at_will(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        let mode = found.permissions().mode();
        !found.is_symlink() && mode & 0o002 != 0 && (mode & 0o1000 == 0 || !found.is_dir())
    })
}

/// The resolved path of `file`, if it is directly in one of `folders` (resolved paths), is executable, is not in a
/// writable root, and is not writable by everyone.
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

pub(crate) fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn changed_by_everybody(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o002 != 0)
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
