//! Any bytes as what a peer sends: each line is a message or gets one short error that is itself a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::{FrameError, Incoming, FrameLimits, FrameReader, MAX_ID_BYTES, parse};

/// Small, so that lines on both sides of it are tried.
const LIMITS: FrameLimits = FrameLimits { max_frame_bytes: 512 };
const MAX_ERROR_BYTES: usize = 600 + 6 * MAX_ID_BYTES;

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers");
    runtime.block_on(async {
        let mut lines = FrameReader::new(data, LIMITS);
        let mut frames = 0;
        while let Some(frame) = lines.next().await {
            frames += 1;
            let bad = match frame.map(parse) {
                Ok(Ok(_)) => continue,
                Ok(Err(bad)) => bad,
                Err(FrameError::Io(error)) => panic!("memory failed: {error}"),
                Err(too_long) => too_long.into_bad_message().expect("a line of any length can be answered"),
            };
            let answer = bad.to_line();
            assert!(answer.len() <= MAX_ERROR_BYTES, "an error of {} bytes", answer.len());
            assert!(matches!(parse(&answer), Ok(Incoming::Error(_))), "no error: {answer:?}");
        }
        let newlines = data.iter().filter(|byte| **byte == b'\n').count();
        assert!(frames <= newlines + 1, "{frames} frames in {newlines} lines");
    });
});
