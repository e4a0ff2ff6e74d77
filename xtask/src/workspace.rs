//! The subject of the checks: the packages cargo knows and the files git knows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

/// The part of `cargo metadata` the checks read.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub description: Option<String>,
    pub manifest_path: PathBuf,
    pub dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub name: String,
    /// Absent for a normal dependency.
    pub kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Build,
    Dev,
}

impl Metadata {
    /// The workspace's own packages and nothing else: needs no download.
    pub(crate) fn members_only() -> Result<Self> {
        Self::read(&["--no-deps"])
    }
    /// Every package of the lock file, those of other platforms too.
    pub(crate) fn with_dependencies() -> Result<Self> {
        Self::read(&[])
    }
    fn read(extra: &[&str]) -> Result<Self> {
        let text = cargo(&[&["metadata", "--format-version", "1", "--locked"], extra].concat())?;
        serde_json::from_str(&text).context("cannot read the answer of cargo metadata")
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }
}

/// Something that several checks need, read by the first of them while the others wait.
pub(crate) struct Once<T>(LazyLock<Result<T>>);

impl<T> Once<T> {
    pub(crate) const fn new(read: fn() -> Result<T>) -> Self {
        Self(LazyLock::new(read))
    }

    pub(crate) fn get(&self) -> Result<&T> {
        self.0.as_ref().map_err(|error| anyhow!("{error:#}"))
    }
}

/// The folder of the root `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// Every file that is in git or would be with the next `git add`, relative to the root, in order.
pub(crate) fn files() -> Result<Vec<String>> {
    // A clone may belong to another user than the one who checks it; nothing of it is run by this.
    let listed = output(Command::new("git").args([
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let names: BTreeSet<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
    let root = root();
    // A file that was deleted and not committed yet is still listed.
    Ok(names.into_iter().filter(|name| root.join(name).is_file()).map(str::to_owned).collect())
}

pub(crate) fn read(path: &str) -> Result<Vec<u8>> {
    fs::read(root().join(path)).with_context(|| format!("cannot read {path}"))
}

pub(crate) fn read_text(path: &str) -> Result<String> {
    String::from_utf8(read(path)?).with_context(|| format!("{path} is not UTF-8"))
}

/// Runs the cargo that runs us, at the root.
pub(crate) fn cargo(arguments: &[&str]) -> Result<String> {
    output(Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(arguments))
}

fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.current_dir(root()).output().with_context(|| format!("cannot run {program}"))?;
    if !done.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    String::from_utf8(done.stdout).with_context(|| format!("{program} wrote something that is not UTF-8"))
}
