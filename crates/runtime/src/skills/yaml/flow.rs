//! What is enclosed in quotes or brackets, and may go over several lines.

use super::{MAX_DEPTH, Yaml, check_key, check_start};

type Problem = &'static str;

/// A place in the document.
pub(super) struct Cursor<'a> {
    document: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(document: &'a str, at: usize) -> Self {
        Self { document, at }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<char> {
        self.document[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Passes over white space, ends of lines and comments.
    fn skip(&mut self) {
        while let Some(next) = self.peek() {
            let is_comment = next == '#' && self.document[..self.at].ends_with([' ', '\t', '\n']);
            match next {
                ' ' | '\t' | '\n' | '\r' => self.at += 1,
                _ if is_comment => {
                    let rest = &self.document[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                _ => break,
            }
        }
    }

    pub(super) fn value(&mut self, depth: usize) -> Result<Yaml, Problem> {
        if depth > MAX_DEPTH {
            return Err("this is nested too deeply");
        }
        match self.peek() {
            Some('"' | '\'') => self.quoted().map(Yaml::Text),
            Some('[') => self.list(depth),
            Some('{') => self.map(depth),
            _ => self.plain(),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Yaml, Problem> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.skip();
            if self.peek() == Some(']') {
                self.at += 1;
                return Ok(Yaml::List(values));
            }
            let value = self.value(depth + 1)?;
            self.skip();
            if self.peek() == Some(':') {
                return Err("put braces around a mapping in a list");
            }
            values.push(value);
            self.separator(']')?;
        }
    }

    fn map(&mut self, depth: usize) -> Result<Yaml, Problem> {
        self.at += 1;
        let mut entries: Vec<(String, Yaml)> = Vec::new();
        loop {
            self.skip();
            if self.peek() == Some('}') {
                self.at += 1;
                return Ok(Yaml::Map(entries));
            }
            let key = match self.value(depth + 1)? {
                Yaml::Text(key) | Yaml::Plain(key) => key,
                _ => return Err("keys of this kind are not supported"),
            };
            check_key(&entries, &key)?;
            self.skip();
            let value = match self.peek() {
                Some(':') => {
                    self.at += 1;
                    self.skip();
                    match self.peek() {
                        Some(',' | '}') => Yaml::Null,
                        _ => self.value(depth + 1)?,
                    }
                }
                _ => Yaml::Null,
            };
            entries.push((key, value));
            self.separator('}')?;
        }
    }

    fn separator(&mut self, close: char) -> Result<(), Problem> {
        self.skip();
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Ok(())
            }
            Some(next) if next == close => Ok(()),
            Some(_) => Err("a comma or a closing bracket is missing"),
            None => Err("a bracket is not closed"),
        }
    }

    /// Ends at a comma, a bracket, a colon with a space after it, or a comment.
    fn plain(&mut self) -> Result<Yaml, Problem> {
        let rest = &self.document[self.at..];
        check_start(rest)?;
        let mut end = rest.len();
        let mut before = '\n';
        for (at, next) in rest.char_indices() {
            let after = rest[at + next.len_utf8()..].chars().next().unwrap_or('\n');
            let ends = match next {
                ',' | '[' | ']' | '{' | '}' => true,
                ':' => after.is_whitespace() || matches!(after, ',' | '[' | ']' | '{' | '}'),
                '#' => before.is_whitespace(),
                _ => false,
            };
            if ends {
                end = at;
                break;
            }
            before = next;
        }
        self.at += end;
        let text = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        match text.as_str() {
            "" => Err("a value is missing"),
            "~" | "null" | "Null" | "NULL" => Ok(Yaml::Null),
            _ => Ok(Yaml::Plain(text)),
        }
    }

    /// The text in quotes of either kind. An end of a line is a space; an empty line keeps it.
    pub(super) fn quoted(&mut self) -> Result<String, Problem> {
        let quote = self.next().unwrap_or('"');
        let mut text = String::new();
        loop {
            match self.next().ok_or("a quote is not closed")? {
                '\'' if quote == '\'' => match self.peek() {
                    Some('\'') => {
                        self.at += 1;
                        text.push('\'');
                    }
                    _ => return Ok(text),
                },
                '"' if quote == '"' => return Ok(text),
                '\\' if quote == '"' => self.escape(&mut text)?,
                '\n' => self.line_end(&mut text),
                next => text.push(next),
            }
        }
    }

    fn line_end(&mut self, text: &mut String) {
        text.truncate(text.trim_end_matches([' ', '\t', '\r']).len());
        let rest = &self.document[self.at..];
        let blank = &rest[..rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()];
        self.at += blank.len();
        match blank.matches('\n').count() {
            0 => text.push(' '),
            empty => text.extend(std::iter::repeat_n('\n', empty)),
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), Problem> {
        let plain = match self.next().ok_or("a quote is not closed")? {
            'n' => '\n',
            't' | '\t' => '\t',
            'r' => '\r',
            '0' => '\0',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'v' => '\u{b}',
            'f' => '\u{c}',
            'e' => '\u{1b}',
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            'x' => self.code(2)?,
            'u' => self.code(4)?,
            'U' => self.code(8)?,
            same @ (' ' | '"' | '/' | '\\') => same,
            // The line goes on.
            '\n' => {
                let rest = &self.document[self.at..];
                self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
                return Ok(());
            }
            _ => return Err("this escape is not known; write \\\\ for a backslash"),
        };
        text.push(plain);
        Ok(())
    }

    fn code(&mut self, digits: usize) -> Result<char, Problem> {
        let problem = "this escape is no character";
        let hex = self.document.get(self.at..self.at + digits).ok_or(problem)?;
        self.at += digits;
        let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(hex, 16).ok().filter(|_| is_hex);
        code.and_then(char::from_u32).ok_or(problem)
    }
}
