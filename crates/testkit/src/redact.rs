//! Makes transcripts equal in each run: run-specific values are replaced by words.

use serde_json::Value;

/// Replaces ids by their order of appearance, and times, counts of tokens, digests and the test's folder by their names.
#[derive(Debug)]
pub struct Redactor {
    folder: String,
    ids: Vec<String>,
}

impl Redactor {
    /// Of a test in this folder.
    pub(crate) fn new(folder: &str) -> Self {
        Self { folder: folder.to_owned(), ids: Vec::new() }
    }

    pub fn redact(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact(value)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match name_for(name) {
                        Some(word) if value.is_number() => *value = Value::String(word.to_owned()),
                        _ => self.redact(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let text = text.replace(&self.folder, "[folder]");
        let (mut redacted, mut rest) = (String::new(), text.as_str());
        while let Some(first) = rest.chars().next() {
            if let Some(id) = rest.get(..36).filter(|start| is_id(start)) {
                let known = self.ids.iter().position(|other| other == id);
                let number = known.unwrap_or_else(|| {
                    self.ids.push(id.to_owned());
                    self.ids.len() - 1
                });
                redacted.push_str(&format!("[id {}]", number + 1));
                rest = &rest[36..];
            } else if let Some(after) = rest.strip_prefix("sha256:") {
                redacted.push_str("sha256:[digest]");
                rest = after.trim_start_matches(|one: char| one.is_ascii_hexdigit());
            } else {
                redacted.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        redacted
    }
}

/// Whether this is a UUID.
fn is_id(text: &str) -> bool {
    let fits = |(at, one): (usize, u8)| match at {
        8 | 13 | 18 | 23 => one == b'-',
        _ => one.is_ascii_hexdigit(),
    };
    text.bytes().enumerate().all(fits)
}

/// The word for a run-specific number, by its field.
fn name_for(field: &str) -> Option<&'static str> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| field.ends_with(ending));
    if ends(&["At", "AtMs", "durationMs", "DurationMs"]) {
        Some("[time]")
    } else if ends(&["Tokens"]) {
        Some("[count]")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_replaced_and_the_rest_stays() {
        let (one, two) = ("019a8b3c-0000-7000-8000-000000000001", "019a8b3c-0000-7000-8000-000000000002");
        let mut value = json!({
            "id": one, "path": format!("/tmp/x/home/{two}.jsonl"), "parts": [format!("{two}:0:a1"), one, "é"],
            "createdAt": 12, "usage": {"totalTokens": 7, "window": 7}, "digest": "sha256:00ffAA.", "exitCode": 0,
        });
        Redactor::new("/tmp/x").redact(&mut value);
        let expected = json!({
            "id": "[id 1]", "path": "[folder]/home/[id 2].jsonl", "parts": ["[id 2]:0:a1", "[id 1]", "é"],
            "createdAt": "[time]", "usage": {"totalTokens": "[count]", "window": 7},
            "digest": "sha256:[digest].", "exitCode": 0,
        });
        assert_eq!(value, expected);
    }
}
