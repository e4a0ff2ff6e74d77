//! Runs git without running anything that a repository names.
//!
//! Git gets a folder of ours in place of the repository's own: an empty configuration, a copy of the index and the
//! remote branches. Objects and checked out files are read in place. So it knows no hook, filter, file system monitor
//! or diff program, and its sandbox can write only that folder and has no network.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::{Confinement, Limits, Order, ReadAccess, RunOptions};
use support::blocking;
use workspace::{GitCheckout, Reader};

/// Time limit of one git command.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Limit of a diff.
const MAX_OUTPUT_BYTES: usize = 32 << 20;
const MAX_INDEX_BYTES: u64 = 256 << 20;
const MAX_EXCLUDE_BYTES: u64 = 1 << 20;

/// Git for one checkout. Dropping it removes its folder.
#[derive(Debug)]
pub(crate) struct SandboxedGit {
    pub(crate) checkout: GitCheckout,
    program: PathBuf,
    folder: ScratchFolder,
}

#[derive(Debug)]
struct ScratchFolder(PathBuf);

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let folder = std::mem::take(&mut self.0);
        support::off_worker(|| {
            if let Err(error) = fs::remove_dir_all(&folder) {
                tracing::warn!(%error, folder = %folder.display(), "a folder of git is left behind");
            }
        });
    }
}

impl SandboxedGit {
    /// For the checkout around `cwd`. `scratch` is a new folder. `None` without a checkout or git.
    pub(crate) async fn open(cwd: PathBuf, scratch: PathBuf) -> Option<Self> {
        let place = cwd.clone();
        let open = move || {
            let reader = Reader::default();
            let checkout = GitCheckout::find(&cwd, &reader)?;
            let program = find_git(&checkout.root)?;
            let made = prepare(&checkout, &scratch, &reader);
            let folder = ScratchFolder(scratch);
            made.inspect_err(|error| tracing::debug!(%error, "git cannot be asked")).ok()?;
            Some(Self { checkout, program, folder })
        };
        let limited = move || workspace::in_time(&place, open).ok().flatten();
        blocking(limited).await.ok().flatten()
    }

    /// The output of a command. `None` if it fails, takes too long or prints too much.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        self.run_with_input(arguments, None).await
    }

    pub(crate) async fn run_with_input(&self, arguments: &[&str], stdin: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let options = RunOptions {
            timeout: Some(TIME_LIMIT),
            cap_bytes: MAX_OUTPUT_BYTES,
            stdin,
            ..RunOptions::default()
        };
        let finished = sandbox::run(self.order(arguments), options).await;
        let finished = finished.inspect_err(|error| tracing::debug!(%error, "git was not started")).ok()?;
        if finished.exit.code != 0 || finished.stdout.omitted_bytes() > 0 {
            let (said, _) = finished.stderr.parts();
            tracing::debug!(?arguments, said = %String::from_utf8_lossy(&said), "git failed");
            return None;
        }
        let (mut output, tail) = finished.stdout.parts();
        output.extend(tail);
        Some(output)
    }

    fn order(&self, arguments: &[&str]) -> Order {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let GitCheckout { root, common_dir, .. } = &self.checkout;
        let folder = &self.folder.0;
        let env: BTreeMap<String, String> = [
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("HOME", text(folder)),
            ("LC_ALL", "C".to_owned()),
            ("GIT_DIR", text(folder)),
            ("GIT_WORK_TREE", text(root)),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", text(&common_dir.join("objects"))),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_ATTR_NOSYSTEM", "1".to_owned()),
            ("GIT_NO_LAZY_FETCH", "1".to_owned()),
            ("GIT_NO_REPLACE_OBJECTS", "1".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let mut argv = vec![text(&self.program), "--no-pager".to_owned(), "--no-optional-locks".to_owned()];
        argv.extend(arguments.iter().map(ToString::to_string));
        let confinement = Confinement {
            read: ReadAccess::Only(vec![root.clone(), common_dir.clone(), folder.clone()]),
            writable: vec![folder.clone()],
            ..Confinement::read_only()
        };
        let confinement = Some(confinement);
        Order { argv, cwd: root.clone(), env, confinement, limits: Limits::default(), terminal: false }
    }
}

/// Prepares the folder that replaces the repository's own.
fn prepare(checkout: &GitCheckout, folder: &Path, reader: &Reader) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700).recursive(true);
    for name in ["objects/info", "refs", "info"] {
        builder.create(folder.join(name))?;
    }
    let is_sha256 = checkout.head.len() == 64;
    let config = match is_sha256 {
        true => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
        }
        false => "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    };
    fs::write(folder.join("config"), config)?;
    fs::write(folder.join("HEAD"), format!("{}\n", checkout.head))?;
    let refs: String = checkout.remote_branches.iter().map(|(name, sha)| format!("{sha} {name}\n")).collect();
    fs::write(folder.join("packed-refs"), format!("# pack-refs with: sorted\n{refs}"))?;
    let exclude = reader.read_start(&checkout.common_dir.join("info/exclude"), MAX_EXCLUDE_BYTES);
    fs::write(folder.join("info/exclude"), exclude.unwrap_or_default())?;
    match reader.open(&checkout.git_dir.join("index")) {
        Ok(index) if index.metadata.len() > MAX_INDEX_BYTES => {
            Err(io::Error::other("the index is too large"))
        }
        Ok(mut index) => {
            let mut copy = fs::File::create_new(folder.join("index"))?;
            io::copy(&mut index.file, &mut copy).map(|_| ())
        }
        // Nothing was ever staged.
        Err(error) if error.is_missing() => Ok(()),
        Err(error) => Err(error.into_io()),
    }
}

/// The system's git, never one from the checkout.
fn find_git(root: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/bin".into(), "/bin".into()]);
    let is_safe = |folder: &PathBuf| folder.is_absolute() && !folder.starts_with(root);
    let program = folders.filter(is_safe).map(|folder| folder.join("git")).find(|git| git.is_file())?;
    fs::canonicalize(program).ok().filter(|program| !program.starts_with(root))
}
