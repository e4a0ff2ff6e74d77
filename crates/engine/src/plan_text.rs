//! Plan mode: text between `<proposed_plan>` and `</proposed_plan>` is the plan, the rest is the message. Works on
//! streamed text with tags split anywhere.

const OPEN: &str = "<proposed_plan>";
const CLOSE: &str = "</proposed_plan>";

/// A piece of the message or of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlanPiece {
    Message(String),
    /// A plan starts and replaces an earlier one.
    Opened,
    Plan(String),
}

/// Splits streamed text. A tag counts only on its own line; that line is in neither part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlanSplitter {
    in_plan: bool,
    /// The current line has started with text that is not a tag.
    mid_line: bool,
    /// The start of a line that may still become a tag.
    held: String,
}

impl PlanSplitter {
    /// Adds text and returns the pieces that are certain.
    pub(crate) fn push(&mut self, text: &str) -> Vec<PlanPiece> {
        let mut pieces = Vec::new();
        for part in text.split_inclusive('\n') {
            let ends = part.ends_with('\n');
            self.held.push_str(part);
            if !self.mid_line && ends && self.held.trim() == self.tag() {
                self.turn(&mut pieces);
            } else if self.mid_line || ends || !self.tag().starts_with(self.held.trim()) {
                self.give(&mut pieces);
                self.mid_line = !ends;
            }
        }
        pieces
    }

    /// Ends the text, and with it the last line.
    pub(crate) fn finish(&mut self) -> Vec<PlanPiece> {
        let mut pieces = Vec::new();
        match !self.mid_line && self.held.trim() == self.tag() {
            true => self.turn(&mut pieces),
            false => self.give(&mut pieces),
        }
        pieces
    }

    /// Switches between message and plan.
    fn turn(&mut self, pieces: &mut Vec<PlanPiece>) {
        self.held.clear();
        self.in_plan = !self.in_plan;
        if self.in_plan {
            pieces.push(PlanPiece::Opened);
        }
    }

    /// The tag that switches next.
    fn tag(&self) -> &'static str {
        if self.in_plan { CLOSE } else { OPEN }
    }

    fn give(&mut self, pieces: &mut Vec<PlanPiece>) {
        let text = std::mem::take(&mut self.held);
        match (pieces.last_mut(), self.in_plan) {
            _ if text.is_empty() => {}
            (Some(PlanPiece::Plan(last)), true) | (Some(PlanPiece::Message(last)), false) => {
                last.push_str(&text);
            }
            (_, true) => pieces.push(PlanPiece::Plan(text)),
            (_, false) => pieces.push(PlanPiece::Message(text)),
        }
    }
}

/// Splits a complete text into the message and the plan, if there is one.
pub(crate) fn split(text: &str) -> (String, Option<String>) {
    let mut splitter = PlanSplitter::default();
    let mut pieces = splitter.push(text);
    pieces.extend(splitter.finish());
    let (mut message, mut plan) = (String::new(), None);
    for piece in pieces {
        match piece {
            PlanPiece::Message(text) => message.push_str(&text),
            PlanPiece::Opened => plan = Some(String::new()),
            PlanPiece::Plan(text) => plan.get_or_insert_with(String::new).push_str(&text),
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
        assert_eq!(split("x\n<proposed_plan>\nnever closed"), ("x\n".into(), Some("never closed".into())));
        assert_eq!(split(" <proposed_plan> \n- a\n</proposed_plan>"), (String::new(), Some("- a\n".into())));
    }

    #[test]
    fn the_last_plan_counts_even_if_it_is_empty() {
        let first = "<proposed_plan>\n- a\n</proposed_plan>\nor\n";
        assert_eq!(split(&format!("{first}<proposed_plan>\n- b\n")), ("or\n".into(), Some("- b\n".into())));
        assert_eq!(split(&format!("{first}<proposed_plan>")), ("or\n".into(), Some(String::new())));
    }

    #[test]
    fn a_tag_within_a_line_is_text() {
        for text in [
            "a < b and <proposed_planet>",
            "<proposed_planet>\n",
            "x <proposed_plan>\n",
            "<proposed_plan> x\n",
        ] {
            assert_eq!(split(text), (text.into(), None), "{text}");
        }
        let quoted = "<proposed_plan>\nuse </proposed_plan> last\n</proposed_plan>\n";
        assert_eq!(split(quoted), (String::new(), Some("use </proposed_plan> last\n".into())));
    }

    #[test]
    fn pieces_may_break_anywhere() {
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
                        PlanPiece::Message(text) => message.push_str(&text),
                        PlanPiece::Opened => plan.clear(),
                        PlanPiece::Plan(text) => plan.push_str(&text),
                    }
                }
                assert_eq!((message, Some(plan)), whole, "{at} {second}");
            }
        }
    }
}
