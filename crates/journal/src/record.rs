//! Records as they are stored: known ones, and those of a newer release, which are kept unchanged.

use protocol::{Frequent, ResponseItem, RolloutItem, RolloutRecord, TagFirst};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The format version of records that this release writes and reads.
pub(crate) const SCHEMA: u32 = 1;

/// Deserialising stops at 127 levels, so a deeper record could be written and never read again.
pub(crate) const MAX_DEPTH: usize = 127;

/// One record with its number and time.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    pub seq: u64,
    pub at_ms: i64,
    pub record: Record,
}

// Entries are handled one by one, so the space wasted for a foreign one does not add up.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    Known(RolloutRecord),
    Foreign(Foreign),
}

/// A record that this release cannot read: an unknown kind, or a newer format. Written again byte for byte.
#[derive(Debug, Clone)]
pub struct Foreign {
    pub kind: String,
    pub schema: u32,
    pub payload: Box<RawValue>,
}

impl PartialEq for Foreign {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.schema == other.schema && self.payload.get() == other.payload.get()
    }
}

impl From<RolloutRecord> for Record {
    fn from(record: RolloutRecord) -> Self {
        Self::Known(record)
    }
}

impl JournalEntry {
    /// The record in the form for a host; a foreign one has no such form and is returned unchanged.
    pub fn into_item(self) -> Result<RolloutItem, Foreign> {
        match self.record {
            Record::Known(record) => Ok(RolloutItem { ordinal: self.seq, schema: SCHEMA, record }),
            Record::Foreign(foreign) => Err(foreign),
        }
    }
}

/// Why a valid line is foreign.
#[derive(Debug, PartialEq)]
pub(crate) enum Strange {
    /// An unknown kind of record or item, normal next to a newer release.
    Kind,
    /// A known kind that could not be decoded.
    Payload(String),
}

/// Splits `{"kind":"turnStarted","turnId":…}` into the kind, and the members after it up to the closing brace.
pub(crate) fn split(json: &[u8]) -> Option<(&str, &[u8])> {
    let rest = json.strip_prefix(b"{\"kind\":\"")?;
    let end = rest.iter().position(|&byte| byte == b'"')?;
    let kind = std::str::from_utf8(&rest[..end]).ok()?;
    let members = &rest[end + 1..];
    Some((kind, members.strip_prefix(b",").unwrap_or(members)))
}

/// The opposite of [`split`]. The kind comes first again, where the decoder finds it fastest.
#[inline]
pub(crate) fn decode(kind: &str, schema: u32, payload: &str) -> (Record, Option<Strange>) {
    if schema == SCHEMA
        && payload.starts_with('{')
        && let Some(record) = common(kind, payload)
    {
        return (Record::Known(record), None);
    }
    let strange = match known(kind, schema, payload) {
        Ok(record) => return (Record::Known(record), None),
        Err(strange) => strange,
    };
    // The checksum was valid, so this is JSON as written; if it is not, nothing can be kept.
    let (payload, strange) = match RawValue::from_string(payload.to_owned()) {
        Ok(payload) => (payload, strange),
        Err(error) => (RawValue::NULL.to_owned(), Strange::Payload(error.to_string())),
    };
    (Record::Foreign(Foreign { kind: kind.to_owned(), schema, payload }), Some(strange))
}

fn known(kind: &str, schema: u32, payload: &str) -> Result<RolloutRecord, Strange> {
    if !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Strange::Kind);
    }
    if schema != SCHEMA {
        return Err(if is_known(kind) {
            Strange::Payload(format!("format {schema} is newer than this release"))
        } else {
            Strange::Kind
        });
    }
    let Some(members) = payload.strip_prefix('{') else {
        return Err(if is_known(kind) {
            Strange::Payload("not an object".to_owned())
        } else {
            Strange::Kind
        });
    };
    let comma = if members.trim_start().starts_with('}') { "" } else { "," };
    let mut json = String::with_capacity(kind.len() + members.len() + 12);
    for part in ["{\"kind\":\"", kind, "\"", comma, members] {
        json.push_str(part);
    }
    match serde_json::from_str(&json) {
        // Decoding would lose the content of an unknown item, so it is kept undecoded.
        Ok(RolloutRecord::ResponseItem { item: ResponseItem::Other, .. }) => Err(Strange::Kind),
        Ok(record) => Ok(record),
        Err(error) if is_known(kind) => Err(Strange::Payload(error.to_string())),
        Err(_) => Err(Strange::Kind),
    }
}

/// A fast path for the two most frequent kinds: without the kind, members need no buffering. Anything unusual is left
/// to the general decoder.
#[inline]
fn common(kind: &str, payload: &str) -> Option<RolloutRecord> {
    match kind {
        "threadItem" => {
            let InTurn { turn_id, item } = in_turn(payload)?;
            Some(RolloutRecord::ThreadItem { turn_id, item })
        }
        "responseItem" => {
            let InTurn { turn_id, item } = in_turn(payload)?;
            (item != ResponseItem::Other).then_some(RolloutRecord::ResponseItem { turn_id, item })
        }
        _ => None,
    }
}

/// An item and its turn, which a [`ResponseItem`] may lack.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InTurn<T, I> {
    turn_id: T,
    item: I,
}

fn in_turn<'de, T, I>(payload: &'de str) -> Option<InTurn<T, I>>
where
    T: Deserialize<'de>,
    I: Deserialize<'de> + Frequent,
{
    match serde_json::from_str(payload) {
        Ok(InTurn { turn_id, item: TagFirst(item) }) => Some(InTurn { turn_id, item }),
        Err(_) => serde_json::from_str(payload).ok(),
    }
}

/// Uses the protocol's own decoder, so that the kinds are listed once. With only the kind, an unknown kind is the only
/// possible error of this type.
fn is_known(kind: &str) -> bool {
    let alone = format!("{{\"kind\":{kind:?}}}");
    match serde_json::from_str::<RolloutRecord>(&alone) {
        Ok(_) => true,
        Err(error) => !error.to_string().starts_with("unknown variant"),
    }
}

/// The maximum nesting of objects and lists, or their number if that is small.
pub(crate) fn depth(json: &[u8]) -> usize {
    let brackets = json.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if brackets <= MAX_DEPTH {
        return brackets;
    }
    let (mut now, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for &byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
