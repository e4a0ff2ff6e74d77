//! Writes the files of a patch back: all or nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use patch::{Applied, AppliedFile};

use super::Elsewhere;
use super::checksum::cksum;
use super::fetch::Mirror;
use super::gate::ScriptMarker;
use super::quote::quoted;
use super::talk::Talk;
use crate::ToolCx;

const COMMIT: &str = include_str!("commit.sh");

/// Why the files were not written. Unless it says otherwise, nothing has changed there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PushFailure {
    /// This file changed since it was fetched.
    Changed(PathBuf),
    /// This one could not be written.
    Write(PathBuf),
    /// The sentence says what is known.
    Lost(String),
}

/// Writes the applied changes there.
pub(crate) async fn push(
    cx: &ToolCx,
    place: &Elsewhere,
    mirror: &Mirror,
    applied: &Applied,
) -> Result<(), PushFailure> {
    let marker = ScriptMarker::new();
    let script = script(&marker, mirror, applied);
    let env = &cx.bench().options().env;
    let mut talk = Talk::open(place, env, &marker, &script).await.map_err(PushFailure::Lost)?;
    let unknown =
        |lost: String| PushFailure::Lost(format!("{lost}; whether the patch was applied there is not known"));
    let mut heard = talk.hear().await;
    loop {
        let message = heard.map_err(unknown)?;
        let mut words = message.split(' ');
        let kind = words.next().unwrap_or_default();
        let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
        let file = |number: &usize| applied.files.get(*number);
        let path = |number: &usize| file(number).map(|file| mirror.there(&file.path)).unwrap_or_default();
        let first = numbers.first().copied().unwrap_or(usize::MAX);
        heard = match kind {
            "ready" => {
                let after = file(&first).and_then(|file| file.after.as_ref());
                talk.send(after.map_or(&[][..], |after| &after.bytes)).await
            }
            "done" => return Ok(()),
            _ if numbers.len() > 1 => {
                let names: Vec<String> =
                    numbers[1..].iter().map(|number| patch::shown(&path(number))).collect();
                let names = names.join(", ");
                let what = format!("the patch failed, and these could not be put back: {names}");
                return Err(PushFailure::Lost(place.lost(what)));
            }
            "changed" => return Err(PushFailure::Changed(path(&first))),
            _ => return Err(PushFailure::Write(path(&first))),
        };
    }
}

/// One compound command: the shell parses all of it before it runs any.
fn script(marker: &ScriptMarker, mirror: &Mirror, applied: &Applied) -> String {
    let word = |path: &Path| quoted(&path.to_string_lossy());
    let [mut undo, mut stages, mut checks, mut puts, mut ends] = [const { String::new() }; 5];
    let mut made: Vec<PathBuf> = Vec::new();
    for (number, file) in applied.files.iter().enumerate() {
        let target = mirror.there(&file.path);
        let [new, old] = ["new", "old"].map(|kind| beside(&target, marker, number, kind));
        let (target_word, new, old) = (word(&target), word(&new), word(&old));
        let sum = file.before.as_ref().map_or_else(|| "absent".to_owned(), |before| cksum(&before.bytes));
        // Writing to a string does not fail.
        let _ = writeln!(checks, "check {number} {target_word} {}", quoted(&sum));
        undo = format!("back {number} {target_word} {new} {old}\n{undo}");
        let Some(after) = &file.after else {
            let _ = writeln!(puts, "take {number} {target_word} {old}");
            let _ = writeln!(ends, "rm -f -- {old}");
            continue;
        };
        for folder in mirror.missing_folders(&target) {
            if !made.contains(&folder) {
                let _ = writeln!(stages, "make {} {number}", word(&folder));
                made.push(folder);
            }
        }
        let like = like(file).map_or_else(|| "''".to_owned(), |like| word(&mirror.there(like)));
        let _ = writeln!(stages, "stage {number} {new} {like} {}", after.bytes.len());
        let _ = writeln!(puts, "put {number} {target_word} {new} {old}");
        let _ = writeln!(ends, "rm -f -- {old}");
    }
    for folder in made.iter().rev() {
        let _ = writeln!(undo, "rmdir -- {} 2>/dev/null", word(folder));
    }
    let mark = marker.word();
    format!(
        "{{\nmark={mark}\n{COMMIT}undo() {{\n{undo}:\n}}\nsay begin\n{stages}{checks}{puts}{ends}say done\nexit 0\n}}\n"
    )
}

/// The file whose mode and owner the new content gets.
fn like(file: &AppliedFile) -> Option<&Path> {
    match (&file.before, &file.moved_from) {
        (Some(_), _) => Some(&file.path),
        (None, from) => from.as_deref(),
    }
}

/// An unused name in the same folder.
fn beside(target: &Path, marker: &ScriptMarker, number: usize, kind: &str) -> PathBuf {
    target.with_file_name(format!(".{}-{number}.{kind}", marker.word()))
}
