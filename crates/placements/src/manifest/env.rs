//! The environment of a workspace's processes. Secrets are named in the manifest and looked up when a process starts.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::PlacementError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EnvValue {
    Value(String),
    /// The name under which the host finds the secret.
    Secret {
        secret: String,
    },
}

/// Every process of a placement has a variable of this prefix, by which it is found.
const RESERVED: &str = "OARLOCK_SPAWN";

pub(super) fn validate(env: &BTreeMap<String, EnvValue>) -> Result<(), PlacementError> {
    for (name, value) in env {
        let refuse = |problem: &str| Err(PlacementError::invalid(format!("manifest.env[{name:?}]"), problem));
        if !is_name(name) {
            return refuse("a name has letters, digits and underscores, and no digit first");
        }
        match value {
            _ if name == RESERVED => return refuse("the name is reserved"),
            EnvValue::Value(value) if value.contains('\0') => {
                return refuse("a NUL character cannot be passed to a program");
            }
            EnvValue::Secret { secret } if secret.is_empty() => return refuse("give the name of the secret"),
            _ => {}
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_letter)
}

/// Names and values for one process. Neither its `Debug` form nor any error shows a value.
#[derive(Clone, Default)]
pub struct ResolvedEnv {
    variables: Vec<ResolvedVariable>,
}

#[derive(Clone)]
struct ResolvedVariable {
    name: String,
    value: String,
    is_secret: bool,
}

impl ResolvedEnv {
    /// Looks up the secrets. One that is not there is an error by its name.
    pub fn resolve(
        env: &BTreeMap<String, EnvValue>,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PlacementError> {
        validate(env)?;
        let mut resolved = Self::default();
        for (name, value) in env {
            let (value, is_secret) = match value {
                EnvValue::Value(value) => (value.clone(), false),
                EnvValue::Secret { secret: key } => {
                    let found = secret(key).filter(|value| !value.contains('\0'));
                    let missing = || {
                        let problem =
                            format!("there is no secret {key:?} on this host, or it has a NUL character");
                        PlacementError::invalid(format!("manifest.env[{name:?}]"), problem)
                    };
                    (found.ok_or_else(missing)?, true)
                }
            };
            resolved.variables.push(ResolvedVariable { name: name.clone(), value, is_secret });
        }
        Ok(resolved)
    }

    /// Adds or replaces a variable that is no secret.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PlacementError> {
        if !is_name(name) || name == RESERVED || value.contains('\0') {
            return Err(PlacementError::invalid(
                format!("env[{name:?}]"),
                "this name or value cannot be passed to a process",
            ));
        }
        self.variables.retain(|variable| variable.name != name);
        self.variables.push(ResolvedVariable {
            name: name.to_owned(),
            value: value.to_owned(),
            is_secret: false,
        });
        Ok(())
    }

    pub fn names(&self) -> Vec<&str> {
        self.variables.iter().map(|variable| variable.name.as_str()).collect()
    }

    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|variable| (variable.name.as_str(), variable.value.as_str())).collect()
    }

    pub(crate) fn secrets(&self) -> Vec<&str> {
        self.variables
            .iter()
            .filter(|variable| variable.is_secret)
            .map(|variable| variable.value.as_str())
            .collect()
    }
}

impl fmt::Debug for ResolvedEnv {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_list().entries(self.variables.iter().map(|variable| &variable.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_name_and_shown_nowhere() {
        let env = BTreeMap::from([
            ("A".to_owned(), EnvValue::Value("plain-value".to_owned())),
            ("T".to_owned(), EnvValue::Secret { secret: "github".to_owned() }),
        ]);
        let found =
            ResolvedEnv::resolve(&env, |name| (name == "github").then(|| "hunter22".to_owned())).unwrap();
        assert_eq!(found.pairs(), [("A", "plain-value"), ("T", "hunter22")]);
        assert_eq!(found.secrets(), ["hunter22"]);
        assert_eq!(format!("{found:?}"), r#"["A", "T"]"#);
        let error = ResolvedEnv::resolve(&env, |_| None).unwrap_err().to_string();
        assert!(error.contains("\"github\""), "{error}");
    }
}
