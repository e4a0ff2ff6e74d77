//! Any bytes as a tree of files and paths into it: nothing outside the project and nothing hidden is ever read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = TempDir::new() else { return };
    workspace::fuzzing::tree(data, folder.path());
});
