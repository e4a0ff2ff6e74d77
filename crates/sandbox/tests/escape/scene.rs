//! A workspace with its surroundings, and one command in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use oarlock_sandbox::testing::{HelperStatus, LaunchedHelper, SandboxLayer, launch};
use oarlock_sandbox::{Confinement, Limits, Order, PROTECTED_NAMES, ReadAccess, Strength};
use serde_json::{Value, json};

use super::attempts::{Way, Workspace};
use super::probe;

/// A path in each place that a command must not write.
const PLANTED: &[&str] = &["/etc", "/usr/bin", "/var/tmp", "/", "/run", "/dev", "/sys/fs/cgroup/pids"];

pub(crate) struct Scene {
    folder: tempfile::TempDir,
    _local: UnixListener,
    /// In the host's shared memory.
    shared: tempfile::NamedTempFile,
}

/// Services of the host that a command must not reach.
struct Host {
    abstract_name: String,
    tcp: TcpListener,
    _listener: UnixListener,
}

fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| {
        let abstract_name = format!("oarlock-escape-{}", std::process::id());
        let name = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        Host {
            tcp: TcpListener::bind("127.0.0.1:0").expect("a port"),
            _listener: UnixListener::bind_addr(&name).expect("an abstract socket"),
            abstract_name,
        }
    })
}

impl Scene {
    /// Not in `/tmp`, which is writable for commands by default.
    pub(crate) fn new(workspace: Workspace) -> Self {
        let folder =
            tempfile::Builder::new().prefix("oarlock-escape").tempdir_in("/var/tmp").expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["ws/folder/nested", "outside/folder", "secret"] {
            fs::create_dir_all(at(name)).expect("a folder");
        }
        for (name, text) in
            [("outside/file", "original"), ("secret/key", "secret"), ("ws/hidden.txt", "secret")]
        {
            fs::write(at(name), text).expect("a file");
        }
        symlink(at("outside/folder"), at("ws/turned")).expect("a link");
        match workspace {
            Workspace::Bare => {}
            Workspace::Repository => {
                fs::create_dir_all(at("ws/.git/hooks")).expect("a folder");
                fs::write(at("ws/.git/config"), "original").expect("a file");
                fs::create_dir_all(at("ws/settings")).expect("a folder");
                symlink("settings", at("ws/.codex")).expect("a link");
            }
            Workspace::Linked => {
                fs::create_dir_all(at("ws/store/git")).expect("a folder");
                fs::write(at("ws/store/git/config"), "original").expect("a file");
                fs::write(at("ws/.git"), "gitdir: store/git\n").expect("a file");
            }
        }
        let local = UnixListener::bind(at("ws/host.sock")).expect("a socket");
        let shared =
            tempfile::Builder::new().prefix("oarlock-escape").tempfile_in("/dev/shm").expect("a file");
        Self { folder, _local: local, shared }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The sandbox of `workspace-write` without network.
    pub(crate) fn confinement(&self) -> Confinement {
        Confinement {
            strength: Strength::Full,
            read: ReadAccess::Everything,
            // The last one leads out, as an earlier command could have arranged.
            writable: vec![self.at("ws"), self.at("ws/folder/nested"), self.at("ws/turned")],
            protected: PROTECTED_NAMES.map(str::to_owned).to_vec(),
            hidden: vec![self.at("secret"), self.at("ws/hidden.txt")],
            ..Confinement::read_only()
        }
    }

    /// A sandbox of Landlock only, which cannot hide anything in a writable root.
    pub(crate) fn weak_walls(&self) -> Confinement {
        let hidden = vec![self.at("secret")];
        Confinement { strength: Strength::LandlockOnly, hidden, ..self.confinement() }
    }

    pub(crate) fn order(&self, way: Way, confinement: Option<Confinement>) -> Order {
        let own = std::env::current_exe().expect("this program");
        let (argv, probed) = match way {
            Way::Shell(_, script) => (vec!["sh", "-c", script], ""),
            Way::Call(name) => (
                vec![own.to_str().expect("text"), "--exact", "probe::probe", "--ignored", "--nocapture"],
                name,
            ),
        };
        let mut env = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOST".to_owned(), std::process::id().to_string()),
            ("ABSTRACT".to_owned(), host().abstract_name.clone()),
            ("SHARED".to_owned(), self.shared.path().display().to_string()),
            ("PORT".to_owned(), host().tcp.local_addr().expect("an address").port().to_string()),
            ("OUT".to_owned(), self.at("outside").display().to_string()),
            ("WS".to_owned(), self.at("ws").display().to_string()),
            ("SECRET".to_owned(), self.at("secret").display().to_string()),
            ("COMM".to_owned(), fs::read_to_string("/proc/self/comm").expect("a name").trim().to_owned()),
            (probe::VARIABLE.to_owned(), probed.to_owned()),
        ]);
        for kind in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
            let link = fs::read_link(format!("/proc/self/ns/{kind}")).expect("a namespace");
            env.insert(format!("NS_{}", kind.to_uppercase()), link.display().to_string());
        }
        Order {
            argv: argv.into_iter().map(str::to_owned).collect(),
            cwd: self.at("ws"),
            env,
            confinement,
            limits: Limits::default(),
            terminal: false,
        }
    }

    /// Forbidden changes that a command has made.
    pub(crate) fn damage(&self, workspace: Workspace) -> Vec<String> {
        let mut damage = Vec::new();
        let mut expect = |what: &str, holds: bool| {
            if !holds {
                damage.push(what.to_owned());
            }
        };
        let text = |name: &str| fs::read_to_string(self.at(name)).unwrap_or_default();
        let names = |name: &str| {
            let entries = fs::read_dir(self.at(name)).expect("a folder").flatten();
            let mut names: Vec<String> =
                entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        expect("a file outside changed", text("outside/file") == "original");
        expect("something outside was added or removed", names("outside") == ["file", "folder"]);
        expect("something was put behind a link", names("outside/folder").is_empty());
        expect("a hidden file changed", text("secret/key") == "secret" && text("ws/hidden.txt") == "secret");
        let nested_is_clean = names("ws/folder/nested").is_empty();
        expect("a nested root has a protected name", nested_is_clean);
        let protected: Vec<String> =
            names("ws").into_iter().filter(|name| PROTECTED_NAMES.contains(&name.as_str())).collect();
        match workspace {
            Workspace::Bare => expect("a protected name was made or left", protected.is_empty()),
            Workspace::Repository => {
                expect("a protected name was made or removed", protected == [".codex", ".git"]);
                expect("git settings changed", text("ws/.git/config") == "original");
                expect("a hook was planted", names("ws/.git/hooks").is_empty());
                expect("settings were planted", names("ws/settings").is_empty());
            }
            Workspace::Linked => {
                expect("a protected name was made or removed", protected == [".git"]);
                expect("the .git file changed", text("ws/.git") == "gitdir: store/git\n");
                expect("git settings changed", text("ws/store/git/config") == "original");
            }
        }
        for folder in PLANTED {
            expect(folder, !Path::new(folder).join("oarlock-escape").exists());
        }
        damage
    }
}

/// Starts a command without some of its layers.
pub(crate) fn start(order: &Order, without: &[SandboxLayer], output: Stdio) -> LaunchedHelper {
    let mut order: Value = serde_json::to_value(order).expect("an order");
    order["without"] = json!(without);
    launch(order.to_string().as_bytes(), Stdio::null(), output, Stdio::piped()).expect("a helper")
}

/// Runs a command to its end, and returns its standard error too.
pub(crate) fn run(order: &Order, without: &[SandboxLayer]) -> (HelperStatus, String) {
    let mut helper = start(order, without, Stdio::piped());
    let mut said = String::new();
    helper.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    (helper.end().expect("an end"), said)
}

/// Starts a command that prints `ready` and then reads a line.
pub(crate) fn waiting(order: &Order) -> LaunchedHelper {
    let order = serde_json::to_vec(order).expect("an order");
    let mut helper = launch(&order, Stdio::piped(), Stdio::piped(), Stdio::piped()).expect("a helper");
    let mut line = String::new();
    let output = helper.child.stdout.as_mut().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    helper
}

/// Sends it that line, and waits for its end.
pub(crate) fn go_on(helper: &mut LaunchedHelper) -> Option<HelperStatus> {
    let _ = helper.child.stdin.take().expect("a pipe").write_all(b"go\n");
    helper.end()
}
