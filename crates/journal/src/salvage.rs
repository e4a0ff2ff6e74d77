//! Finds valid records inside an invalid line: after a lost line break, or an incomplete line.

use std::ops::Range;

use crate::line::{self, SEAL_LEN, Sound};

/// Limit of start and end positions that are tried per line, so that a hostile line costs bounded work.
const TRIES: usize = 64;

const HEAD: &[u8] = b"{\"seq\":";
const CRC: &[u8] = b",\"crc\":\"";

/// The complete records in an invalid line, in order and without overlap.
pub(crate) fn sound_inside(bad: &[u8]) -> Vec<(Range<usize>, Sound)> {
    let starts = places(bad, HEAD);
    let ends: Vec<usize> = places(bad, CRC)
        .into_iter()
        .map(|at| at + SEAL_LEN)
        .filter(|&end| bad.get(..end).is_some_and(|line| line::seal(line).is_some()))
        .collect();
    let mut found = Vec::new();
    let mut free = 0;
    for start in starts {
        if start < free {
            continue;
        }
        if let Some((end, sound)) = record_at(bad, start, &ends) {
            found.push((start..end, sound));
            free = end;
        }
    }
    found
}

/// The first of these ends that makes a valid record with this start. The checksum is continued from end to end.
fn record_at(bad: &[u8], start: usize, ends: &[usize]) -> Option<(usize, Sound)> {
    let seq = line::seq(&bad[start..])?;
    let (mut crc, mut upto) = (0, start);
    for &end in ends.iter().filter(|&&end| end >= start + SEAL_LEN) {
        let sealed = end - SEAL_LEN;
        crc = crc32c::crc32c_append(crc, &bad[upto..sealed]);
        upto = sealed;
        if line::seal(&bad[..end]) == Some(crc) {
            return Some((end, Sound { seq, crc }));
        }
    }
    None
}

fn places(bytes: &[u8], pattern: &[u8]) -> Vec<usize> {
    // The pattern cannot overlap itself.
    memchr::memmem::find_iter(bytes, pattern).take(TRIES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{LineBody, encode};

    fn lines() -> Vec<Vec<u8>> {
        let payloads = [&br#"{"numTurns":1}"#[..], br#"{"a":{"seq":2,"crc":"00000000"}}"#, br#"{"b":1}"#];
        let body = |payload| LineBody { at: "", kind: "rolledBack", schema: 1, payload };
        (1..)
            .zip(payloads)
            .map(|(seq, payload)| {
                let mut line = Vec::new();
                encode(&mut line, seq, body(payload));
                line.pop();
                line
            })
            .collect()
    }

    fn check(glue: [&[u8]; 4], expected: &[u64]) {
        let mut bad = glue[0].to_vec();
        for (line, glue) in lines().iter().zip(&glue[1..]) {
            bad.extend_from_slice(line);
            bad.extend_from_slice(glue);
        }
        let found: Vec<u64> = sound_inside(&bad).iter().map(|(_, sound)| sound.seq).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lost_line_breaks_lose_no_record() {
        check([b"", b"", b"", b""], &[1, 2, 3]);
        check([b"\xff", b"\x0b", b"\r", b"\r"], &[1, 2, 3]);
    }

    #[test]
    fn a_torn_line_in_front_hides_nothing() {
        check([br#"{"seq":9,"at":"2026","#, b"", b"", b"tail"], &[1, 2, 3]);
        check([b"\"{\"seq\":,\"crc\":\"0123", b"", b"{\"seq\":", b""], &[1, 2, 3]);
    }
}
