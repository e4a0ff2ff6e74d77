//! Tens of thousands of broken lines, the same in each run: each is a message or gives a short error.

use broken_input::{BrokenInput, Random};
use oarlock_rpc::{BadKind, FrameError, FrameLimits, FrameReader, Incoming, MAX_ID_BYTES, parse, salvage_id};
use serde_json::Value;
use tokio::io::AsyncReadExt;

/// Overridden by `RPC_LINES`; `scripts/figures` sends 200,000.
const LINES: usize = 50_000;
const STREAMS: usize = 3_000;

const SEEDS: &[&str] = &[
    r#"{"id":1,"method":"thread/start","params":{"cwd":"/tmp/x","model":null,"n":[1,-2.5e3,true]}}"#,
    r#"{"jsonrpc":"2.0","method":"initialized"}"#,
    r#"{"id":"a-b","method":"x","params":{"text":"\u00e9\ud83d\ude00 \"q\" \\ \n"},"trace":{"traceparent":"00"}}"#,
    r#"{"id":9223372036854775807,"result":{"decision":"accept"}}"#,
    r#"{"id":0,"error":{"code":-32600,"message":"no","data":{"a":[[[[]]]]}}}"#,
    r#"{"params":{"id":7,"deep":[[[[[[[[{"a":{"b":{}}}]]]]]]]]},"id":3,"method":"m"}"#,
    "{\"method\":\"ünï\",\"params\":[\"\u{1f600}\",\"\u{202e}\"]}",
];

const PIECES: &[&[u8]] = &[
    b"\"id\":",
    b"null",
    b"\\ud800",
    b"\\u",
    b"\xff",
    b"\0",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"1e999",
    b"-0",
    b"18446744073709551616",
    b"\"method\":\"m\"",
    b"\"result\":",
    b"\"error\":",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\r",
    b"true",
    b" ",
];

fn check(line: &[u8]) -> Option<BadKind> {
    let shown = String::from_utf8_lossy(line);
    let json = serde_json::from_slice::<Value>(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
    match parse(line) {
        Ok(_) => {
            // A number may be too large for a tree of values. Payloads are only checked to be JSON.
            let too_large = json.is_err_and(|error| !error.to_string().starts_with("number out of range"));
            assert!(!too_large, "taken, but not JSON: {shown}");
            None
        }
        Err(bad) => {
            assert!(bad.message.len() <= 300, "{} for {shown}", bad.message);
            assert!(bad.kind != BadKind::NotJson || json.is_err(), "refused, but JSON: {shown}");
            let answer = bad.to_line();
            assert!(answer.len() <= 600 + 6 * MAX_ID_BYTES, "a long answer to {shown}");
            let Ok(Incoming::Error(error)) = parse(&answer) else { panic!("no error to {shown}") };
            assert_eq!((error.id, error.error.code), (bad.id.clone(), bad.code()), "{shown}");
            Some(bad.kind)
        }
    }
}

#[test]
fn any_line_is_a_message_or_a_short_error() {
    let mut random = Random::default();
    let input = BrokenInput { seeds: SEEDS, pieces: PIECES, most_changes: 1 };
    let mut line = Vec::new();
    let mut taken = 0;
    let mut refused = std::collections::HashMap::<BadKind, usize>::new();
    let lines = std::env::var("RPC_LINES").ok().and_then(|lines| lines.parse().ok()).unwrap_or(LINES);
    for number in 0..lines {
        if number % 6 == 0 || line.len() > 800 {
            line = random.of(SEEDS).as_bytes().to_vec();
        }
        input.change(&mut line, &mut random);
        line.retain(|byte| *byte != b'\n');
        match check(&line) {
            None => taken += 1,
            Some(kind) => *refused.entry(kind).or_default() += 1,
        }
        let _ = salvage_id(&line[random.range(line.len())]);
    }
    assert!(taken > lines / 50, "mutations that leave nothing whole test little: {taken}");
    assert_eq!(refused.len(), 9, "every complaint about a line occurs: {refused:?}");
}

/// The expected frames, computed in the simplest way.
fn frames(stream: &[u8], limit: usize) -> Vec<Option<Vec<u8>>> {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let frame = |line: &[u8]| {
        let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        match line.len() > limit {
            true => Some(None),
            false => (!text.is_empty()).then(|| Some(text.to_vec())),
        }
    };
    lines.into_iter().filter_map(frame).collect()
}

#[tokio::test]
async fn any_stream_is_cut_at_its_newlines_however_it_arrives() {
    let mut random = Random::new(42);
    for _ in 0..STREAMS {
        let length = random.below(400);
        let bytes = b"ab{}\"\xff\xef\xbb\xbf \t\r\n\n\n";
        let stream: Vec<u8> = (0..length).map(|_| *random.of(bytes)).collect();
        let cut = random.below(stream.len() + 1);
        let limit = *random.of(&[0, 1, 5, 20, 1000]);
        let (first, second) = stream.split_at(cut);
        let mut reader = FrameReader::new(first.chain(second), FrameLimits { max_frame_bytes: limit });
        let mut found = Vec::new();
        while let Some(frame) = reader.next().await {
            found.push(match frame {
                Ok(frame) => Some(frame.to_vec()),
                Err(FrameError::TooLong { .. }) => None,
                Err(FrameError::Io(error)) => panic!("{error}"),
            });
        }
        assert_eq!(found, frames(&stream, limit), "{stream:?} cut at {cut}, limit {limit}");
    }
}
