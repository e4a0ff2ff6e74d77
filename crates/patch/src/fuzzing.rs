//! Entry points for fuzzing, not part of the public interface.

use std::path::Path;

use crate::boundary::Boundary;
use crate::edit::edited;
use crate::invocation::invocation;
use crate::parse::parse;
use crate::patch::Hunk;
use crate::plan::plan;
use crate::unified::{deadline, unified};

/// Reads the bytes as a command line, as a patch, and as a patch with the file it is for. Touches no disk.
///
/// # Panics
/// When a result contradicts what must hold.
pub fn text(data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let (patch, file) = data.split_once('\u{1}').unwrap_or((&data, ""));
    let _ = invocation(&[patch.to_owned()]);
    let _ = invocation(&["bash".to_owned(), "-lc".to_owned(), patch.to_owned()]);
    let Ok(patch) = parse(patch) else { return };
    for hunk in &patch.hunks {
        let Hunk::Update { chunks, .. } = hunk else { continue };
        let Ok(result) = edited(file, chunks) else { continue };
        assert!(result.is_empty() || result.ends_with('\n'), "an edited file ends with a line ending");
        let diff = unified(file, &result, 1, deadline());
        assert_eq!(diff.is_empty(), file == result, "a diff is empty exactly for equal texts");
    }
}

/// Plans and commits the bytes as a patch in a directory, which must hold nothing that matters.
///
/// # Panics
/// When something outside the directory could be reached.
pub fn disk(data: &[u8], directory: &Path) {
    let Ok(patch) = parse(&String::from_utf8_lossy(data)) else { return };
    let Ok(plan) = plan(&patch, directory) else { return };
    let boundary = Boundary::roots(vec![directory.to_owned()]);
    let inside = plan.targets().all(|target| boundary.allows(target));
    let committed = plan.commit(&boundary);
    assert!(inside || committed.is_err(), "a patch outside the boundary is refused");
}
