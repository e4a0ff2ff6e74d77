//! Any bytes as a shell script: everything that reads it agrees, and what it quotes is read back the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy::fuzzing::command_line(data));
