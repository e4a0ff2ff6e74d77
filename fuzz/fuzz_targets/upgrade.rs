//! Any bytes as the head of a request to the websocket port: nobody is let in without the token, no page and no foreign name.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| server::fuzzing::upgrade(data));
