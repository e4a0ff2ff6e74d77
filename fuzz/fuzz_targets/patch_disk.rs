//! Any bytes as a patch in an empty folder: nothing outside of it is ever part of a plan that is carried out.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = TempDir::new() else { return };
    let (workspace, beside) = (folder.path().join("workspace"), folder.path().join("beside"));
    if fs::create_dir(&workspace).is_err() || fs::write(&beside, "untouched").is_err() {
        return;
    }
    patch::fuzzing::disk(data, &workspace);
    assert_eq!(fs::read(&beside).ok().as_deref(), Some(&b"untouched"[..]));
    assert_eq!(
        fs::read_dir(folder.path()).map(Iterator::count).ok(),
        Some(2),
        "something appeared beside it"
    );
});
