//! The part of a diff about one file, in the form `git diff` has.

use std::fmt::Write as _;
use std::time::Instant;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use crate::applied::FileState;
use crate::names::git_quoted;
use crate::unified::unified;

const NO_BLOB: &str = "0000000000000000000000000000000000000000";
const CONTEXT_LINES: usize = 3;

/// A file before or after; without a state it is not there.
pub(crate) struct Side<'a> {
    pub(crate) name: &'a str,
    pub(crate) state: Option<&'a FileState>,
    pub(crate) blob: &'a str,
}

impl Side<'_> {
    fn bytes(&self) -> &[u8] {
        self.state.map_or(&[], |state| &state.bytes)
    }
}

/// The whole section; empty when nothing differs.
pub(crate) fn section(old: &Side<'_>, new: &Side<'_>, deadline: Instant) -> String {
    if old.state == new.state && old.name == new.name {
        return String::new();
    }
    let (a, b) = (git_quoted(&format!("a/{}", old.name)), git_quoted(&format!("b/{}", new.name)));
    let mut out = format!("diff --git {a} {b}\n");
    modes(&mut out, old.state, new.state);
    let same = old.bytes() == new.bytes();
    // Writing to a string cannot fail, here and below.
    if old.state.is_some() && new.state.is_some() && same {
        if old.name != new.name {
            let (from, to) = (git_quoted(old.name), git_quoted(new.name));
            let _ = writeln!(out, "similarity index 100%\nrename from {from}\nrename to {to}");
        }
        return out;
    }
    let _ = writeln!(out, "index {}..{}", old.blob, new.blob);
    if same {
        return out;
    }
    let from = if old.state.is_some() { a.as_str() } else { "/dev/null" };
    let to = if new.state.is_some() { b.as_str() } else { "/dev/null" };
    let _ = writeln!(out, "--- {from}\n+++ {to}");
    match (str::from_utf8(old.bytes()), str::from_utf8(new.bytes())) {
        (Ok(old), Ok(new)) => out.push_str(&unified(old, new, CONTEXT_LINES, deadline)),
        _ => out.push_str("Binary files differ\n"),
    }
    out
}

fn modes(out: &mut String, old: Option<&FileState>, new: Option<&FileState>) {
    let _ = match (old, new) {
        (None, Some(new)) => writeln!(out, "new file mode {}", mode(new)),
        (Some(old), None) => writeln!(out, "deleted file mode {}", mode(old)),
        (Some(old), Some(new)) if old.executable != new.executable => {
            writeln!(out, "old mode {}\nnew mode {}", mode(old), mode(new))
        }
        _ => Ok(()),
    };
}

fn mode(state: &FileState) -> &'static str {
    if state.executable { "100755" } else { "100644" }
}

/// The id git gives to this content.
pub(crate) fn blob(state: Option<&FileState>) -> String {
    let Some(state) = state else { return NO_BLOB.to_owned() };
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(format!("blob {}\0", state.bytes.len()).as_bytes());
    context.update(&state.bytes);
    data_encoding::HEXLOWER.encode(context.finish().as_ref())
}
