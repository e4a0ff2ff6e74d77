//! Converts words to a shell line, and back.

use std::borrow::Cow;

/// The command as a line that a shell parses to these words. For display.
pub fn shell_line<W: AsRef<str>>(argv: &[W]) -> String {
    let words: Vec<_> = argv.iter().map(|word| quoted(word.as_ref())).collect();
    words.join(" ")
}

fn quoted(word: &str) -> Cow<'_, str> {
    if word.is_empty() {
        return "''".into();
    }
    if word.chars().all(needs_no_quotes) {
        return word.into();
    }
    let mut line = String::with_capacity(word.len() + 2);
    let mut rest = word;
    while !rest.is_empty() {
        let (length, style) = longest_piece(rest);
        let (piece, after) = rest.split_at(length);
        style.write(piece, &mut line);
        rest = after;
    }
    line.into()
}

/// Quoting styles for a piece of a word, preferred ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Bare,
    Single,
    Double,
}

impl Style {
    const ALL: [Self; 3] = [Self::Bare, Self::Single, Self::Double];

    fn can_hold(self, c: char) -> bool {
        match self {
            Self::Bare => needs_no_quotes(c),
            // Fish interprets escapes between single quotes.
            Self::Single => !matches!(c, '\'' | '\\' | '^'),
            Self::Double => !matches!(c, '$' | '`' | '!' | '^'),
        }
    }

    fn write(self, piece: &str, line: &mut String) {
        match self {
            Self::Bare => line.push_str(piece),
            Self::Single => line.extend(["'", piece, "'"]),
            Self::Double => {
                line.push('"');
                for c in piece.chars() {
                    if matches!(c, '"' | '\\') {
                        line.push('\\');
                    }
                    line.push(c);
                }
                line.push('"');
            }
        }
    }
}

/// The longest prefix that one style can quote, and that style. A caret must come first: older versions of bash treat
/// it as a history substitution elsewhere.
fn longest_piece(text: &str) -> (usize, Style) {
    let mut possible = Style::ALL.to_vec();
    let mut length = 0;
    for c in text.chars() {
        if length == 0 && c == '^' {
            possible = vec![Style::Single];
        } else {
            let left: Vec<_> = possible.iter().copied().filter(|style| style.can_hold(c)).collect();
            if left.is_empty() {
                break;
            }
            possible = left;
        }
        length += c.len_utf8();
    }
    (length, possible.first().copied().unwrap_or(Style::Single))
}

fn needs_no_quotes(c: char) -> bool {
    matches!(c, '+' | '-' | '.' | '/' | ':' | '@' | ']' | '_' | '0'..='9' | 'A'..='Z' | 'a'..='z')
}

/// Splits a line at blanks like a shell, with quotes and backslashes only. `None` for an open quote.
pub(crate) fn split_line(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        other => text.push(other),
                    }
                }
            }
            '"' => split_double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

fn split_double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}
