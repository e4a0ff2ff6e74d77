//! Any bytes as the manifest of a workspace: one that is accepted puts nothing outside of it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| placements::fuzzing::manifest(data));
