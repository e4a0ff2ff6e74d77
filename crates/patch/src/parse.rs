//! Parses the text of a patch.

use crate::error::{HunkProblem, ParseError};
use crate::patch::{Hunk, Patch, PatchChunk, PatchLine};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Parses a patch. Removes a here-document wrapper, which models often add.
///
/// # Errors
///
/// Names what is missing, or which line is misplaced.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    let lines: Vec<&str> = text.trim().lines().collect();
    let (body, first) = body(&lines).or_else(|error| unwrapped(&lines).ok_or(error))?;
    let mut reader = PatchReader { lines: body, at: 0, first };
    let mut hunks = Vec::new();
    while reader.peek().is_some() {
        hunks.push(reader.hunk()?);
    }
    Ok(Patch { hunks })
}

/// Whether the text claims to be a patch, valid or not.
pub(crate) fn looks_like_patch(text: &str) -> bool {
    text.trim_start().lines().next().is_some_and(|line| line.trim() == BEGIN)
}

/// The lines between the markers, and the number of the first of them.
fn body<'a, 't>(lines: &'a [&'t str]) -> Result<(&'a [&'t str], usize), ParseError> {
    match lines {
        [first, ..] if first.trim() != BEGIN => Err(ParseError::NoBegin),
        [] => Err(ParseError::NoBegin),
        [_, inner @ .., last] if last.trim() == END => Ok((inner, 2)),
        _ => Err(ParseError::NoEnd),
    }
}

fn unwrapped<'a, 't>(lines: &'a [&'t str]) -> Option<(&'a [&'t str], usize)> {
    match lines {
        [first, inner @ .., last]
            if inner.len() >= 2
                && matches!(*first, "<<EOF" | "<<'EOF'" | "<<\"EOF\"")
                && last.ends_with("EOF") =>
        {
            body(inner).ok().map(|(body, first)| (body, first + 1))
        }
        _ => None,
    }
}

struct PatchReader<'a, 't> {
    lines: &'a [&'t str],
    at: usize,
    /// The number of the first line, counted in the whole text.
    first: usize,
}

impl<'t> PatchReader<'_, 't> {
    fn peek(&self) -> Option<&'t str> {
        self.lines.get(self.at).copied()
    }

    fn next_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<&'t str> {
        let line = self.peek().filter(|line| wanted(line))?;
        self.at += 1;
        Some(line)
    }

    fn problem(&self, at: usize, problem: HunkProblem) -> ParseError {
        ParseError::Hunk { line: self.first + at, problem }
    }

    fn hunk(&mut self) -> Result<Hunk, ParseError> {
        let at = self.at;
        let header = self.peek().unwrap_or_default().trim();
        self.at += 1;
        if let Some(path) = header.strip_prefix(ADD) {
            Ok(Hunk::Add { path: path.to_owned(), content: self.added() })
        } else if let Some(path) = header.strip_prefix(DELETE) {
            Ok(Hunk::Delete { path: path.to_owned() })
        } else if let Some(path) = header.strip_prefix(UPDATE) {
            self.update(at, path)
        } else {
            Err(self.problem(at, HunkProblem::BadHeader(header.to_owned())))
        }
    }

    fn added(&mut self) -> String {
        let mut content = String::new();
        while let Some(line) = self.next_if(|line| line.starts_with('+')) {
            content.push_str(&line[1..]);
            content.push('\n');
        }
        content
    }

    fn update(&mut self, at: usize, path: &str) -> Result<Hunk, ParseError> {
        let move_to =
            self.next_if(|line| line.starts_with(MOVE)).map(|line| line[MOVE.len()..].trim().to_owned());
        let mut chunks = Vec::new();
        loop {
            while self.next_if(|line| line.trim().is_empty()).is_some() {}
            match self.peek() {
                None => break,
                Some(line) if line.starts_with("***") => break,
                Some(_) if chunks.is_empty() => chunks.push(self.chunk(PatchMarker::Optional)?),
                Some(_) => chunks.push(self.chunk(PatchMarker::Required)?),
            }
        }
        if chunks.is_empty() {
            return Err(self.problem(at, HunkProblem::EmptyUpdate(path.to_owned())));
        }
        Ok(Hunk::Update { path: path.to_owned(), move_to, chunks })
    }

    fn chunk(&mut self, marker: PatchMarker) -> Result<PatchChunk, ParseError> {
        let mut chunk = PatchChunk::default();
        match self.next_if(|line| line == "@@" || line.starts_with("@@ ")) {
            Some(line) => {
                chunk.context = line.strip_prefix("@@ ").filter(|c| !c.trim().is_empty()).map(str::to_owned);
            }
            None if marker == PatchMarker::Required => {
                let line = self.peek().unwrap_or_default().to_owned();
                return Err(self.problem(self.at, HunkProblem::NoChunkMarker(line)));
            }
            None => {}
        }
        while let Some(line) = self.peek() {
            if line == END_OF_FILE {
                if chunk.lines.is_empty() {
                    return Err(self.problem(self.at, HunkProblem::EmptyChunk));
                }
                self.at += 1;
                chunk.end_of_file = true;
                break;
            }
            match chunk_line(line) {
                Some(read) => chunk.lines.push(read),
                None if chunk.lines.is_empty() && !line.starts_with("***") => {
                    return Err(self.problem(self.at, HunkProblem::UnexpectedLine(line.to_owned())));
                }
                None => break,
            }
            self.at += 1;
        }
        if chunk.lines.is_empty() {
            return Err(self.problem(self.at, HunkProblem::EmptyChunk));
        }
        Ok(chunk)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PatchMarker {
    Optional,
    Required,
}

fn chunk_line(line: &str) -> Option<PatchLine> {
    let rest = || line.get(1..).unwrap_or_default().to_owned();
    match line.as_bytes().first() {
        None => Some(PatchLine::Keep(String::new())),
        Some(b' ') => Some(PatchLine::Keep(rest())),
        Some(b'-') => Some(PatchLine::Old(rest())),
        Some(b'+') => Some(PatchLine::New(rest())),
        Some(_) => None,
    }
}
