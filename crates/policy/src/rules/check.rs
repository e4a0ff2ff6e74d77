//! Which rules apply to a command, and their joint decision.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{PrefixRule, RuleDecision, RuleSource, Rules};
use crate::argv::{base_name, commands_of};
use crate::content::{decided_elsewhere, effects_follow_from_words, git_runs_hooks, turns};
use crate::executables::Executables;
use crate::git;
use crate::launch::with_inner;

/// One rule that applies to a command. `source` names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleMatch {
    /// The command's words that match the rule.
    pub matched_prefix: Vec<String>,
    pub decision: RuleDecision,
    /// The program as written, if the rule matches only its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    #[serde(serialize_with = "as_text")]
    pub source: RuleSource,
}

/// All rules that apply to a command. The strictest decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    #[serde(rename = "matchedRules", serialize_with = "tagged")]
    pub matches: Vec<RuleMatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<RuleDecision>,
    /// Rules whose words match, but that do not apply to what would run.
    #[serde(skip)]
    pub unheld: Vec<Unheld>,
}

/// A rule that does not apply, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheld {
    pub rule: RuleMatch,
    pub reason: &'static str,
}

impl Rules {
    /// The rules' decision about one command. A rule that allows something applies to the file that would run: not if
    /// commands could have put that file there. Stricter rules apply to every file of the name, and to commands inside
    /// `sudo`, `env` and the like.
    pub fn check(&self, argv: &[String], executables: &Executables) -> Evaluation {
        let (mut found, mut unheld) = (Vec::new(), Vec::new());
        for rule in &self.prefixes {
            if rule.decision > RuleDecision::Allow {
                found.extend(with_inner(argv).iter().find_map(|words| rule.find(words, &self.executables)));
                continue;
            }
            let Some(rule_match) = rule.find(argv, &self.executables) else { continue };
            match rule.obstacle(argv, &self.executables, executables) {
                None => found.push(rule_match),
                Some(reason) => unheld.push(Unheld { rule: rule_match, reason }),
            }
        }
        // A rule for the program as written precedes those for its name.
        let exact = found.iter().any(|found| found.resolved_program.is_none());
        let keeps = |found: &RuleMatch| {
            !exact || found.resolved_program.is_none() || found.decision > RuleDecision::Allow
        };
        Evaluation { unheld, ..Evaluation::of(found.into_iter().filter(keeps).collect()) }
    }

    /// The rules' decision about all commands of a line, inside shells too.
    pub fn check_line(&self, argv: &[String], executables: &Executables) -> Evaluation {
        let list = commands_of(argv).list;
        Evaluation::of(list.iter().flat_map(|words| self.check(words, executables).matches).collect())
    }
}

impl Evaluation {
    fn of(matches: Vec<RuleMatch>) -> Self {
        let decision = matches.iter().map(|found| found.decision).max();
        Self { matches, decision, unheld: Vec::new() }
    }
}

impl PrefixRule {
    /// How the words of a command match the rule: by the program as written, or by the name of its path. Callers that
    /// allow something must check the path.
    pub(super) fn find(&self, argv: &[String], listed: &BTreeMap<String, Vec<String>>) -> Option<RuleMatch> {
        let program = argv.first()?;
        if self.fits(argv) {
            return Some(self.matched(argv, None));
        }
        let name = base_name(program);
        let strict = self.decision > RuleDecision::Allow;
        let is_path = if strict { program.contains('/') } else { program.starts_with('/') };
        let is_listed = || listed.get(name).is_none_or(|paths| paths.contains(program));
        if !is_path || !(strict || is_listed()) {
            return None;
        }
        let mut named = argv.to_vec();
        named[0] = name.to_owned();
        self.fits(&named).then(|| self.matched(&named, Some(program.clone())))
    }

    /// Why a matching rule that allows the command does not apply to it.
    fn obstacle(
        &self,
        argv: &[String],
        listed: &BTreeMap<String, Vec<String>>,
        executables: &Executables,
    ) -> Option<&'static str> {
        let program = argv.first()?;
        let by_name = !self.fits(argv);
        let is_vouched = match listed.get(base_name(program)) {
            // The name must resolve to one of the paths that the user listed.
            Some(paths) if !program.contains('/') => executables.vouches_for_one_of(program, paths),
            Some(_) => executables.vouches(program),
            None if by_name => executables.vouches_by_name(program),
            // A user's rule for a file of the project covers any content of it.
            None if program.contains('/') && !program.starts_with('/') => !self.by_approval,
            None => executables.vouches(program),
        };
        if !is_vouched {
            return Some("commands could have put the program there, or put another before it");
        }
        if base_name(program) == "git" {
            let there = executables.clone().entering(git::folders(&argv[1..]));
            if there.repository_is_open() {
                return Some("commands can write settings that git would use");
            }
            // A rule that allows all of git includes its hooks.
            if self.pattern.len() > 1 && git_runs_hooks(&argv[1..], &there) {
                return Some("a hook of git would run, which does what files say that commands can write");
            }
        }
        // A rule with such an option, or one for the whole program, includes it.
        let own = &argv[1..self.pattern.len()];
        if !own.is_empty() && turns(program, &argv[1..]) && !turns(program, own) {
            return Some("an option after its words names a program or a file");
        }
        if !self.by_approval {
            return None;
        }
        if argv.len() > self.pattern.len() && !effects_follow_from_words(&argv[..self.pattern.len()]) {
            return Some("an approval of this program is about that command line alone");
        }
        decided_elsewhere(argv, executables)
    }

    fn fits(&self, argv: &[String]) -> bool {
        argv.len() >= self.pattern.len()
            && self.pattern.iter().zip(argv).all(|(words, word)| words.contains(word))
    }

    fn matched(&self, argv: &[String], resolved_program: Option<String>) -> RuleMatch {
        RuleMatch {
            matched_prefix: argv[..self.pattern.len()].to_vec(),
            decision: self.decision,
            resolved_program,
            justification: self.justification.clone(),
            source: self.source.clone(),
        }
    }
}

fn as_text<S: Serializer>(source: &RuleSource, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(source)
}

/// The reference nests each match under the name of its kind.
fn tagged<S: Serializer>(matches: &[RuleMatch], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Tagged<'a> {
        prefix_rule_match: &'a RuleMatch,
    }
    serializer.collect_seq(matches.iter().map(|found| Tagged { prefix_rule_match: found }))
}
