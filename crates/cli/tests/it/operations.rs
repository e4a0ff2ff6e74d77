//! Servers as an operator meets them: how they start under a service manager, what they say of themselves, what they log,
//! and how they stop.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{EndInTime, LinesInTime};

use crate::host::{APPROVAL, HostClient, LIMIT, job, runs, socket, until};
use crate::support::{Place, Ran, signal};

/// A server of either kind behind a Unix socket, ended with the test.
struct Served {
    child: Child,
    socket: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServedKind {
    AppServer,
    Host,
}

const KINDS: [ServedKind; 2] = [ServedKind::AppServer, ServedKind::Host];

impl Served {
    fn command(place: &Place, kind: ServedKind, more: &[&str]) -> (Command, PathBuf) {
        let (arguments, socket) = match kind {
            ServedKind::AppServer => {
                let socket = place.root().join("app.sock");
                let url = format!("unix://{}", socket.display());
                let words = ["app-server", "-c", "model_provider=offline", "--listen", &url];
                (words.map(str::to_owned).to_vec(), socket)
            }
            ServedKind::Host => {
                let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
                (
                    ["host", "--provider", "offline", "--store", &store].map(str::to_owned).to_vec(),
                    socket(place),
                )
            }
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        (place.command(&arguments), socket)
    }

    fn start(place: &Place, kind: ServedKind, more: &[&str]) -> Self {
        let (mut command, socket) = Self::command(place, kind, more);
        Self::spawn(command.stderr(Stdio::piped()), socket)
    }

    fn spawn(command: &mut Command, socket: PathBuf) -> Self {
        let child = command.spawn().expect("the server starts");
        let served = Self { child, socket };
        until("the socket", || UnixStream::connect(&served.socket).ok());
        served
    }

    fn client(&self) -> HostClient {
        HostClient::open(&self.socket).0
    }

    /// Ends by itself, and how long that took.
    fn ended(mut self) -> (Ran, Duration) {
        let began = Instant::now();
        let child = std::mem::replace(&mut self.child, Command::new("true").spawn().expect("runs"));
        let output = child.end_in_time();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let ran = Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
        (ran, began.elapsed())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Status and body of a page.
fn page(port: u16, path: &str, token: &str) -> (u16, String) {
    let mut stream = until("the port", || TcpStream::connect(("127.0.0.1", port)).ok());
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answered");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// A turn whose command waits for an approval.
fn waiting_turn(place: &Place, client: &mut HostClient) -> String {
    job(place, "");
    let thread = client.start_thread(place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    thread
}

#[test]
fn status_says_what_a_server_does() {
    for kind in KINDS {
        let place = Place::new();
        let served = Served::start(&place, kind, &[]);
        let mut client = served.client();
        waiting_turn(&place, &mut client);
        let url = format!("unix://{}", served.socket.display());
        let status = until("the turn", || {
            let status = place.run(&["status", "--json", "--remote", &url]).good().document();
            (status["turnsRunning"] == 1 && status["waiting"] == 1).then_some(status)
        });
        assert_eq!(status["kind"], if kind == ServedKind::Host { "host" } else { "appServer" });
        assert_eq!((&status["connections"], &status["threadsLoaded"]), (&json!(2), &json!(1)), "{status}");
        assert_eq!(status["processId"], served.child.id());
        assert_eq!(status["isStopping"], false);
        assert!(status["memoryBytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{status}");
        assert_eq!(status["sandbox"], json!({"level": "full", "reason": null}));
        assert_eq!(status["host"].is_object(), kind == ServedKind::Host);
        let shown = place.run(&["status", "--remote", served.socket.to_str().expect("plain")]).good().out;
        assert!(
            shown.contains("1 loaded, 1 with a turn that runs") && shown.contains("sandbox      full"),
            "{shown}"
        );
    }
    let place = Place::new();
    let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
    let none = place.run(&["status", "--store", &store]).bad();
    assert!(none.err.contains("no host runs at unix://") && none.err.contains("oarlock host"), "{none:?}");
    let none = place.run(&["status", "--remote", "ws://127.0.0.1:1"]).bad();
    assert_eq!(none.err, "oarlock: nothing runs at ws://127.0.0.1:1\n");
}

#[test]
fn a_turn_that_waits_is_suspended_by_a_stop_and_goes_on_afterwards() {
    for kind in KINDS {
        let place = Place::new();
        let served = Served::start(&place, kind, &[]);
        let mut client = served.client();
        let thread = waiting_turn(&place, &mut client);
        signal(&served.child, "TERM");
        let (ran, took) = served.ended();
        assert_eq!(ran.code, Some(0), "{kind:?}: {ran:?}");
        assert!(took < Duration::from_secs(30), "{kind:?} took {took:?}");
        let served = Served::start(&place, kind, &[]);
        let mut client = served.client();
        let mut resume = json!({"threadId": thread, "resumeTurn": true});
        if kind == ServedKind::AppServer {
            // An app-server resumes with the settings of its configuration; a host has those of the task.
            resume["approvalPolicy"] = json!("untrusted");
            resume["sandbox"] = json!("danger-full-access");
        }
        client.ask("thread/resume", &resume);
        let question = client.wait_for(APPROVAL);
        assert_eq!(runs(&place), 0);
        client.write(&json!({"id": question["id"], "result": {"decision": "accept"}}));
        assert_eq!(client.wait_for("turn/completed")["params"]["turn"]["status"], "completed");
        assert_eq!(runs(&place), 1);
    }
}

#[test]
fn while_it_stops_a_server_begins_nothing_and_waits_no_longer_than_it_was_told() {
    for kind in KINDS {
        let place = Place::new();
        let served = Served::start(&place, kind, &["--drain-timeout", "3"]);
        let mut client = served.client();
        // The command holds the turn up for longer than the server waits.
        job(&place, "sleep 600");
        let thread = client.start_thread(&place, "never");
        client.turn(&thread, "run sh job.sh", "i1");
        until("the command", || (runs(&place) == 1).then_some(()));
        let began = Instant::now();
        signal(&served.child, "TERM");
        let input = json!([{"type": "text", "text": "say more"}]);
        let more = json!({"threadId": thread, "input": input});
        // A turn that is asked for before the server has noticed the signal is taken, and waits for the one that runs.
        let answer = until("the stop", || match client.ask_while_there("server/status", &Value::Null) {
            Some(Ok(status)) if status["isStopping"] == false => None,
            Some(_) => Some(client.ask_while_there("turn/start", &more)),
            None => Some(None),
        });
        match answer {
            Some(Ok(turn)) => panic!("{kind:?} began a turn: {turn}"),
            Some(Err(refused)) => assert_eq!(refused["data"]["code"], "stopping", "{kind:?}: {refused}"),
            None => assert_eq!(kind, ServedKind::Host, "an app-server waits for its turn"),
        }
        let (ran, _) = served.ended();
        assert_eq!(ran.code, Some(0), "{kind:?}: {ran:?}");
        assert!(began.elapsed() < Duration::from_secs(40), "{kind:?} took {:?}", began.elapsed());
        assert_eq!(runs(&place), 1);
    }
}

#[test]
fn an_app_server_is_ready_until_it_is_asked_to_stop() {
    let place = Place::new();
    let port = free_port();
    let listen = format!("ws://127.0.0.1:{port}");
    let mut command = place.command(&["app-server", "-c", "model_provider=offline", "--listen", &listen]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("the server starts");
    assert_eq!(page(port, "/readyz", "").0, 200);
    let metrics = page(port, "/metrics", "").1;
    for name in ["oarlock_connections", "oarlock_threads_loaded", "oarlock_turns_running", "oarlock_stopping"]
    {
        assert!(metrics.contains(&format!("\n{name} 0\n")), "{name} in\n{metrics}");
    }
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("an end").code(), Some(0), "nothing runs, so it ends at once");
}

/// Prompts, answers and tokens are nobody's business who reads the log.
#[test]
fn the_log_tells_connections_and_turns_by_their_ids_and_nothing_that_was_said() {
    for kind in KINDS {
        let place = Place::new();
        let port = free_port();
        let listen = format!("ws://127.0.0.1:{port}");
        let token = place.file("token", "token-of-the-harbour\n");
        let hash = "sha256:".to_owned() + &"0".repeat(64);
        let tokens = place.file("tokens", format!("ana operator {hash}\n"));
        let (mut command, socket) = match kind {
            ServedKind::Host => Served::command(
                &place,
                kind,
                &["--log-format", "json", "--listen", &listen, "--tokens", &tokens],
            ),
            ServedKind::AppServer => Served::command(&place, kind, &["--log-format", "json"]),
        };
        // A host's runtimes log as their environment says.
        command.env("LOG_FORMAT", "json").env("RUST_LOG", "info").env("OPENAI_API_KEY", "sk-of-the-harbour");
        command.stderr(Stdio::piped());
        let served = Served::spawn(&mut command, socket);
        let mut client = served.client();
        let thread = client.start_thread(&place, "never");
        let turn = client.turn(&thread, "say heronry", "i1");
        client.wait_for("turn/completed");
        if kind == ServedKind::Host {
            assert_eq!(page(port, "/metrics", fs::read_to_string(token).expect("a token").trim()).0, 401);
        }
        drop(client);
        signal(&served.child, "TERM");
        let log = served.ended().0.err;
        let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{kind:?}: {line}"));
        let lines: Vec<Value> = log.lines().map(object).collect();
        let find = |message: &str| {
            let found = lines.iter().map(|line| &line["fields"]).find(|fields| fields["message"] == message);
            found.unwrap_or_else(|| panic!("{kind:?}: {message} in\n{log}"))
        };
        let schemes = ["ws://", "unix://"];
        let address = find("the server is open")["address"].as_str().unwrap_or_default();
        assert!(schemes.iter().any(|scheme| address.starts_with(scheme)), "{address}");
        assert_eq!(find("a client connected")["role"], "admin");
        find("a client left");
        let (begun, ended) = (find("a turn began"), find("a turn ended"));
        for fields in [begun, ended] {
            assert_eq!((&fields["thread"], &fields["turn"]), (&json!(thread), &turn["id"]), "{log}");
        }
        assert_eq!(ended["status"], "Completed");
        find("stopping as soon as no turn runs");
        if kind == ServedKind::Host {
            assert!(find("an authentication was refused")["peer"].is_string());
        }
        for secret in ["heronry", "of-the-harbour"] {
            assert!(!log.contains(secret), "{secret} in\n{log}");
        }
    }
}

/// Where a service manager listens, under either kind of name.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

impl Manager {
    fn new(place: &Place, is_abstract: bool) -> Self {
        let path = place.root().join("notify");
        let (socket, name) = match is_abstract {
            true => {
                let name = format!("oarlock-test-{}", place.root().display());
                let address = SocketAddr::from_abstract_name(&name).expect("an address");
                (UnixDatagram::bind_addr(&address), format!("@{name}"))
            }
            false => (UnixDatagram::bind(&path), path.display().to_string()),
        };
        let socket = socket.expect("bound");
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        Self { socket, name }
    }

    /// The next message that begins like this.
    fn hear(&self, begins: &str) {
        loop {
            let mut buffer = [0; 512];
            let length = self.socket.recv(&mut buffer).expect("a message in time");
            if buffer[..length].starts_with(begins.as_bytes()) {
                return;
            }
        }
    }
}

#[test]
fn a_service_manager_is_told_when_it_serves_that_it_lives_and_when_it_stops() {
    for (kind, is_abstract) in [(ServedKind::AppServer, true), (ServedKind::Host, false)] {
        let place = Place::new();
        let manager = Manager::new(&place, is_abstract);
        let (mut command, socket) = Served::command(&place, kind, &[]);
        command.env("NOTIFY_SOCKET", &manager.name).env("WATCHDOG_USEC", "200000").stderr(Stdio::null());
        let served = Served::spawn(&mut command, socket);
        manager.hear("READY=1\n");
        manager.hear("WATCHDOG=1");
        signal(&served.child, "TERM");
        manager.hear("STOPPING=1\n");
        assert_eq!(served.ended().0.code, Some(0));
    }
}

/// Runs a server with this socket as descriptor 3, as a service manager would: the number of the process is known only
/// after the fork, so a shell sets it.
fn activated(place: &Place, socket: OwnedFd, arguments: &[&str]) -> Child {
    let inner = place.command(arguments);
    let mut command = Command::new("sh");
    command.args(["-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null"]);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(place.folder());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::from(socket)).stderr(Stdio::piped()).spawn().expect("the server starts")
}

#[test]
fn a_socket_of_the_service_manager_is_served_and_left_to_it() {
    let place = Place::new();
    let path = place.root().join("activated.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let inode = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).expect("a socket");
    // A client that comes before the server waits for it.
    let early = UnixStream::connect(&path).expect("a connection");
    let child = activated(
        &place,
        listener.into(),
        &["app-server", "-c", "model_provider=offline", "--listen", "fd://"],
    );
    let served = Served { child, socket: path.clone() };
    drop(early);
    let mut client = served.client();
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "run ls -l /proc/self/fd", "i1");
    client.wait_for("turn/completed");
    let listed = client.heard.iter().filter(|told| told["method"] == "item/completed");
    let output = listed.filter_map(|told| told["params"]["item"]["aggregatedOutput"].as_str()).next();
    let output = output.expect("the command's output");
    let inode = inode.to_str().expect("plain");
    assert!(inode.starts_with("socket:") && !output.contains(inode), "a command inherits it: {output}");
    signal(&served.child, "TERM");
    let ran = served.ended().0;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(path.exists(), "the service manager made it, and keeps it");

    let port = TcpListener::bind("127.0.0.1:0").expect("a port");
    let number = port.local_addr().expect("an address").port();
    let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
    let child = activated(
        &place,
        port.into(),
        &["host", "--provider", "offline", "--store", &store, "--listen", "fd://"],
    );
    let served = Served { child, socket: socket(&place) };
    assert_eq!(page(number, "/readyz", "").0, 200);
    signal(&served.child, "TERM");
    assert_eq!(served.ended().0.code, Some(0));

    let none = place.run(&["app-server", "--listen", "fd://"]).bad();
    assert!(none.err.contains("none was passed"), "{none:?}");
}

/// The first line that a server writes tells that it is there; the rest of its words are for its end.
#[test]
fn the_log_is_text_unless_it_is_asked_for_otherwise() {
    let place = Place::new();
    let (mut command, _) = Served::command(&place, ServedKind::AppServer, &["--log-format", "text"]);
    let command = command.env("RUST_LOG", "info").env("LOG_FORMAT", "json").stderr(Stdio::piped());
    let mut child = command.spawn().expect("the server starts");
    let mut lines = LinesInTime::new(child.stderr.take().expect("piped"));
    assert_eq!(lines.next().as_deref(), Some("oarlock app-server (Unix socket)"));
    signal(&child, "TERM");
    let stopping = lines.find(|line| line.contains("stopping as soon as no turn runs"));
    assert!(stopping.is_some_and(|line| !line.starts_with('{')));
    child.wait().expect("an end");
}

/// The commands of the page, one after the other in one shell.
#[test]
fn the_commands_of_the_page_work() {
    let page = include_str!("../../../../docs/operations.md");
    let blocks: Vec<&str> =
        page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 9, "{}", blocks.len());
    let commands = blocks.concat().replace("4600", &free_port().to_string());
    let script = format!("set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nset -x\n{commands}");
    let place = Place::new();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_oarlock")).parent().expect("a folder");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
    let inner = place.command(&[]);
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(place.folder()).stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    bash.env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = bash.spawn().expect("bash runs").end_in_time();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", said(&output.stdout), said(&output.stderr));
    let shown = said(&output.stdout);
    assert!(shown.matches("oarlock host 0.").count() >= 2 && shown.contains("no tasks yet"), "{shown}");
}

/// A file system whose server never says a word. Ends with the file that leads to it.
struct HangingMount {
    folder: PathBuf,
    _server: fs::File,
}

impl HangingMount {
    /// `None` where this user may not mount anything, or the system has no FUSE.
    fn new(folder: PathBuf) -> Option<Self> {
        use rustix::mount::{MountFlags, mount};

        fs::create_dir(&folder).expect("made");
        let server = fs::File::options().read(true).write(true).open("/dev/fuse").ok()?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let options = std::ffi::CString::new(options).expect("plain");
        mount("hanging", &folder, "fuse", MountFlags::empty(), options.as_c_str()).ok()?;
        Some(Self { folder, _server: server })
    }
}

impl Drop for HangingMount {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.folder, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_server_ends_in_time_while_it_reads_from_a_disk_that_hangs() {
    let place = Place::new();
    let Some(hanging) = HangingMount::new(place.root().join("hanging")) else {
        return eprintln!("skipped: no FUSE file system can be mounted here");
    };
    let served = Served::start(&place, ServedKind::AppServer, &["--drain-timeout", "2"]);
    let mut client = served.client();
    client.write(&json!({"id": 900, "method": "thread/start", "params": {"cwd": hanging.folder}}));
    // Answered after the request before it was taken up.
    client.ask("thread/loaded/list", &json!({}));
    signal(&served.child, "TERM");
    let (ran, took) = served.ended();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}
