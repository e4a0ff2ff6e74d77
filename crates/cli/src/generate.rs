//! Writes an export to a folder, all of it or nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol_export::{File, Surface};

#[derive(Debug, Args)]
pub(crate) struct GenerateOptions {
    /// Folder to write to; created when missing. Files of other names in it are left alone.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Include what needs the experimental capability.
    #[arg(long)]
    experimental: bool,
}

pub(crate) fn run(options: &GenerateOptions, export: fn(Surface) -> Vec<File>) -> Result<()> {
    let out = &options.out;
    if out.as_os_str().is_empty() {
        bail!("--out is empty; give a folder to write to");
    }
    if out.exists() && !out.is_dir() {
        bail!("--out {} is a file; give a folder", out.display());
    }
    let surface = if options.experimental { Surface::Experimental } else { Surface::Stable };
    let files = export(surface);
    write(out, &files).with_context(|| format!("cannot write to --out {}", out.display()))?;
    println!("{} files written to {}", files.len(), out.display());
    Ok(())
}

/// Everything is written beside the target first and renamed into place last, so a full disk or a missing right
/// leaves the target as it was.
fn write(out: &Path, files: &[File]) -> Result<()> {
    let existed = out.exists();
    fs::create_dir_all(out)?;
    let staging = out.join(format!(".oarlock-staging-{}", process::id()));
    let result = stage(&staging, files).and_then(|()| publish(&staging, out, files));
    // Left-overs of a failure are removed; the failure itself is what the caller hears of.
    let _ = fs::remove_dir_all(&staging);
    if result.is_err() && !existed {
        let _ = fs::remove_dir(out);
    }
    result
}

fn stage(staging: &Path, files: &[File]) -> Result<()> {
    for file in files {
        let path = staging.join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, &file.text).with_context(|| file.path.clone())?;
    }
    Ok(())
}

fn publish(staging: &Path, out: &Path, files: &[File]) -> Result<()> {
    // All conflicts are checked before the first file moves.
    for file in files {
        let target = out.join(&file.path);
        if target.is_dir() {
            bail!("{} is a folder where a file belongs", file.path);
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).with_context(|| file.path.clone())?;
        }
    }
    for file in files {
        fs::rename(staging.join(&file.path), out.join(&file.path)).with_context(|| file.path.clone())?;
    }
    Ok(())
}
