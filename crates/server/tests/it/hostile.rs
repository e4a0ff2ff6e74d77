//! Peers that fill memory, say nothing, or should not be there at all.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oarlock_server::{AuthFlags, Listen, ServeError, WsAuthMode};
use runtime::SystemClock;
use serde_json::{Value, json};
use testkit::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app::{over_unix, over_websockets, refused_to_serve};
use crate::client::{Lines, Peer, Ws};

/// A stall this long means that the server reads nothing more.
const STALL: Duration = Duration::from_secs(1);
const MIB: usize = 1024 * 1024;

fn upgrade(address: SocketAddr, more: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

/// A websocket of which nothing is ever read but the head of the answer.
async fn open(address: SocketAddr) -> TcpStream {
    let mut stream = within("a connection", TcpStream::connect(address)).await.unwrap();
    stream.write_all(upgrade(address, "").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within("a byte of the head", stream.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream
}

/// Writes until nothing more is taken, or so much was. Says how much.
async fn push(stream: &mut TcpStream, piece: &[u8], most: usize) -> usize {
    let mut written = 0;
    while written < most {
        match tokio::time::timeout(STALL, stream.write(piece)).await {
            Ok(Ok(length)) if length > 0 => written += length,
            Ok(_) | Err(_) => return written,
        }
    }
    written
}

/// The memory of this process in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_of_a_peer_that_reads_nothing_are_not_kept() {
    let server = over_websockets(|_| {}).await;
    let ping = [&[0x89, 0xfd, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
    let before = resident();
    let mut stream = open(server.address()).await;
    let taken = push(&mut stream, &ping.repeat(500), 256 * MIB).await;
    let grown = resident().saturating_sub(before);
    assert!(taken < 64 * MIB, "{taken} bytes of pings were taken from a peer that reads nothing");
    assert!(grown < 32 * MIB, "memory grew by {grown}");
    // Somebody else is served as ever.
    Ws::connect(server.address()).await.initialize(Value::Null).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_before_initialize_are_cut_off() {
    let server = over_websockets(|_| {}).await;
    let before = resident();
    // A text frame of 32 MiB that never ends.
    let header = [&[0x81, 0xff][..], &(32 * MIB as u64).to_be_bytes(), &[0; 4]].concat();
    let mut open_ones = Vec::new();
    for _ in 0..100 {
        let mut stream = open(server.address()).await;
        let _ = stream.write_all(&header).await;
        let taken = push(&mut stream, &vec![b'x'; 64 * 1024], 31 * MIB).await;
        assert!(taken < 16 * MIB, "{taken} bytes were taken before initialize");
        open_ones.push(stream);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * MIB, "memory grew by {grown}");
    Ws::connect(server.address()).await.initialize(Value::Null).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_a_peer_that_reads_nothing_are_bounded_before_initialize() {
    let server = over_websockets(|_| {}).await;
    let id = "i".repeat(60_000);
    let text = json!({"id": id, "method": "thread/loaded/list"}).to_string();
    let length = u16::try_from(text.len()).unwrap().to_be_bytes();
    let frame = [&[0x81, 0xfe][..], &length, &[0; 4], text.as_bytes()].concat();
    let mut stream = open(server.address()).await;
    let taken = push(&mut stream, &frame, 256 * MIB).await;
    assert!(taken < 24 * MIB, "{taken} bytes of requests were taken from a peer that reads nothing");
}

#[tokio::test]
async fn a_large_message_is_taken_once_initialize_is_done() {
    let server = over_websockets(|_| {}).await;
    let mut client = Ws::connect(server.address()).await;
    client.initialize(Value::Null).await;
    client.call(1, "thread/loaded/list", json!({"cursor": "x".repeat(4 * MIB)})).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _server = over_unix(&path).await;
    let mut client = Lines::connect(&path).await;
    client.send_text(&format!("{{\"id\":1,\"method\":\"{}\"}}", "x".repeat(MIB))).await;
    assert_eq!(client.receive().await["error"]["message"], "a line is longer than 262144 bytes");
    client.initialize(Value::Null).await;
    client.call(1, "thread/loaded/list", json!({"cursor": "x".repeat(4 * MIB)})).await;
}

#[tokio::test]
async fn who_does_not_say_who_it_is_makes_room() {
    let server = over_websockets(|options| options.max_uninitialized = 2).await;
    let mut first = Ws::connect(server.address()).await;
    let _second = Ws::connect(server.address()).await;
    let mut third = Ws::connect(server.address()).await;
    assert_eq!(within("the next message or the end", first.next()).await, None, "the oldest is closed");
    third.initialize(Value::Null).await;

    let server = over_websockets(|options| options.initialize_within = Duration::from_millis(50)).await;
    let mut silent = Ws::connect(server.address()).await;
    assert_eq!(within("the next message or the end", silent.next()).await, None, "closed in time");
    let mut client = Ws::connect(server.address()).await;
    client.initialize(Value::Null).await;
    // One that came later and is silent is closed in time, and this one is not.
    let mut silent = Ws::connect(server.address()).await;
    assert_eq!(within("the next message or the end", silent.next()).await, None, "closed in time");
    client.call(1, "thread/loaded/list", json!({})).await;
}

fn token_auth(folder: &Path) -> oarlock_server::WsAuth {
    let token = folder.join("token");
    std::fs::write(&token, "open-sesame\n").unwrap();
    let mode = Some(WsAuthMode::CapabilityToken);
    AuthFlags { mode, token_file: Some(token), ..AuthFlags::default() }.load(Arc::new(SystemClock)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_do_not_keep_out_who_has_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let auth = token_auth(folder.path());
    let server = over_websockets(|options| {
        options.auth = auth;
        options.max_connections = 4;
        options.max_handshakes = 8;
    })
    .await;
    let address = server.address();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(within("a connection", TcpStream::connect(address)).await.unwrap());
    }
    let enter = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = upgrade(address, "Authorization: Bearer open-sesame\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        status
    };
    // Far below the time that a silent connection may take for its head.
    let status = tokio::time::timeout(Duration::from_secs(5), enter).await.expect("at once");
    assert_eq!(&status, b"HTTP/1.1 101");
}

#[tokio::test]
async fn an_open_address_needs_authentication_or_a_word_that_it_does_not() {
    for listen in ["ws://0.0.0.0:0", "ws://[::]:0"] {
        let error = refused_to_serve(Listen::parse(listen).unwrap()).await;
        let ServeError::Exposed(_) = error else { panic!("{error}") };
        let said = error.to_string();
        assert!(said.contains("--ws-auth") && said.contains("--allow-unauthenticated"), "{said}");
    }
}

/// Run by the tests below in a process of its own, which connects to what it is told to and prints what it hears.
#[test]
fn as_a_command_of_the_server() {
    let Ok(target) = std::env::var("OARLOCK_TEST_CONNECT") else { return };
    let mut heard = String::new();
    if let Ok(address) = target.parse::<SocketAddr>() {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(upgrade(address, "Authorization: Bearer open-sesame\r\n").as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        heard.push_str(&String::from_utf8_lossy(&head));
    } else {
        let mut stream = std::os::unix::net::UnixStream::connect(&target).unwrap();
        let client = json!({"clientInfo": {"name": "command", "version": "1"}});
        let hello = json!({"id": 1, "method": "initialize", "params": client}).to_string();
        // It may be closed before.
        let _ = stream.write_all(format!("{hello}\n").as_bytes());
        let mut byte = [0];
        heard.push_str(if stream.read(&mut byte).is_ok_and(|length| length > 0) {
            "let in"
        } else {
            "closed"
        });
    }
    println!("heard: {heard}.");
}

/// Connects, and has its descriptor under way through a pair of sockets for as long as the server looks for it. The test
/// runner tells nothing apart from a command here: both are started by the server's process.
const HIDES: &str = r#"
import array, os, select, socket, sys
host, port = sys.argv[1].rsplit(":", 1)
client = socket.create_connection((host, int(port)))
watch = select.epoll(); watch.register(client.fileno(), select.EPOLLIN)
ours, theirs = socket.socketpair()
ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [client.fileno()]))])
head = ("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Authorization: Bearer open-sesame\r\n\r\n").encode()
client.send(head); client.close()
# Closed here, and still reported: the file lives on in the message.
watch.poll(30)
_, more, _, _ = theirs.recvmsg(1, socket.CMSG_SPACE(4))
back = socket.socket(fileno=array.array("i", more[0][2])[0])
print("heard:", back.recv(12).decode(), end=".\n", flush=True)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_hides_its_descriptor_is_not_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let auth = token_auth(folder.path());
    let (open, closed) =
        (over_websockets(|_| {}).await, over_websockets(|options| options.auth = auth).await);
    for address in [open.address(), closed.address()] {
        let command = move || {
            let mut command = std::process::Command::new("python3");
            command.args(["-c", HIDES, &address.to_string()]).output().unwrap()
        };
        let said = within("the end of the command", tokio::task::spawn_blocking(command)).await.unwrap();
        let (out, error) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert_eq!(out, "heard: HTTP/1.1 403.\n", "{error}");
    }
}

async fn command_connects(target: String) -> String {
    let command = move || {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hostile::as_a_command_of_the_server", "--nocapture"])
            .env("OARLOCK_TEST_CONNECT", target)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let said = within("the end of the command", tokio::task::spawn_blocking(command)).await.unwrap();
    let heard = said.split_once("heard: ").and_then(|(_, rest)| rest.split_once(".\n"));
    heard.unwrap_or_else(|| panic!("{said}")).0.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_of_the_server_is_not_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let auth = token_auth(folder.path());
    let (open, closed) =
        (over_websockets(|_| {}).await, over_websockets(|options| options.auth = auth).await);
    let mut before = Ws::connect(open.address()).await;
    before.initialize(Value::Null).await;
    assert_eq!(command_connects(open.address().to_string()).await, "HTTP/1.1 403");
    assert_eq!(command_connects(closed.address().to_string()).await, "HTTP/1.1 403", "even with the token");
    let path = folder.path().join("socket");
    let _server = over_unix(&path).await;
    assert_eq!(command_connects(path.display().to_string()).await, "closed");
    // Others are served while a command runs, those from before and those that come now.
    let mut command = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    before.call(1, "thread/loaded/list", json!({})).await;
    Ws::connect(open.address()).await.initialize(Value::Null).await;
    Lines::connect(&path).await.initialize(Value::Null).await;
    command.kill().unwrap();
    command.wait().unwrap();
}

#[tokio::test]
async fn what_the_server_listens_on_is_told_to_the_application() {
    let folder = tempfile::tempdir().unwrap();
    let auth = token_auth(folder.path());
    let server = over_websockets(|options| options.auth = auth).await;
    Ws::connect_with_token(server.address(), "open-sesame").await.initialize(Value::Null).await;
    let told = server.app.listeners();
    assert_eq!(told.ports.into_iter().collect::<Vec<_>>(), [server.address().port()]);
    assert!(told.files.contains(&folder.path().join("token")), "{:?}", told.files);
    let path = folder.path().join("socket");
    let server = over_unix(&path).await;
    Lines::connect(&path).await.initialize(Value::Null).await;
    assert!(server.app.listeners().files.contains(&path));
}
