//! Applies the chunks of an update to a file's text, in memory.

use crate::patch::{PatchChunk, PatchLine};
use crate::seek::Haystack;

/// One line of a file with its ending: `
///
/// `, `\r
///
/// `, or none on the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileLine<'f> {
    pub(crate) text: &'f str,
    pub(crate) ending: &'f str,
}

/// Why the chunks do not match the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    Context(String),
    Lines(Vec<String>),
}

/// The text with every chunk applied. Kept lines keep their bytes; new lines end like their neighbours.
pub(crate) fn edited(text: &str, chunks: &[PatchChunk]) -> Result<String, Misfit> {
    let lines = split(text);
    let mut edits = locate(&lines, chunks)?;
    edits.sort_by_key(|edit| edit.start);
    let usual = usual_ending(&lines);
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for edit in &edits {
        for line in lines.get(at..edit.start).unwrap_or_default() {
            push(&mut out, line.text, line.ending, usual);
        }
        at = at.max(edit.start);
        let mut ending = usual;
        for line in edit.lines.iter() {
            let found = lines.get(at).filter(|_| line.wanted().is_some());
            ending = found.map(|line| line.ending).filter(|ending| !ending.is_empty()).unwrap_or(ending);
            match (line, found) {
                (PatchLine::Keep(_), Some(kept)) => push(&mut out, kept.text, kept.ending, usual),
                (PatchLine::New(new), _) => push(&mut out, new, ending, usual),
                _ => {}
            }
            at += usize::from(found.is_some());
        }
    }
    for line in lines.get(at..).unwrap_or_default() {
        push(&mut out, line.text, line.ending, usual);
    }
    Ok(out)
}

fn push(out: &mut String, text: &str, ending: &str, usual: &str) {
    out.push_str(text);
    out.push_str(if ending.is_empty() { usual } else { ending });
}

fn split(text: &str) -> Vec<FileLine<'_>> {
    text.split_inclusive('\n')
        .map(|line| {
            let cut = line.strip_suffix('\n').map_or(line, |rest| rest.strip_suffix('\r').unwrap_or(rest));
            let (text, ending) = line.split_at(cut.len());
            FileLine { text, ending }
        })
        .collect()
}

fn usual_ending(lines: &[FileLine<'_>]) -> &'static str {
    let with_return = lines.iter().filter(|line| line.ending == "\r\n").count();
    let ended = lines.iter().filter(|line| !line.ending.is_empty()).count();
    if with_return * 2 > ended { "\r\n" } else { "\n" }
}

/// A chunk with its position.
struct Edit<'c> {
    start: usize,
    lines: std::borrow::Cow<'c, [PatchLine]>,
}

/// Finds every chunk in the original text; the search only moves forward.
fn locate<'c>(lines: &[FileLine<'_>], chunks: &'c [PatchChunk]) -> Result<Vec<Edit<'c>>, Misfit> {
    let haystack = Haystack::new(lines);
    let mut cursor = 0;
    let mut edits = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        if let Some(context) = &chunk.context {
            let found = haystack.find(&[context], cursor);
            cursor = found.ok_or_else(|| Misfit::Context(context.clone()))? + 1;
        }
        let edit = place(&haystack, lines, chunk, cursor)?;
        if wanted(&edit.lines).next().is_some() {
            cursor = edit.start + wanted(&edit.lines).count();
        }
        edits.push(edit);
    }
    Ok(edits)
}

fn wanted(lines: &[PatchLine]) -> impl Iterator<Item = &str> {
    lines.iter().filter_map(PatchLine::wanted)
}

fn place<'c>(
    haystack: &Haystack<'_>,
    lines: &[FileLine<'_>],
    chunk: &'c PatchChunk,
    cursor: usize,
) -> Result<Edit<'c>, Misfit> {
    let find = |sought: &[PatchLine]| {
        let sought: Vec<&str> = wanted(sought).collect();
        match sought.len() {
            // Lines that are only added go to the end, before a blank last line.
            0 => Some(lines.len() - usize::from(lines.last().is_some_and(|line| line.text.is_empty()))),
            _ if chunk.end_of_file => haystack.find_at_end(&sought, cursor),
            _ => haystack.find(&sought, cursor),
        }
    };
    if let Some(start) = find(&chunk.lines) {
        return Ok(Edit { start, lines: chunk.lines.as_slice().into() });
    }
    if let Some(shorter) = without_last_blank(&chunk.lines) {
        let nothing_left = wanted(&shorter).next().is_none();
        if let Some(start) = if nothing_left { Some(cursor) } else { find(&shorter) } {
            return Ok(Edit { start, lines: shorter.into() });
        }
    }
    Err(Misfit::Lines(wanted(&chunk.lines).map(str::to_owned).collect()))
}

/// The chunk without a blank last line on either side.
fn without_last_blank(lines: &[PatchLine]) -> Option<Vec<PatchLine>> {
    let mut shorter = lines.to_vec();
    let last_wanted = shorter.iter().rposition(|line| line.wanted().is_some())?;
    if shorter[last_wanted].wanted() != Some("") {
        return None;
    }
    if matches!(shorter[last_wanted], PatchLine::Old(_)) {
        shorter.remove(last_wanted);
    } else {
        shorter[last_wanted] = PatchLine::New(String::new());
    }
    if let Some(last_left) = shorter.iter().rposition(|line| line.left().is_some())
        && shorter[last_left].left() == Some("")
    {
        if matches!(shorter[last_left], PatchLine::New(_)) {
            shorter.remove(last_left);
        } else {
            shorter[last_left] = PatchLine::Old(String::new());
        }
    }
    Some(shorter)
}
