//! The files that a command refers to, so that an approval is not used for other files in their place.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use policy::{Executables, commands_of, shell_script};
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::words::places;

/// Scripts with more file names than this are not reviewed by the approver either.
const MOST_FILES: usize = 64;
/// Limit of the searched words, because looking up files takes time.
const MOST_WORDS: usize = 4_096;

/// Limit of hashed files; longer ones are compared by inode and times only.
const MOST_BYTES: u64 = 8 << 20;
/// Sandboxed processes cannot write here, unless a root of the sandbox is inside, which is no usual workspace.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"];

/// File extensions that interpreters run without execute permission.
const SCRIPTS: &[&str] = &["sh", "bash", "zsh", "py", "js", "mjs", "ts", "rb", "pl", "php", "lua", "ps1"];

/// The folder of a command, and the programs and scripts it names, as they are on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandIdentity {
    cwd: PinnedIdentity,
    /// By the name in the command; unset if there is no such file.
    files: BTreeMap<String, Option<PinnedIdentity>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PinnedIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// Size and modification time. Unset for folders, whose entries change.
    version: Option<(u64, i64, i64)>,
    /// Of the content, if a sandboxed process could have written it. Times are too coarse to tell.
    digest: Option<String>,
}

impl CommandIdentity {
    /// Fails if the folder does not exist.
    pub(crate) fn of(argv: &[String], cwd: &Path, executables: &Executables) -> io::Result<Self> {
        let folder = PinnedIdentity::folder(cwd)?;
        if !fs::metadata(&folder.path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let programs = programs(argv).into_iter().map(|name| {
            let found = executables.program(&name).and_then(|program| PinnedIdentity::at(&program.path).ok());
            (name, found)
        });
        let scripts = scripts(argv, cwd).into_iter().map(|name| {
            let found = PinnedIdentity::at(&cwd.join(&name)).ok();
            (name, found)
        });
        Ok(Self { cwd: folder, files: scripts.chain(programs).collect() })
    }

    /// Files in another environment cannot be checked from here.
    pub(crate) fn elsewhere(cwd: &Path) -> Self {
        let cwd = PinnedIdentity { path: cwd.to_owned(), device: 0, inode: 0, version: None, digest: None };
        Self { cwd, files: BTreeMap::new() }
    }

    /// Without links.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd.path
    }

    pub(crate) fn json(&self) -> Value {
        let files: BTreeMap<_, _> =
            self.files.iter().map(|(name, found)| (name, found.as_ref().map(PinnedIdentity::json))).collect();
        json!({ "cwd": self.cwd.json(), "files": files })
    }

    /// The contents of each hashed file, if still the same.
    pub(crate) fn contents(&self) -> BTreeMap<&str, Vec<u8>> {
        let read = |found: &PinnedIdentity| {
            let bytes = InspectedFile::at(&found.path).ok()?.bytes()?;
            (Some(digest(&bytes)) == found.digest).then_some(bytes)
        };
        let files = self.files.iter();
        files.filter_map(|(name, found)| Some((name.as_str(), found.as_ref().and_then(read)?))).collect()
    }

    /// The number of files with checked contents.
    pub(crate) fn pinnable(&self) -> usize {
        self.files.values().flatten().filter(|found| found.digest.is_some()).count()
    }

    /// A sentence that names the first difference, if any.
    pub(crate) fn change_since(&self, before: &Self) -> Option<String> {
        if self.cwd != before.cwd {
            return Some("the working directory".to_owned());
        }
        let differs =
            |(name, found): &(&String, &Option<PinnedIdentity>)| before.files.get(*name) != Some(*found);
        let changed: Vec<_> =
            self.files.iter().filter(differs).map(|(name, _)| format!("`{name}`")).collect();
        (self.files != before.files).then(|| match changed.as_slice() {
            [] => "the files it names".to_owned(),
            changed => changed.join(", "),
        })
    }
}

impl PinnedIdentity {
    fn folder(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let metadata = fs::metadata(&path)?;
        Ok(Self { path, device: metadata.dev(), inode: metadata.ino(), version: None, digest: None })
    }

    fn at(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let opened = InspectedFile::at(&path)?;
        let metadata = &opened.metadata;
        let version = Some((metadata.size(), metadata.ctime(), metadata.ctime_nsec()));
        let (device, inode) = (metadata.dev(), metadata.ino());
        let is_of_system = SYSTEM.iter().any(|folder| path.starts_with(folder));
        let bytes = if is_of_system { None } else { opened.bytes() };
        Ok(Self { path, device, inode, version, digest: bytes.map(|bytes| digest(&bytes)) })
    }

    fn json(&self) -> Value {
        let Self { path, device, inode, version, digest } = self;
        json!({
            "path": path.to_string_lossy(),
            "device": device,
            "inode": inode,
            "version": version,
            "digest": digest,
        })
    }
}

/// A file to check.
struct InspectedFile {
    /// Unset where it may not be read.
    file: Option<fs::File>,
    metadata: fs::Metadata,
}

impl InspectedFile {
    /// Follows no link that replaced the file, and does not block on a pipe. Reads with the rights of commands, because one
    /// of them gets the contents.
    fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let open = || fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
        let (file, metadata) = match sandbox::as_command_user(open).and_then(|opened| opened) {
            Ok(file) => {
                let metadata = file.metadata()?;
                (Some(file), metadata)
            }
            // A program that can be run but not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                (None, fs::symlink_metadata(path)?)
            }
            Err(error) => return Err(error),
        };
        Ok(Self { file, metadata })
    }

    /// The whole content, up to the limit.
    fn bytes(&self) -> Option<Vec<u8>> {
        if !self.metadata.is_file() || self.metadata.len() > MOST_BYTES {
            return None;
        }
        let mut bytes = Vec::new();
        self.file.as_ref()?.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= MOST_BYTES).then_some(bytes)
    }
}

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    data_encoding::HEXLOWER.encode(digest.as_ref())
}

/// The names of all programs that will run.
fn programs(argv: &[String]) -> Vec<String> {
    let commands = commands_of(argv);
    let first = argv.first().cloned();
    let of_list = commands.list.into_iter().filter_map(|words| words.into_iter().next());
    first.into_iter().chain(commands.shells).chain(of_list).collect()
}

/// Other words that name files to be run: arguments of interpreters, and likely paths in a script that cannot be
/// parsed.
fn scripts(argv: &[String], cwd: &Path) -> Vec<String> {
    let commands = commands_of(argv);
    let mut names: Vec<String> = Vec::new();
    for words in &commands.list {
        if let Some((program, arguments)) = words.split_first()
            && policy::runs_anything(std::slice::from_ref(program))
        {
            names.extend(arguments.iter().filter(|word| is_file(&cwd.join(word))).cloned());
        }
    }
    if let Some(call) = shell_script(argv).filter(|_| !commands.plain) {
        let is_edge = |c: char| c.is_whitespace() || ";|&()<>\"'`$={}".contains(c);
        let words = call.script.split(is_edge).filter(|word| !word.is_empty()).take(MOST_WORDS);
        names.extend(words.filter(|word| would_run(&cwd.join(word))).map(str::to_owned));
    }
    let line = shell_script(argv).map_or_else(|| policy::shell_line(argv), |call| call.script.to_owned());
    let named = places(&line).into_iter();
    let named = named.filter(|place| place.interpreter.is_some() || place.name.contains('/'));
    let named = named.map(|place| place.name);
    names.extend(named.take(MOST_FILES).filter(|name| is_file(&cwd.join(name))));
    names.sort();
    names.dedup();
    names.truncate(MOST_FILES);
    names
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}

fn would_run(path: &Path) -> bool {
    let is_script = path.extension().and_then(|end| end.to_str()).is_some_and(|end| SCRIPTS.contains(&end));
    fs::metadata(path)
        .is_ok_and(|found| found.is_file() && (is_script || found.permissions().mode() & 0o111 != 0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn identity(script: &str, cwd: &Path) -> CommandIdentity {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        let executables = Executables::new("/usr/bin:/bin".as_ref(), cwd, &[]);
        CommandIdentity::of(&argv, cwd, &executables).expect("the folder is there")
    }

    /// The reported difference when `change` is applied to a folder with the script `run.sh`.
    fn noticed(script: &str, change: impl FnOnce(&Path)) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let cwd = folder.path();
        fs::create_dir(cwd.join("real")).expect("made");
        symlink("real", cwd.join("link")).expect("linked");
        for file in ["run.sh", "plain.py", "data.txt"] {
            fs::write(cwd.join(file), "exit 0").expect("written");
        }
        fs::set_permissions(cwd.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("made executable");
        let before = identity(script, cwd);
        change(cwd);
        identity(script, cwd).change_since(&before)
    }

    #[test]
    fn a_swapped_program_or_script_is_noticed() {
        let rewrite = |name: &'static str| {
            move |cwd: &Path| {
                fs::remove_file(cwd.join(name)).expect("removed");
                fs::write(cwd.join(name), "exit 1").expect("written");
            }
        };
        let cases = [
            ("./run.sh", "run.sh", Some("`./run.sh`")),
            ("bash run.sh", "run.sh", Some("`run.sh`")),
            ("python3 plain.py", "plain.py", Some("`plain.py`")),
            ("X=1 ./run.sh > out", "run.sh", Some("`./run.sh`")),
            ("for i in 1 2; do python3 plain.py; done", "plain.py", Some("`plain.py`")),
            ("cat data.txt", "data.txt", None),
            ("./run.sh", "data.txt", None),
        ];
        for (script, changed, expected) in cases {
            assert_eq!(noticed(script, rewrite(changed)).as_deref(), expected, "{script}");
        }
        assert_eq!(noticed("./run.sh", |_| {}), None);
        let append = |cwd: &Path| fs::write(cwd.join("run.sh"), "exit 7").expect("written in place");
        assert_eq!(noticed("./run.sh", append).as_deref(), Some("`./run.sh`"));
    }

    #[test]
    fn a_swapped_folder_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        for name in ["one", "two"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        symlink("one", &link).expect("linked");
        let before = identity("true", &link);
        assert!(before.cwd().ends_with("one"));
        fs::remove_file(&link).expect("removed");
        symlink("two", &link).expect("linked");
        assert_eq!(identity("true", &link).change_since(&before).as_deref(), Some("the working directory"));
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let argv = ["true".to_owned()];
        let executables = Executables::new("/bin".as_ref(), Path::new("/"), &[]);
        for cwd in ["/nonexistent/folder", "/etc/passwd", "/tmp/\0"] {
            assert!(CommandIdentity::of(&argv, Path::new(cwd), &executables).is_err(), "{cwd}");
        }
    }
}
