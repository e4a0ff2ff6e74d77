//! A command for another environment: the script that runs it there, and its input.

use std::path::{Path, PathBuf};

use sandbox::Order;

use super::Elsewhere;
use super::gate::ScriptMarker;
use super::quote::quoted;

/// Runs the command between a start and an end marker.
const RUN: &str = include_str!("run.sh");
/// The script's message if the folder does not exist.
pub(crate) const NO_FOLDER: &str = "folder";
/// Limit of a line: longer ones could be too long for a shell.
const TYPED_AT_ONCE: usize = 512;

/// A command to run in another environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemoteCommand<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) cwd: &'a Path,
    /// Nothing else of this machine's environment is passed.
    pub(crate) env: &'a [(String, String)],
    /// Whether it has input.
    pub(crate) reads: bool,
}

/// A command prepared for another environment.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) place: Elsewhere,
    /// Starts the shell there.
    pub(crate) order: Order,
    /// The first part of its input.
    pub(crate) script: String,
    pub(crate) marker: ScriptMarker,
    cwd: PathBuf,
}

impl Errand {
    /// Fails for arguments that no program can get, such as NUL.
    pub(crate) fn new(place: Elsewhere, order: Order, task: &RemoteCommand<'_>) -> Result<Self, String> {
        check(task)?;
        let marker = ScriptMarker::new();
        let script = script(task, &marker);
        Ok(Self { place, order, script, marker, cwd: task.cwd.to_owned() })
    }

    /// The error message for a script that could not start.
    pub(crate) fn refused(&self, refusal: &str) -> String {
        let cwd = self.cwd.display();
        match refusal {
            NO_FOLDER => {
                format!("the working directory {cwd} is not usable in environment `{}`", self.place.id())
            }
            other => self.place.unreachable(format_args!("it answered `{other}`")),
        }
    }
}

fn check(task: &RemoteCommand<'_>) -> Result<(), String> {
    let Some(program) = task.argv.first().filter(|program| !program.is_empty()) else {
        return Err("the command names no program".to_owned());
    };
    if program.starts_with('-') {
        return Err(format!("{program} is no name of a program"));
    }
    let cwd = task.cwd.to_str().filter(|cwd| cwd.starts_with('/'));
    let words = task.argv.iter().map(String::as_str).chain(cwd);
    if words.chain(task.env.iter().map(|(_, value)| value.as_str())).any(|word| word.contains('\0')) {
        return Err("the command contains a NUL byte".to_owned());
    }
    cwd.map(|_| ()).ok_or_else(|| format!("the working directory {} is not absolute", task.cwd.display()))
}

/// One compound command: the shell parses all of it before it runs any, so later input goes to the command.
fn script(task: &RemoteCommand<'_>, marker: &ScriptMarker) -> String {
    let words: Vec<String> = task.argv.iter().map(|word| quoted(word)).collect();
    let exports: String =
        task.env.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value))).collect();
    let (words, cwd, run) = (words.join(" "), quoted(&task.cwd.to_string_lossy()), quoted(RUN));
    let (mark, input) = (marker.word(), if task.reads { "open" } else { "closed" });
    format!(
        "{{\nset -- {words}\nunset CDPATH\n\
         cd -- {cwd} >/dev/null 2>&1 || {{ echo {mark}:{NO_FOLDER}; exit 0; }}\n\
         {exports}run={run}\nexec 7>&2 2>/dev/null\n\
         if command -v setsid >/dev/null; then setsid sh -c \"$run\" sh {mark} {input} \"$@\"\n\
         else set -m; sh -c \"$run\" sh {mark} {input} \"$@\"; fi\nexit 0\n}}\n"
    )
}

/// Encodes input for the script there: Control-C interrupts and Control-D ends the input, as in a terminal.
pub(crate) fn keys(typed: &str) -> String {
    let mut lines = String::new();
    for part in typed.split_inclusive(['\u{3}', '\u{4}']) {
        let text = part.trim_end_matches(['\u{3}', '\u{4}']);
        for bytes in text.as_bytes().chunks(TYPED_AT_ONCE) {
            lines.push('d');
            lines.extend(bytes.iter().map(|byte| format!("\\0{byte:03o}")));
            lines.push('\n');
        }
        match part.chars().next_back() {
            Some('\u{3}') => lines.push_str("i\n"),
            Some('\u{4}') => lines.push_str("e\n"),
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_lines() {
        assert_eq!(keys("hi\n"), "d\\0150\\0151\\0012\n");
        assert_eq!(keys("a\u{3}b\u{4}"), "d\\0141\ni\nd\\0142\ne\n");
        assert_eq!(keys("\u{3}"), "i\n");
        assert_eq!(keys(""), "");
        assert_eq!(keys(&"x".repeat(513)).lines().count(), 2);
    }

    #[test]
    fn impossible_arguments_are_refused() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (argv, cwd, expected) in [
            (words(&[]), "/w", "names no program"),
            (words(&[""]), "/w", "names no program"),
            (words(&["-c", "x"]), "/w", "no name of a program"),
            (words(&["a", "b\0"]), "/w", "NUL"),
            (words(&["a"]), "w", "is not absolute"),
            (words(&["a"]), "/\0", "NUL"),
        ] {
            let task = RemoteCommand { argv: &argv, cwd: Path::new(cwd), env: &[], reads: false };
            assert!(check(&task).is_err_and(|problem| problem.contains(expected)), "{argv:?}");
        }
    }
}
