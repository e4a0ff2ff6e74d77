//! Which rules are about a command, and what they say together.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{PrefixRule, RuleDecision, RuleSource, Rules};
use crate::argv::{base_name, commands_of};

/// One rule that is about a command. `source` names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleMatch {
    /// The command's words that the rule is about.
    pub matched_prefix: Vec<String>,
    pub decision: RuleDecision,
    /// The program as written, when the rule knows it by its name alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    #[serde(serialize_with = "as_text")]
    pub source: RuleSource,
}

/// All rules about a command. The strictest decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    #[serde(rename = "matchedRules", serialize_with = "tagged")]
    pub matches: Vec<RuleMatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<RuleDecision>,
}

impl Rules {
    /// What the rules say about one command. `trusts` says whether an absolute path is the program its name says:
    /// a rule that allows a name does not allow any file of that name.
    pub fn check(&self, argv: &[String], trusts: &dyn Fn(&str) -> bool) -> Evaluation {
        let about = |rule: &PrefixRule| {
            let allows = rule.decision == RuleDecision::Allow;
            rule.find(argv, &self.executables, &|path| !allows || trusts(path))
        };
        let found: Vec<_> = self.prefixes.iter().filter_map(about).collect();
        // A rule for the program as written goes before those for its name.
        let exact = found.iter().any(|found| found.resolved_program.is_none());
        let keeps = |found: &RuleMatch| {
            !exact || found.resolved_program.is_none() || found.decision > RuleDecision::Allow
        };
        Evaluation::of(found.into_iter().filter(keeps).collect())
    }

    /// What the rules say about all commands of a line, inside shells too.
    pub fn check_line(&self, argv: &[String], trusts: &dyn Fn(&str) -> bool) -> Evaluation {
        let list = commands_of(argv).list;
        Evaluation::of(list.iter().flat_map(|words| self.check(words, trusts).matches).collect())
    }
}

impl Evaluation {
    fn of(matches: Vec<RuleMatch>) -> Self {
        let decision = matches.iter().map(|found| found.decision).max();
        Self { matches, decision }
    }
}

impl PrefixRule {
    /// How the rule is about the command, by the program as written or by the name of an absolute path.
    pub(super) fn find(
        &self,
        argv: &[String],
        executables: &BTreeMap<String, Vec<String>>,
        trusts: &dyn Fn(&str) -> bool,
    ) -> Option<RuleMatch> {
        let program = argv.first()?;
        if self.fits(argv) {
            return Some(self.matched(argv, None));
        }
        let name = base_name(program);
        if !program.starts_with('/') {
            return None;
        }
        let known = match executables.get(name) {
            Some(paths) => paths.contains(program),
            None => trusts(program),
        };
        let mut named = argv.to_vec();
        named[0] = name.to_owned();
        (known && self.fits(&named)).then(|| self.matched(&named, Some(program.clone())))
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

/// The reference puts each match under the name of its kind.
fn tagged<S: Serializer>(matches: &[RuleMatch], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Tagged<'a> {
        prefix_rule_match: &'a RuleMatch,
    }
    serializer.collect_seq(matches.iter().map(|found| Tagged { prefix_rule_match: found }))
}
