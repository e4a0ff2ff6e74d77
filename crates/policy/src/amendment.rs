//! Which rule a yes for good would leave behind.

use crate::argv::{Commands, base_name};
use crate::matrix::{Judged, Question};
use crate::rules::RuleDecision;
use crate::safe::only_looks;
use crate::why::Because;

/// Programs that run whatever they are told. A rule of such a name, or of it and these options alone, would allow
/// everything.
const RUNS_ANYTHING: &[(&str, &[&str])] = &[
    ("ash", &["-c", "-l", "-lc"]),
    ("awk", &["-f"]),
    ("bash", &["-c", "-l", "-lc", "-i", "-s"]),
    ("bun", &["-e", "run", "x"]),
    ("bunx", &[]),
    ("chroot", &[]),
    ("cmd", &["/c"]),
    ("command", &[]),
    ("csh", &["-c"]),
    ("dash", &["-c", "-l", "-lc"]),
    ("deno", &["eval", "run"]),
    ("doas", &[]),
    ("docker", &["exec", "run"]),
    ("env", &["-", "-i", "-S", "-u"]),
    ("eval", &[]),
    ("exec", &[]),
    ("find", &["."]),
    ("fish", &["-c"]),
    ("git", &["-c", "-C", "-p"]),
    ("ksh", &["-c"]),
    ("lua", &["-e"]),
    ("make", &["-f"]),
    ("nice", &["-n"]),
    ("node", &["-e", "--eval", "-p", "--print", "-r"]),
    ("nohup", &[]),
    ("npx", &[]),
    ("osascript", &["-e"]),
    ("parallel", &[]),
    ("perl", &["-e", "-E", "-ne", "-pe"]),
    ("php", &["-r"]),
    ("powershell", &["-Command", "-c", "-NoProfile"]),
    ("pwsh", &["-Command", "-c", "-NoProfile"]),
    ("python", &["-", "-c", "-m", "-u"]),
    ("python2", &["-", "-c", "-m", "-u"]),
    ("python3", &["-", "-c", "-m", "-u"]),
    ("ruby", &["-e"]),
    ("sh", &["-c", "-l", "-lc", "-s"]),
    ("source", &[]),
    ("ssh", &[]),
    ("stdbuf", &[]),
    ("su", &["-c"]),
    ("sudo", &["-i", "-s", "-u"]),
    ("tclsh", &[]),
    ("time", &[]),
    ("timeout", &[]),
    ("tmux", &[]),
    ("tsx", &["-e"]),
    ("uv", &["run"]),
    ("xargs", &[]),
    ("zsh", &["-c", "-l", "-lc", "-i", "-s"]),
];

/// The words to offer: the model's if they would do and are not too much, else the first command that had to be
/// asked about. Nothing where a rule or a danger caused the question, or where a command could not be read.
pub(crate) fn propose(
    question: &Question<'_>,
    commands: &Commands,
    judged: &[Judged],
) -> Option<Vec<String>> {
    let asked = |one: &&Judged| one.decision == RuleDecision::Prompt;
    // A rule about a removal would also be about whatever else it is told to remove.
    let has_rule_or_danger = |one: &Judged| one.by_rule() || one.because == Because::Dangerous;
    if commands.complex || judged.iter().filter(asked).any(has_rule_or_danger) {
        return None;
    }
    if let Some(prefix) = question.prefix_rule
        && !judged.iter().any(Judged::by_rule)
        && !runs_anything(prefix)
        && would_do(prefix, question, commands)
    {
        return Some(prefix.to_vec());
    }
    let first = judged.iter().find(asked)?;
    (!runs_anything(&first.command)).then(|| first.command.clone())
}

/// Whether a rule of these words would leave nothing to ask about.
fn would_do(prefix: &[String], question: &Question<'_>, commands: &Commands) -> bool {
    let resolve = |name: &str| question.executables.trusted(name);
    commands
        .list
        .iter()
        .all(|words| words.starts_with(prefix) || only_looks(words, commands.expands, &resolve))
        && commands.list.iter().any(|words| words.starts_with(prefix))
}

/// Whether a rule of these words would allow whatever comes after them.
pub fn runs_anything(prefix: &[String]) -> bool {
    let Some((program, options)) = prefix.split_first() else { return true };
    let name = base_name(program).trim_end_matches(".exe");
    // `python3.12` is `python3`.
    let unversioned = name.split('.').next().unwrap_or(name);
    let known = RUNS_ANYTHING.iter().find(|(known, _)| *known == name || *known == unversioned);
    known.is_some_and(|(_, openers)| options.iter().all(|option| openers.contains(&option.as_str())))
}
