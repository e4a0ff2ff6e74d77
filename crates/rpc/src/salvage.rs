//! Finds the request id in a line that is not JSON, or at the beginning of one that is too long.

use crate::id::Id;
use crate::line_buffer::trim;
use crate::scan::any_string_end;

/// The top-level `id` of a broken message. Only strings and brackets are parsed. `None` if there is none, if it is cut
/// off, and if the message looks like a response (a top-level `result` or `error` and no `method`): that id is ours.
/// The first of two ids counts.
pub fn salvage_id(text: &[u8]) -> Option<Id> {
    let text = trim(text);
    if !text.starts_with(b"{") {
        return None;
    }
    let mut seen = SeenMembers::default();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => break,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let Some(end) = any_string_end(text, at) else { break };
                if depth == 1 {
                    seen.key(&text[at..end - 1], &text[end..]);
                }
                if seen.request && seen.id.is_some() {
                    break;
                }
                at = end;
            }
            _ => {}
        }
    }
    seen.id.filter(|_| seen.request || !seen.answer)
}

#[derive(Debug, Default)]
struct SeenMembers {
    id: Option<Id>,
    request: bool,
    answer: bool,
}

impl SeenMembers {
    /// Handles a string of the object, if a colon makes it a key.
    fn key(&mut self, key: &[u8], rest: &[u8]) {
        let Some(value) = rest.trim_ascii_start().strip_prefix(b":") else { return };
        match key {
            b"method" => self.request = true,
            b"result" | b"error" => self.answer = true,
            b"id" if self.id.is_none() => self.id = id(value.trim_ascii_start()),
            _ => {}
        }
    }
}

fn id(value: &[u8]) -> Option<Id> {
    let end = match value.strip_prefix(b"\"") {
        Some(_) => any_string_end(value, 1)?,
        // A number ends at the next token. At the end of the text it may be incomplete.
        None => value.iter().position(|byte| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace())?,
    };
    Id::from_json(str::from_utf8(&value[..end]).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: impl Into<Option<Id>>) {
        assert_eq!(salvage_id(text.as_bytes()), expected.into(), "{text}");
    }

    #[test]
    fn finds_the_id_of_the_message_itself() {
        check(r#"{"id":7,"method":"a","params":{bad}}"#, Id::from(7));
        check(r#"{"method":"a","params":{"id":1,"x":[{"id":2}]},"id": "seven" "#, Id::from("seven"));
        check(r#"{ "params" : "id", "id" : -3 , "method"#, Id::from(-3));
        check(r#"{"id":1,"params":{"text":"unfinished"#, Id::from(1));
        check(r#"{"x":"\"id\":5","id":6}"#, Id::from(6));
        check(r#"{"id":1,"id":2,"#, Id::from(1));
        check("\u{feff} {\"id\":1,", Id::from(1));
    }

    #[test]
    fn takes_no_other_id() {
        check("{not json}", None);
        check("", None);
        check(r#""id":1"#, None);
        check(r#"[{"id":1}]"#, None);
        check(r#"note: {"id":1,"method":"a"}"#, None);
        check(r#"{"params":{"id":1"#, None);
        check(r#"{"id":1.5,"#, None);
        check(r#"{"id":null,"#, None);
        check(r#"{"id":12"#, None);
        check(r#"{"id":"12"#, None);
        check(r#"{"id"#, None);
        check(r#"{"method":"a"},"id":1,"#, None);
    }

    #[test]
    fn does_not_answer_an_answer() {
        check(r#"{"id":1,"result":{"text":"unfinished"#, None);
        check(r#"{"error":{bad},"id":1}"#, None);
        check(r#"{"id":1,"result":1,"method":"a",bad"#, Id::from(1));
    }

    #[test]
    fn survives_invalid_utf_8() {
        assert_eq!(salvage_id(b"{\"id\":4,\"method\":\"\xff\xfe\"}"), Some(Id::from(4)));
        assert_eq!(salvage_id(b"{\"id\":\"\xff\",\"method\":1}"), None);
        check(&format!("{{\"id\":9,\"params\":{}", "[".repeat(100_000)), Id::from(9));
    }
}
