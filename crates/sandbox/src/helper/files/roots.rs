//! Resolves the writable roots.

use std::fs;
use std::path::{Path, PathBuf};

use super::wire::{StartFailure, StartStage};
use crate::Confinement;

/// Never writable: the helper mounts its own there.
const OWN: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The resolved writable roots. Missing ones are left out.
///
/// A root whose target has changed since it was decided is an error: another command has changed it.
pub(crate) fn writable_roots(confinement: &Confinement) -> Result<Vec<PathBuf>, StartFailure> {
    let mut resolved: Vec<(&PathBuf, PathBuf)> = Vec::with_capacity(confinement.writable.len());
    for asked in &confinement.writable {
        let Ok(end) = fs::canonicalize(asked) else { continue };
        let decided = confinement.resolved.iter().find(|(path, _)| path == asked);
        if let Some((_, decided)) = decided.filter(|(_, decided)| *decided != end) {
            let (asked, decided, end) = (asked.display(), decided.display(), end.display());
            let message = format!(
                "the writable folder {asked} led to {decided} when it was decided on and leads to {end} now; put it \
                 back, or start a new thread to work there"
            );
            return Err(StartFailure::new(StartStage::Mounts, message));
        }
        resolved.push((asked, end));
    }
    let ends: Vec<PathBuf> = resolved.iter().map(|(_, end)| end.clone()).collect();
    let mut roots: Vec<PathBuf> = resolved
        .into_iter()
        .filter(|(asked, end)| !turned_elsewhere(asked, end, &ends))
        .map(|(_, end)| end)
        .filter(|end| !OWN.iter().any(|own| end.starts_with(own)))
        .collect();
    roots.sort();
    roots.dedup();
    Ok(roots)
}

/// Whether a root's path leads through another root and then out of it. An earlier command may have put such a link
/// there, so it cannot be what the user meant.
fn turned_elsewhere(asked: &Path, end: &Path, roots: &[PathBuf]) -> bool {
    asked.ancestors().skip(1).filter_map(|above| fs::canonicalize(above).ok()).any(|above| {
        roots.iter().any(|root| root != end && above.starts_with(root) && !end.starts_with(root))
    })
}
