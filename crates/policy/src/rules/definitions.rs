//! The rules that the calls in a rule file define.

use super::network::{PROTOCOLS, check_host_name};
use super::parser::{Argument, RuleCall, Value};
use super::{Fault, PrefixRule, RuleDecision, RuleSource, Rules, SourcePosition, example};
use crate::argv::base_name;

/// Turns a file's calls into rules. `file` is its name in explanations.
pub(super) fn define(file: &str) -> impl Fn(Vec<RuleCall>) -> Result<Rules, Fault> {
    move |calls| {
        let mut rules = Rules::default();
        let mut examples = Vec::new();
        for call in calls {
            match call.name.as_str() {
                "prefix_rule" => examples.push(prefix_rule(file, &call, &mut rules)?),
                "network_rule" => network_rule(file, &call, &mut rules)?,
                "host_executable" => host_executable(&call, &mut rules)?,
                other => {
                    let known = "`prefix_rule`, `network_rule` or `host_executable`";
                    return Err(Fault::at(call.place, format!("`{other}` is not {known}")));
                }
            }
        }
        // Checked last: an example may name a path that a later line declares.
        for (rule, examples) in rules.prefixes.iter().zip(&examples) {
            examples.check(rule, &rules.executables)?;
        }
        Ok(rules)
    }
}

fn prefix_rule(file: &str, call: &RuleCall, rules: &mut Rules) -> Result<example::Examples, Fault> {
    let given = CallArguments::of(call, &["pattern", "decision", "match", "not_match", "justification"])?;
    let (pattern, place) = given.required("pattern")?;
    let decision = match given.text("decision")? {
        None => RuleDecision::Allow,
        Some((name, place)) => RuleDecision::named(name).ok_or_else(|| {
            Fault::at(place, "`decision` is one of \"allow\", \"prompt\" and \"forbidden\"")
        })?,
    };
    rules.prefixes.push(PrefixRule {
        pattern: pattern_of(pattern, place)?,
        decision,
        justification: given.justification()?,
        source: RuleSource { file: file.to_owned(), line: call.place.line },
        by_approval: false,
    });
    example::Examples::of(given.optional("match"), given.optional("not_match"))
}

fn network_rule(file: &str, call: &RuleCall, rules: &mut Rules) -> Result<(), Fault> {
    let given = CallArguments::of(call, &["host", "protocol", "decision", "justification"])?;
    let (host, host_place) = given.required_text("host")?;
    let (protocol, protocol_place) = given.required_text("protocol")?;
    let (decision, decision_place) = given.required_text("decision")?;
    check_host_name(host).map_err(|message| Fault::at(host_place, message))?;
    if !PROTOCOLS.contains(&protocol) {
        let known = "\"http\", \"https\", \"socks5_tcp\" and \"socks5_udp\"";
        return Err(Fault::at(protocol_place, format!("`protocol` is one of {known}")));
    }
    if decision != "deny" && RuleDecision::named(decision).is_none() {
        let known = "\"allow\", \"prompt\", \"deny\" and \"forbidden\"";
        return Err(Fault::at(decision_place, format!("`decision` is one of {known}")));
    }
    given.justification()?;
    rules.networks.push(RuleSource { file: file.to_owned(), line: call.place.line });
    Ok(())
}

fn host_executable(call: &RuleCall, rules: &mut Rules) -> Result<(), Fault> {
    let given = CallArguments::of(call, &["name", "paths"])?;
    let (name, name_place) = given.required_text("name")?;
    if name.is_empty() || name.contains('/') {
        return Err(Fault::at(name_place, "`name` is a program's name without a folder"));
    }
    let (paths, place) = given.required("paths")?;
    let paths = texts(paths).ok_or_else(|| Fault::at(place, "`paths` is a list of strings"))?;
    if let Some(bad) = paths.iter().find(|path| !path.starts_with('/') || base_name(path) != name) {
        let bad = crate::escape_for_display(bad);
        return Err(Fault::at(place, format!("`{bad}` is not an absolute path of `{name}`")));
    }
    rules.executables.insert(name.to_owned(), paths);
    Ok(())
}

fn pattern_of(value: &Value, place: SourcePosition) -> Result<Vec<Vec<String>>, Fault> {
    let Value::List(places) = value else {
        return Err(Fault::at(place, format!("`pattern` is a list, not {}", value.kind())));
    };
    if places.is_empty() {
        return Err(Fault::at(place, "`pattern` has no words, so it would be about every command"));
    }
    let words = |value: &Value| match value {
        Value::Text(word) => Some(vec![word.clone()]),
        list => texts(list).filter(|words| !words.is_empty()),
    };
    places
        .iter()
        .map(|value| {
            words(value)
                .ok_or_else(|| Fault::at(place, "each part of `pattern` is a word or a list of words"))
        })
        .collect()
}

pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    let Value::List(values) = value else { return None };
    let text = |value: &Value| match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    values.iter().map(text).collect()
}

/// A call's arguments by name.
struct CallArguments<'a> {
    call: SourcePosition,
    given: Vec<(&'a str, &'a Argument)>,
}

impl<'a> CallArguments<'a> {
    fn of(call: &'a RuleCall, names: &[&'a str]) -> Result<Self, Fault> {
        let mut given: Vec<(&str, &Argument)> = Vec::new();
        for (index, argument) in call.arguments.iter().enumerate() {
            let known = match &argument.name {
                Some(name) => names.iter().find(|known| *known == name),
                None => names.get(index),
            };
            let Some(known) = known else {
                let shown =
                    argument.name.as_deref().map_or("one more".to_owned(), |name| format!("`{name}`"));
                let message = format!("`{}` takes {}, not {shown}", call.name, names.join(", "));
                return Err(Fault::at(argument.place, message));
            };
            if given.iter().any(|(name, _)| name == known) {
                return Err(Fault::at(argument.place, format!("`{known}` is given twice")));
            }
            given.push((known, argument));
        }
        given.retain(|(_, argument)| argument.value != Value::None);
        Ok(Self { call: call.place, given })
    }

    fn optional(&self, name: &str) -> Option<(&'a Value, SourcePosition)> {
        let found = self.given.iter().find(|(known, _)| *known == name);
        found.map(|(_, argument)| (&argument.value, argument.place))
    }

    fn required(&self, name: &str) -> Result<(&'a Value, SourcePosition), Fault> {
        self.optional(name).ok_or_else(|| Fault::at(self.call, format!("`{name}` is missing")))
    }

    fn text(&self, name: &str) -> Result<Option<(&'a str, SourcePosition)>, Fault> {
        match self.optional(name) {
            None => Ok(None),
            Some((Value::Text(text), place)) => Ok(Some((text, place))),
            Some((other, place)) => {
                Err(Fault::at(place, format!("`{name}` is a string, not {}", other.kind())))
            }
        }
    }

    fn required_text(&self, name: &str) -> Result<(&'a str, SourcePosition), Fault> {
        self.text(name)?.ok_or_else(|| Fault::at(self.call, format!("`{name}` is missing")))
    }

    fn justification(&self) -> Result<Option<String>, Fault> {
        match self.text("justification")? {
            Some((text, place)) if text.trim().is_empty() => {
                Err(Fault::at(place, "`justification` says nothing"))
            }
            found => Ok(found.map(|(text, _)| text.to_owned())),
        }
    }
}
