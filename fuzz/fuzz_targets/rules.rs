//! Any bytes as a rule file: it is read, or the complaint names a place in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy::fuzzing::rule_file(data));
