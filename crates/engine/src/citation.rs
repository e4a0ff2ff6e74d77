//! Citations of memories: markup in the model's answers that the program reads and clients do not see.
//!
//! ```text
//! <oai-mem-citation>
//! <citation_entries>
//! MEMORY.md:3-5|note=[how releases are made]
//! </citation_entries>
//! <rollout_ids>
//! 0199c0de-0000-7000-8000-000000000000
//! </rollout_ids>
//! </oai-mem-citation>
//! ```

use protocol::{MemoryCitation, MemoryCitationEntry};

const START: &str = "<oai-mem-citation>";
const END: &str = "</oai-mem-citation>";

/// Limit on the entries, and on the threads, that one message can cite.
const MOST_CITED: usize = 64;

/// Splits the text from the markup's contents. Markup that is never closed extends to the end of the text.
pub(crate) fn split(text: &str) -> (String, Option<MemoryCitation>) {
    let (mut kept, mut cited) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(start) = rest.find(START) {
        kept.push_str(&rest[..start]);
        let inside = &rest[start + START.len()..];
        let (body, after) = inside.split_once(END).unwrap_or((inside, ""));
        cited.push(body);
        rest = after;
    }
    kept.push_str(rest);
    (kept, parse(&cited))
}

fn parse(cited: &[&str]) -> Option<MemoryCitation> {
    let mut entries: Vec<MemoryCitationEntry> = Vec::new();
    let mut thread_ids: Vec<String> = Vec::new();
    for body in cited {
        entries.extend(block(body, "citation_entries").unwrap_or_default().lines().filter_map(entry));
        let ids = block(body, "rollout_ids").or_else(|| block(body, "thread_ids")).unwrap_or_default();
        for id in ids.lines().map(str::trim).filter(|id| !id.is_empty()) {
            if !thread_ids.iter().any(|known| known == id) {
                thread_ids.push(id.to_owned());
            }
        }
    }
    entries.truncate(MOST_CITED);
    thread_ids.truncate(MOST_CITED);
    (!entries.is_empty() || !thread_ids.is_empty()).then_some(MemoryCitation { entries, thread_ids })
}

fn block<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(body, _)| body)
}

/// Parses `PATH:FROM-TO|note=[TEXT]`. Lines in another form are ignored.
fn entry(line: &str) -> Option<MemoryCitationEntry> {
    let (place, note) = line.trim().rsplit_once("|note=[")?;
    let (path, lines) = place.rsplit_once(':')?;
    let (first, last) = lines.split_once('-')?;
    Some(MemoryCitationEntry {
        path: path.trim().to_owned(),
        line_start: first.trim().parse().ok()?,
        line_end: last.trim().parse().ok()?,
        note: note.strip_suffix(']')?.trim().to_owned(),
    })
}

/// Removes markup from a message while it streams. Holds back the end of the text while it may be the start of a tag.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CitationFilter {
    held: String,
    is_inside: bool,
}

impl CitationFilter {
    /// The text that can be shown now.
    pub(crate) fn push(&mut self, delta: String) -> String {
        if self.held.is_empty() && !self.is_inside && !delta.contains('<') {
            return delta;
        }
        self.held.push_str(&delta);
        let mut shown = String::new();
        loop {
            let tag = if self.is_inside { END } else { START };
            let Some(at) = self.held.find(tag) else { break };
            let before = self.held.drain(..at + tag.len());
            if !self.is_inside {
                shown.push_str(&before.as_str()[..at]);
            }
            drop(before);
            self.is_inside = !self.is_inside;
        }
        let tag = if self.is_inside { END } else { START };
        let sure = self.held.len() - longest_beginning(&self.held, tag);
        let before = self.held.drain(..sure);
        if !self.is_inside {
            shown.push_str(before.as_str());
        }
        drop(before);
        shown
    }

    /// Returns the text held back: the message is complete, so it is no tag.
    pub(crate) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.is_inside) { String::new() } else { held }
    }
}

/// Length of the longest suffix of the text that is a prefix of the tag.
fn longest_beginning(text: &str, tag: &str) -> usize {
    let most = text.len().min(tag.len() - 1);
    (1..=most).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = "Done.<oai-mem-citation>\n<citation_entries>\nMEMORY.md:3-5|note=[how releases are made]\n\
        bad line\nMEMORY.md:x-5|note=[no]\n</citation_entries>\n<rollout_ids>\nt-1\n\nt-1\nt-2\n</rollout_ids>\n\
        </oai-mem-citation> Bye.";

    #[test]
    fn markup_becomes_a_citation() {
        let (text, citation) = split(MESSAGE);
        assert_eq!(text, "Done. Bye.");
        let citation = citation.expect("one");
        assert_eq!(citation.thread_ids, ["t-1", "t-2"]);
        let entry = MemoryCitationEntry {
            path: "MEMORY.md".to_owned(),
            line_start: 3,
            line_end: 5,
            note: "how releases are made".to_owned(),
        };
        assert_eq!(citation.entries, [entry]);
    }

    #[test]
    fn text_without_citations_stays_as_it_is() {
        assert_eq!(split("plain"), ("plain".to_owned(), None));
        assert_eq!(split("a<oai-mem-citation>x</oai-mem-citation>b"), ("ab".to_owned(), None));
        assert_eq!(split("a<oai-mem-citation>never closed"), ("a".to_owned(), None));
        assert_eq!(split("1 < 2 <oai-mem>"), ("1 < 2 <oai-mem>".to_owned(), None));
    }

    #[test]
    fn a_citation_is_bounded() {
        let ids: String = (0..1_000).map(|id| format!("t-{id}\n")).collect();
        let (_, citation) = split(&format!("{START}<thread_ids>{ids}</thread_ids>{END}"));
        assert_eq!(citation.expect("one").thread_ids.len(), MOST_CITED);
    }

    #[test]
    fn deltas_never_show_markup_however_they_are_cut() {
        let cases = [
            MESSAGE,
            "plain",
            "1 < 2 and <oai-me",
            "a<oai-mem-citation>never",
            "é<<oai-mem-citation></oai-mem-citation><",
        ];
        for text in cases {
            for size in 1..=text.chars().count() {
                let mut filter = CitationFilter::default();
                let letters: Vec<char> = text.chars().collect();
                let mut shown = String::new();
                for piece in letters.chunks(size) {
                    shown.push_str(&filter.push(piece.iter().collect()));
                    assert!(!shown.contains("<oai-mem-citation"), "{shown}");
                }
                shown.push_str(&filter.finish());
                assert_eq!(shown, split(text).0, "{text:?} in pieces of {size}");
            }
        }
    }
}
