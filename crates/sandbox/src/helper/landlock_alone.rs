//! The Landlock rules without another layer. Rules can only allow: hidden paths stay closed because everything around
//! them is allowed individually. If that is not possible, the command is refused.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::hidden::{Cover, HiddenPaths, only_root};
use super::landlock::LandlockRules;
use super::mount::PLATFORM;
use super::wire::{StartFailure, StartStage};
use crate::{Confinement, ReadAccess};

/// Each rule makes the start slower.
const MOST_RULES: usize = 4_096;

/// `roots` are the writable ones, resolved.
pub(crate) fn rules(confinement: &Confinement, roots: &[PathBuf]) -> Result<LandlockRules, StartFailure> {
    if let (true, Some(port)) = (confinement.network, confinement.closed_ports.first()) {
        return Err(refusal(&format!("keep a command with network from port {port} of this server")));
    }
    let mut hidden = HiddenPaths::find(confinement);
    if rustix::process::geteuid().is_root() {
        only_root().for_each(|path| hidden.cover(path));
    }
    let writable: Vec<PathBuf> = roots.iter().filter(|root| hidden.above(root).is_none()).cloned().collect();
    let names = hidden.covers().map(|(path, _)| path).chain(hidden.missing.iter().map(PathBuf::as_path));
    for name in names {
        if let Some(root) = writable.iter().find(|root| name.starts_with(root)) {
            let (name, root) = (name.display(), root.display());
            return Err(refusal(&format!("hide {name} within the writable folder {root}")));
        }
    }
    let asked: Vec<PathBuf> = match &confinement.read {
        ReadAccess::Everything => vec![PathBuf::from("/")],
        ReadAccess::Only(paths) => {
            let own = ["/dev", "/proc"].iter().chain(PLATFORM).map(PathBuf::from);
            own.chain(paths.iter().cloned()).collect()
        }
        ReadAccess::Exactly(paths) => paths.clone(),
    };
    let readable = around(&asked, &hidden)?;
    // Names in a folder stay visible even where its files are not: there is no rule for a folder without its contents.
    Ok(LandlockRules { readable, listable: asked, writable, network: confinement.network })
}

/// The same paths without their hidden parts.
fn around(asked: &[PathBuf], hidden: &HiddenPaths) -> Result<Vec<PathBuf>, StartFailure> {
    let covers: Vec<(&Path, Cover)> = hidden.covers().collect();
    let mut open: Vec<PathBuf> = asked.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut allowed = Vec::new();
    while let Some(path) = open.pop() {
        if hidden.above(&path).is_some() {
            continue;
        }
        if covers.iter().any(|(cover, _)| cover.starts_with(&path)) {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            // A link needs no rule: the kernel checks its target.
            let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
            open.extend(entries.filter(|entry| !is_link(entry)).map(|entry| entry.path()));
        } else {
            allowed.push(path);
        }
        if allowed.len() + open.len() > MOST_RULES {
            return Err(refusal("hide files in a folder with so many others"));
        }
    }
    allowed.extend(
        covers.iter().filter(|(_, cover)| *cover == Cover::Shown).map(|(path, _)| path.to_path_buf()),
    );
    Ok(allowed)
}

fn refusal(what: &str) -> StartFailure {
    StartFailure::new(StartStage::Landlock, format!("Landlock alone cannot {what}; use the full sandbox"))
}
