//! The kernel's table of TCP sockets, as far as one connection needs it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Users from this number on are people; those before it belong to the system.
const FIRST_PERSON: u32 = 1000;

/// A socket of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalSocket {
    pub(crate) uid: u32,
    pub(crate) inode: u64,
}

/// The socket that is bound to `near` and connected to `far`. `None` if it is on another machine, or closed.
pub(crate) fn find_socket(near: SocketAddr, far: SocketAddr) -> Option<LocalSocket> {
    let wanted = (canonical(near), canonical(far));
    // A socket of either family may hold an IPv4 connection.
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let lines = BufReader::new(File::open(table).ok()?).lines().skip(1).map_while(Result::ok);
        lines.filter_map(|line| parse(&line)).find_map(|(pair, socket)| (pair == wanted).then_some(socket))
    })
}

/// The user behind the address of a server, if that is on this machine and another person's: neither the user's of this process
/// nor one of the system's.
pub fn foreign_server(address: &str) -> Option<u32> {
    local_port(address).and_then(foreign_listener)
}

/// The port of an address on this machine.
fn local_port(address: &str) -> Option<u16> {
    let authority = address.split_once("://")?.1.split('/').next()?;
    let (host, port) = authority.rsplit_once(':')?;
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_local = host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback());
    port.parse().ok().filter(|_| is_local)
}

fn foreign_listener(port: u16) -> Option<u32> {
    let own = rustix::process::geteuid().as_raw();
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let lines = BufReader::new(File::open(table).ok()?).lines().skip(1).map_while(Result::ok);
        let mut uids = lines.filter_map(|line| listener(&line, port));
        uids.find(|uid| *uid != own && *uid >= FIRST_PERSON)
    })
}

/// The user of a row, if that is a socket which waits for connections to the port.
fn listener(line: &str, port: u16) -> Option<u32> {
    let (((near, near_port), (far, far_port)), socket) = parse(line)?;
    let is_listening = far.is_unspecified() && far_port == 0;
    let is_near = near.is_loopback() || near.is_unspecified();
    (is_listening && is_near && near_port == port).then_some(socket.uid)
}

fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

type Pair = ((IpAddr, u16), (IpAddr, u16));

/// One row: number, local and remote address, state, queues, timer, retransmits, user, timeout, inode.
fn parse(line: &str) -> Option<(Pair, LocalSocket)> {
    let mut words = line.split_ascii_whitespace();
    let near = address(words.nth(1)?)?;
    let far = address(words.next()?)?;
    let uid = words.nth(4)?.parse().ok()?;
    // A socket that its process has closed has none.
    let inode = words.nth(1)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(((near, far), LocalSocket { uid, inode }))
}

/// Hexadecimal words of four bytes each, as they are in this machine's memory.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |index: usize| {
        let word = u32::from_str_radix(host.get(index * 8..index * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let host = match host.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(words.as_flattened()).for_each(|(byte, from)| *byte = *from);
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some((host.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn ports_of_this_machine_are_known() {
        for (address, port) in [
            ("http://localhost:11434/v1", Some(11434)),
            ("http://127.0.0.1:8000", Some(8000)),
            ("http://[::1]:1234/v1", Some(1234)),
            ("http://models.example:8000/v1", None),
            ("http://localhost/v1", None),
        ] {
            assert_eq!(local_port(address), port, "{address}");
        }
    }

    #[test]
    fn both_ends_of_a_connection_are_found() {
        for listen in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let client =
                TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
            let (server, peer) = listener.accept().expect("a connection");
            let local = server.local_addr().expect("an address");
            let found = find_socket(peer, local).expect("the client's socket");
            let link = std::fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).expect("a link");
            assert_eq!(link.to_string_lossy(), format!("socket:[{}]", found.inode), "{listen}");
            assert_eq!(found.uid, rustix::process::geteuid().as_raw());
        }
    }

    #[test]
    fn who_waits_for_connections_is_found() {
        let open = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = open.local_addr().expect("an address").port();
        let table = std::fs::read_to_string("/proc/net/tcp").expect("a table");
        let found: Vec<_> = table.lines().filter_map(|line| listener(line, port)).collect();
        assert_eq!(found, [rustix::process::geteuid().as_raw()]);
        assert_eq!(foreign_listener(port), None, "one's own server");
        let row =
            |near: &str, far: &str| format!("1: {near}:2CAA {far} 0A 0:0 00:0 00000000 1005 0 7777 1 0 100");
        for (line, expected) in [
            (row("0100007F", "00000000:0000"), Some(1005)),
            (row("00000000", "00000000:0000"), Some(1005)),
            (row("0100007F", "0100007F:1F90"), None),
            (row("0101A8C0", "00000000:0000"), None),
        ] {
            assert_eq!(listener(&line, 11434), expected, "{line}");
        }
        assert_eq!(listener(&row("0100007F", "00000000:0000"), 11435), None);
    }

    #[test]
    fn a_broken_row_is_passed_over() {
        for line in
            ["", "0: 0100007F:1F90", "0: xx:1 yy:2 01 0:0 0:0 0 0 0 5", "0: 0100007F 0100007F 1 1 1 1 1 1 1"]
        {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
