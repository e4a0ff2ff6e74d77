//! One line of a journal: `{"seq":N,"at":"…","type":"…","payload":{…},"crc":"8 hex"}`. The checksum is CRC-32C over
//! every byte before the comma of the `crc` member, so a line can be checked without parsing it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::record::{self, JournalEntry, SCHEMA, Strange};
use crate::time;

const HEAD: &[u8] = b"{\"seq\":";
const CRC: &[u8] = b",\"crc\":\"";
const END: &[u8] = b"\"}";
/// `,"crc":"0123abcd"}`
pub(crate) const SEAL_LEN: usize = CRC.len() + 8 + END.len();

/// The content of a line, without its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineBody<'a> {
    pub(crate) at: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) schema: u32,
    pub(crate) payload: &'a [u8],
}

/// Appends one line with its newline.
pub(crate) fn encode(out: &mut Vec<u8>, seq: u64, body: LineBody<'_>) {
    let start = out.len();
    out.extend_from_slice(HEAD);
    out.extend_from_slice(seq.to_string().as_bytes());
    for part in [",\"at\":\"", body.at, "\",\"type\":\"", body.kind, "\""] {
        out.extend_from_slice(part.as_bytes());
    }
    if body.schema != SCHEMA {
        out.extend_from_slice(format!(",\"schema\":{}", body.schema).as_bytes());
    }
    out.extend_from_slice(b",\"payload\":");
    out.extend_from_slice(body.payload);
    let crc = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(CRC);
    out.extend_from_slice(format!("{crc:08x}").as_bytes());
    out.extend_from_slice(END);
    out.push(b'\n');
}

/// A line with a valid checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sound {
    pub(crate) seq: u64,
    pub(crate) crc: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFault {
    /// Not in the form of a journal line.
    Shape,
    Checksum,
    Utf8,
}

/// Checks a line, given without its newline.
pub(crate) fn check(line: &[u8]) -> Result<Sound, LineFault> {
    let fault = match seal(line) {
        None => LineFault::Shape,
        Some(crc) if crc32c::crc32c(&line[..line.len() - SEAL_LEN]) != crc => LineFault::Checksum,
        Some(crc) => return seq(line).map(|seq| Sound { seq, crc }).ok_or(LineFault::Shape),
    };
    Err(if std::str::from_utf8(line).is_err() { LineFault::Utf8 } else { fault })
}

/// The checksum in a line.
pub(crate) fn seal(line: &[u8]) -> Option<u32> {
    let hex = line.strip_suffix(END)?.last_chunk::<8>()?;
    let before = &line[..line.len() - END.len() - hex.len()];
    if !before.ends_with(CRC) {
        return None;
    }
    hex.iter().try_fold(0, |crc, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(crc << 4 | u32::from(digit))
    })
}

/// The number at the start of a line, if there is one.
pub(crate) fn seq(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(HEAD)?;
    let end = rest.iter().take(21).position(|&byte| byte == b',')?;
    if end == 0 || !rest[..end].iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

/// The parsed envelope of a valid line.
#[derive(Debug, PartialEq)]
pub(crate) struct Envelope<'a> {
    pub(crate) seq: u64,
    at: Cow<'a, str>,
    pub(crate) kind: Cow<'a, str>,
    schema: u32,
    payload: &'a str,
}

/// The envelope of a line with another order of members, or with spaces.
#[derive(Deserialize)]
struct AnyEnvelope<'a> {
    seq: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default = "first_schema")]
    schema: u32,
    #[serde(borrow)]
    payload: &'a RawValue,
}

fn first_schema() -> u32 {
    SCHEMA
}

impl<'a> Envelope<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> serde_json::Result<Self> {
        if let Some(envelope) = Self::as_written(line) {
            return Ok(envelope);
        }
        let AnyEnvelope { seq, at, kind, schema, payload } = serde_json::from_slice(line)?;
        Ok(Self { seq, at, kind, schema, payload: payload.get() })
    }

    /// Parses the exact form that [`encode`] writes, without parsing the payload.
    fn as_written(line: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?;
        let (seq, rest) = up_to(text.strip_prefix("{\"seq\":")?, b',')?;
        let (at, rest) = plain(rest.strip_prefix("\"at\":\"")?)?;
        let (kind, rest) = plain(rest.strip_prefix(",\"type\":\"")?)?;
        let (schema, rest) = match rest.strip_prefix(",\"payload\":") {
            Some(rest) => (SCHEMA, rest),
            None => {
                let (schema, rest) = up_to(rest.strip_prefix(",\"schema\":")?, b',')?;
                (schema.parse().ok()?, rest.strip_prefix("\"payload\":")?)
            }
        };
        let payload = rest.get(..rest.len().checked_sub(SEAL_LEN)?)?;
        let is_sealed = rest[payload.len()..].starts_with(",\"crc\":\"") && rest.ends_with("\"}");
        is_sealed.then_some(Self {
            seq: seq.parse().ok()?,
            at: at.into(),
            kind: kind.into(),
            schema,
            payload,
        })
    }

    pub(crate) fn at_ms(&self) -> i64 {
        time::parse_ms(&self.at).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn open(&self) -> (JournalEntry, Option<Strange>) {
        let (record, strange) = record::decode(&self.kind, self.schema, self.payload);
        (JournalEntry { seq: self.seq, at_ms: self.at_ms(), record }, strange)
    }
}

/// A string without escapes, and the text after its closing quote.
fn plain(text: &str) -> Option<(&str, &str)> {
    let end = memchr::memchr2(b'"', b'\\', text.as_bytes())?;
    Some((&text[..end], text[end..].strip_prefix('"')?))
}

/// The text before and after the first occurrence of this ASCII byte.
fn up_to(text: &str, end: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == end)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn line(seq: u64, kind: &str, schema: u32, payload: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let body = LineBody { at: "2026-11-15T20:09:51.123Z", kind, schema, payload: payload.as_bytes() };
        encode(&mut out, seq, body);
        assert_eq!(out.pop(), Some(b'\n'));
        out
    }

    #[test]
    fn a_line_is_the_same_however_it_is_taken_apart() {
        for (kind, schema, payload) in [
            ("rolledBack", 1, r#"{"numTurns":2}"#),
            ("new", 7, r#"{"text":"\",\"payload\":{","crc":"00000000"}"#),
            ("empty", 1, "{}"),
        ] {
            let line = line(7, kind, schema, payload);
            let quick = Envelope::as_written(&line).expect("as written");
            let AnyEnvelope { seq, at, kind, schema, payload } = serde_json::from_slice(&line).expect("JSON");
            assert_eq!(quick, Envelope { seq, at, kind, schema, payload: payload.get() });
        }
        let spaced =
            br#"{"seq":1, "at":"2026-11-15T20:09:51.123Z","type":"a","payload":{},"crc":"00000000"}"#;
        assert_eq!(Envelope::as_written(spaced), None);
        assert!(Envelope::parse(spaced).is_ok_and(|envelope| envelope.seq == 1 && envelope.payload == "{}"));
    }

    #[test]
    fn the_format_is_stable() {
        let line = line(7, "rolledBack", 1, r#"{"numTurns":2}"#);
        assert_eq!(
            String::from_utf8(line).unwrap(),
            r#"{"seq":7,"at":"2026-11-15T20:09:51.123Z","type":"rolledBack","payload":{"numTurns":2},"crc":"4353a114"}"#
        );
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let line = line(7, "rolledBack", 1, r#"{"numTurns":2}"#);
        assert_eq!(check(&line).unwrap().seq, 7);
        for bit in 0..line.len() * 8 {
            let mut bad = line.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn unknown_kinds_and_newer_formats_come_back_byte_for_byte() {
        for (kind, schema, payload) in [
            ("teleported", 1, r#"{"to": "mars",  "x":1e999}"#),
            ("rolledBack", 2, r#"{"numTurns":{"of":3}}"#),
            ("teleported", 9, "[1, 2]"),
            ("responseItem", 1, r#"{"turnId":null,"item":{"type":"thought_transfer","to":1}}"#),
        ] {
            let before = line(3, kind, schema, payload);
            let (entry, strange) = Envelope::parse(&before).unwrap().open();
            assert_eq!(strange == Some(Strange::Kind), kind != "rolledBack");
            let Record::Foreign(foreign) = entry.record else { panic!("{kind} is not foreign") };
            assert_eq!(line(3, &foreign.kind, foreign.schema, foreign.payload.get()), before);
        }
    }

    #[test]
    fn a_known_kind_that_does_not_parse_is_told_apart() {
        let line = line(3, "rolledBack", 1, r#"{"numTurns":"many"}"#);
        let (_, strange) = Envelope::parse(&line).unwrap().open();
        assert!(matches!(strange, Some(Strange::Payload(reason)) if reason.contains("invalid type")));
    }
}
