//! Checks an environment's name, its description, and the folders chosen in it.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use protocol::{EnvironmentAddParams, EnvironmentId, EnvironmentSelection, EnvironmentSpec};

use super::error::EnvironmentError;

/// This machine.
pub(super) const LOCAL: &str = "local";
/// Limit of environments per thread.
const MAX_CHOSEN: usize = 16;
const MAX_ID_BYTES: usize = 128;
const DEFAULT_CONNECT: Duration = Duration::from_secs(30);
const MAX_CONNECT: Duration = Duration::from_secs(24 * 60 * 60);

/// Checks a description without the known environments. Returns its connect timeout.
pub(super) fn check_added(params: &EnvironmentAddParams) -> Result<Duration, EnvironmentError> {
    check_id(&params.environment_id)?;
    match &params.environment {
        EnvironmentSpec::Local { cwd } => check_local_folder("environment.cwd", cwd.as_str())?,
        EnvironmentSpec::Command { argv, cwd, probe } => {
            check_words("environment.argv", argv)?;
            // This process's folder must not matter to the client.
            if argv.first().is_some_and(|program| program.contains('/') && !program.starts_with('/')) {
                return Err(EnvironmentError::invalid(
                    "environment.argv[0]",
                    "must be the name of a program or an absolute path",
                ));
            }
            if let Some(probe) = probe {
                check_words("environment.probe", probe)?;
            }
            check_folder("environment.cwd", cwd)?;
        }
    }
    let connect = params.connect_timeout_ms.map_or(DEFAULT_CONNECT, Duration::from_millis);
    if connect > MAX_CONNECT {
        return Err(EnvironmentError::invalid("connectTimeoutMs", "must be a day at most"));
    }
    Ok(connect)
}

/// The model gets it in quotes, so it must contain none.
fn check_id(id: &EnvironmentId) -> Result<(), EnvironmentError> {
    let text = id.as_str();
    if text == LOCAL {
        return Err(EnvironmentError::Reserved);
    }
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`' | '<' | '>' | '&');
    let problem = if text.is_empty() {
        "must not be empty"
    } else if text.len() > MAX_ID_BYTES {
        "must be 128 characters at most"
    } else if !text.chars().all(is_plain) {
        "must be of visible ASCII characters other than quotes, `<`, `>` and `&`"
    } else {
        return Ok(());
    };
    Err(EnvironmentError::invalid("environmentId", problem))
}

fn check_words(field: &str, words: &[String]) -> Result<(), EnvironmentError> {
    if words.first().is_none_or(String::is_empty) {
        return Err(EnvironmentError::invalid(field, "must name a program"));
    }
    match words.iter().position(|word| word.contains('\0')) {
        Some(at) => Err(EnvironmentError::invalid(format!("{field}[{at}]"), "must not contain a NUL byte")),
        None => Ok(()),
    }
}

fn check_folder(field: &str, cwd: &str) -> Result<(), EnvironmentError> {
    if cwd.is_empty() {
        return Err(EnvironmentError::invalid(field, "must not be empty"));
    }
    // The model gets it on its own line.
    if cwd.chars().any(char::is_control) {
        return Err(EnvironmentError::invalid(field, "must not contain control characters"));
    }
    Ok(())
}

fn check_local_folder(field: &str, cwd: &str) -> Result<(), EnvironmentError> {
    check_folder(field, cwd)?;
    if !Path::new(cwd).is_absolute() {
        return Err(EnvironmentError::invalid(field, "must be an absolute path of this machine"));
    }
    Ok(())
}

/// The kind of an environment, as far as a choice needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvironmentKind {
    Local,
    Command,
}

/// `kind_of` looks up an environment; `known` lists all for the error message.
pub(super) fn check_chosen(
    chosen: &[EnvironmentSelection],
    kind_of: impl Fn(&EnvironmentId) -> Option<EnvironmentKind>,
    known: impl Fn() -> String,
) -> Result<(), EnvironmentError> {
    if chosen.len() > MAX_CHOSEN {
        return Err(EnvironmentError::TooManyChosen { count: chosen.len(), max: MAX_CHOSEN });
    }
    let mut seen = HashSet::new();
    for (at, EnvironmentSelection { environment_id: id, cwd }) in chosen.iter().enumerate() {
        let field = |name: &str| format!("environments[{at}].{name}");
        match kind_of(id) {
            None => {
                let (id, field) = (id.clone(), field("environmentId"));
                return Err(EnvironmentError::Unknown { field, id, known: known() });
            }
            Some(EnvironmentKind::Local) => check_local_folder(&field("cwd"), cwd)?,
            Some(EnvironmentKind::Command) => check_folder(&field("cwd"), cwd)?,
        }
        if !seen.insert(id) {
            return Err(EnvironmentError::Twice { at, id: id.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use serde_json::{Value, json};

    use super::*;

    fn added(id: &str, environment: &Value, connect_ms: Option<u64>) -> String {
        let params = json!({"environmentId": id, "environment": environment, "connectTimeoutMs": connect_ms});
        let params = serde_json::from_value(params).expect("params");
        check_added(&params).map_or_else(|error| error.to_string(), |connect| format!("{connect:?}"))
    }

    #[test]
    fn a_description_is_refused_by_the_field_that_is_wrong() {
        let command = |argv: Value| json!({"type": "command", "argv": argv, "cwd": "/w"});
        let good = || command(json!(["ssh", "host"]));
        let long = "x".repeat(129);
        let cases = [
            ("box", good(), None, "30s"),
            ("docker:box/1@host", good(), Some(50), "50ms"),
            ("here", json!({"type": "local", "cwd": "/w"}), Some(0), "0ns"),
            (
                "local",
                good(),
                None,
                "environmentId: `local` is this machine and always there; choose another id",
            ),
            ("", good(), None, "environmentId must not be empty"),
            (&long, good(), None, "environmentId must be 128 characters at most"),
            (
                "a b",
                good(),
                None,
                "environmentId must be of visible ASCII characters other than quotes, `<`, `>` and `&`",
            ),
            (
                "a\"b",
                good(),
                None,
                "environmentId must be of visible ASCII characters other than quotes, `<`, `>` and `&`",
            ),
            ("box", command(json!([])), None, "environment.argv must name a program"),
            ("box", command(json!([""])), None, "environment.argv must name a program"),
            (
                "box",
                command(json!(["./enter", "box"])),
                None,
                "environment.argv[0] must be the name of a program or an absolute path",
            ),
            ("box", command(json!(["a", "b\0"])), None, "environment.argv[1] must not contain a NUL byte"),
            (
                "box",
                json!({"type": "command", "argv": ["a"], "cwd": "/w", "probe": []}),
                None,
                "environment.probe must name a program",
            ),
            (
                "box",
                json!({"type": "command", "argv": ["a"], "cwd": ""}),
                None,
                "environment.cwd must not be empty",
            ),
            (
                "box",
                json!({"type": "command", "argv": ["a"], "cwd": "/w\n<x>"}),
                None,
                "environment.cwd must not contain control characters",
            ),
            (
                "here",
                json!({"type": "local", "cwd": "C:\\w"}),
                None,
                "environment.cwd must be an absolute path of this machine",
            ),
            ("box", good(), Some(u64::MAX), "connectTimeoutMs must be a day at most"),
        ];
        for (id, environment, connect_ms, expected) in cases {
            assert_eq!(added(id, &environment, connect_ms), expected, "{id} {environment}");
        }
    }

    fn chosen(list: &[(&str, &str)]) -> String {
        let list: Vec<EnvironmentSelection> = list
            .iter()
            .map(|(id, cwd)| EnvironmentSelection {
                environment_id: EnvironmentId::new(*id),
                cwd: (*cwd).to_owned(),
            })
            .collect();
        let kind_of = |id: &EnvironmentId| match id.as_str() {
            "local" | "here" => Some(EnvironmentKind::Local),
            "box" => Some(EnvironmentKind::Command),
            _ => None,
        };
        let checked = check_chosen(&list, kind_of, || "`local`, `box`".to_owned());
        checked.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn a_choice_is_refused_by_the_field_that_is_wrong() {
        let crowd = [("local", "/w"); 17];
        let cases: [(&[(&str, &str)], &str); 9] = [
            (&[], "fine"),
            (&[("local", "/w"), ("box", "work"), ("here", "/gone")], "fine"),
            (
                &[("local", "/w"), ("nowhere", "/w")],
                "environments[1].environmentId: no environment has the id `nowhere`; known are `local`, `box`",
            ),
            (&[("box", "/a"), ("box", "/b")], "environments[1].environmentId: `box` is chosen twice"),
            (&[("local", "w")], "environments[0].cwd must be an absolute path of this machine"),
            (&[("local", "")], "environments[0].cwd must not be empty"),
            (&[("box", "")], "environments[0].cwd must not be empty"),
            (&[("box", "a\0b")], "environments[0].cwd must not contain control characters"),
            (&crowd, "environments: 17 were chosen at once; the most is 16"),
        ];
        for (list, expected) in cases {
            assert_eq!(chosen(list), expected, "{list:?}");
        }
    }
}
