//! Records that are appended together: with one time, encoded as JSON, without sequence numbers yet.

use protocol::RolloutRecord;

use crate::error::JournalError;
use crate::facts::Fact;
use crate::line::{self, LineBody};
use crate::record::{self, Foreign, MAX_DEPTH, Record, SCHEMA};
use crate::time;

/// Records that are acknowledged or refused together. A crash before that may leave the first few of them.
#[derive(Debug, Clone)]
pub struct RecordBatch {
    at_ms: i64,
    parts: Vec<EncodedRecord>,
    facts: Vec<Fact>,
}

#[derive(Debug, Clone)]
struct EncodedRecord {
    kind: String,
    schema: u32,
    payload: Vec<u8>,
}

impl RecordBatch {
    /// An empty batch with this time, in Unix milliseconds.
    pub fn at(at_ms: i64) -> Self {
        Self { at_ms, parts: Vec::new(), facts: Vec::new() }
    }

    /// A batch of one record.
    pub fn one(at_ms: i64, record: &RolloutRecord) -> Result<Self, JournalError> {
        Self::at(at_ms).with(record)
    }

    /// The same batch with one more record.
    pub fn with(mut self, record: &RolloutRecord) -> Result<Self, JournalError> {
        self.push(record)?;
        Ok(self)
    }

    pub fn push(&mut self, record: &RolloutRecord) -> Result<(), JournalError> {
        let json = serde_json::to_vec(record)?;
        check_depth(&json)?;
        let (kind, members) = record::split(&json).ok_or_else(no_kind)?;
        let mut payload = Vec::with_capacity(members.len() + 1);
        payload.push(b'{');
        payload.extend_from_slice(members);
        self.parts.push(EncodedRecord {
            kind: kind.to_owned(),
            schema: SCHEMA,
            payload: on_one_line(payload),
        });
        self.facts.push(Fact::of(record));
        Ok(())
    }

    /// A record of a newer release, written again unchanged.
    pub fn push_foreign(&mut self, foreign: &Foreign) -> Result<(), JournalError> {
        let payload = foreign.payload.get().as_bytes().to_vec();
        let kind = serde_json::to_string(&foreign.kind)?;
        let kind = kind[1..kind.len() - 1].to_owned();
        self.parts.push(EncodedRecord { kind, schema: foreign.schema, payload: on_one_line(payload) });
        self.facts.push(Fact::Activity);
        Ok(())
    }

    pub fn push_record(&mut self, record: &Record) -> Result<(), JournalError> {
        match record {
            Record::Known(record) => self.push(record),
            Record::Foreign(foreign) => self.push_foreign(foreign),
        }
    }

    pub fn at_ms(&self) -> i64 {
        self.at_ms
    }

    pub fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The changes to its thread's summary.
    pub(crate) fn take_facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.facts)
    }

    /// Appends all lines, the first with this number, and returns the number after the last.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, first: u64, limit: usize) -> Result<u64, JournalError> {
        let at = time::format_ms(self.at_ms);
        let mut seq = first;
        for part in &self.parts {
            let start = out.len();
            let body = LineBody { at: &at, kind: &part.kind, schema: part.schema, payload: &part.payload };
            line::encode(out, seq, body);
            let bytes = out.len() - start;
            if bytes > limit {
                return Err(JournalError::TooLarge { bytes, limit });
            }
            seq = seq.saturating_add(1);
        }
        Ok(seq)
    }
}

fn no_kind() -> serde_json::Error {
    serde::ser::Error::custom("a record must be an object that begins with its kind")
}

fn check_depth(json: &[u8]) -> Result<(), JournalError> {
    match record::depth(json) {
        depth if depth > MAX_DEPTH => Err(JournalError::TooDeep { depth, limit: MAX_DEPTH }),
        _ => Ok(()),
    }
}

/// Raw JSON may span several lines. Inside strings line breaks are always escaped, so each one found is white space.
fn on_one_line(mut json: Vec<u8>) -> Vec<u8> {
    if json.contains(&b'\n') || json.contains(&b'\r') {
        for byte in json.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use protocol::{ResponseItem, RolloutRecord, TurnId};
    use serde_json::json;

    use super::*;
    use crate::line::Envelope;

    fn nested(levels: usize) -> RolloutRecord {
        let arguments = (0..levels).fold(json!(1), |inner, _| json!([inner]));
        RolloutRecord::TurnContext { turn_id: TurnId::new("t"), context: arguments }
    }

    #[test]
    fn accepted_records_can_be_read_again() {
        // The record's own object is the first level.
        let record = nested(MAX_DEPTH - 1);
        let batch = RecordBatch::one(0, &record).unwrap();
        let mut out = Vec::new();
        batch.encode(&mut out, 1, 10_000).unwrap();
        let (entry, strange) = Envelope::parse(out.trim_ascii_end()).unwrap().open();
        assert_eq!((entry.record, strange), (record.into(), None));
        assert!(matches!(
            RecordBatch::one(0, &nested(MAX_DEPTH)),
            Err(JournalError::TooDeep { depth: 128, .. })
        ));
    }

    #[test]
    fn a_record_over_the_limit_is_refused() {
        let text = "x".repeat(500);
        let item = ResponseItem::Compaction { encrypted_content: text };
        let batch = RecordBatch::one(0, &RolloutRecord::ResponseItem { turn_id: None, item }).unwrap();
        assert!(matches!(batch.encode(&mut Vec::new(), 1, 500), Err(JournalError::TooLarge { .. })));
    }

    #[test]
    fn foreign_json_over_several_lines_stays_on_one() {
        let payload = serde_json::value::RawValue::from_string("{\n\t\"a\": 1\r\n}".to_owned()).unwrap();
        let mut batch = RecordBatch::at(0);
        batch.push_foreign(&Foreign { kind: "odd \"kind\"".to_owned(), schema: 4, payload }).unwrap();
        let mut out = Vec::new();
        batch.encode(&mut out, 1, 10_000).unwrap();
        assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let line = out.trim_ascii_end();
        line::check(line).unwrap();
        assert_eq!(Envelope::parse(line).unwrap().kind, "odd \"kind\"");
    }
}
