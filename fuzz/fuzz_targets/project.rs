//! Any bytes as the settings of a project: they never get beyond what the user's own settings say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = TempDir::new() else { return };
    config::fuzzing::project(data, folder.path());
});
