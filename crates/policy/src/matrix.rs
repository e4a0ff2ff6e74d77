//! The matrix: approval policy, sandbox and command determine whether to run, ask or forbid.

use protocol::{AskForApproval, SandboxPolicy};

use crate::amendment;
use crate::argv::{CommandList, commands_of};
use crate::danger::{destroys, seems_to_destroy};
use crate::executables::Executables;
use crate::quote::shell_line;
use crate::refusal::refuse_escalation;
use crate::rules::{RuleDecision, Rules};
use crate::safe::{is_harmless_builtin, is_read_only, obeys_repository};
use crate::verdict::{Escalation, PolicyVerdict, SandboxChoice};
use crate::why::{Because, Ground, Why};

/// A command and everything that decides about it.
#[derive(Debug, Clone, Copy)]
pub struct CommandQuestion<'a> {
    pub argv: &'a [String],
    pub approval: &'a AskForApproval,
    pub sandbox: &'a SandboxPolicy,
    pub escalation: Escalation,
    /// The prefix that the model wants permanently approved.
    pub prefix_rule: Option<&'a [String]>,
    pub rules: &'a Rules,
    pub executables: &'a Executables,
}

/// One command of the line with its own decision.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) command: Vec<String>,
    pub(crate) decision: RuleDecision,
    pub(crate) because: Because,
}

impl Judged {
    pub(crate) fn by_rule(&self) -> bool {
        matches!(self.because, Because::Rule(_))
    }
}

/// Decides about a command. The strictest decision counts, over all commands of the line and all rules.
pub fn decide(question: &CommandQuestion<'_>) -> PolicyVerdict {
    if let Some(reason) = refuse_escalation(question.approval, question.escalation) {
        return PolicyVerdict::Forbid { reason, why: Why::single(question.argv, Because::Escalation) };
    }
    let commands = commands_of(question.argv);
    let judged = question.judge(&commands);
    match judged.iter().map(|one| one.decision).max() {
        None | Some(RuleDecision::Forbidden) => question.forbid(&judged, RuleDecision::Forbidden),
        Some(RuleDecision::Prompt) if question.may_ask(&judged) => {
            let asking = of_decision(&judged, RuleDecision::Prompt);
            PolicyVerdict::Ask {
                sandbox: match question.escalation {
                    Escalation::RequireEscalated => SandboxChoice::None,
                    Escalation::Default | Escalation::WithAdditional => SandboxChoice::AsPolicy,
                },
                reason: justification(&judged, RuleDecision::Prompt),
                amendment: amendment::propose(question, &commands, &judged),
                why: asking,
            }
        }
        Some(RuleDecision::Prompt) => question.forbid(&judged, RuleDecision::Prompt),
        Some(RuleDecision::Allow) => PolicyVerdict::Run {
            sandbox: question.sandbox(&judged),
            why: of_decision(&judged, RuleDecision::Allow),
        },
    }
}

impl CommandQuestion<'_> {
    pub(crate) fn trusts(&self, program: &str) -> bool {
        self.executables.trusted(program).is_some()
    }

    fn restricted(&self) -> bool {
        is_restricted(self.sandbox)
    }

    /// Judges each command by the rules, or by heuristics if no rule applies.
    fn judge(&self, commands: &CommandList) -> Vec<Judged> {
        let mut list: Vec<&[String]> = commands.list.iter().map(Vec::as_slice).collect();
        // A shell that is not the system's own may do anything with its script.
        if commands.shells.iter().any(|shell| !self.trusts(shell)) {
            list.push(self.argv);
        }
        let executables = self.executables.entered_by(commands);
        let rules: Vec<_> = list.iter().map(|words| self.rules.check(words, &executables)).collect();
        let allowed_beside = rules.iter().any(|found| found.decision == Some(RuleDecision::Allow));
        let mut judged = Vec::new();
        for (words, found) in list.into_iter().zip(rules) {
            let command = || words.to_vec();
            if found.decision.is_none() {
                let (decision, because) = self.judge_unmatched(words, commands, allowed_beside);
                let because = match found.unheld.into_iter().next() {
                    Some(unheld) if because == Because::Unmatched => Because::Unheld(unheld),
                    _ => because,
                };
                judged.push(Judged { command: command(), decision, because });
            }
            judged.extend(found.matches.into_iter().map(|rule| Judged {
                command: command(),
                decision: rule.decision,
                because: Because::Rule(rule),
            }));
        }
        judged
    }

    fn judge_unmatched(
        &self,
        words: &[String],
        commands: &CommandList,
        allowed_beside: bool,
    ) -> (RuleDecision, Because) {
        use RuleDecision::{Allow, Forbidden, Prompt};
        let escalates = self.restricted() && self.escalation != Escalation::Default;
        if allowed_beside && !commands.complex && is_harmless_builtin(words) {
            return (Allow, Because::KnownSafe);
        }
        if !commands.complex && is_read_only(words, commands.expands, &|name| self.executables.trusted(name))
        {
            return match self.approval {
                _ if escalates => (Prompt, Because::Escalation),
                AskForApproval::Untrusted if !self.restricted() && obeys_repository(words) => {
                    (Prompt, Because::ObeysRepository)
                }
                _ => (Allow, Because::KnownSafe),
            };
        }
        let dangerous = destroys(words);
        match self.approval {
            AskForApproval::Never if dangerous && self.restricted() => (Forbidden, Because::Dangerous),
            AskForApproval::Never if dangerous => (Allow, Because::Dangerous),
            _ if dangerous => (Prompt, Because::Dangerous),
            // Certain enough for a question, but not for a refusal.
            AskForApproval::Never => (Allow, Because::Unmatched),
            _ if seems_to_destroy(words) => (Prompt, Because::Dangerous),
            AskForApproval::Untrusted => (Prompt, Because::Unmatched),
            _ if escalates => (Prompt, Because::Escalation),
            AskForApproval::OnFailure | AskForApproval::OnRequest | AskForApproval::Granular { .. } => {
                (Allow, Because::Unmatched)
            }
        }
    }

    /// Whether the approval policy allows asking all these questions.
    fn may_ask(&self, judged: &[Judged]) -> bool {
        let asks = |by_rule: bool| {
            judged.iter().any(|one| one.decision == RuleDecision::Prompt && one.by_rule() == by_rule)
        };
        match self.approval {
            AskForApproval::Never => false,
            AskForApproval::Granular { rules, sandbox_approval, .. } => {
                (*rules || !asks(true)) && (*sandbox_approval || !asks(false))
            }
            AskForApproval::Untrusted | AskForApproval::OnFailure | AskForApproval::OnRequest => true,
        }
    }

    fn forbid(&self, judged: &[Judged], decision: RuleDecision) -> PolicyVerdict {
        let line = shell_line(self.argv);
        let why = of_decision(judged, decision);
        let is_by_rule = judged.iter().any(|one| one.decision == decision && one.by_rule());
        let reason = match (justification(judged, decision), decision) {
            (Some(text), RuleDecision::Forbidden) => format!("`{line}` was rejected: {text}"),
            (None, RuleDecision::Forbidden) if is_by_rule => {
                format!("`{line}` was rejected: a rule forbids it")
            }
            (None, RuleDecision::Forbidden) => {
                format!(
                    "`{line}` was rejected: it deletes without asking back, and nobody can be asked about it"
                )
            }
            (Some(text), _) => {
                format!("`{line}` was rejected: it needs an approval ({text}), and none may be asked for")
            }
            (None, _) => format!("`{line}` was rejected: it needs an approval, and none may be asked for"),
        };
        PolicyVerdict::Forbid { reason, why }
    }

    /// The sandbox of a command that runs without a question. Only rules remove it, and only if they allow every
    /// command; a known-safe command under `untrusted` gets the most restricted one.
    fn sandbox(&self, judged: &[Judged]) -> SandboxChoice {
        let by_rule = judged.iter().any(Judged::by_rule);
        if by_rule && judged.iter().all(|one| one.by_rule() || is_harmless_builtin(&one.command)) {
            return SandboxChoice::None;
        }
        if *self.approval == AskForApproval::Untrusted && self.restricted() && !by_rule {
            return SandboxChoice::ReadOnlyNoNetwork;
        }
        SandboxChoice::AsPolicy
    }
}

/// Whether the runtime itself builds a sandbox under this policy.
pub(crate) fn is_restricted(sandbox: &SandboxPolicy) -> bool {
    match sandbox {
        SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. } => true,
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => false,
    }
}

fn of_decision(judged: &[Judged], decision: RuleDecision) -> Why {
    let grounds = judged.iter().filter(|one| one.decision == decision);
    let ground = |one: &Judged| Ground { command: one.command.clone(), because: one.because.clone() };
    Why { grounds: grounds.map(ground).collect() }
}

/// The justification of the first rule with this decision.
fn justification(judged: &[Judged], decision: RuleDecision) -> Option<String> {
    judged.iter().filter(|one| one.decision == decision).find_map(|one| match &one.because {
        Because::Rule(found) => found.justification.clone(),
        _ => None,
    })
}
