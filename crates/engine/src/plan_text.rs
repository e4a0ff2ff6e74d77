//! Plan mode: what stands between `<proposed_plan>` and `</proposed_plan>` is a plan, the rest is the message. Works on
//! text that arrives in pieces, tags split anywhere.

const OPEN: &str = "<proposed_plan>";
const CLOSE: &str = "</proposed_plan>";

/// A stretch of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Message(String),
    Plan(String),
}

/// Splits streamed text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlanSplitter {
    in_plan: bool,
    /// The tag's own line break belongs to neither side.
    after_tag: bool,
    held: String,
}

impl PlanSplitter {
    /// Takes more text and gives what can be told for certain.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        loop {
            if self.after_tag && !self.held.is_empty() {
                self.after_tag = false;
                if self.held.starts_with('\n') {
                    self.held.remove(0);
                }
            }
            let tag = if self.in_plan { CLOSE } else { OPEN };
            if let Some(at) = self.held.find(tag) {
                let before: String = self.held.drain(..at).collect();
                self.held.drain(..tag.len());
                self.give(&mut pieces, before);
                self.in_plan = !self.in_plan;
                self.after_tag = true;
                continue;
            }
            let certain = self.held.len() - longest_tag_start(&self.held, tag);
            let text: String = self.held.drain(..certain).collect();
            self.give(&mut pieces, text);
            return pieces;
        }
    }

    /// The end: what was held back is text after all.
    pub(crate) fn finish(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let rest = std::mem::take(&mut self.held);
        self.give(&mut pieces, rest);
        pieces
    }

    fn give(&self, pieces: &mut Vec<Piece>, text: String) {
        if !text.is_empty() {
            pieces.push(if self.in_plan { Piece::Plan(text) } else { Piece::Message(text) });
        }
    }
}

/// How many bytes at the end could be the beginning of the tag.
fn longest_tag_start(text: &str, tag: &str) -> usize {
    (1..tag.len().min(text.len() + 1)).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}

/// A whole text at once: the message and the plan, if there is one.
pub(crate) fn split(text: &str) -> (String, Option<String>) {
    let mut splitter = PlanSplitter::default();
    let mut pieces = splitter.push(text);
    pieces.extend(splitter.finish());
    let (mut message, mut plan) = (String::new(), None);
    for piece in pieces {
        match piece {
            Piece::Message(text) => message.push_str(&text),
            Piece::Plan(text) => plan.get_or_insert_with(String::new).push_str(&text),
        }
    }
    (message, plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Intro\n<proposed_plan>\n# Plan\n- a\n</proposed_plan>\nOutro";

    #[test]
    fn a_plan_is_cut_out_of_the_message() {
        assert_eq!(split(TEXT), ("Intro\nOutro".into(), Some("# Plan\n- a\n".into())));
        assert_eq!(split("a < b and <proposed_planet>"), ("a < b and <proposed_planet>".into(), None));
        assert_eq!(split("x<proposed_plan>never closed"), ("x".into(), Some("never closed".into())));
    }

    #[test]
    fn it_does_not_matter_where_the_pieces_break() {
        let whole = split(TEXT);
        for at in 0..TEXT.len() {
            for second in at..TEXT.len() {
                let mut splitter = PlanSplitter::default();
                let mut pieces = Vec::new();
                for part in [&TEXT[..at], &TEXT[at..second], &TEXT[second..]] {
                    pieces.extend(splitter.push(part));
                }
                pieces.extend(splitter.finish());
                let (mut message, mut plan) = (String::new(), String::new());
                for piece in pieces {
                    match piece {
                        Piece::Message(text) => message.push_str(&text),
                        Piece::Plan(text) => plan.push_str(&text),
                    }
                }
                assert_eq!((message, Some(plan)), whole, "{at} {second}");
            }
        }
    }
}
