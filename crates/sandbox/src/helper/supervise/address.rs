//! Parses a copied socket address, without reading other memory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of a Unix socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Local<'a> {
    Path(&'a [u8]),
    /// An abstract name, or none: the address is complete.
    Name,
}

/// The address to connect an internet socket to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remote {
    Host {
        ip: IpAddr,
        port: u16,
    },
    /// Dissolves the association.
    Nobody,
    /// Too short, or of another family.
    Unknown,
}

fn family(address: &[u8]) -> Option<i32> {
    Some(i32::from(u16::from_ne_bytes([*address.first()?, *address.get(1)?])))
}

/// `None` if it is not the address of a Unix socket.
pub(super) fn local(address: &[u8]) -> Option<Local<'_>> {
    let (_, name) = address.split_first_chunk::<2>()?;
    if family(address) != Some(libc::AF_UNIX) || name.len() > 108 {
        return None;
    }
    let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(if path.is_empty() { Local::Name } else { Local::Path(path) })
}

pub(super) fn remote(address: &[u8]) -> Remote {
    let part = |from: usize, length: usize| address.get(from..from + length);
    let port = || part(2, 2).map(|port| u16::from_be_bytes([port[0], port[1]]));
    match family(address) {
        Some(libc::AF_UNSPEC) => Remote::Nobody,
        Some(libc::AF_INET) => {
            let ip = part(4, 4).and_then(|ip| <[u8; 4]>::try_from(ip).ok()).map(Ipv4Addr::from);
            match (ip, port()) {
                (Some(ip), Some(port)) => Remote::Host { ip: ip.into(), port },
                _ => Remote::Unknown,
            }
        }
        Some(libc::AF_INET6) => {
            let ip = part(8, 16).and_then(|ip| <[u8; 16]>::try_from(ip).ok()).map(Ipv6Addr::from);
            match (ip, port()) {
                (Some(ip), Some(port)) => Remote::Host { ip: ip.to_canonical(), port },
                _ => Remote::Unknown,
            }
        }
        _ => Remote::Unknown,
    }
}

/// The address of a Unix socket, for the kernel.
pub(super) fn of_path(path: &str) -> Vec<u8> {
    let family = u16::try_from(libc::AF_UNIX).unwrap_or(0).to_ne_bytes();
    [family.as_slice(), path.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(family: i32, rest: &[u8]) -> Vec<u8> {
        [u16::try_from(family).unwrap().to_ne_bytes().as_slice(), rest].concat()
    }

    #[test]
    fn local_addresses() {
        let unix = |rest: &[u8]| address(libc::AF_UNIX, rest);
        assert_eq!(local(&unix(b"/tmp/s\0xyz")), Some(Local::Path(b"/tmp/s")));
        assert_eq!(local(&unix(b"without an end")), Some(Local::Path(b"without an end")));
        assert_eq!(local(&unix(b"\0name")), Some(Local::Name));
        assert_eq!(local(&unix(b"")), Some(Local::Name));
        assert_eq!(local(&unix(&[b'x'; 109])), None);
        assert_eq!(local(&address(libc::AF_INET, b"/tmp/s")), None);
        assert_eq!(local(&[1]), None);
        assert_eq!(of_path("/a"), unix(b"/a\0"));
    }

    #[test]
    fn remote_addresses() {
        let four = address(libc::AF_INET, &[0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let host = Remote::Host { ip: Ipv4Addr::LOCALHOST.into(), port: 8080 };
        assert_eq!(remote(&four), host);
        assert_eq!(remote(&four[..7]), Remote::Unknown);
        let six = |ip: Ipv6Addr| {
            address(libc::AF_INET6, &[[0x1f, 0x90].as_slice(), &[0; 4], &ip.octets(), &[0; 4]].concat())
        };
        assert_eq!(remote(&six("::ffff:127.0.0.1".parse().unwrap())), host);
        assert_eq!(
            remote(&six(Ipv6Addr::LOCALHOST)),
            Remote::Host { ip: Ipv6Addr::LOCALHOST.into(), port: 8080 }
        );
        assert_eq!(remote(&six(Ipv6Addr::LOCALHOST)[..23]), Remote::Unknown);
        assert_eq!(remote(&address(libc::AF_UNSPEC, &[0; 14])), Remote::Nobody);
        assert_eq!(remote(&address(libc::AF_UNIX, b"/x")), Remote::Unknown);
        assert_eq!(remote(&[]), Remote::Unknown);
    }
}
