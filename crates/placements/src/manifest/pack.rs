//! Makes one tar of a manifest, with a digest of what it says.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use data_encoding::{BASE64, HEXLOWER};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use ring::digest::{Context, SHA256};
use rustix::fs::OFlags;

use super::checkout::{RepositoryCheckout, checkout};
use super::{ManifestEntry, WorkspaceManifest};
use crate::error::PlacementError;
use crate::scratch::ScratchDir;
use crate::tar::{TarWriter, relative_parts, stays_inside};

const TAR: &str = "workspace.tar";
/// Files whose time nobody knows get the first second of 2000.
const SOME_TIME: u64 = 946_684_800;

#[derive(Debug, Clone, Copy)]
pub struct WorkspaceLimits {
    /// Of the whole tar.
    pub bytes: u64,
    pub file_bytes: u64,
    pub entries: usize,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self { bytes: 4 << 30, file_bytes: 1 << 30, entries: 500_000 }
    }
}

/// A manifest with everything it names read: ready to be sent, as often as needed.
#[derive(Debug)]
pub struct PreparedManifest {
    manifest: WorkspaceManifest,
    digest: String,
    commits: BTreeMap<String, String>,
    bytes: u64,
    /// Holds the tar.
    folder: ScratchDir,
}

impl PreparedManifest {
    pub async fn new(manifest: WorkspaceManifest, limits: WorkspaceLimits) -> Result<Self, PlacementError> {
        manifest.validate()?;
        let mut checkouts = BTreeMap::new();
        for (path, entry) in &manifest.entries {
            if let ManifestEntry::Git { url, rev, depth, .. } = entry {
                // The repository's objects, and the files that are checked out.
                let room = limits.bytes.saturating_mul(2);
                let checkout = checkout(url, rev.as_deref(), depth.unwrap_or(1), room).await?;
                checkouts.insert(path.clone(), checkout);
            }
        }
        let packed = tokio::task::spawn_blocking(move || pack(manifest, &checkouts, limits)).await;
        packed.unwrap_or_else(|_| Err(PlacementError::invalid("manifest", "packing it panicked")))
    }

    pub fn manifest(&self) -> &WorkspaceManifest {
        &self.manifest
    }

    /// SHA-256 of the paths, modes and contents, commits, environment and setup. Times do not count.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The commit of each git entry, by its path.
    pub fn commits(&self) -> &BTreeMap<String, String> {
        &self.commits
    }

    /// Of the tar.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn open(&self) -> Result<File, PlacementError> {
        File::open(self.folder.path().join(TAR)).map_err(PlacementError::io("opening the workspace's tar"))
    }
}

fn pack(
    manifest: WorkspaceManifest,
    checkouts: &BTreeMap<String, RepositoryCheckout>,
    limits: WorkspaceLimits,
) -> Result<PreparedManifest, PlacementError> {
    let folder = ScratchDir::new()?;
    let action = "writing the workspace's tar";
    let tar = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.path().join(TAR))
        .map_err(PlacementError::io(action))?;
    let writer = TarWriter::new(BufWriter::new(tar));
    let mut packer = Packer {
        writer,
        digest: Context::new(&SHA256),
        limits,
        entries: 0,
        folders: HashSet::new(),
        modes: HashMap::new(),
    };
    for (path, entry) in &manifest.entries {
        packer.entry(path, entry, checkouts.get(path))?;
    }
    let env_and_setup = serde_json::json!([&manifest.env, &manifest.setup]).to_string();
    packer.note(&[b"env", env_and_setup.as_bytes()]);
    let (tar, bytes) = packer.writer.finish().map_err(PlacementError::io(action))?;
    drop(tar);
    let commits = checkouts.iter().map(|(path, checkout)| (path.clone(), checkout.commit.clone())).collect();
    Ok(PreparedManifest {
        manifest,
        digest: HEXLOWER.encode(packer.digest.finish().as_ref()),
        commits,
        bytes,
        folder,
    })
}

struct Packer {
    writer: TarWriter<BufWriter<File>>,
    digest: Context,
    limits: WorkspaceLimits,
    entries: usize,
    /// Those that are in the tar.
    folders: HashSet<Vec<u8>>,
    /// Of folders that were seen and may come into the tar, if something lies in them.
    modes: HashMap<Vec<u8>, u32>,
}

impl Packer {
    fn entry(
        &mut self,
        path: &str,
        entry: &ManifestEntry,
        checkout: Option<&RepositoryCheckout>,
    ) -> Result<(), PlacementError> {
        let field = format!("manifest.entries[{path:?}]");
        let path = relative_parts(path.as_bytes()).unwrap_or_default().join(&b'/');
        match entry {
            ManifestEntry::Text { text, mode } => self.content(&path, text.as_bytes(), mode.unwrap_or(0o644)),
            ManifestEntry::Bytes { base64, mode } => {
                let bytes = BASE64
                    .decode(base64.as_bytes())
                    .map_err(|error| PlacementError::invalid(field, format!("base64: {error}")))?;
                self.content(&path, &bytes, mode.unwrap_or(0o644))
            }
            ManifestEntry::Dir { mode } => {
                self.modes.insert(path.clone(), mode.unwrap_or(0o755));
                self.folder(&path)
            }
            ManifestEntry::LocalFile { path: from } => {
                let metadata = fs::metadata(from).map_err(PlacementError::io(format!("{field}: {from}")))?;
                match metadata.is_file() {
                    true => self.file(&path, Path::new(from), true),
                    false => Err(PlacementError::invalid(field, format!("{from} is no regular file"))),
                }
            }
            ManifestEntry::LocalDir { path: from, include, exclude } => {
                let globs = globs(from, include, exclude)
                    .map_err(|problem| PlacementError::invalid(field, problem))?;
                self.tree(&path, Path::new(from), globs, include.is_empty(), true)
            }
            ManifestEntry::Git { depth, subpath, .. } => {
                let Some(checkout) = checkout else {
                    return Err(PlacementError::invalid(field, "it was not fetched"));
                };
                self.note(&[b"git", &path, checkout.url.as_bytes(), checkout.commit.as_bytes()]);
                if depth.is_some() || subpath.is_some() {
                    let (depth, part) = (depth.unwrap_or(1), subpath.as_deref().unwrap_or_default());
                    self.note(&[b"part", &depth.to_be_bytes(), part.as_bytes()]);
                }
                let from = checkout
                    .part(subpath.as_deref())
                    .map_err(|problem| PlacementError::invalid(field, problem))?;
                self.tree(&path, &from, Override::empty(), true, false)
            }
        }
    }

    fn content(&mut self, path: &[u8], bytes: &[u8], mode: u32) -> Result<(), PlacementError> {
        self.parents(path)?;
        self.count(path, bytes.len() as u64)?;
        self.writer
            .file(path, mode, bytes.len() as u64, SOME_TIME, bytes)
            .map_err(PlacementError::io(shown(path)))?;
        let content = ring::digest::digest(&SHA256, bytes);
        self.note(&[b"file", path, &mode.to_be_bytes(), content.as_ref()]);
        Ok(())
    }

    /// A tree of this machine. `counts` is false for checkouts, which their commit describes.
    fn tree(
        &mut self,
        path: &[u8],
        from: &Path,
        globs: Override,
        keep_empty: bool,
        counts: bool,
    ) -> Result<(), PlacementError> {
        let walk = WalkBuilder::new(from)
            .standard_filters(false)
            .follow_links(false)
            .overrides(globs)
            .sort_by_file_name(Ord::cmp)
            .build();
        for found in walk {
            let found = found.map_err(|error| {
                PlacementError::invalid(shown(from.as_os_str().as_bytes()), error.to_string())
            })?;
            let relative = found.path().strip_prefix(from).unwrap_or(found.path()).as_os_str().as_bytes();
            let to = [path, relative]
                .iter()
                .filter(|part| !part.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join(&b'/');
            let metadata =
                found.metadata().map_err(|error| PlacementError::invalid(shown(&to), error.to_string()))?;
            let kind = metadata.file_type();
            if kind.is_dir() {
                self.modes.insert(to.clone(), metadata.mode() & 0o777);
                if keep_empty {
                    self.folder(&to)?;
                }
            } else if kind.is_symlink() {
                self.link(&to, found.path(), counts)?;
            } else if kind.is_file() {
                self.file(&to, found.path(), counts)?;
            }
            // Sockets, pipes and devices are left out: they mean nothing elsewhere.
        }
        Ok(())
    }

    fn link(&mut self, path: &[u8], from: &Path, counts: bool) -> Result<(), PlacementError> {
        let target = fs::read_link(from).map_err(PlacementError::io(shown(path)))?;
        let target = target.as_os_str().as_bytes();
        if !stays_inside(&relative_parts(path).unwrap_or_default(), target) {
            let problem = format!("it is a link to {}, outside the workspace; exclude it", shown(target));
            return Err(PlacementError::invalid(shown(path), problem));
        }
        self.parents(path)?;
        self.count(path, 0)?;
        self.writer.symlink(path, target, SOME_TIME).map_err(PlacementError::io(shown(path)))?;
        if counts {
            self.note(&[b"link", path, target]);
        }
        Ok(())
    }

    fn file(&mut self, path: &[u8], from: &Path, counts: bool) -> Result<(), PlacementError> {
        // A pipe that took the file's place since it was seen must not hold us up.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(from)
            .map_err(PlacementError::io(shown(path)))?;
        let metadata = file.metadata().map_err(PlacementError::io(shown(path)))?;
        if !metadata.is_file() {
            return Err(PlacementError::invalid(shown(path), "it is no longer a regular file"));
        }
        self.parents(path)?;
        self.count(path, metadata.len())?;
        let modified = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map_or(SOME_TIME, |since| since.as_secs());
        let mode = metadata.mode() & 0o777;
        let mut content = HashingReader { from: file, digest: Context::new(&SHA256) };
        self.writer
            .file(path, mode, metadata.len(), modified, &mut content)
            .map_err(PlacementError::io(shown(path)))?;
        if counts {
            self.note(&[b"file", path, &mode.to_be_bytes(), content.digest.finish().as_ref()]);
        }
        Ok(())
    }

    /// The folder and those above it, each once, from the outermost on.
    fn folder(&mut self, path: &[u8]) -> Result<(), PlacementError> {
        for end in memchr::memchr_iter(b'/', path).chain([path.len()]) {
            self.one_folder(&path[..end])?;
        }
        Ok(())
    }

    fn one_folder(&mut self, path: &[u8]) -> Result<(), PlacementError> {
        if path.is_empty() || self.folders.contains(path) {
            return Ok(());
        }
        self.count(path, 0)?;
        let mode = self.modes.get(path).copied().unwrap_or(0o755);
        self.writer.folder(path, mode, SOME_TIME).map_err(PlacementError::io(shown(path)))?;
        self.note(&[b"folder", path, &mode.to_be_bytes()]);
        self.folders.insert(path.to_vec());
        Ok(())
    }

    fn parents(&mut self, path: &[u8]) -> Result<(), PlacementError> {
        match memchr::memrchr(b'/', path) {
            Some(at) => self.folder(&path[..at]),
            None => Ok(()),
        }
    }

    fn count(&mut self, path: &[u8], bytes: u64) -> Result<(), PlacementError> {
        let WorkspaceLimits { bytes: all, file_bytes, entries } = self.limits;
        self.entries += 1;
        let too_large = |what: String, limit: String| Err(PlacementError::TooLarge { what, limit });
        match () {
            () if bytes > file_bytes => too_large(shown(path), format!("{file_bytes} bytes")),
            () if self.writer.written + bytes > all => {
                too_large("the workspace".to_owned(), format!("{all} bytes"))
            }
            () if self.entries > entries => too_large("the workspace".to_owned(), format!("{entries} files")),
            () => Ok(()),
        }
    }

    /// Adds fields to the digest, each with its length, so that no two lists read the same.
    fn note(&mut self, fields: &[&[u8]]) {
        self.digest.update(&(fields.len() as u64).to_be_bytes());
        for field in fields {
            self.digest.update(&(field.len() as u64).to_be_bytes());
            self.digest.update(field);
        }
    }
}

struct HashingReader {
    from: File,
    digest: Context,
}

impl Read for HashingReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.digest.update(&buffer[..read]);
        Ok(read)
    }
}

fn globs(root: &str, include: &[String], exclude: &[String]) -> Result<Override, String> {
    let mut builder = OverrideBuilder::new(root);
    for glob in include {
        builder.add(glob.trim_start_matches('!')).map_err(|error| format!("include: {error}"))?;
    }
    for glob in exclude {
        builder.add(&format!("!{glob}")).map_err(|error| format!("exclude: {error}"))?;
    }
    builder.build().map_err(|error| error.to_string())
}

fn shown(path: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(path).chars().take(200).collect::<String>())
}
