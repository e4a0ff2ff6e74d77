//! Local copies of the files of a patch: a folder with the part of the environment that the patch touches.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use memchr::memmem;
use patch::{Hunk, MAX_FILE_BYTES, Patch};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Elsewhere;
use super::gate::ScriptMarker;
use super::query::{path_of, query};
use super::quote::quoted;
use crate::files::access::absolute;
use crate::{ToolCx, ToolError};

const FETCH: &str = include_str!("fetch.sh");
/// Limit of all files of one patch.
const MOST_BYTES: usize = MAX_FILE_BYTES as usize;
/// Limit of a script's length: what a system accepts as one argument.
const MOST_WORDS: usize = 60_000;

/// A patch whose files are to be copied here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchRequest<'a> {
    pub(crate) place: &'a Elsewhere,
    pub(crate) patch: &'a Patch,
    /// The folder there that the patch's paths are relative to.
    pub(crate) base: &'a Path,
}

/// The files of a patch at the time of fetching.
#[derive(Debug)]
pub(crate) struct Mirror {
    folder: TempDir,
    /// The resolved folder.
    root: PathBuf,
    /// By the patch's paths, made absolute.
    files: BTreeMap<PathBuf, RemoteTarget>,
    base: PathBuf,
    /// The repository they belong to, if any.
    repository: Option<PathBuf>,
}

/// One target of a patch.
#[derive(Debug, Clone)]
struct RemoteTarget {
    kind: String,
    is_link: bool,
    /// The resolved path.
    real: PathBuf,
    /// Its nearest existing parent folder.
    folder: PathBuf,
    mode: u32,
    content: Vec<u8>,
}

impl Mirror {
    /// Fetches the files. Refuses targets outside the working directory.
    pub(crate) async fn fetch(cx: &ToolCx, wanted: FetchRequest<'_>) -> Result<Self, ToolError> {
        let mut targets = Vec::new();
        for hunk in &wanted.patch.hunks {
            for path in paths(hunk) {
                let path = absolute(wanted.base, path)?;
                if !targets.contains(&path) {
                    targets.push(path);
                }
            }
        }
        let (mut files, mut held) = (BTreeMap::new(), 0);
        let (base, cwd) = (wanted.base.to_owned(), cx.cwd().to_owned());
        let (folders, repository) = look_at(cx, &wanted, &[base, cwd]).await?;
        let [real_base, real_cwd] = [&folders[0], &folders[1]].map(|found| found.real.clone());
        if folders[0].kind != "folder" {
            let base = patch::shown(wanted.base);
            return Err(failed(format_args!("the base directory {base} cannot be used: it is no directory")));
        }
        for some in batches(&targets) {
            for (target, found) in some.iter().zip(look_at(cx, &wanted, some).await?.0) {
                check(target, &found, cx.cwd(), &real_cwd)?;
                held += found.content.len();
                files.insert(target.clone(), found);
            }
            if held > MOST_BYTES {
                return Err(failed(format_args!(
                    "the files hold more than {} MiB together",
                    MOST_BYTES >> 20
                )));
            }
        }
        let repository = Some(repository).filter(|folder| !folder.as_os_str().is_empty());
        let made = tokio::task::spawn_blocking(move || Self::make(files, &real_base, repository)).await;
        let made = made.unwrap_or_else(|error| Err(io::Error::other(error)));
        made.map_err(|error| {
            ToolError::Failed(format!("the files of the patch cannot be kept here: {error}"))
        })
    }

    fn make(
        files: BTreeMap<PathBuf, RemoteTarget>,
        base: &Path,
        repository: Option<PathBuf>,
    ) -> io::Result<Self> {
        // Other users of this machine must not read the other one's files.
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir()?;
        let root = folder.path().canonicalize()?;
        let base = beneath(&root, base);
        fs::create_dir_all(&base)?;
        for found in files.values() {
            let path = beneath(&root, &found.real);
            match found.kind.as_str() {
                "folder" => fs::create_dir_all(&path)?,
                "file" => {
                    fs::create_dir_all(path.parent().unwrap_or(&root))?;
                    fs::write(&path, &found.content)?;
                    fs::set_permissions(&path, Permissions::from_mode(found.mode))?;
                }
                _ => {}
            }
        }
        Ok(Self { folder, root, files, base, repository })
    }

    /// The patch's base folder, here.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn repository(&self) -> Option<&Path> {
        self.repository.as_deref()
    }

    /// The patch with local paths.
    pub(crate) fn redirected(&self, wanted: FetchRequest<'_>) -> Result<Patch, ToolError> {
        let mut patch = wanted.patch.clone();
        for hunk in &mut patch.hunks {
            match hunk {
                Hunk::Add { path, .. } | Hunk::Delete { path } => *path = self.here(wanted.base, path)?,
                Hunk::Update { path, move_to, .. } => {
                    *path = self.here(wanted.base, path)?;
                    if let Some(to) = move_to {
                        *to = self.here(wanted.base, to)?;
                    }
                }
            }
        }
        Ok(patch)
    }

    fn here(&self, base: &Path, path: &str) -> Result<String, ToolError> {
        let found = self.files.get(&absolute(base, path)?);
        let here =
            found.and_then(|found| beneath(&self.root, &found.real).into_os_string().into_string().ok());
        here.ok_or_else(|| failed(format_args!("the path '{path}' cannot be used")))
    }

    /// The remote path of a local file.
    pub(crate) fn there(&self, here: &Path) -> PathBuf {
        here.strip_prefix(&self.root).map_or_else(|_| here.to_owned(), |rest| Path::new("/").join(rest))
    }

    /// A text with local paths replaced by remote ones.
    pub(crate) fn told(&self, text: &str) -> String {
        text.replace(&*self.root.to_string_lossy(), "")
    }

    /// Every file the patch touches, as spelled, and its resolved path if that differs.
    pub(crate) fn targets(&self) -> Vec<PathBuf> {
        let both = self.files.iter().flat_map(|(path, found)| [path.clone(), found.real.clone()]);
        let mut targets: Vec<PathBuf> = both.collect();
        targets.sort();
        targets.dedup();
        targets
    }

    /// The missing parent folders of a file, outermost first.
    pub(crate) fn missing_folders(&self, real: &Path) -> Vec<PathBuf> {
        let found = self.files.values().find(|found| found.real == real && found.kind == "absent");
        let Some(found) = found else { return Vec::new() };
        let above = real.ancestors().skip(1).take_while(|above| *above != found.folder);
        let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
        missing.reverse();
        missing
    }

    /// The state of the fetched files, for a digest.
    pub(crate) fn json(&self) -> Value {
        let one = |(path, found): (&PathBuf, &RemoteTarget)| {
            let sum = data_encoding::HEXLOWER.encode(digest(&SHA256, &found.content).as_ref());
            let (path, real) = (path.to_string_lossy(), found.real.to_string_lossy());
            json!({ "path": path, "real": real, "kind": found.kind, "mode": found.mode, "sha256": sum })
        };
        self.files.iter().map(one).collect()
    }

    /// Removes the local copies.
    pub(crate) fn discard(self) {
        let folder = self.folder.path().display().to_string();
        if let Err(error) = self.folder.close() {
            tracing::warn!(folder, "the local copies of a patch cannot be removed: {error}");
        }
    }
}

fn paths(hunk: &Hunk) -> impl Iterator<Item = &str> {
    let to = match hunk {
        Hunk::Update { move_to, .. } => move_to.as_deref(),
        Hunk::Add { .. } | Hunk::Delete { .. } => None,
    };
    std::iter::once(hunk.path()).chain(to)
}

fn beneath(root: &Path, there: &Path) -> PathBuf {
    root.join(there.strip_prefix("/").unwrap_or(there))
}

fn failed(problem: impl fmt::Display) -> ToolError {
    ToolError::Failed(format!("apply_patch verification failed: {problem}"))
}

/// As many targets at a time as fit in one script.
fn batches(targets: &[PathBuf]) -> Vec<&[PathBuf]> {
    let mut batches = Vec::new();
    let mut rest = targets;
    while !rest.is_empty() {
        let mut length = 0;
        let fits = rest.iter().take_while(|path| {
            length += path.as_os_str().len() + 10;
            length < MOST_WORDS
        });
        let (some, after) = rest.split_at(fits.count().max(1));
        batches.push(some);
        rest = after;
    }
    batches
}

/// Refuses a target that cannot be patched there.
fn check(target: &Path, found: &RemoteTarget, cwd: &Path, real_cwd: &Path) -> Result<(), ToolError> {
    let shown = patch::shown(target);
    let within = |path: &Path, folder: &Path| path.starts_with(folder);
    let leads_out = match within(target, cwd) {
        true => !within(&found.real, real_cwd),
        false => found.is_link,
    };
    let problem = match found.kind.as_str() {
        "file" | "absent" | "folder" if leads_out => {
            "leads outside of the working directory through a symbolic link; name the file it leads to"
        }
        "file" if found.content.len() > MAX_FILE_BYTES as usize => "is too large",
        "file" | "absent" | "folder" => return Ok(()),
        "broken" => "is a symbolic link; name the file it leads to",
        "denied" => "cannot be read: permission denied",
        "blocked" => "lies beneath something that is not a directory",
        _ => "is not a regular file",
    };
    Err(failed(format_args!("{shown} {problem}")))
}

/// Inspects these paths there, and finds the repository around the base.
async fn look_at(
    cx: &ToolCx,
    wanted: &FetchRequest<'_>,
    paths: &[PathBuf],
) -> Result<(Vec<RemoteTarget>, PathBuf), ToolError> {
    let boundary = ScriptMarker::new();
    let words: Vec<String> = paths.iter().map(|path| quoted(&path.to_string_lossy())).collect();
    let calls: String = words.iter().map(|word| format!("one {word}\n")).collect();
    let (mark, base) = (boundary.word(), quoted(&wanted.base.to_string_lossy()));
    let most = MAX_FILE_BYTES + 1;
    let script = format!("boundary={mark} most={most}\n{FETCH}repository {base}\n{calls}exit 0\n");
    let answer = query(cx, wanted.place, &script, 2 * MOST_BYTES).await?;
    let parsed = parse(&answer.bytes, mark.as_bytes()).filter(|(found, _)| found.len() == paths.len());
    parsed.ok_or_else(|| failed(wanted.place.lost("its answer makes no sense")))
}

fn parse(bytes: &[u8], boundary: &[u8]) -> Option<(Vec<RemoteTarget>, PathBuf)> {
    let (repository, mut rest) = field(bytes)?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (kind, link, real, folder, mode);
        (kind, rest) = field(rest)?;
        (link, rest) = field(rest)?;
        (real, rest) = field(rest)?;
        (folder, rest) = field(rest)?;
        (mode, rest) = field(rest)?;
        let end = memmem::find(rest, boundary)?;
        all.push(RemoteTarget {
            kind: String::from_utf8_lossy(kind).into_owned(),
            is_link: !link.is_empty(),
            real: plain(real)?,
            folder: plain(folder)?,
            mode: mode_of(mode),
            content: rest[..end].to_vec(),
        });
        rest = &rest[end + boundary.len()..];
    }
    Some((all, plain(repository)?))
}

/// A path without `..`. The environment controls the answer, and local copies are made by these paths.
fn plain(bytes: &[u8]) -> Option<PathBuf> {
    let path = path_of(bytes);
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    is_plain.then_some(path)
}

fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// The mode that `ls` prints as `-rwxr-xr-x`, without its special bits.
fn mode_of(text: &[u8]) -> u32 {
    let bits = text.iter().skip(1).take(9);
    bits.fold(0, |mode, bit| (mode << 1) | u32::from(matches!(bit, b'r' | b'w' | b'x' | b's' | b't')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read() {
        for (text, mode) in [("-rw-r--r--", 0o644), ("-rwsr-x--T.", 0o750), ("", 0), ("-rwxrwxrwt", 0o777)] {
            assert_eq!(mode_of(text.as_bytes()), mode, "{text}");
        }
    }

    #[test]
    fn answers_with_parent_paths_are_refused() {
        let answer = |repository: &str, real: &str, folder: &str| {
            let fields = [repository, "file", "", real, folder, "-rw-r--r--", "textEND"].join("\0");
            parse(fields.as_bytes(), b"END").map(|(found, _)| found.len())
        };
        assert_eq!(answer("/w", "/w/a", "/w"), Some(1));
        assert_eq!(answer("", "", ""), Some(1));
        for up in ["/w/../etc/passwd", "..", "/w/..", "../../x", "/w/a/../../../x"] {
            assert_eq!(answer(up, "/w/a", "/w"), None, "{up}");
            assert_eq!(answer("/w", up, "/w"), None, "{up}");
            assert_eq!(answer("/w", "/w/a", up), None, "{up}");
        }
    }

    #[test]
    fn scripts_stay_short() {
        let targets: Vec<PathBuf> =
            (0..100).map(|number| format!("/{}{number}", "x".repeat(2_000)).into()).collect();
        let all = batches(&targets);
        assert!(all.len() > 1 && all.concat() == targets);
        assert!(batches(&[]).is_empty());
        let long = [PathBuf::from("x".repeat(100_000))];
        assert_eq!(batches(&long), [&long[..]]);
    }
}
