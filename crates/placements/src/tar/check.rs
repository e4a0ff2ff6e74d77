//! Checks a tar stream while it passes: nothing in it may land outside the folder it is unpacked in.

use std::collections::HashSet;

use super::BLOCK;
use super::header::{
    self, FIFO, FOLDER, HARD_LINK, LONG_LINK, LONG_NAME, PAX, PAX_GLOBAL, REGULAR, SYMLINK, TarBlock,
    TarHeader, relative_parts,
};
use crate::error::PlacementError;

/// Where a stream comes from decides what may be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TarOrigin {
    /// Links must point inside.
    Upload,
    /// Links of a workspace may point anywhere, to a system's Python for instance, but nothing may be unpacked through one.
    Snapshot,
}

/// Longest name, target or block of POSIX records.
const MAX_NAME: u64 = 16 << 10;
/// Remembered for the rule about links; a workspace with more links than this is none.
const MAX_LINKS: usize = 200_000;

#[derive(Debug)]
pub(crate) struct TarCheck {
    origin: TarOrigin,
    limit: u64,
    seen: u64,
    state: ReadState,
    /// Names from the long forms, for the next entry.
    long_name: Option<Vec<u8>>,
    long_target: Option<Vec<u8>>,
    long_size: Option<u64>,
    /// Links so far, as normalised paths.
    links: HashSet<Vec<u8>>,
}

#[derive(Debug)]
enum ReadState {
    Header(Vec<u8>),
    /// Content that only passes.
    Passing(u64),
    /// Content that belongs to the next header: its kind, its size, and what has been read with padding.
    Extension {
        kind: u8,
        size: u64,
        rest: u64,
        content: Vec<u8>,
    },
    /// After the first empty block.
    End,
}

impl TarCheck {
    pub(crate) fn new(origin: TarOrigin, limit: u64) -> Self {
        let state = ReadState::Header(Vec::with_capacity(BLOCK));
        Self {
            origin,
            limit,
            seen: 0,
            state,
            long_name: None,
            long_target: None,
            long_size: None,
            links: HashSet::new(),
        }
    }

    /// Looks at the next bytes, before they are passed on.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), PlacementError> {
        self.seen += bytes.len() as u64;
        if self.seen > self.limit {
            return Err(PlacementError::TooLarge {
                what: "the tar stream".to_owned(),
                limit: format!("{} MiB", self.limit >> 20),
            });
        }
        while !bytes.is_empty() {
            let used = self.step(bytes)?;
            bytes = &bytes[used..];
        }
        Ok(())
    }

    /// A stream that stops in the middle is refused: it would restore half of a workspace.
    pub(crate) fn finish(&self) -> Result<(), PlacementError> {
        match self.state {
            ReadState::End => Ok(()),
            _ => Err(refused("it stops before its end")),
        }
    }

    fn step(&mut self, bytes: &[u8]) -> Result<usize, PlacementError> {
        match &mut self.state {
            ReadState::End => Ok(bytes.len()),
            ReadState::Passing(rest) => {
                let used = usize::try_from(*rest).unwrap_or(usize::MAX).min(bytes.len());
                *rest -= used as u64;
                if *rest == 0 {
                    self.state = ReadState::Header(Vec::with_capacity(BLOCK));
                }
                Ok(used)
            }
            ReadState::Extension { kind, size, rest, content } => {
                let used = usize::try_from(*rest).unwrap_or(usize::MAX).min(bytes.len());
                content.extend_from_slice(&bytes[..used]);
                *rest -= used as u64;
                if *rest == 0 {
                    content.truncate(usize::try_from(*size).unwrap_or(0));
                    let (kind, content) = (*kind, std::mem::take(content));
                    self.state = ReadState::Header(Vec::with_capacity(BLOCK));
                    self.extension(kind, &content)?;
                }
                Ok(used)
            }
            ReadState::Header(block) => {
                let used = (BLOCK - block.len()).min(bytes.len());
                block.extend_from_slice(&bytes[..used]);
                if block.len() == BLOCK {
                    let block = std::mem::take(block);
                    self.header(&block)?;
                }
                Ok(used)
            }
        }
    }

    fn header(&mut self, block: &[u8]) -> Result<(), PlacementError> {
        if block.iter().all(|&byte| byte == 0) {
            self.state = ReadState::End;
            return Ok(());
        }
        let block: &TarBlock = block.try_into().map_err(|_| refused("a header is cut"))?;
        let header = header::read(block).map_err(refused)?;
        let padded = |size: u64| size.div_ceil(BLOCK as u64) * BLOCK as u64;
        if matches!(header.kind, LONG_NAME | LONG_LINK | PAX | PAX_GLOBAL) {
            if header.size > MAX_NAME || header.size == 0 {
                return Err(refused("it has a name of impossible length"));
            }
            let (kind, size) = (header.kind, header.size);
            self.state = ReadState::Extension { kind, size, rest: padded(size), content: Vec::new() };
            return Ok(());
        }
        let name = self.long_name.take().unwrap_or(header.name);
        let target = self.long_target.take().unwrap_or(header.target);
        let size = self.long_size.take().unwrap_or(header.size);
        let entry = TarHeader { kind: header.kind, name, target, size };
        self.entry(&entry)?;
        let size = if entry.kind == REGULAR || entry.kind == b'7' { entry.size } else { 0 };
        if size > self.limit {
            return Err(PlacementError::TooLarge {
                what: shown(&entry.name),
                limit: format!("{} MiB", self.limit >> 20),
            });
        }
        self.state = match padded(size) {
            0 => ReadState::Header(Vec::with_capacity(BLOCK)),
            rest => ReadState::Passing(rest),
        };
        Ok(())
    }

    fn extension(&mut self, kind: u8, content: &[u8]) -> Result<(), PlacementError> {
        let without_end = || content.iter().copied().take_while(|&byte| byte != 0).collect();
        match kind {
            LONG_NAME => self.long_name = Some(without_end()),
            LONG_LINK => self.long_target = Some(without_end()),
            PAX => self.pax(content)?,
            // Global records could rename every entry; nothing that makes workspaces writes paths there.
            _ if memchr::memmem::find(content, b"path=").is_some() => {
                return Err(refused("it has global names"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Records `LENGTH KEY=VALUE\n`.
    fn pax(&mut self, mut records: &[u8]) -> Result<(), PlacementError> {
        while !records.is_empty() {
            let broken = || refused("it has broken POSIX records");
            let space = memchr::memchr(b' ', records).ok_or_else(broken)?;
            let length =
                std::str::from_utf8(&records[..space]).ok().and_then(|digits| digits.parse::<usize>().ok());
            let length =
                length.filter(|&length| length > space + 1 && length <= records.len()).ok_or_else(broken)?;
            let record = records[space + 1..length].strip_suffix(b"\n").ok_or_else(broken)?;
            let equals = memchr::memchr(b'=', record).ok_or_else(broken)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.long_name = Some(value.to_vec()),
                b"linkpath" => self.long_target = Some(value.to_vec()),
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                    self.long_size = Some(size.ok_or_else(broken)?);
                }
                // Sparse files name themselves in their own way.
                _ if key.starts_with(b"GNU.sparse.") => return Err(refused("it has a sparse file")),
                _ => {}
            }
            records = &records[length..];
        }
        Ok(())
    }

    fn entry(&mut self, entry: &TarHeader) -> Result<(), PlacementError> {
        let refuse = |problem: &str| Err(refused(&format!("{} {problem}", shown(&entry.name))));
        let Some(parts) = relative_parts(&entry.name) else {
            return refuse("is outside the folder it belongs in");
        };
        if self.passes_link(&parts) {
            return refuse("would be written through a link");
        }
        let path = parts.join(&b'/');
        match entry.kind {
            // A link of the same name may have come before: what is written now would go to its target.
            _ if self.links.contains(&path) => return refuse("is there twice, once as a link"),
            _ if path.is_empty() && entry.kind != FOLDER => return refuse("has no name"),
            REGULAR | b'7' | FOLDER => {}
            FIFO if self.origin == TarOrigin::Snapshot => {}
            HARD_LINK => {
                let Some(target) = relative_parts(&entry.target).filter(|target| !self.passes_link(target))
                else {
                    return refuse("is a hard link to something outside");
                };
                if self.links.contains(&target.join(&b'/')) {
                    self.remember_link(path)?;
                }
            }
            SYMLINK => {
                if self.origin == TarOrigin::Upload && !stays_inside(&parts, &entry.target) {
                    return refuse("is a link that points outside");
                }
                self.remember_link(path)?;
            }
            _ => return refuse("is neither file, folder nor link"),
        }
        Ok(())
    }

    fn remember_link(&mut self, path: Vec<u8>) -> Result<(), PlacementError> {
        self.links.insert(path);
        match self.links.len() <= MAX_LINKS {
            true => Ok(()),
            false => Err(refused("it has too many links")),
        }
    }

    fn passes_link(&self, parts: &[&[u8]]) -> bool {
        !self.links.is_empty()
            && (1..parts.len()).any(|length| self.links.contains(&parts[..length].join(&b'/')))
    }
}

/// Whether a link at this path points beneath the root, by its text alone.
pub(crate) fn stays_inside(link: &[&[u8]], target: &[u8]) -> bool {
    let mut depth = link.len().saturating_sub(1);
    if target.starts_with(b"/") || target.is_empty() {
        return false;
    }
    for part in target.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return false,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    true
}

fn refused(problem: &str) -> PlacementError {
    PlacementError::invalid("the tar stream", problem)
}

fn shown(name: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(name).chars().take(200).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::TarWriter;
    use super::*;

    fn verdict(tar: &[u8], origin: TarOrigin) -> Result<(), String> {
        let whole = check_in(tar, origin, tar.len());
        for size in [1, 511, 513] {
            assert_eq!(check_in(tar, origin, size), whole, "pieces of {size}");
        }
        whole
    }

    fn check_in(tar: &[u8], origin: TarOrigin, size: usize) -> Result<(), String> {
        let mut check = TarCheck::new(origin, 1 << 20);
        tar.chunks(size.max(1))
            .try_for_each(|piece| check.feed(piece))
            .and_then(|()| check.finish())
            .map_err(|error| error.to_string())
    }

    /// Entries of these kinds, names and targets.
    fn tar(entries: &[(u8, &str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, name, target) in entries {
            bytes.extend(header::write(*kind, name.as_bytes(), target.as_bytes(), 0o644, 0, 0));
        }
        bytes.extend([0; 2 * BLOCK]);
        bytes
    }

    #[test]
    fn streams_of_the_writer_pass() {
        let long = format!("{}/é \n", "deep/".repeat(60));
        let mut writer = TarWriter::new(Vec::new());
        writer.folder(b"a", 0o700, 0).unwrap();
        writer.file(b"a/-odd name", 0o755, 5, 0, &b"12345"[..]).unwrap();
        writer.file(long.as_bytes(), 0o644, 600, 0, std::io::repeat(7)).unwrap();
        writer.symlink(b"a/link", b"-odd name", 0).unwrap();
        writer.symlink(b"long", "x".repeat(300).as_bytes(), 0).unwrap();
        let (bytes, written) = writer.finish().unwrap();
        assert_eq!(bytes.len() as u64, written);
        assert_eq!(verdict(&bytes, TarOrigin::Upload), Ok(()));
        let cut = verdict(&bytes[..bytes.len() - 2 * BLOCK], TarOrigin::Upload).unwrap_err();
        assert!(cut.contains("stops before its end"), "{cut}");
    }

    #[test]
    fn ways_out_are_refused() {
        let both = [TarOrigin::Upload, TarOrigin::Snapshot];
        for (entries, said) in [
            (&[(REGULAR, "/etc/passwd", "")][..], "is outside"),
            (&[(REGULAR, "a/../../b", "")], "is outside"),
            (&[(SYMLINK, "a", "b"), (REGULAR, "a/x", "")], "through a link"),
            (&[(SYMLINK, "./a/", "b"), (FOLDER, "a//x/y", "")], "through a link"),
            (&[(SYMLINK, "a", "b"), (REGULAR, "a", "")], "twice"),
            (&[(SYMLINK, "a", "b"), (HARD_LINK, "c", "a"), (REGULAR, "c/d", "")], "through a link"),
            (&[(HARD_LINK, "a", "/etc/shadow")], "hard link"),
            (&[(HARD_LINK, "a", "../x")], "hard link"),
            (&[(SYMLINK, "a", "b"), (HARD_LINK, "c", "a/x")], "hard link"),
            (&[(b'3', "null", "")], "neither"),
            (&[(b'4', "disk", "")], "neither"),
            (&[(b'S', "sparse", "")], "neither"),
            (&[(REGULAR, ".", "")], "no name"),
        ] {
            for origin in both {
                let error = verdict(&tar(entries), origin).unwrap_err();
                assert!(error.contains(said), "{entries:?}: {error}");
            }
        }
    }

    #[test]
    fn only_links_of_snapshots_may_point_outside() {
        for (link, target, inside) in [
            ("a", "/etc", false),
            ("a", "../x", false),
            ("d/a", "../x", true),
            ("d/a", "../../x", false),
            ("a", "x/../../y", false),
        ] {
            let bytes = tar(&[(SYMLINK, link, target)]);
            assert_eq!(verdict(&bytes, TarOrigin::Upload).is_ok(), inside, "{link} {target}");
            assert_eq!(verdict(&bytes, TarOrigin::Snapshot), Ok(()));
        }
        assert!(verdict(&tar(&[(FIFO, "f", "")]), TarOrigin::Upload).is_err());
    }

    #[test]
    fn names_in_posix_records_count() {
        let record = b"17 path=../etc/x\n";
        assert_eq!(record.len(), 17);
        let mut bytes = header::write(PAX, b"pax", b"", 0, 17, 0).to_vec();
        bytes.extend(record);
        bytes.resize(2 * BLOCK, 0);
        bytes.extend(tar(&[(REGULAR, "harmless", "")]));
        assert!(verdict(&bytes, TarOrigin::Snapshot).unwrap_err().contains("is outside"));
    }

    #[test]
    fn no_bytes_panic() {
        let mut state = 1_u32;
        for _ in 0..300 {
            let mut bytes = tar(&[(LONG_NAME, "x", ""), (PAX, "y", ""), (SYMLINK, "l", "t")]);
            for _ in 0..20 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (state >> 8) as usize % bytes.len();
                bytes[at] = (state >> 16) as u8;
            }
            let _ = check_in(&bytes, TarOrigin::Upload, 700);
        }
    }
}
