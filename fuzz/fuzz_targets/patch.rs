//! Any bytes as a patch, and what follows a byte 1 as the file it is for.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| patch::fuzzing::text(data));
