//! The kernel's table of TCP sockets, as far as one connection needs it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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
    fn a_broken_row_is_passed_over() {
        for line in
            ["", "0: 0100007F:1F90", "0: xx:1 yy:2 01 0:0 0:0 0 0 0 5", "0: 0100007F 0100007F 1 1 1 1 1 1 1"]
        {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
