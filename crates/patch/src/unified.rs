//! Unified diffs, by lines.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// How long the shortest diffs of one patch are looked for; after that longer ones will do.
const PATIENCE: Duration = Duration::from_millis(500);

/// When the search that begins now has to end.
pub(crate) fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// The hunks that lead from one text to the other, without file headers; empty for equal texts.
pub(crate) fn unified(old: &str, new: &str, context: usize, deadline: Instant) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let mut out = String::new();
    for group in group_diff_ops(ops, context) {
        hunk(&mut out, &group, &old, &new);
    }
    out
}

fn hunk(out: &mut String, group: &[DiffOp], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let old_range = range(first.old_range().start, last.old_range().end);
    let new_range = range(first.new_range().start, last.new_range().end);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "@@ -{old_range} +{new_range} @@");
    for op in group {
        if op.tag() == DiffTag::Equal {
            lines(out, ' ', &old[op.old_range()]);
        } else {
            lines(out, '-', &old[op.old_range()]);
            lines(out, '+', &new[op.new_range()]);
        }
    }
}

fn lines(out: &mut String, marker: char, lines: &[&str]) {
    for line in lines {
        out.push(marker);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Counted from one; an empty range names the line before it.
fn range(start: usize, end: usize) -> String {
    match end.saturating_sub(start) {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}
