//! The bridge between a runtime and a provider, over real sockets: what goes through, what does not, and what is never
//! said. The test is both ends and decides when each byte is sent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use testkit::{EndInTime, LinesInTime, RunInTime, WAIT_LIMIT};

const KEY: &str = "sk-planted-key-0123456789";
const TOKEN: &str = "tok-planted-0123456789";

/// A provider that hands each request to the test, which answers it on the stream.
struct Upstream {
    url: String,
    requests: Receiver<Received>,
}

struct Received {
    /// In lower case.
    head: String,
    body: Vec<u8>,
    stream: TcpStream,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/base", listener.local_addr().expect("an address"));
        let (tell, requests) = channel();
        // Ends with the test's process: nothing else has this port.
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let (head, body) = read_message(&mut stream);
                if tell.send(Received { head, body, stream }).is_err() {
                    break;
                }
            }
        });
        Self { url, requests }
    }

    fn next(&self) -> Received {
        self.requests.recv_timeout(WAIT_LIMIT).expect("a request in time")
    }

    fn got_nothing(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl Received {
    fn answer(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("the bridge reads");
    }

    /// Whether the bridge hangs up, now or soon.
    fn ends_early(mut self) -> bool {
        self.stream.set_read_timeout(Some(WAIT_LIMIT)).expect("set");
        match self.stream.read(&mut [0; 16]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// A message with its body, by its length or in chunks.
fn read_message(stream: &mut TcpStream) -> (String, Vec<u8>) {
    stream.set_read_timeout(Some(WAIT_LIMIT)).expect("set");
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if !read_more(stream, &mut bytes) {
            return (String::new(), Vec::new());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let mut body = bytes.split_off(end);
    if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        let length: usize = length.trim().parse().expect("a length");
        while body.len() < length && read_more(stream, &mut body) {}
        return (head, body);
    }
    if head.contains("transfer-encoding: chunked") {
        while unchunked(&body).is_none() && read_more(stream, &mut body) {}
        return (head, unchunked(&body).unwrap_or_default());
    }
    (head, body)
}

fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> bool {
    let mut piece = [0; 4096];
    match stream.read(&mut piece) {
        Ok(0) | Err(_) => false,
        Ok(read) => {
            bytes.extend_from_slice(&piece[..read]);
            true
        }
    }
}

/// The body of whole chunks, once the last of them is there.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let at = bytes.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..at]).ok()?, 16).ok()?;
        bytes = &bytes[at + 2..];
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(..length)?);
        bytes = bytes.get(length + 2..)?;
    }
}

struct Bridge {
    child: Child,
    address: SocketAddr,
    first_line: String,
    out: LinesInTime,
    errors: LinesInTime,
}

impl Bridge {
    fn start(upstream: &str, arguments: &[&str]) -> Self {
        let mut child = command(upstream)
            .args(arguments)
            .env("RUST_LOG", "trace")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdout = LinesInTime::new(child.stdout.take().expect("piped"));
        let first_line = stdout.next().expect("a line");
        let address = first_line.split("http://").nth(1).and_then(|rest| rest.split(['"', '\n']).next());
        let address = address.and_then(|address| address.parse().ok()).expect("an address");
        let errors = LinesInTime::new(child.stderr.take().expect("piped"));
        Self { child, address, first_line, out: stdout, errors }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(WAIT_LIMIT)).expect("set");
        stream
    }

    /// Sends a request and does not wait for the answer.
    fn send(&self, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        stream
    }

    fn ask(&self, path: &str, headers: &str, body: &str) -> (String, String) {
        text_of(&mut self.send(path, headers, body))
    }

    /// Ends it as an operator would; gives how it ended and all it ever said.
    fn stop(mut self) -> (ExitStatus, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        let status = self.child.wait_in_time();
        let said = [self.first_line.clone()].into_iter().chain(&mut self.out).chain(&mut self.errors);
        (status, said.collect::<Vec<String>>().join("\n"))
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(upstream: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock"));
    command
        .args(["responses-bridge", "--upstream", upstream, "--key-env", "PLANTED_KEY"])
        .env("PLANTED_KEY", KEY)
        .env("PLANTED_TOKEN", TOKEN);
    command
}

fn text_of(stream: &mut TcpStream) -> (String, String) {
    let (head, body) = read_message(stream);
    (head, String::from_utf8(body).expect("text"))
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// A stream of events that says more than one byte per letter, with an empty line where nobody expects one.
fn events() -> Vec<u8> {
    let events = (0..40).map(|n| format!("event: e{n}\ndata: {{\"delta\":\"größer → {n} 🛶\"}}\r\n\r\n\n"));
    events.collect::<String>().into_bytes()
}

#[test]
fn a_stream_arrives_byte_for_byte_and_piece_by_piece() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &[]);
    let sent = r#"{"input":"hällo","stream":true}"#;
    let headers =
        "authorization: Bearer theirs\r\ncookie: a=b\r\nx-codex-turn-state: s1\r\nuser-agent: r/1\r\n";
    let mut client = bridge.send("/v1/responses", headers, sent);
    let mut request = upstream.next();
    assert!(request.head.starts_with("post /base/responses http/1.1\r\n"), "{}", request.head);
    assert!(request.head.contains(&format!("authorization: bearer {KEY}\r\n")), "{}", request.head);
    for header in ["x-codex-turn-state: s1\r\n", "user-agent: r/1\r\n"] {
        assert!(request.head.contains(header), "{}", request.head);
    }
    for header in ["theirs", "cookie", "host: x"] {
        assert!(!request.head.contains(header), "{}", request.head);
    }
    assert_eq!(request.body, sent.as_bytes());
    request.answer(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nx-request-id: r7\r\n\
         set-cookie: a=b\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    let events = events();
    let mut received = Vec::new();
    let mut head_end = None;
    for (number, piece) in events.chunks(13).enumerate() {
        request.stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).expect("sent");
        // The piece itself in two halves, so that a chunk never comes at once.
        let (front, back) = piece.split_at(piece.len() / 2);
        request.stream.write_all(front).expect("sent");
        request.stream.write_all(back).expect("sent");
        request.stream.write_all(b"\r\n").expect("sent");
        // Nothing more is sent before this much has arrived: whatever holds pieces back never ends this test.
        let wanted = (number + 1) * 13;
        while so_far(&received, &mut head_end).is_none_or(|body| body.len() < wanted.min(events.len())) {
            assert!(read_more(&mut client, &mut received), "the answer broke off");
        }
    }
    request.answer("0\r\n\r\n");
    while head_end.is_none_or(|at| unchunked(&received[at..]).is_none()) {
        assert!(read_more(&mut client, &mut received), "the answer broke off");
    }
    let at = head_end.expect("a head");
    assert_eq!(unchunked(&received[at..]).expect("whole"), events);
    let head = String::from_utf8_lossy(&received[..at]).to_ascii_lowercase();
    assert!(head.contains("content-type: text/event-stream; charset=utf-8\r\n"), "{head}");
    assert!(head.contains("x-request-id: r7\r\n") && !head.contains("set-cookie"), "{head}");
}

/// The body as far as it has come, once the head is there.
fn so_far(bytes: &[u8], head_end: &mut Option<usize>) -> Option<Vec<u8>> {
    let found = || bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
    *head_end = head_end.or_else(found);
    let body = [&bytes[(*head_end)?..], b"0\r\n\r\n"].concat();
    // A chunk that is not whole yet hides those before it, so it is cut off.
    Some(unchunked(&body).unwrap_or_default())
}

#[test]
fn what_is_not_a_model_request_is_refused() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &[]);
    let other = upstream.url.trim_end_matches("/base");
    let requests = [
        "GET /v1/responses".to_owned(),
        "GET /v1/models".to_owned(),
        "GET /".to_owned(),
        "HEAD /v1/responses".to_owned(),
        "OPTIONS *".to_owned(),
        "DELETE /v1/responses".to_owned(),
        "PUT /v1/responses".to_owned(),
        "BREW /v1/responses".to_owned(),
        "POST /".to_owned(),
        "POST /responses".to_owned(),
        "POST /v1/chat/completions".to_owned(),
        "POST /v1/responses/".to_owned(),
        "POST /v1/responses?key=1".to_owned(),
        "POST /v1/responses/../models".to_owned(),
        "POST /v1/responses/%2e%2e/models".to_owned(),
        "POST /v1/responses%2f..%2fmodels".to_owned(),
        "POST /v1/./responses".to_owned(),
        "POST //v1/responses".to_owned(),
        "POST /v1//responses".to_owned(),
        "POST /V1/RESPONSES".to_owned(),
        "POST /v1/responses/resp_1/cancel".to_owned(),
        format!("POST {other}/v1/responses"),
        format!("POST http://{}/v1/responses", bridge.address),
        format!("CONNECT {}", other.trim_start_matches("http://")),
    ];
    let check = |request: &str, headers: &str| {
        let mut stream = bridge.connect();
        // A HEAD has no body, so that hanging up is what ends its answer.
        let close = if request.starts_with("HEAD") { "connection: close\r\n" } else { "" };
        write!(stream, "{request} HTTP/1.1\r\nhost: x\r\n{headers}{close}content-length: 0\r\n\r\n")
            .expect("sent");
        let (head, body) = read_message(&mut stream);
        assert!(head.starts_with("http/1.1 403 "), "{request} {headers}: {head}");
        if close.is_empty() {
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body["error"]["type"], "bridge_error", "{request}");
        }
    };
    requests.iter().for_each(|request| check(request, ""));
    for headers in [
        "connection: upgrade\r\nupgrade: websocket\r\n",
        "connection: upgrade, http2-settings\r\nupgrade: h2c\r\n",
        "origin: http://page.example\r\n",
        "sec-fetch-site: cross-site\r\n",
    ] {
        check("POST /v1/responses", headers);
    }
    // Nothing that could be taken for a second request, or for one of another kind, comes out at the other end.
    for bytes in ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "nonsense\r\n\r\n", "\u{16}\u{3}\u{1}\0\0"] {
        let mut stream = bridge.connect();
        stream.write_all(bytes.as_bytes()).expect("sent");
        stream.shutdown(Shutdown::Write).expect("shut");
        let (head, _) = read_message(&mut stream);
        assert!(head.is_empty() || head.starts_with("http/1.1 4"), "{head}");
    }
    assert!(upstream.got_nothing());
}

#[test]
fn compaction_gets_through_and_a_connection_serves_again() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &["--json"]);
    let line: serde_json::Value = serde_json::from_str(&bridge.first_line).expect("JSON");
    assert_eq!(line["bridgeUrl"], format!("http://{}/v1", bridge.address));
    let mut client = bridge.send("/v1/responses/compact", "content-type: application/json\r\n", "{}");
    let mut request = upstream.next();
    assert!(request.head.starts_with("post /base/responses/compact http/1.1\r\n"), "{}", request.head);
    request.answer(&OK.replace("content-length", "connection: close\r\ncontent-length"));
    assert_eq!(text_of(&mut client).1, "{}");
    write!(client, "POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n1").expect("sent");
    let mut request = upstream.next();
    assert_eq!(request.body, b"1");
    request.answer(OK);
    assert_eq!(text_of(&mut client).1, "{}");
}

#[test]
fn errors_of_the_provider_are_handed_back() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &[]);
    for (status, header, body) in [
        ("429 Too Many Requests", "retry-after: 7\r\n", "{\"error\":{\"message\":\"slow down\"}}\n"),
        ("500 Internal Server Error", "x-request-id: r1\r\n", "<html>oh</html>"),
        ("401 Unauthorized", "", "{\"error\":\"no\"}"),
        ("302 Found", "location: http://elsewhere/\r\n", ""),
    ] {
        let mut client = bridge.send("/v1/responses", "", "{}");
        let answer = format!("HTTP/1.1 {status}\r\n{header}content-length: {}\r\n", body.len());
        upstream.next().answer(&format!("{answer}connection: close\r\n\r\n{body}"));
        let (head, received) = text_of(&mut client);
        assert!(head.starts_with(&format!("http/1.1 {}", status.to_ascii_lowercase())), "{head}");
        assert!(head.contains(header), "{head}");
        assert_eq!(received, body);
    }
}

#[test]
fn a_body_that_is_too_large_goes_nowhere() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &["--max-body-bytes", "1000"]);
    let (head, body) = bridge.ask("/v1/responses", "", &"x".repeat(1001));
    assert!(head.starts_with("http/1.1 413 ") && body.contains("1000 bytes"), "{head}{body}");
    // By its length alone, before any of it is sent.
    let mut stream = bridge.connect();
    write!(stream, "POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999999\r\n\r\n")
        .expect("sent");
    assert!(read_message(&mut stream).0.starts_with("http/1.1 413 "));
    let mut stream = bridge.connect();
    write!(stream, "POST /v1/responses HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .expect("sent");
    let chunk = format!("1f4\r\n{}\r\n", "x".repeat(500));
    write!(stream, "{chunk}{chunk}{chunk}").expect("sent");
    assert!(read_message(&mut stream).0.starts_with("http/1.1 413 "));
    assert!(upstream.got_nothing());
    let mut client = bridge.send("/v1/responses", "", &"x".repeat(1000));
    upstream.next().answer(OK);
    assert!(text_of(&mut client).0.starts_with("http/1.1 200 "));
}

#[test]
fn only_so_many_requests_are_under_way() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &["--max-requests", "1"]);
    let mut slow = bridge.send("/v1/responses", "", "{}");
    let mut request = upstream.next();
    // The answer has begun, and still counts.
    request.answer("HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n");
    let mut begun = Vec::new();
    while !begun.windows(2).any(|window| window == b"ab") {
        assert!(read_more(&mut slow, &mut begun), "the answer broke off");
    }
    let (head, body) = bridge.ask("/v1/responses", "", "{}");
    assert!(head.starts_with("http/1.1 503 ") && body.contains("\"busy\""), "{head}{body}");
    request.answer("0\r\n\r\n");
    while !begun.ends_with(b"0\r\n\r\n") {
        assert!(read_more(&mut slow, &mut begun), "the answer broke off");
    }
    let mut client = bridge.send("/v1/responses", "", "{}");
    upstream.next().answer(OK);
    assert!(text_of(&mut client).0.starts_with("http/1.1 200 "));
}

#[test]
fn a_client_that_hangs_up_ends_the_request_to_the_provider() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &["--max-requests", "1"]);
    // Before the answer has begun, and in the middle of it.
    let client = bridge.send("/v1/responses", "", "{}");
    let request = upstream.next();
    drop(client);
    assert!(request.ends_early());
    let mut client = bridge.send("/v1/responses", "", "{}");
    let mut request = upstream.next();
    request.answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n");
    assert!(read_more(&mut client, &mut Vec::new()));
    drop(client);
    assert!(request.ends_early());
}

#[test]
fn a_provider_that_hangs_up_never_looks_like_a_whole_answer() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &[]);
    let mut client = bridge.send("/v1/responses", "", "{}");
    drop(upstream.next());
    let (head, body) = text_of(&mut client);
    assert!(head.starts_with("http/1.1 502 ") && body.contains("upstream_unreachable"), "{head}{body}");
    let mut client = bridge.send("/v1/responses", "", "{}");
    let mut request = upstream.next();
    request.answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n");
    let mut received = Vec::new();
    while !received.windows(2).any(|window| window == b"ab") {
        assert!(read_more(&mut client, &mut received), "the answer broke off");
    }
    drop(request);
    while read_more(&mut client, &mut received) {}
    assert!(!received.ends_with(b"0\r\n\r\n"), "it looks whole");
}

#[test]
fn a_token_is_asked_for_and_not_passed_on() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &["--token-env", "PLANTED_TOKEN"]);
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    for headers in ["", "authorization: Bearer wrong\r\n", &bearer.replace("0123", "01234")] {
        let (head, _) = bridge.ask("/v1/responses", headers, "{}");
        assert!(head.starts_with("http/1.1 403 "), "{headers}: {head}");
    }
    assert!(upstream.got_nothing());
    let mut client = bridge.send("/v1/responses", &bearer, "{}");
    let mut request = upstream.next();
    assert!(request.head.contains(KEY) && !request.head.contains(TOKEN), "{}", request.head);
    request.answer(OK);
    assert!(text_of(&mut client).0.starts_with("http/1.1 200 "));
}

#[test]
fn nothing_secret_is_ever_said() {
    let upstream = Upstream::start();
    let bridge = Bridge::start(&upstream.url, &["--token-env", "PLANTED_TOKEN"]);
    let headers = format!("authorization: Bearer {TOKEN}\r\nx-codex-turn-state: planted-header\r\n");
    let planted = "{\"input\":\"planted-question\"}";
    for status in ["200 OK", "401 Unauthorized"] {
        let mut client = bridge.send("/v1/responses", &headers, planted);
        let body = format!("{{\"error\":\"planted-answer: {KEY} is wrong\"}}");
        let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}", body.len());
        upstream.next().answer(&format!("{answer}\r\nx-answer: planted-header\r\n\r\n{body}"));
        let (_, received) = text_of(&mut client);
        assert!(received.contains("planted-answer"), "{received}");
        // A provider's quote of a refused key does not reach the runtime.
        assert!(status == "200 OK" || !received.contains(KEY), "{received}");
    }
    bridge.ask("/v1/planted-path", &headers, planted);
    let mut client = bridge.send("/v1/responses", &headers, planted);
    drop(upstream.next());
    let (_, body) = text_of(&mut client);
    assert!(!body.contains(&upstream.url) && !body.contains("planted"), "{body}");
    let (status, said) = bridge.stop();
    assert!(status.success(), "{said}");
    assert!(said.contains("a request goes on") && said.contains("a request was refused"), "{said}");
    for secret in ["planted-", KEY, TOKEN, "c2stcGxhbnRlZ"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
}

#[test]
fn what_cannot_work_is_said_before_anything_listens() {
    let check = |upstream: &str, arguments: &[&str], key: Option<&str>, expected: &str| {
        let mut command = command(upstream);
        command.args(arguments);
        match key {
            Some(key) => command.env("PLANTED_KEY", key),
            None => command.env_remove("PLANTED_KEY"),
        };
        let output = command.output_in_time();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(output.stdout.is_empty() && errors.contains(expected) && !errors.contains(KEY), "{errors}");
    };
    check("https://host/v1", &[], None, "the environment variable PLANTED_KEY is not set");
    check("https://host/v1", &[], Some(" "), "the environment variable PLANTED_KEY is not set");
    check("https://host/v1", &[], Some("a\nb"), "characters a header cannot carry");
    check("host/v1", &[], Some(KEY), "does not begin with https://");
    check("https://host/v1", &["--listen", "0.0.0.0:0"], Some(KEY), "--allow-remote");
    check("https://host/v1", &["--listen", "0.0.0.0:0", "--allow-remote"], Some(KEY), "--token-env");
    check("https://host/v1", &["--token-env", "NO_SUCH_TOKEN"], Some(KEY), "NO_SUCH_TOKEN is not set");
}

#[test]
fn silent_connections_keep_nobody_out() {
    let upstream = Upstream::start();
    // Room for four connections that were let through.
    let bridge = Bridge::start(&upstream.url, &["--token-env", "PLANTED_TOKEN", "--max-requests", "1"]);
    let silent: Vec<TcpStream> = (0..300).map(|_| bridge.connect()).collect();
    let mut client = bridge.send(
        "/v1/responses",
        &format!("authorization: Bearer {TOKEN}\r\nconnection: close\r\n"),
        "{}",
    );
    upstream.next().answer(OK);
    let (head, _) = text_of(&mut client);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    drop(silent);
}
