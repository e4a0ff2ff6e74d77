//! Where a local connection comes from: commands that this server started must not become its clients, or they would
//! have it run anything outside their sandbox. The sandbox keeps them from connecting; this is the second check, and
//! the only one for commands that run without a sandbox. On a port without a token it is also the only one for commands
//! of another server of the same user, which know nothing of this port.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::proc_net::{LocalSocket, find_socket};

/// A family tree is not deeper than this.
const MAX_GENERATIONS: usize = 4096;
/// Descriptors that are looked at for one connection.
const MAX_DESCRIPTORS: usize = 200_000;

/// How often a socket that nobody has is looked for again, and the pause before each look.
const MORE_LOOKS: usize = 2;
const PAUSE: Duration = Duration::from_millis(20);

/// The refusal for a command that connects.
pub const REFUSAL: &str = "a command that this server started may not connect to it";
/// The refusal for a connection whose descriptor no process has.
pub const UNHELD_REFUSAL: &str =
    "no process holds the other end of this connection; keep it open while connecting";
/// The refusal for a process in a sandbox or a container, on a port without a token.
pub const CONFINED_REFUSAL: &str =
    "a process in a sandbox or a container may not use a port without a token; use --ws-auth";

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// No process that this one started.
    Elsewhere,
    /// A process that this one started, or one that was started by such a process.
    Descendant,
    /// A process in a user or process namespace of its own, such as a command of another server of the same user.
    Confined,
    /// No process: its descriptor is on its way through another socket, or closed already. Only who hides does this.
    Unheld,
    /// It cannot be told, because processes that could have it do not show their descriptors.
    Unknown,
}

/// One look at a time: whoever connects often must not keep the machine busy.
static LOOKS: Semaphore = Semaphore::const_new(1);

/// Who connected to a Unix socket, by the process id that the kernel noted at that moment. 0 is a process of a namespace
/// outside ours, and so none of our own.
pub async fn of_process(pid: i32) -> Origin {
    look(move || process_origin(pid)).await
}

/// Which clients a port is for, and so how much has to be known about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortAudience {
    /// Those who have a token. Commands of this server are looked for.
    TokenHolders,
    /// Processes of the same user. Who connects has to be found, and to be in no sandbox.
    SameUser,
}

/// Who holds the other end of a TCP connection.
pub async fn of_tcp(peer: SocketAddr, local: SocketAddr, audience: PortAudience) -> Origin {
    look(move || {
        let mut origin = tcp_origin(peer, local, audience);
        // Between two looks at the table, a socket may be passed on or its process fork.
        for _ in 0..MORE_LOOKS {
            if origin != Origin::Unheld {
                break;
            }
            std::thread::sleep(PAUSE);
            origin = tcp_origin(peer, local, audience);
        }
        origin
    })
    .await
}

/// Whether the other end of a TCP connection belongs to another user of this machine. Root may do what we may.
pub async fn is_other_user(peer: SocketAddr, local: SocketAddr) -> bool {
    // Nobody closes it.
    let _turn = LOOKS.acquire().await;
    let found = tokio::task::spawn_blocking(move || find_socket(peer, local)).await.unwrap_or_default();
    found.is_some_and(|socket| is_other(socket.uid, rustix::process::geteuid().as_raw()))
}

/// Whether the other end of a TCP connection is known to be a process of the same user (or root) that is in no sandbox and
/// that this process did not start.
pub async fn is_same_user_unconfined(peer: SocketAddr, local: SocketAddr) -> bool {
    !is_other_user(peer, local).await
        && of_tcp(peer, local, PortAudience::SameUser).await == Origin::Elsewhere
}

fn is_other(uid: u32, own: u32) -> bool {
    uid != own && uid != 0
}

async fn look(work: impl FnOnce() -> Origin + Send + 'static) -> Origin {
    // Nobody closes it.
    let _turn = LOOKS.acquire().await;
    tokio::task::spawn_blocking(work).await.unwrap_or(Origin::Unknown)
}

fn process_origin(pid: i32) -> Origin {
    let own = std::process::id();
    let Ok(pid) = u32::try_from(pid) else { return Origin::Unknown };
    if pid == 0 || pid == own || !has_children() {
        return Origin::Elsewhere;
    }
    // A process on the way may end and its children get another parent; then the way is walked anew.
    for _ in 0..3 {
        let mut at = pid;
        for _ in 0..MAX_GENERATIONS {
            match parent(at) {
                Some(parent) if parent == own => return Origin::Descendant,
                Some(0) => return Origin::Elsewhere,
                Some(parent) => at = parent,
                None => break,
            }
        }
    }
    Origin::Unknown
}

fn tcp_origin(peer: SocketAddr, local: SocketAddr, audience: PortAudience) -> Origin {
    if audience == PortAudience::TokenHolders && !has_children() {
        return Origin::Elsewhere;
    }
    let Some(socket) = find_socket(peer, local) else {
        // Another machine's sockets are not in the table. One of this machine has closed since, or is hidden.
        let is_loopback = peer.ip().to_canonical().is_loopback();
        return match is_loopback || peer.ip() == local.ip() {
            false => Origin::Elsewhere,
            // A port that was passed to us may belong to another network, whose table we do not see.
            true if is_loopback && find_socket(local, peer).is_some() => Origin::Unheld,
            true => Origin::Unknown,
        };
    };
    holder(&socket, &Processes::read(), audience)
}

/// Looks for the socket among the descriptors of descendants first, then of everybody else. Descriptors of some processes
/// cannot be read, and one that is on its way through another socket belongs to no process.
fn holder(socket: &LocalSocket, processes: &Processes, audience: PortAudience) -> Origin {
    let mut budget = MAX_DESCRIPTORS;
    let mut look_at = |pid: u32| descriptor(pid, socket.inode, &mut budget);
    if processes.descendants.iter().any(|pid| look_at(*pid) == Descriptor::Held) {
        return Origin::Descendant;
    }
    let may_be_own = processes.descendants.iter().any(|pid| uid(*pid) == Some(socket.uid));
    // Root is outside every sandbox, and its descriptors are not shown to others.
    let is_root = socket.uid == 0 && !rustix::process::geteuid().is_root();
    if !may_be_own && (audience == PortAudience::TokenHolders || is_root) {
        return Origin::Elsewhere;
    }
    if look_at(std::process::id()) == Descriptor::Held {
        return Origin::Elsewhere;
    }
    let mut could_be_hidden = false;
    for pid in processes.others.iter().copied() {
        match look_at(pid) {
            Descriptor::Held if audience == PortAudience::TokenHolders || shares_namespaces(pid) => {
                return Origin::Elsewhere;
            }
            Descriptor::Held => return Origin::Confined,
            Descriptor::Unreadable => could_be_hidden |= uid(pid) == Some(socket.uid),
            Descriptor::Absent => {}
        }
    }
    if could_be_hidden { Origin::Unknown } else { Origin::Unheld }
}

/// Every sandbox of ours has namespaces of its own. `false` also where it cannot be told.
fn shares_namespaces(pid: u32) -> bool {
    ["user", "pid"].into_iter().all(|kind| {
        let own = fs::read_link(format!("/proc/self/ns/{kind}"));
        let other = fs::read_link(format!("/proc/{pid}/ns/{kind}"));
        own.is_ok_and(|own| other.is_ok_and(|other| own == other))
    })
}

/// The processes that can be seen.
#[derive(Debug, Default)]
struct Processes {
    descendants: Vec<u32>,
    others: Vec<u32>,
}

impl Processes {
    fn read() -> Self {
        let mut parents = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some((pid, parent)) = pid.and_then(|pid: u32| Some((pid, parent(pid)?))) {
                parents.insert(pid, parent);
            }
        }
        Self::of(&parents, std::process::id())
    }

    fn of(parents: &HashMap<u32, u32>, own: u32) -> Self {
        let is_descendant = |pid: u32| {
            let ancestors = std::iter::successors(parents.get(&pid), |parent| parents.get(parent));
            ancestors.take(MAX_GENERATIONS).any(|ancestor| *ancestor == own)
        };
        let pids = parents.keys().copied().filter(|pid| *pid != own);
        let (descendants, mut others): (Vec<u32>, Vec<u32>) = pids.partition(|pid| is_descendant(*pid));
        // Clients are younger than most processes, so they are found sooner this way.
        others.sort_unstable_by(|one, other| other.cmp(one));
        Self { descendants, others }
    }
}

/// Also true where the kernel does not say.
fn has_children() -> bool {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return true };
    tasks.flatten().any(|task| match fs::read(task.path().join("children")) {
        Ok(children) => !children.is_empty(),
        // A thread that has ended, or a kernel that does not list children.
        Err(_) => task.path().exists(),
    })
}

/// From `/proc/PID/stat`: the process's name is in parentheses and may contain anything, so the last one counts.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&stat[after_name + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The effective user, which is also that of the sockets it makes.
fn uid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process holds a socket, by its descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Descriptor {
    Held,
    Absent,
    Unreadable,
}

fn descriptor(pid: u32, inode: u64, budget: &mut usize) -> Descriptor {
    let wanted = format!("socket:[{inode}]");
    let folder = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Descriptor::Unreadable,
        // It has ended.
        Err(_) => return Descriptor::Absent,
    };
    let entries: Vec<_> = folder.flatten().collect();
    // A socket that connects is among the last that were opened.
    for entry in entries.into_iter().rev() {
        let Some(left) = budget.checked_sub(1) else { return Descriptor::Unreadable };
        *budget = left;
        if fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(&wanted)) {
            return Descriptor::Held;
        }
    }
    Descriptor::Absent
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn others_are_all_but_ourselves_and_root() {
        assert_eq!(
            [(1000, 1000), (0, 1000), (1001, 1000), (65534, 0)].map(|(uid, own)| is_other(uid, own)),
            [false, false, true, true]
        );
    }

    #[test]
    fn a_client_that_has_sent_all_and_closed_is_nobody() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = std::net::TcpStream::connect(address).expect("a connection");
        let (accepted, peer) = listener.accept().expect("a client");
        let mut child = Command::new("sleep").arg("60").spawn().expect("a command");
        for audience in [PortAudience::TokenHolders, PortAudience::SameUser] {
            assert_eq!(tcp_origin(peer, address, audience), Origin::Elsewhere);
        }
        drop(client);
        for audience in [PortAudience::TokenHolders, PortAudience::SameUser] {
            assert_eq!(tcp_origin(peer, address, audience), Origin::Unheld);
        }
        drop(accepted);
        child.kill().expect("killed");
        child.wait().expect("an end");
    }

    #[test]
    fn the_tree_is_told_from_parents() {
        let parents = HashMap::from([(1, 0), (2, 1), (7, 2), (8, 7), (9, 8), (10, 2), (11, 404), (12, 12)]);
        let Processes { mut descendants, mut others } = Processes::of(&parents, 7);
        descendants.sort_unstable();
        others.sort_unstable();
        assert_eq!(descendants, [8, 9]);
        assert_eq!(others, [1, 2, 10, 11, 12]);
    }

    #[test]
    fn a_child_and_its_child_are_descendants_and_who_started_us_is_not() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a line");
        let grandchild: i32 = line.trim().parse().expect("a number");
        let pid = |pid: u32| i32::try_from(pid).expect("a number");
        assert_eq!(process_origin(pid(child.id())), Origin::Descendant);
        assert_eq!(process_origin(grandchild), Origin::Descendant);
        assert_eq!(process_origin(pid(std::process::id())), Origin::Elsewhere);
        assert_eq!(process_origin(pid(std::os::unix::process::parent_id())), Origin::Elsewhere);
        assert_eq!(process_origin(0), Origin::Elsewhere);
        assert_eq!(process_origin(i32::MAX), Origin::Unknown, "it is gone");
        let _ = rustix::process::Pid::from_raw(grandchild)
            .map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        child.wait().expect("an end");
    }
}
