//! Splits the user's message into clauses: lines, list entries, or parts between "then"s.

/// A part of the text, and its connection to the previous one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clause<'a> {
    pub(super) joint: &'a str,
    pub(super) text: &'a str,
}

/// Splits only outside quotes, code and braces.
pub(super) fn clauses(text: &str) -> Vec<Clause<'_>> {
    let is_list = list_mark(text.trim_start()) > 0;
    let quoted = Quoted::read(text);
    let mut found = Vec::new();
    let (mut start, mut joint) = (0, "");
    let mut at = 0;
    while at < text.len() {
        if let Some(end) = quoted.end_of_part(at) {
            at = end;
            continue;
        }
        let rest = &text[at..];
        let (length, is_joint) = match rest.starts_with('\n') {
            true => line_break(rest),
            false => joint_length(rest, is_list),
        };
        if is_joint {
            push(&mut found, joint, &text[start..at]);
            joint = &rest[..length];
            start = at + length;
        }
        at += length;
    }
    push(&mut found, joint, &text[start..]);
    found
}

fn push<'a>(found: &mut Vec<Clause<'a>>, joint: &'a str, text: &'a str) {
    let text = text.trim();
    let text = text[list_mark(text)..].trim_start();
    if !text.is_empty() {
        found.push(Clause { joint, text });
    }
}

/// The length of a line break with the following space, and whether it separates: a code block belongs to the line
/// before.
fn line_break(rest: &str) -> (usize, bool) {
    let next = rest.trim_start();
    (rest.len() - next.len(), !next.starts_with("```"))
}

/// The length of the separator that starts here; otherwise the length of the character.
fn joint_length(rest: &str, is_list: bool) -> (usize, bool) {
    const WORDS: &[&str] = &[", and then ", " and then ", ", then ", "; then ", ". then ", " then "];
    if let Some(word) = WORDS.iter().find(|word| starts_with(rest, word)) {
        return (word.len(), true);
    }
    let is_next_entry = is_list && rest.strip_prefix(' ').is_some_and(starts_with_number);
    (rest.chars().next().map_or(1, char::len_utf8), is_next_entry)
}

/// `1. ` or `2) `, but not the `2.5` of a sentence.
fn starts_with_number(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - rest.len();
    (1..=2).contains(&digits) && (rest.starts_with(". ") || rest.starts_with(") "))
}

/// The length of a list marker at the start.
fn list_mark(text: &str) -> usize {
    if starts_with_number(text) {
        text.find(' ').map_or(0, |space| space + 1)
    } else if text.starts_with("- ") || text.starts_with("* ") {
        2
    } else {
        0
    }
}

/// Whether the text starts with this, ignoring case.
pub(super) fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

/// The parts of a text in double quotes, backticks, fences and braces. An unpaired mark is ignored.
pub(super) struct Quoted(Vec<(usize, usize)>);

impl Quoted {
    /// One pass, however the marks are arranged.
    pub(super) fn read(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut open_braces = Vec::new();
        let mut may_close = true;
        let mut at = 0;
        while let Some(character) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = match character {
                '`' => code_length(rest),
                '"' if may_close => {
                    let length = string_length(rest);
                    may_close = length.is_some();
                    length
                }
                '{' => {
                    open_braces.push(at);
                    None
                }
                '}' => {
                    parts.extend(open_braces.pop().map(|open| (open, at + 1)));
                    None
                }
                _ => None,
            };
            parts.extend(length.map(|length| (at, at + length)));
            at += length.unwrap_or(character.len_utf8());
        }
        Self::outermost(parts)
    }

    fn outermost(mut parts: Vec<(usize, usize)>) -> Self {
        parts.sort_unstable();
        let mut covered = 0;
        parts.retain(|(start, end)| {
            let is_outer = *start >= covered;
            covered = covered.max(*end);
            is_outer
        });
        Self(parts)
    }

    /// In order, without nesting.
    pub(super) fn parts(&self) -> &[(usize, usize)] {
        &self.0
    }

    /// The end of the part at this position.
    pub(super) fn end_of_part(&self, at: usize) -> Option<usize> {
        let before = self.0.partition_point(|(start, _)| *start <= at);
        let (_, end) = self.0[..before].last()?;
        (at < *end).then_some(*end)
    }
}

fn code_length(text: &str) -> Option<usize> {
    let fence = text.strip_prefix("```").and_then(|inner| inner.find("```")).map(|end| end + 6);
    let code = || text.strip_prefix('`')?.find('`').map(|end| end + 2);
    fence.or_else(code)
}

fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = clauses(text).iter().map(|clause| clause.text).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn lines_lists_and_then() {
        check("list files", &["list files"]);
        check("list files\n\nread a.txt\n", &["list files", "read a.txt"]);
        check("list files, then read a.txt Then run x", &["list files", "read a.txt", "run x"]);
        check("read a and then run b", &["read a", "run b"]);
        check(
            "Do:\n1. list files\n2) read a.txt\n- run x\n* say y",
            &["Do:", "list files", "read a.txt", "run x", "say y"],
        );
        check("1. list files 2. read a.txt", &["list files", "read a.txt"]);
        check("say version 2. is out", &["say version 2. is out"]);
        check("  \n ", &[]);
    }

    #[test]
    fn nothing_is_cut_inside_quotes_code_or_braces() {
        check("say \"a then b\" then run `x then y`", &["say \"a then b\"", "run `x then y`"]);
        check(
            "call t {\n \"a\": \"} then \\\"{\"\n} then say x",
            &["call t {\n \"a\": \"} then \\\"{\"\n}", "say x"],
        );
        check(
            "create a with ```\none\n1. two\n``` then say x",
            &["create a with ```\none\n1. two\n```", "say x"],
        );
        check("run:\n\n```\nx\n```\nsay y", &["run:\n\n```\nx\n```", "say y"]);
        check("say it's 5\" then run x", &["say it's 5\"", "run x"]);
        check("say { then run x", &["say {", "run x"]);
        check("say {{ {\"a\": {}} then run x", &["say {{ {\"a\": {}}", "run x"]);
        check("say 漢字 then say 🦀", &["say 漢字", "say 🦀"]);
    }

    #[test]
    fn no_arrangement_of_marks_takes_long() {
        for mark in ["{", "}", "\"", "\\\"", "`", "```", "{\"", "\n", " then ", "{}", "``` `", "\n```"] {
            let text = mark.repeat(50_000);
            assert!(clauses(&text).len() <= 50_001);
        }
    }
}
