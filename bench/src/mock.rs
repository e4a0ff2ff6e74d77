//! The mock model: an endpoint of every wire on loopback that answers requests with prepared replies, and knows how long
//! it spent on that.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use parking_lot::{Condvar, Mutex};

use crate::sse::{MockWire, Reply};

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Mock {
    port: u16,
    shared: Arc<Shared>,
}

/// Counts of what the endpoint has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Served {
    pub(crate) requests: usize,
    /// From a request read to the end to its reply written to the end, summed up.
    pub(crate) inside: Duration,
}

#[derive(Debug)]
struct Shared {
    /// The last one stays.
    replies: Mutex<VecDeque<Arc<Reply>>>,
    last_request: Mutex<Vec<u8>>,
    served: Mutex<Served>,
    changed: Condvar,
    stopped: AtomicBool,
}

impl Mock {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the mock model cannot listen")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            replies: Mutex::new(VecDeque::from([Arc::new(Reply::message("ok"))])),
            last_request: Mutex::default(),
            served: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let for_connections = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &for_connections));
        Ok(Self { port, shared })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Answers with this from now on.
    pub(crate) fn serve(&self, reply: Arc<Reply>) {
        self.serve_in_turn(&[reply]);
    }

    /// Answers with each of these once, and with the last of them from then on.
    pub(crate) fn serve_in_turn(&self, replies: &[Arc<Reply>]) {
        *self.shared.replies.lock() = replies.iter().cloned().collect();
    }

    /// The body of the newest request.
    pub(crate) fn last_request(&self) -> Vec<u8> {
        self.shared.last_request.lock().clone()
    }

    pub(crate) fn served(&self) -> Served {
        *self.shared.served.lock()
    }

    /// The requests served since `before`; there must be exactly `requests`.
    ///
    /// Waits for the last one: its reply can be worked on by the server before its writer has noted the time.
    pub(crate) fn served_since(&self, before: Served, requests: usize) -> Result<Duration> {
        let mut now = self.shared.served.lock();
        let expected = before.requests + requests;
        let is_early = |served: &mut Served| served.requests < expected;
        self.shared.changed.wait_while_for(&mut now, is_early, Duration::from_secs(1));
        let seen = now.requests - before.requests;
        ensure!(seen == requests, "the model was asked {seen} times instead of {requests}");
        Ok(now.inside - before.inside)
    }
}

impl Shared {
    fn next_reply(&self, wire: MockWire) -> Option<Arc<Reply>> {
        let mut replies = self.replies.lock();
        if replies.front().is_none_or(|reply| reply.wire != wire) {
            return None;
        }
        if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; if that fails, it has ended already.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(connection) = connection else { continue };
        let shared = Arc::clone(shared);
        // A connection that breaks ends its own thread; the turn that needed it fails, and its sample with it.
        thread::spawn(move || converse(&connection, &shared));
    }
}

fn converse(connection: &TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(256 * 1024, connection);
    let mut writer = connection;
    // Memory that requests were read into before: making new room for a long one takes time that no server spends.
    let mut room = Vec::new();
    while let Some(mut request) = Request::read(&mut reader, std::mem::take(&mut room))? {
        let begun = Instant::now();
        // A reply of another wire is none to this request, which is refused like one for anything else.
        if let Some(reply) = request.wire().and_then(|wire| shared.next_reply(wire)) {
            std::mem::swap(&mut *shared.last_request.lock(), &mut request.body);
            writer.write_all(&reply.http)?;
            let mut served = shared.served.lock();
            served.requests += 1;
            served.inside += begun.elapsed();
            shared.changed.notify_all();
        } else {
            writer.write_all(&request.small_answer())?;
        }
        if request.last {
            break;
        }
        room = request.body;
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Request {
    verb: String,
    path: String,
    body: Vec<u8>,
    /// The client closes the connection after this one.
    last: bool,
}

impl Request {
    /// The next request, with its body in this memory; nothing when the client is done.
    fn read(reader: &mut impl BufRead, room: Vec<u8>) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_ascii_whitespace().map(str::to_owned);
        let (verb, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut request = Self { verb, path, body: room, last: false };
        let (mut length, mut chunked) = (0_u64, false);
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "connection" => request.last = value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        if chunked {
            request.body.clear();
            while read_chunk(reader, &mut request.body)? {}
        } else {
            let length = usize::try_from(length).unwrap_or(LONGEST_REQUEST).min(LONGEST_REQUEST);
            request.body.resize(length, 0);
            reader.read_exact(&mut request.body)?;
        }
        Ok(Some(request))
    }

    /// The wire by which the model is asked, if it is asked.
    fn wire(&self) -> Option<MockWire> {
        MockWire::ALL.into_iter().find(|wire| self.verb == "POST" && self.path.ends_with(wire.path()))
    }

    /// Answers other requests: the list of models, or 404 for something this mock does not have.
    fn small_answer(&self) -> Vec<u8> {
        let path = self.path.split('?').next().unwrap_or_default();
        let (status, body) = if self.verb == "GET" && path.ends_with("/models") {
            ("200 OK", r#"{"object":"list","data":[{"id":"mock-model","object":"model"}],"models":[]}"#)
        } else {
            ("404 Not Found", r#"{"error":{"message":"the mock model does not serve this","type":"mock"}}"#)
        };
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

const LONGEST_REQUEST: usize = 64 << 20;

/// False after the chunk that ends the body.
fn read_chunk(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<bool> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?.min(LONGEST_REQUEST);
    let before = body.len();
    body.resize(before + size + 2, 0);
    reader.read_exact(&mut body[before..])?;
    body.truncate(before + size);
    Ok(size > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn ask(mock: &Mock, requests: &str) -> String {
        let mut connection =
            TcpStream::connect((Ipv4Addr::LOCALHOST, mock.port())).expect("the mock listens");
        connection.write_all(requests.as_bytes()).expect("the mock reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("the mock answers and closes");
        answer
    }

    #[test]
    fn requests_of_both_framings_share_a_connection_and_are_counted() {
        let mock = Mock::start().expect("a port is free");
        mock.serve(Arc::new(Reply::message("hello")));
        let before = mock.served();
        let answer = ask(
            &mock,
            "POST /v1/responses HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}\
             POST /v1/responses HTTP/1.1\r\nTransfer-Encoding: chunked\r\nconnection: close\r\n\r\n\
             2\r\n{}\r\n0\r\n\r\n",
        );
        assert_eq!(answer.matches("\"text\":\"hello\"").count(), 2);
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2);
        mock.served_since(before, 2).expect("both were counted");
        assert_eq!(mock.last_request(), b"{}");
    }

    #[test]
    fn replies_come_in_turn_and_the_last_one_stays() {
        let mock = Mock::start().expect("a port is free");
        mock.serve_in_turn(&["first", "second"].map(|text| Arc::new(Reply::message(text))));
        let post = "POST /v1/responses HTTP/1.1\r\nContent-Length: 2\r\n";
        let answer = ask(&mock, &format!("{post}\r\n[]{post}\r\n{{}}{post}connection: close\r\n\r\n[]"));
        assert_eq!(answer.matches("\"text\":\"first\"").count(), 1);
        assert_eq!(answer.matches("\"text\":\"second\"").count(), 2);
        assert_eq!(mock.last_request(), b"[]");
    }

    #[test]
    fn a_reply_goes_to_requests_of_its_own_wire_alone() {
        let mock = Mock::start().expect("a port is free");
        mock.serve(Arc::new(Reply::said(MockWire::Messages, "hello")));
        let post = |path: &str| format!("POST /v1{path} HTTP/1.1\r\nContent-Length: 2\r\n");
        let (right, wrong) = (post("/messages"), post("/chat/completions"));
        let answer = ask(&mock, &format!("{wrong}\r\n{{}}{right}connection: close\r\n\r\n{{}}"));
        assert_eq!((answer.matches("404 Not Found").count(), answer.matches("hello").count()), (1, 1));
        assert_eq!(mock.served().requests, 1);
    }

    #[test]
    fn the_list_of_models_and_the_rest_are_no_model_requests() {
        let mock = Mock::start().expect("a port is free");
        let answer = ask(
            &mock,
            "GET /v1/models?client_version=1 HTTP/1.1\r\n\r\nGET /other HTTP/1.1\r\nconnection: close\r\n\r\n",
        );
        assert!(answer.contains("mock-model"));
        assert!(answer.contains("404 Not Found"));
        assert_eq!(mock.served().requests, 0);
        let before = mock.served();
        mock.served_since(before, 0).expect("nothing was asked");
    }
}
