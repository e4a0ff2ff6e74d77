//! The rule that a permanent approval would save.

use crate::argv::CommandList;
use crate::content::{decided_elsewhere, effects_follow_from_words, runs_what_it_is_given};
use crate::matrix::{CommandQuestion, Judged};
use crate::rules::RuleDecision;
use crate::safe::is_read_only;
use crate::why::Because;

/// The prefix to offer: the model's if it is sufficient and not too broad, else the first command that needs a
/// question. None if a rule or a danger caused the question, if a command could not be parsed, or if writable files or
/// later words would decide what the rule allows.
pub(crate) fn propose(
    question: &CommandQuestion<'_>,
    commands: &CommandList,
    judged: &[Judged],
) -> Option<Vec<String>> {
    let asked = |one: &&Judged| one.decision == RuleDecision::Prompt;
    // A rule about a removal would also cover any other removal.
    let has_rule_or_danger = |one: &Judged| one.by_rule() || one.because == Because::Dangerous;
    if commands.complex || judged.iter().filter(asked).any(has_rule_or_danger) {
        return None;
    }
    let executables = question.executables.entered_by(commands);
    let offerable = |words: &[String]| decided_elsewhere(words, &executables).is_none();
    // All of the command: the rule would be about all commands with that prefix.
    let all_offerable =
        || commands.list.iter().all(|words| is_settled(words, question, commands) || offerable(words));
    if let Some(prefix) = question.prefix_rule
        && !judged.iter().any(Judged::by_rule)
        && !prefix.is_empty()
        && offerable(prefix)
        && (effects_follow_from_words(prefix) || commands.list.iter().any(|words| words == prefix))
        && would_do(prefix, question, commands)
        && all_offerable()
    {
        return Some(prefix.to_vec());
    }
    let first = judged.iter().find(asked)?;
    offerable(&first.command).then(|| first.command.clone())
}

/// Whether a rule with this prefix would leave nothing to ask about.
fn would_do(prefix: &[String], question: &CommandQuestion<'_>, commands: &CommandList) -> bool {
    commands.list.iter().all(|words| words.starts_with(prefix) || is_settled(words, question, commands))
        && commands.list.iter().any(|words| words.starts_with(prefix))
}

fn is_settled(words: &[String], question: &CommandQuestion<'_>, commands: &CommandList) -> bool {
    is_read_only(words, commands.expands, &|name| question.executables.trusted(name))
}

/// Whether a program of this name runs its arguments, so that files among them count as programs.
pub fn runs_anything(prefix: &[String]) -> bool {
    prefix.first().is_none_or(|program| runs_what_it_is_given(program))
}
