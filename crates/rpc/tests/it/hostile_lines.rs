//! The hostile lines of the reliability list that concern frames, each followed by a good request that must work.

use oarlock_rpc::{BadMessage, FrameError, FrameLimits, FrameReader, Incoming, parse};

/// The outcome for each line of a stream: `request <id>`, or the code and id of its error.
async fn outcomes(stream: &[u8], limits: FrameLimits) -> Vec<String> {
    let mut reader = FrameReader::new(stream, limits);
    let mut seen = Vec::new();
    while let Some(frame) = reader.next().await {
        let message = match frame {
            Ok(frame) => parse(frame),
            Err(FrameError::Io(error)) => panic!("{error}"),
            Err(too_long) => Err(too_long.into_bad_message().unwrap()),
        };
        seen.push(match message {
            Ok(Incoming::Request(request)) => format!("request {}", request.id),
            Ok(Incoming::Notification(_)) => "notification".to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(bad) => complaint(&bad),
        });
    }
    seen
}

fn complaint(bad: &BadMessage) -> String {
    let line = bad.to_line();
    assert!(line.len() <= 1024, "{} bytes", line.len());
    format!("{} {}", bad.code(), bad.id.as_ref().map_or("null".to_owned(), ToString::to_string))
}

/// Sends the lines, then a good request: the lines have this outcome, and the request is always read.
async fn check(lines: &[u8], expected: &[&str]) {
    let limits = FrameLimits { max_frame_bytes: 4 * 1024 * 1024 };
    let stream = [lines, b"\n{\"id\":99,\"method\":\"a\",\"params\":{}}\n"].concat();
    let mut seen = outcomes(&stream, limits).await;
    let shown = String::from_utf8_lossy(&lines[..lines.len().min(80)]);
    assert_eq!(seen.pop().as_deref(), Some("request 99"), "after {shown}");
    assert_eq!(seen, expected, "{shown}");
}

fn nested(levels: usize) -> Vec<u8> {
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    format!(r#"{{"id":1,"method":"a","params":{open}{close}}}"#).into_bytes()
}

#[tokio::test]
async fn invalid_messages() {
    check(b"{not json}", &["-32700 null"]).await; // 1
    check(br#"{"id":5,"method":"a","params":{not json}}"#, &["-32700 5"]).await; // 1
    check(b"\n   \n\t\r\n", &[]).await; // 2
    check(br#"[{"id":1,"method":"a"},{"id":2,"method":"a"}]"#, &["-32600 null"]).await;
    check(br#"{"id":4}"#, &["-32600 4"]).await; // 4
    check(br#"{"id":"four","params":{}}"#, &["-32600 four"]).await; // 4
    check(br#""text""#, &["-32600 null"]).await;
}

#[tokio::test]
async fn invalid_ids() {
    for id in ["null", "1.5", "1e999", "9223372036854775808", "{\"a\":1}", "[]", "true"] {
        check(format!(r#"{{"id":{id},"method":"a","params":{{}}}}"#).as_bytes(), &["-32600 null"]).await; // 5
    }
    let long = format!(r#"{{"id":"{}","method":"a"}}"#, "x".repeat(1_000_000));
    check(long.as_bytes(), &["-32600 null"]).await; // 23
}

#[tokio::test]
async fn messages_that_only_the_server_can_check_pass() {
    check(br#"{"id":7,"method":"no/such"}"#, &["request 7"]).await; // 7
    check(
        br#"{"id":1,"method":"a"}
{"id":1,"method":"a"}"#,
        &["request 1", "request 1"],
    )
    .await; // 11
    check(br#"{"method":"no/such"}"#, &["notification"]).await; // 13
    check(br#"{"id":1,"method":"a","params":{"n":[1e999,-0,9223372036854775808]}}"#, &["request 1"]).await; // 20
    let long = format!(r#"{{"id":1,"method":"{0}","{0}":1}}"#, "x".repeat(1_000_000));
    check(long.as_bytes(), &["request 1"]).await; // 23
}

#[tokio::test]
async fn deep_nesting() {
    check(&nested(127), &["request 1"]).await;
    check(&nested(128), &["-32700 1"]).await;
    check(&nested(200), &["-32700 1"]).await; // 14
    check(&nested(100_000), &["-32700 1"]).await; // 14
    check("[".repeat(100_000).as_bytes(), &["-32700 null"]).await; // 14
    check("{\"a\":".repeat(100_000).as_bytes(), &["-32700 null"]).await; // 14
}

#[tokio::test]
async fn lines_that_are_too_long() {
    let megabytes = 8 * 1024 * 1024;
    check(&vec![b'{'; megabytes], &["-32600 null"]).await; // 16, 17
    let mut long = br#"{"id":16,"method":"a","params":""#.to_vec();
    long.resize(megabytes, b'x');
    check(&long, &["-32600 16"]).await; // 16
    let mut answer = br#"{"id":16,"result":""#.to_vec();
    answer.resize(megabytes, b'x');
    check(&answer, &["-32600 null"]).await;
}

#[tokio::test]
async fn invalid_utf_8() {
    check(b"{\"id\":1,\"method\":\"a\0\"}", &["-32700 1"]).await; // 19
    check(b"\0\0\0", &["-32700 null"]).await; // 19
    check(b"\xef\xbb\xbf{\"id\":1,\"method\":\"a\"}", &["request 1"]).await; // 19
    check(br#"{"id":1,"method":"a","params":{"text":"\ud800"}}"#, &["-32700 1"]).await; // 19
    check(b"{\"id\":1,\"method\":\"a\"}\r", &["request 1"]).await; // 19
    check(b"{\"id\":1,\"method\":\"\xff\xfe\"}", &["-32700 1"]).await; // T1
    check(b"{\"id\":1,\"method\":\"\xed\xa0\x80\"}", &["-32700 1"]).await;
}

#[tokio::test]
async fn errors_are_not_answered_with_errors() {
    let mut reader = FrameReader::new(&b"{not json}\n"[..], FrameLimits::default());
    let complaint = parse(reader.next().await.unwrap().unwrap()).unwrap_err().to_line();
    assert!(matches!(parse(&complaint), Ok(Incoming::Error(error)) if error.id.is_none()));
}
