//! Which rule a yes for good would leave behind.

use crate::argv::CommandList;
use crate::content::{decided_elsewhere, does_as_told, runs_what_it_is_given};
use crate::matrix::{CommandQuestion, Judged};
use crate::rules::RuleDecision;
use crate::safe::only_looks;
use crate::why::Because;

/// The words to offer: the model's if they would do and are not too much, else the first command that had to be
/// asked about. Nothing where a rule or a danger caused the question, where a command could not be read, or where a
/// file that commands can write, or words yet to come, would decide what the rule allows.
pub(crate) fn propose(
    question: &CommandQuestion<'_>,
    commands: &CommandList,
    judged: &[Judged],
) -> Option<Vec<String>> {
    let asked = |one: &&Judged| one.decision == RuleDecision::Prompt;
    // A rule about a removal would also be about whatever else it is told to remove.
    let has_rule_or_danger = |one: &Judged| one.by_rule() || one.because == Because::Dangerous;
    if commands.complex || judged.iter().filter(asked).any(has_rule_or_danger) {
        return None;
    }
    let executables = question.executables.entered_by(commands);
    let offerable = |words: &[String]| decided_elsewhere(words, &executables).is_none();
    // The whole command, too: the rule would be of its first words, and be about all of them.
    let all_offerable =
        || commands.list.iter().all(|words| is_settled(words, question, commands) || offerable(words));
    if let Some(prefix) = question.prefix_rule
        && !judged.iter().any(Judged::by_rule)
        && !prefix.is_empty()
        && offerable(prefix)
        && (does_as_told(prefix) || commands.list.iter().any(|words| words == prefix))
        && would_do(prefix, question, commands)
        && all_offerable()
    {
        return Some(prefix.to_vec());
    }
    let first = judged.iter().find(asked)?;
    offerable(&first.command).then(|| first.command.clone())
}

/// Whether a rule of these words would leave nothing to ask about.
fn would_do(prefix: &[String], question: &CommandQuestion<'_>, commands: &CommandList) -> bool {
    commands.list.iter().all(|words| words.starts_with(prefix) || is_settled(words, question, commands))
        && commands.list.iter().any(|words| words.starts_with(prefix))
}

fn is_settled(words: &[String], question: &CommandQuestion<'_>, commands: &CommandList) -> bool {
    only_looks(words, commands.expands, &|name| question.executables.trusted(name))
}

/// Whether a program of this name runs whatever it is given, so that the files among its words count as programs.
pub fn runs_anything(prefix: &[String]) -> bool {
    prefix.first().is_none_or(|program| runs_what_it_is_given(program))
}
