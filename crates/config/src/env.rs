//! Environment variables, as a value that tests can construct.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

/// The source of variables: this process, or a fixed map.
#[derive(Clone, Default)]
pub struct Env(Option<Arc<BTreeMap<String, OsString>>>);

impl Env {
    /// The variables of this process, as they are at each lookup.
    pub fn process() -> Self {
        Self(None)
    }

    /// Only these variables.
    pub fn fixed<K: Into<String>, V: Into<OsString>>(variables: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(Some(Arc::new(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())))
    }

    /// The exact value; an empty one counts as set.
    pub fn var_os(&self, name: &str) -> Option<OsString> {
        match &self.0 {
            None => std::env::var_os(name),
            Some(variables) => variables.get(name).cloned(),
        }
    }

    /// The value without surrounding blanks; a blank one, or one that is not Unicode, counts as unset.
    pub fn text(&self, name: &str) -> Option<String> {
        let value = self.var_os(name)?.into_string().ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }
}

impl fmt::Debug for Env {
    /// Values may be secrets, so only the kind is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_none() { "Env(process)" } else { "Env(fixed)" })
    }
}
