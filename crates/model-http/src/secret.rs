//! Text that must not be shown.

use std::fmt;

use zeroize::Zeroizing;

/// A key, a token or a header value. Shows as `***`, and its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself, for the code that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

pub(crate) const HIDDEN: &str = "***";

/// Removes known secrets from foreign text: error responses often quote the refused key.
#[derive(Debug, Default)]
pub(crate) struct Redactor(Vec<Secret>);

impl Redactor {
    /// Shorter values, such as `true`, are no secrets, and masking them would only make errors unreadable.
    const SHORTEST: usize = 8;

    pub(crate) fn add(&mut self, secret: &Secret) {
        if secret.reveal().len() >= Self::SHORTEST && !self.0.contains(secret) {
            self.0.push(secret.clone());
            // The longest first, in case a secret contains another.
            self.0.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
        }
    }

    pub(crate) fn clean(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| match text.contains(secret.reveal()) {
            true => text.replace(secret.reveal(), HIDDEN),
            false => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_as_stars() {
        let secret = Secret::from("sk-planted-key");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
        assert_eq!(secret.reveal(), "sk-planted-key");
    }

    #[test]
    fn known_secrets_are_taken_out() {
        let mut redactor = Redactor::default();
        for secret in ["sk-planted", "sk-planted-key", "short"] {
            redactor.add(&secret.into());
        }
        let text = "Incorrect key sk-planted-key, also sk-planted; short stays";
        assert_eq!(redactor.clean(text.to_owned()), "Incorrect key ***, also ***; short stays");
    }
}
