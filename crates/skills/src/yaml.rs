//! Parses the YAML of skills into plain values. Anchors, aliases, tags and keys that are not text are refused, so that
//! values are never larger than the text. Limits nesting and the number of keys.

use std::borrow::Cow;
use std::collections::HashSet;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

/// More than any skill needs, and safe for any stack.
const MAX_DEPTH: usize = 16;

/// Limit of one mapping.
const MAX_KEYS: usize = 1_000;

/// A YAML value. Scalars are text; an empty plain scalar, `~` and `null` are null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Yaml {
    Null,
    /// A quoted scalar or a block scalar.
    Text(String),
    /// A scalar without quotes: only here `true` may be a boolean.
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

    /// The text of a scalar. Numbers and booleans count as their text.
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

/// A problem in the text, with its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(super) struct YamlError {
    pub(super) line: usize,
    pub(super) problem: Cow<'static, str>,
}

impl YamlError {
    fn new(at: Marker, problem: &'static str) -> Self {
        Self { line: at.line().max(1), problem: problem.into() }
    }

    /// A parser error, worded for authors of skills.
    fn from_parser(error: &ScanError, text: &str) -> Self {
        let problem = explain(error.info());
        // An error at the end is reported on the line after the last one.
        let mut line = error.marker().line().clamp(1, text.lines().count().max(1));
        if problem == NO_TABS {
            // The parser reports the start of the value that the tab ends.
            line += text.lines().skip(line - 1).position(|line| line.contains('\t')).unwrap_or(0);
        }
        Self { line, problem }
    }
}

/// Parses the only document of `text`. Ignores everything after a line of three dots.
pub(super) fn read(text: &str) -> Result<Yaml, YamlError> {
    let mut events = YamlEvents { text, parser: Parser::new_from_str(text) };
    loop {
        match events.next()? {
            (Event::StreamEnd, _) => return Ok(Yaml::Null),
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event, span) => {
                let value = events.value(event, span, 0)?;
                events.check_end()?;
                return Ok(value);
            }
        }
    }
}

/// The parser's events.
struct YamlEvents<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
}

impl<'a> YamlEvents<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(YamlError::from_parser(&error, self.text)),
            None => Ok((Event::StreamEnd, Span::empty(Marker::default()))),
        }
    }

    /// The value that starts with `event`.
    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Yaml, YamlError> {
        if depth > MAX_DEPTH {
            return Err(YamlError::new(span.start, TOO_DEEP));
        }
        match event {
            // The number is an anchor's; 0 means none.
            Event::Scalar(text, style, 0, None) => Ok(scalar(text.into_owned(), style)),
            Event::SequenceStart(0, None) => self.list(depth),
            Event::MappingStart(0, None) => self.map(depth),
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_) => {
                Err(YamlError::new(span.start, NO_REFERENCES))
            }
            _ => Err(YamlError::new(span.start, "a value is missing")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Yaml, YamlError> {
        let mut values = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Yaml::List(values)),
                (event, span) => values.push(self.value(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Yaml, YamlError> {
        let mut entries: Vec<(String, Yaml)> = Vec::new();
        let mut known = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Yaml::Map(entries));
            }
            let key = match event {
                Event::Scalar(key, _, 0, None) => key.into_owned(),
                Event::Scalar(..) | Event::Alias(_) => return Err(YamlError::new(span.start, NO_REFERENCES)),
                _ => return Err(YamlError::new(span.start, "keys of this kind are not supported")),
            };
            if entries.len() == MAX_KEYS {
                return Err(YamlError::new(span.start, "there are too many keys"));
            }
            if !known.insert(key.clone()) {
                return Err(YamlError::new(span.start, "this key is given twice"));
            }
            let (event, span) = self.next()?;
            entries.push((key, self.value(event, span, depth + 1)?));
        }
    }

    /// Refuses a second document, unless a line of three dots ends the first.
    fn check_end(&mut self) -> Result<(), YamlError> {
        let (_, end) = self.next()?;
        let end_line = end.start.line().saturating_sub(1);
        if self.text.lines().nth(end_line).is_some_and(|line| line.starts_with("...")) {
            return Ok(());
        }
        match self.next()? {
            (Event::StreamEnd, _) => Ok(()),
            (_, span) => Err(YamlError::new(span.start, NOT_PART)),
        }
    }
}

fn scalar(text: String, style: ScalarStyle) -> Yaml {
    match (style, text.as_str()) {
        (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Yaml::Null,
        (ScalarStyle::Plain, _) => Yaml::Plain(text),
        _ => Yaml::Text(text),
    }
}

const TOO_DEEP: &str = "this is nested too deeply";
const NO_REFERENCES: &str = "anchors, aliases and tags are not supported";
const NO_TABS: &str = "tabs cannot indent; use spaces";
const NOT_PART: &str = "this does not belong to what stands above it; check the indentation";

/// Clear messages for common mistakes; the parser's own for others.
fn explain(info: &str) -> Cow<'static, str> {
    let has = |part: &str| info.contains(part);
    let problem = if has("mapping values are not allowed") {
        "a value with a colon in it must stand in quotes"
    } else if has("unexpected character") {
        "a value that begins like this must stand in quotes"
    } else if has("unknown anchor") {
        NO_REFERENCES
    } else if has("recursion limit") {
        TOO_DEEP
    } else if has("tab") {
        NO_TABS
    } else if has("block sequence entries are not allowed") {
        "a list begins on a line of its own"
    } else if has("block mapping, did not find expected key") {
        "this is not aligned with the keys above it; check the indentation"
    } else if has("simple key expected") {
        "a key with a colon and a space after it is missing"
    } else if has("quoted scalar, found unexpected end of stream") {
        "a quote is not closed"
    } else if has("invalid trailing content") {
        "nothing may follow the closing quote"
    } else if has("expected ',' or") {
        "a comma or a closing bracket is missing"
    } else if has("illegal placement of ':'") {
        "put braces around a mapping in a list"
    } else if has("unknown escape") {
        "this escape is not known; write \\\\ for a backslash"
    } else if has("escape code") {
        "this escape is no character"
    } else {
        return Cow::Owned(info.to_owned());
    };
    Cow::Borrowed(problem)
}

#[cfg(test)]
mod tests;
