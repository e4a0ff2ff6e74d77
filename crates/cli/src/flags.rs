//! Settings of the command line that every command understands.

use anyhow::{Result, bail};
use clap::Args;
use runtime::config::{FEATURES, Feature, Home, Loader, LoaderOptions, nearest, parse_flag};

/// May stand before and after the name of a command; what comes later wins.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Flags {
    /// Set one key of the configuration, such as `model=NAME` or `features.undo=true`. Repeat for more.
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", help_heading = "Configuration")]
    pub(crate) config: Vec<String>,
    /// Switch a feature on.
    #[arg(long, value_name = "FEATURE", help_heading = "Configuration")]
    pub(crate) enable: Vec<String>,
    /// Switch a feature off.
    #[arg(long, value_name = "FEATURE", help_heading = "Configuration")]
    pub(crate) disable: Vec<String>,
    /// Refuse keys of the configuration that do nothing, instead of warning about them.
    #[arg(long, help_heading = "Configuration")]
    pub(crate) strict_config: bool,
}

impl Flags {
    /// These, and then those that stood further right.
    pub(crate) fn then(mut self, later: Self) -> Self {
        self.config.extend(later.config);
        self.enable.extend(later.enable);
        self.disable.extend(later.disable);
        self.strict_config |= later.strict_config;
        self
    }

    /// As the configuration takes them.
    pub(crate) fn pairs(&self) -> Result<Vec<(String, String)>> {
        let mut pairs = self.config.iter().map(|flag| parse_flag(flag)).collect::<Result<Vec<_>, _>>()?;
        for (names, value) in [(&self.enable, "true"), (&self.disable, "false")] {
            for name in names {
                let Some(feature) = Feature::find(name) else {
                    let near = nearest(name, FEATURES.iter().map(|feature| feature.key));
                    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                    bail!(
                        "there is no feature `{name}`; {near}`oarlock doctor --json` lists those that exist"
                    );
                };
                pairs.push((format!("features.{}", feature.key), value.to_owned()));
            }
        }
        pairs.extend(self.strict_config.then(|| ("strict_config".to_owned(), "true".to_owned())));
        Ok(pairs)
    }

    /// Reads the configuration of the home folder under these flags, for a command that only looks: a home that is
    /// not there yet is not made.
    pub(crate) fn loader(&self) -> Result<Loader> {
        Ok(Loader::new(Home::look_from_env()?, self.pairs()?, LoaderOptions::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(config: &[&str], enable: &[&str], disable: &[&str]) -> Flags {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Flags { config: owned(config), enable: owned(enable), disable: owned(disable), strict_config: false }
    }

    #[test]
    fn later_flags_come_last_and_features_become_keys() {
        let all = flags(&["model=a"], &["undo"], &[]).then(flags(&["model=b"], &[], &["shell_tool"]));
        let pairs = all.pairs().unwrap_or_default();
        let pairs: Vec<(&str, &str)> =
            pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected =
            [("model", "a"), ("model", "b"), ("features.undo", "true"), ("features.shell_tool", "false")];
        assert_eq!(pairs, expected);
        let strict = Flags { strict_config: true, ..Flags::default() };
        let strict = strict.then(Flags::default()).pairs().unwrap_or_default();
        assert_eq!(strict, [("strict_config".to_owned(), "true".to_owned())]);
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let told = |flags: Flags| flags.pairs().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told(flags(&["model"], &[], &[])).contains("`-c model` has no `=`"));
        assert!(told(flags(&[], &["flying"], &[])).contains("no feature `flying`"));
        assert!(told(flags(&[], &["memorys"], &[])).contains("did you mean `memories`?"));
    }
}
