//! With network: which peers are reachable.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use oarlock_sandbox::Confinement;
use oarlock_sandbox::testing::{HelperStatus, SandboxLayer};

use super::attempts::{Way, Workspace};
use super::scene::{self, Scene};

/// Attempts that must fail, by their names in `sockets_probe.rs`.
const ATTEMPTS: &[&str] = &[
    "online_local_path",
    "online_local_tmp",
    "online_local_link",
    "online_local_own_folder",
    "online_local_descriptor",
    "online_local_bound",
    "online_local_datagram",
    "online_local_raw",
    "online_abstract",
    "online_closed",
    "online_closed_any",
    "online_closed_other",
    "online_closed_six",
    "online_closed_six_any",
    "online_closed_mapped",
    "online_closed_mapped_any",
    "online_closed_interface",
    "online_closed_later",
    "online_closed_at_once",
    "online_closed_multipath",
    "online_second_listener",
    "online_swapped_address",
    "online_swapped_descriptor",
    "online_swapped_path",
];

/// Actions that must work, by their names in `sockets_work.rs`.
const WORK: &[&str] = &[
    "online_work_local",
    "online_work_local_long",
    "online_work_local_kept_flags",
    "online_work_local_bound",
    "online_work_packets",
    "online_work_abstract",
    "online_work_errors",
    "online_work_tcp",
    "online_work_udp",
    "online_work_not_waiting",
    "online_work_open_port",
    "online_work_many",
    "online_work_many_local",
    "online_work_closed_to_others",
    "online_work_thread",
    "online_work_time_limit",
    "online_work_signal",
    "online_work_killed",
    "online_work_ended",
];

/// Attempts that succeed without a layer.
const WITHOUT: &[(&[SandboxLayer], &[&str])] = &[
    (
        &[SandboxLayer::Connections],
        &[
            "online_local_path",
            "online_local_tmp",
            "online_local_link",
            "online_local_own_folder",
            "online_local_descriptor",
            "online_local_bound",
            "online_closed",
            "online_closed_any",
            "online_closed_other",
            "online_closed_six",
            "online_closed_six_any",
            "online_closed_mapped",
            "online_closed_mapped_any",
            "online_closed_interface",
            "online_closed_later",
            "online_closed_at_once",
            "online_closed_multipath",
            "online_swapped_address",
            "online_swapped_descriptor",
            "online_swapped_path",
        ],
    ),
    (&[SandboxLayer::Connections, SandboxLayer::Landlock], &["online_abstract"]),
    (&[SandboxLayer::ProcessNamespace], &["online_local_tmp"]),
    (&[SandboxLayer::Seccomp], &["online_local_datagram", "online_local_raw", "online_second_listener"]),
];

/// Services of the host.
struct Outside {
    closed: TcpListener,
    open: TcpListener,
    /// Accepts no connection: its queue is full.
    full: TcpListener,
    _in_queue: Vec<TcpStream>,
    _tmp: (tempfile::TempDir, UnixListener),
    tmp_socket: PathBuf,
    _named: UnixListener,
    abstract_name: String,
    local_ip: String,
}

fn outside() -> &'static Outside {
    static OUTSIDE: OnceLock<Outside> = OnceLock::new();
    OUTSIDE.get_or_init(|| {
        // Like tmux, in its own folder inside a writable one.
        let folder = tempfile::Builder::new().prefix("oarlock-escape").tempdir_in("/tmp").unwrap();
        let tmp_socket = folder.path().join("default");
        let abstract_name = format!("oarlock-sockets-{}", std::process::id());
        let name = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let route = UdpSocket::bind("0.0.0.0:0").unwrap();
        let local_ip = route.connect("198.51.100.1:9").and_then(|()| route.local_addr());
        let (full, in_queue) = full();
        Outside {
            closed: listen(),
            open: listen(),
            full,
            _in_queue: in_queue,
            _tmp: (folder, UnixListener::bind(&tmp_socket).unwrap()),
            tmp_socket,
            _named: UnixListener::bind_addr(&name).unwrap(),
            abstract_name,
            local_ip: local_ip.map_or("127.0.0.1".to_owned(), |address| address.ip().to_string()),
        }
    })
}

/// On all addresses of this machine, IPv4 and IPv6. Its queue does not fill up.
fn listen() -> TcpListener {
    let listener = TcpListener::bind("[::]:0").unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || accepting.incoming().for_each(drop));
    listener
}

fn full() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        queue.push(stream);
    }
    (listener, queue)
}

fn confinement(scene: &Scene) -> Confinement {
    let closed = outside().closed.local_addr().unwrap().port();
    let mut confinement = Confinement { network: true, closed_ports: vec![closed], ..scene.confinement() };
    confinement.writable.push("/tmp".into());
    confinement
}

fn run(
    scene: &Scene,
    confinement: Confinement,
    name: &'static str,
    without: &[SandboxLayer],
) -> Result<(), String> {
    let mut order = scene.order(Way::Call(name), Some(confinement));
    let outside = outside();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port().to_string();
    for (name, value) in [
        ("CLOSED_PORT", port(&outside.closed)),
        ("OPEN_PORT", port(&outside.open)),
        ("FULL_PORT", port(&outside.full)),
        ("TMP_SOCKET", outside.tmp_socket.display().to_string()),
        ("ABSTRACT", outside.abstract_name.clone()),
        ("LOCAL_IP", outside.local_ip.clone()),
        ("GRANTED", scene.at("secret/granted").display().to_string()),
        ("RUST_BACKTRACE", "0".to_owned()),
    ] {
        order.env.insert(name.to_owned(), value);
    }
    match scene::run(&order, without) {
        (HelperStatus::Exited { code: 0 }, _) => Ok(()),
        (end, said) => Err(format!("{name}: {end:?} {said}")),
    }
}

#[test]
fn nobody_outside_is_reached() {
    for name in ATTEMPTS {
        let scene = Scene::new(Workspace::Bare);
        let said = run(&scene, confinement(&scene), name, &[]).expect_err(name);
        assert!(said.contains("Exited { code: 1 }"), "{said}");
    }
}

#[test]
fn nobody_outside_is_reached_for_a_normal_user() {
    super::as_normal_user("sockets::nobody_outside_is_reached");
}

#[test]
fn every_attempt_would_succeed_without_its_layer() {
    for (without, names) in WITHOUT {
        for name in *names {
            let scene = Scene::new(Workspace::Bare);
            assert_eq!(run(&scene, confinement(&scene), name, without), Ok(()), "{without:?}");
        }
    }
}

#[test]
fn every_attempt_would_succeed_for_a_normal_user() {
    super::as_normal_user("sockets::every_attempt_would_succeed_without_its_layer");
}

#[test]
fn what_is_inside_can_be_reached() {
    for name in WORK {
        let scene = Scene::new(Workspace::Bare);
        let began = Instant::now();
        assert_eq!(run(&scene, confinement(&scene), name, &[]), Ok(()));
        assert!(began.elapsed() < super::PATIENCE, "{name} took {:?}", began.elapsed());
    }
}

#[test]
fn what_is_inside_can_be_reached_for_a_normal_user() {
    super::as_normal_user("sockets::what_is_inside_can_be_reached");
}

/// A program inside forbids itself to connect, and the supervisor does not connect for it.
#[test]
fn own_rules_hold_for_connections() {
    let scene = Scene::new(Workspace::Bare);
    assert_eq!(run(&scene, confinement(&scene), "confined_connection", &[]), Ok(()));
    super::as_normal_user("sockets::own_rules_hold_for_connections");
}

/// Even if its path is not visible.
#[test]
fn a_granted_socket_can_be_reached_and_no_other() {
    let scene = Scene::new(Workspace::Bare);
    let granted = UnixListener::bind(scene.at("secret/granted")).unwrap();
    std::thread::spawn(move || {
        for mut stream in granted.incoming().flatten() {
            let _ = stream.write_all(b"granted");
        }
    });
    let with = Confinement { unix_sockets: vec![scene.at("secret/granted")], ..confinement(&scene) };
    assert_eq!(run(&scene, with.clone(), "online_work_granted", &[]), Ok(()));
    assert!(run(&scene, with, "online_local_path", &[]).is_err());
    assert!(run(&scene, confinement(&scene), "online_work_granted", &[]).is_err());
    // A link that a command could have created grants nothing.
    std::os::unix::fs::symlink(scene.at("secret/granted"), scene.at("ws/link")).unwrap();
    let turned = Confinement { unix_sockets: vec![scene.at("ws/link")], ..confinement(&scene) };
    assert!(run(&scene, turned, "online_work_granted", &[]).is_err());
}

#[test]
fn landlock_alone_has_no_local_sockets() {
    for (name, works) in [
        ("online_local_path", false),
        ("online_local_datagram", false),
        ("online_abstract", false),
        ("online_work_tcp", true),
        ("online_work_open_port", true),
    ] {
        let scene = Scene::new(Workspace::Bare);
        let writable = confinement(&scene).writable;
        let confinement = Confinement { network: true, writable, ..scene.weak_walls() };
        let found = run(&scene, confinement, name, &[]);
        assert_eq!(found.is_ok(), works, "{name} {found:?}");
    }
}
