//! Calls that a model writes into its text, as `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: models without
//! calls of their own were trained to do so.

use serde_json::Value;

const BEGINS: &str = "<tool_call>";
const ENDS: &str = "</tool_call>";

/// Reads text that comes in pieces. What may be the beginning of a tag is held back until it is decided.
#[derive(Debug, Clone, Default)]
pub(super) struct TextCalls {
    held: String,
    in_call: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TextPiece {
    Text(String),
    Call { name: String, arguments: String },
}

impl TextCalls {
    pub(super) fn push(&mut self, text: &str) -> Vec<TextPiece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        loop {
            let tag = if self.in_call { ENDS } else { BEGINS };
            let Some(at) = self.held.find(tag) else { break };
            let before: String = self.held.drain(..at + tag.len()).collect();
            let before = &before[..at];
            match self.in_call {
                true => pieces.push(read(before)),
                false if before.is_empty() => {}
                false => pieces.push(TextPiece::Text(before.to_owned())),
            }
            self.in_call = !self.in_call;
        }
        if !self.in_call {
            let sure = self.held.len() - undecided(&self.held);
            if sure > 0 {
                pieces.push(TextPiece::Text(self.held.drain(..sure).collect()));
            }
        }
        pieces
    }

    /// The end of the text. A complete call without its end tag is accepted.
    pub(super) fn finish(&mut self) -> Vec<TextPiece> {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.in_call, false) {
            _ if held.is_empty() => Vec::new(),
            true => vec![read(&held)],
            false => vec![TextPiece::Text(held)],
        }
    }
}

/// How many bytes at the end may begin a tag.
fn undecided(text: &str) -> usize {
    let longest = text.len().min(BEGINS.len() - 1);
    (1..=longest).rev().find(|length| text.ends_with(&BEGINS[..*length])).unwrap_or(0)
}

/// Anything but a call stays text, as it was written.
fn read(text: &str) -> TextPiece {
    let call = serde_json::from_str::<Value>(text.trim()).ok();
    let name = call.as_ref().and_then(|call| call["name"].as_str()).filter(|name| !name.is_empty());
    match (name, &call) {
        (Some(name), Some(call)) => {
            let given = if call["arguments"].is_null() { &call["parameters"] } else { &call["arguments"] };
            let arguments = match given {
                Value::Null => "{}".to_owned(),
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            TextPiece::Call { name: name.to_owned(), arguments }
        }
        _ => TextPiece::Text(format!("{BEGINS}{text}{ENDS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces with adjoining texts joined.
    fn pieces(chunks: &[&str]) -> Vec<TextPiece> {
        let mut reader = TextCalls::default();
        let mut found: Vec<TextPiece> = chunks.iter().flat_map(|chunk| reader.push(chunk)).collect();
        found.extend(reader.finish());
        found.into_iter().fold(Vec::new(), |mut joined, piece| {
            match (joined.last_mut(), piece) {
                (Some(TextPiece::Text(before)), TextPiece::Text(more)) => before.push_str(&more),
                (_, piece) => joined.push(piece),
            }
            joined
        })
    }

    #[test]
    fn calls_in_text_are_found_wherever_the_text_is_cut() {
        let text =
            "I <b>look</b>.<tool_call>{\"name\":\"read\",\"arguments\":{\"p\":\"é\"}}</tool_call> done <to";
        let call = TextPiece::Call { name: "read".into(), arguments: "{\"p\":\"é\"}".into() };
        let text_of = |text: &str| TextPiece::Text(text.to_owned());
        let expected = vec![text_of("I <b>look</b>."), call, text_of(" done <to")];
        assert_eq!(pieces(&[text]), expected);
        for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(pieces(&[&text[..cut], &text[cut..]]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_call_stays_text() {
        assert_eq!(
            pieces(&["<tool_call>{}</tool_call>"]),
            [TextPiece::Text("<tool_call>{}</tool_call>".into())]
        );
        let open = pieces(&["<tool_call>{\"name\":\"a\",\"parameters\":{}}"]);
        assert_eq!(open, [TextPiece::Call { name: "a".into(), arguments: "{}".into() }]);
    }
}
