//! A strict reader for the part of YAML that skills are written in: mappings, sequences, and plain, quoted and block
//! scalars. Anchors, aliases, tags and complex keys are refused, so the outcome is never larger than the text.

mod flow;

use flow::Cursor;

/// Deeper than any skill needs, and shallow enough for any stack.
const MAX_DEPTH: usize = 16;

/// Of one mapping. Each is compared with all before it.
const MAX_KEYS: usize = 1_000;

/// What was read. Scalars are text; an empty one and `~` are null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Yaml {
    Null,
    Text(String),
    /// Without quotes around it, so that `true` may mean a yes.
    Plain(String),
    List(Vec<Yaml>),
    /// In the order of the text; keys are distinct.
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Numbers and the like count as their text.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Plain(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Plain(text) => match text.as_str() {
                "true" | "True" | "TRUE" => Some(true),
                "false" | "False" | "FALSE" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn as_list(&self) -> &[Self] {
        match self {
            Self::List(values) => values,
            _ => &[],
        }
    }
}

/// What is wrong, with the line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(super) struct YamlError {
    pub(super) line: usize,
    pub(super) problem: &'static str,
}

/// Reads one document.
pub(super) fn read(text: &str) -> Result<Yaml, YamlError> {
    let mut reader = Reader::new(text);
    if reader.peek()?.is_some_and(|line| line.indent == 0 && line.text == "---") {
        reader.at += 1;
    }
    let value = reader.node(0, 0)?;
    match reader.peek()? {
        None => Ok(value),
        Some(line) if line.indent == 0 && line.text == "..." => Ok(value),
        Some(_) => Err(reader.error("this does not belong to what stands above it; check the indentation")),
    }
}

/// A line without its indentation and its end.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    indent: usize,
    text: &'a str,
    /// Where `text` begins in the document.
    start: usize,
}

struct Reader<'a> {
    document: &'a str,
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(document: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in document.split_inclusive('\n') {
            let text = line.trim_end();
            let indent = text.len() - text.trim_start_matches(' ').len();
            lines.push(Line { indent, text: &text[indent..], start: start + indent });
            start += line.len();
        }
        Self { document, lines, at: 0 }
    }

    fn error(&self, problem: &'static str) -> YamlError {
        YamlError { line: self.at + 1, problem }
    }

    /// The next line that says something. Skips what is blank and comments.
    fn peek(&mut self) -> Result<Option<Line<'a>>, YamlError> {
        while let Some(line) = self.lines.get(self.at) {
            if !line.text.is_empty() && !line.text.starts_with('#') {
                if line.text.starts_with('\t') {
                    return Err(self.error("tabs cannot indent; use spaces"));
                }
                return Ok(Some(*line));
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// A value that begins on a line of its own, indented by `least` or more.
    fn node(&mut self, least: usize, depth: usize) -> Result<Yaml, YamlError> {
        if depth > MAX_DEPTH {
            return Err(self.error("this is nested too deeply"));
        }
        let Some(line) = self.peek()?.filter(|line| line.indent >= least) else { return Ok(Yaml::Null) };
        if is_item(line.text) {
            self.list(line.indent, depth)
        } else if self.key(line)?.is_some() {
            self.map(line.indent, depth)
        } else {
            self.at += 1;
            self.scalar(line.text, line.start, least)
        }
    }

    fn map(&mut self, indent: usize, depth: usize) -> Result<Yaml, YamlError> {
        let mut entries: Vec<(String, Yaml)> = Vec::new();
        while let Some(line) = self.peek()?.filter(|line| line.indent >= indent) {
            if line.indent > indent {
                return Err(self.error("this is indented more than the keys above it"));
            }
            if is_item(line.text) || is_boundary(line) {
                break;
            }
            let Some((key, rest)) = self.key(line)? else {
                return Err(self.error("a key with a colon and a space after it is missing"));
            };
            check_key(&entries, &key).map_err(|problem| self.error(problem))?;
            self.at += 1;
            let start = line.start + (line.text.len() - rest.len());
            let value = self.value(rest, start, indent, depth)?;
            entries.push((key, value));
        }
        Ok(Yaml::Map(entries))
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<Yaml, YamlError> {
        let mut values = Vec::new();
        while let Some(line) = self.peek()?.filter(|line| line.indent == indent && is_item(line.text)) {
            let rest = line.text[1..].trim_start_matches(' ');
            let inner = line.text.len() - rest.len();
            if rest.is_empty() || rest.starts_with('#') {
                self.at += 1;
                values.push(self.node(indent + 1, depth + 1)?);
            } else if rest.starts_with(['|', '>']) {
                self.at += 1;
                values.push(self.block(rest, indent + 1)?);
            } else {
                // What follows the dash stands as if it were on a line of its own.
                self.lines[self.at] = Line { indent: indent + inner, text: rest, start: line.start + inner };
                values.push(self.node(indent + 1, depth + 1)?);
            }
        }
        Ok(Yaml::List(values))
    }

    /// What stands behind a key: `rest` of that line, and what is indented more than it.
    fn value(&mut self, rest: &'a str, start: usize, indent: usize, depth: usize) -> Result<Yaml, YamlError> {
        if !without_comment(rest).is_empty() {
            return self.scalar(rest, start, indent + 1);
        }
        match self.peek()? {
            // The items of a key may stand right below it.
            Some(line) if line.indent == indent && is_item(line.text) => self.list(indent, depth + 1),
            _ => self.node(indent + 1, depth + 1),
        }
    }

    /// A scalar or a collection in brackets that begins with `text`, on the line before this one. Lines that go on with
    /// it are indented by `least` or more.
    fn scalar(&mut self, text: &'a str, start: usize, least: usize) -> Result<Yaml, YamlError> {
        match text.as_bytes().first() {
            Some(b'|' | b'>') => self.block(text, least),
            Some(b'"' | b'\'' | b'[' | b'{') => self.enclosed(start),
            _ => self.plain(text, least),
        }
    }

    fn enclosed(&mut self, start: usize) -> Result<Yaml, YamlError> {
        let mut cursor = Cursor::new(self.document, start);
        let value = cursor.value(0);
        // Errors are where the reading stopped.
        self.at = self.lines.partition_point(|line| line.start <= cursor.position()).saturating_sub(1);
        let value = value.map_err(|problem| self.error(problem))?;
        let rest = self.document[cursor.position()..].split('\n').next().unwrap_or_default();
        if !without_comment(rest).trim().is_empty() {
            return Err(self.error("nothing may follow the closing quote or bracket"));
        }
        self.at += 1;
        Ok(value)
    }

    fn plain(&mut self, first: &str, least: usize) -> Result<Yaml, YamlError> {
        self.at -= 1;
        self.check_plain(first, true)?;
        self.at += 1;
        let mut text = without_comment(first).to_owned();
        let mut goes_on = text.len() == first.len();
        let mut blanks = 0;
        while goes_on && let Some(line) = self.lines.get(self.at).copied() {
            if line.text.is_empty() {
                blanks += 1;
            } else if line.indent < least || line.text.starts_with('#') || is_boundary(line) {
                break;
            } else {
                self.check_plain(line.text, false)?;
                text.push_str(if blanks == 0 { " " } else { "\n" });
                let part = without_comment(line.text);
                text.push_str(part);
                goes_on = part.len() == line.text.len();
                blanks = 0;
            }
            self.at += 1;
        }
        Ok(match text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Yaml::Null,
            _ => Yaml::Plain(text),
        })
    }

    fn check_plain(&self, text: &str, is_first: bool) -> Result<(), YamlError> {
        if is_first {
            check_start(text).map_err(|problem| self.error(problem))?;
        }
        let text = without_comment(text);
        if text.contains(": ") || text.ends_with(':') {
            return Err(self.error("a value with a colon in it must stand in quotes"));
        }
        Ok(())
    }

    /// `|` keeps the ends of lines, `>` makes spaces of them.
    fn block(&mut self, header: &str, least: usize) -> Result<Yaml, YamlError> {
        let mut explicit = None;
        let mut keep = None;
        for sign in without_comment(header)[1..].chars() {
            match sign {
                '+' | '-' if keep.is_none() => keep = Some(sign),
                '1'..='9' if explicit.is_none() => explicit = sign.to_digit(10),
                _ => {
                    self.at -= 1;
                    return Err(self.error("this is no way to begin a block of text"));
                }
            }
        }
        let first = self.lines[self.at.min(self.lines.len())..].iter().find(|line| !line.text.is_empty());
        let indent = match explicit {
            Some(more) => least.saturating_sub(1) + more as usize,
            None => first.map_or(least, |line| line.indent),
        };
        let mut rows: Vec<String> = Vec::new();
        while indent >= least
            && let Some(line) = self.lines.get(self.at)
        {
            if !line.text.is_empty() && line.indent < indent {
                break;
            }
            let more = line.indent.saturating_sub(indent);
            rows.push(if line.text.is_empty() { String::new() } else { " ".repeat(more) + line.text });
            self.at += 1;
        }
        let ends = rows.iter().rev().take_while(|row| row.is_empty()).count();
        rows.truncate(rows.len() - ends);
        let mut text = if header.starts_with('|') { rows.join("\n") } else { fold(&rows) };
        match keep {
            Some('-') => {}
            Some(_) => text.push_str(&"\n".repeat(ends + usize::from(!rows.is_empty()))),
            None if rows.is_empty() => {}
            None => text.push('\n'),
        }
        Ok(Yaml::Text(text))
    }

    /// The key that a line begins with, and what stands behind its colon.
    fn key(&self, line: Line<'a>) -> Result<Option<(String, &'a str)>, YamlError> {
        let text = line.text;
        let (key, rest) = match text.as_bytes()[0] {
            b'"' | b'\'' => {
                let mut cursor = Cursor::new(self.document, line.start);
                let key = cursor.quoted().map_err(|problem| self.error(problem))?;
                let end = cursor.position() - line.start;
                // A text over several lines is no key.
                let Some(rest) = text.get(end..).and_then(|rest| rest.trim_start().strip_prefix(':')) else {
                    return Ok(None);
                };
                (key, rest)
            }
            b'[' | b'{' | b'|' | b'>' => return Ok(None),
            b'?' if text == "?" || text.starts_with("? ") => {
                return Err(self.error("keys of this kind are not supported"));
            }
            _ => {
                let plain = without_comment(text);
                let Some(end) = plain.find(": ").or_else(|| plain.strip_suffix(':').map(str::len)) else {
                    return Ok(None);
                };
                check_start(plain).map_err(|problem| self.error(problem))?;
                (plain[..end].trim_end().to_owned(), &text[end + 1..])
            }
        };
        let is_key = rest.is_empty() || rest.starts_with([' ', '\t']);
        Ok(is_key.then(|| (key, rest.trim_start())))
    }
}

/// An end of one line is a space; empty lines and lines that are indented more keep theirs.
fn fold(rows: &[String]) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(before) = at.checked_sub(1).map(|before| &rows[before]) else {
            text.push_str(if row.is_empty() { "\n" } else { row });
            continue;
        };
        let stays = |row: &str| row.starts_with(' ');
        match (before.is_empty(), row.is_empty()) {
            (_, true) => text.push('\n'),
            (true, false) if text.ends_with('\n') => {}
            (false, false) if stays(before) || stays(row) => text.push('\n'),
            _ => text.push(' '),
        }
        text.push_str(row);
    }
    text
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

fn is_boundary(line: Line<'_>) -> bool {
    line.indent == 0 && matches!(line.text, "---" | "...")
}

/// A `#` begins a comment only behind a space.
fn without_comment(text: &str) -> &str {
    let comment = match text.starts_with('#') {
        true => Some(0),
        false => text.match_indices('#').map(|(at, _)| at).find(|at| text[..*at].ends_with([' ', '\t'])),
    };
    comment.map_or(text, |at| text[..at].trim_end())
}

fn check_key(entries: &[(String, Yaml)], key: &str) -> Result<(), &'static str> {
    if entries.len() == MAX_KEYS {
        return Err("there are too many keys");
    }
    match entries.iter().any(|(known, _)| known == key) {
        true => Err("this key is given twice"),
        false => Ok(()),
    }
}

/// What a value without quotes must not begin with.
fn check_start(text: &str) -> Result<(), &'static str> {
    if is_item(text) {
        return Err("a list begins on a line of its own");
    }
    match text.as_bytes().first() {
        Some(b'&' | b'*' | b'!') => Err("anchors, aliases and tags are not supported"),
        Some(b'%' | b'@' | b'`' | b',' | b']' | b'}') => {
            Err("a value that begins like this must stand in quotes")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
