//! The names of plugins.

use std::fmt;

use crate::PluginError;

/// `<plugin>@<marketplace>`. Both are plain names, so they are safe as folders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginId {
    pub plugin: String,
    pub marketplace: String,
}

impl PluginId {
    pub fn parse(text: &str) -> Result<Self, PluginError> {
        let parts =
            text.split_once('@').filter(|(plugin, marketplace)| is_plain(plugin) && is_plain(marketplace));
        let (plugin, marketplace) = parts.ok_or_else(|| PluginError::Key(text.to_owned()))?;
        Ok(Self { plugin: plugin.to_owned(), marketplace: marketplace.to_owned() })
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.plugin, self.marketplace)
    }
}

/// Letters, digits, `_` and `-`.
pub(crate) fn is_plain(name: &str) -> bool {
    const LONGEST: usize = 128;
    !name.is_empty()
        && name.len() <= LONGEST
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_two_plain_names() {
        assert_eq!(PluginId::parse("a-1@b_2").expect("plain").to_string(), "a-1@b_2");
        for bad in
            ["", "a", "@b", "a@", "../a@b", "a@b/c", "a@b@c", "a b@c", &format!("{}@b", "a".repeat(200))]
        {
            assert_eq!(PluginId::parse(bad), Err(PluginError::Key(bad.to_owned())), "{bad}");
        }
    }
}
