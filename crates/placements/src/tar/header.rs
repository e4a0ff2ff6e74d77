//! One header of 512 bytes, and the paths in it.

use super::BLOCK;

pub(super) const REGULAR: u8 = b'0';
pub(super) const HARD_LINK: u8 = b'1';
pub(super) const SYMLINK: u8 = b'2';
pub(super) const FIFO: u8 = b'6';
pub(super) const FOLDER: u8 = b'5';
/// GNU: the next entry's name, or its link's target, is this entry's content.
pub(super) const LONG_NAME: u8 = b'L';
pub(super) const LONG_LINK: u8 = b'K';
/// POSIX: records that override fields of the next entry, or of all.
pub(super) const PAX: u8 = b'x';
pub(super) const PAX_GLOBAL: u8 = b'g';

pub(super) type TarBlock = [u8; BLOCK];

/// A header as it is written. Name and target are cut here; the long forms go before it.
pub(super) fn write(kind: u8, name: &[u8], target: &[u8], mode: u32, size: u64, modified_s: u64) -> TarBlock {
    let mut block = [0; BLOCK];
    put(&mut block[..100], name);
    octal(&mut block[100..108], u64::from(mode));
    octal(&mut block[108..116], 0);
    octal(&mut block[116..124], 0);
    octal(&mut block[124..136], size);
    octal(&mut block[136..148], modified_s);
    block[156] = kind;
    put(&mut block[157..257], target);
    block[257..265].copy_from_slice(b"ustar  \0");
    let sum = checksum(&block);
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn put(field: &mut [u8], bytes: &[u8]) {
    let length = bytes.len().min(field.len());
    field[..length].copy_from_slice(&bytes[..length]);
}

fn octal(field: &mut [u8], value: u64) {
    let width = field.len() - 1;
    put(field, format!("{value:0width$o}").as_bytes());
}

fn checksum(block: &TarBlock) -> u64 {
    let as_spaces =
        |(at, byte): (usize, &u8)| if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) };
    block.iter().enumerate().map(as_spaces).sum()
}

/// A header as it is read.
#[derive(Debug)]
pub(super) struct TarHeader {
    pub(super) kind: u8,
    pub(super) name: Vec<u8>,
    pub(super) target: Vec<u8>,
    pub(super) size: u64,
}

pub(super) fn read(block: &TarBlock) -> Result<TarHeader, &'static str> {
    if number(&block[148..156]) != Some(checksum(block)) {
        return Err("a header has a wrong checksum");
    }
    let mut name = text(&block[..100]).to_vec();
    let prefix = text(&block[345..500]);
    if &block[257..263] == b"ustar\0" && !prefix.is_empty() {
        name = [prefix, b"/", name.as_slice()].concat();
    }
    let size = number(&block[124..136]).ok_or("a header has no readable size")?;
    let kind = if block[156] == 0 { REGULAR } else { block[156] };
    Ok(TarHeader { kind, name, target: text(&block[157..257]).to_vec(), size })
}

fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    &field[..end]
}

/// Octal digits, or the GNU form for large numbers: the first bit set, then big-endian bytes.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (first, rest) = (field[0] & 0x7f, &field[1..]);
        let mut value = u64::from(first);
        for byte in rest {
            value = value.checked_mul(256)?.checked_add(u64::from(*byte))?;
        }
        return Some(value);
    }
    let digits = std::str::from_utf8(field).ok()?.trim_matches(|letter| letter == ' ' || letter == '\0');
    match digits {
        "" => Some(0),
        _ => u64::from_str_radix(digits, 8).ok(),
    }
}

/// The parts of a path that stays beneath its root: no leading `/`, no `..`. `.` and empty parts are dropped.
pub(crate) fn relative_parts(path: &[u8]) -> Option<Vec<&[u8]>> {
    let is_outside = path.starts_with(b"/") || path.contains(&0);
    let parts: Vec<&[u8]> =
        path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    match is_outside || parts.contains(&&b".."[..]) {
        true => None,
        false => Some(parts),
    }
}
