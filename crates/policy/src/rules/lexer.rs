//! Rule files as tokens. Inside brackets, line ends are ignored.

use super::strings::read_string;
use super::{Fault, SourcePosition};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleToken {
    Name(String),
    Text(String),
    Open(char),
    Close(char),
    Comma,
    Equals,
    Plus,
    /// A line end or a semicolon.
    StatementEnd,
    End,
}

impl RuleToken {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Text(_) => "a string".to_owned(),
            Self::Open(c) | Self::Close(c) => format!("`{c}`"),
            Self::Comma => "`,`".to_owned(),
            Self::Equals => "`=`".to_owned(),
            Self::Plus => "`+`".to_owned(),
            Self::StatementEnd => "the end of the line".to_owned(),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

/// Characters with their positions.
pub(super) struct Cursor<'a> {
    rest: std::str::Chars<'a>,
    place: SourcePosition,
}

impl<'a> Cursor<'a> {
    pub(super) fn place(&self) -> SourcePosition {
        self.place
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest.as_str()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        if next == '\n' {
            self.place = SourcePosition { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(next)
    }

    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            for _ in wanted.chars() {
                self.next();
            }
        }
        found
    }
}

pub(super) fn tokens(text: &str) -> Result<Vec<(RuleToken, SourcePosition)>, Fault> {
    let mut cursor = Cursor { rest: text.chars(), place: SourcePosition { line: 1, column: 1 } };
    let mut tokens = Vec::new();
    let mut depth = 0_usize;
    while let Some(next) = cursor.peek() {
        let place = cursor.place();
        let token = match next {
            ' ' | '\t' | '\r' => {
                let indented = depth == 0 && place.column == 1;
                skip_blanks(&mut cursor);
                if indented && !matches!(cursor.peek(), None | Some('\n' | '#')) {
                    return Err(Fault::at(place, "this line is indented, but belongs to nothing"));
                }
                continue;
            }
            '#' => {
                while cursor.peek().is_some_and(|c| c != '\n') {
                    cursor.next();
                }
                continue;
            }
            '\\' if cursor.take("\\\n") => continue,
            '\n' | ';' => {
                cursor.next();
                if depth > 0 && next == '\n' {
                    continue;
                }
                RuleToken::StatementEnd
            }
            '"' | '\'' => RuleToken::Text(read_string(&mut cursor, false)?),
            'r' if cursor.rest()[1..].starts_with(['"', '\'']) => {
                cursor.next();
                RuleToken::Text(read_string(&mut cursor, true)?)
            }
            _ if is_name_start(next) => RuleToken::Name(name(&mut cursor)),
            _ => punctuation(&mut cursor, &mut depth)?,
        };
        tokens.push((token, place));
    }
    tokens.push((RuleToken::StatementEnd, cursor.place()));
    tokens.push((RuleToken::End, cursor.place()));
    Ok(tokens)
}

fn skip_blanks(cursor: &mut Cursor<'_>) {
    while matches!(cursor.peek(), Some(' ' | '\t' | '\r')) {
        cursor.next();
    }
}

fn punctuation(cursor: &mut Cursor<'_>, depth: &mut usize) -> Result<RuleToken, Fault> {
    let place = cursor.place();
    match cursor.next() {
        Some(open @ ('(' | '[')) => {
            *depth += 1;
            Ok(RuleToken::Open(open))
        }
        Some(close @ (')' | ']')) => {
            *depth = depth.saturating_sub(1);
            Ok(RuleToken::Close(close))
        }
        Some(',') => Ok(RuleToken::Comma),
        Some('=') if cursor.peek() != Some('=') => Ok(RuleToken::Equals),
        Some('+') if cursor.peek() != Some('=') => Ok(RuleToken::Plus),
        other => {
            let shown = other.map(|c| crate::escape_for_display(&c.to_string())).unwrap_or_default();
            Err(Fault::at(place, format!("`{shown}` has no place in a rule file")))
        }
    }
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn name(cursor: &mut Cursor<'_>) -> String {
    let mut name = String::new();
    while let Some(c) = cursor.peek().filter(|c| is_name_start(*c) || c.is_ascii_digit()) {
        name.push(c);
        cursor.next();
    }
    name
}
