//! Which walls the demo's commands get on this machine. Never none without saying so: without walls nothing is run.

use sandbox::Report;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Level {
    Full,
    /// Landlock alone, because of this.
    LandlockOnly {
        why: String,
    },
    /// Nothing is run, because of this.
    NoCommands {
        why: String,
    },
}

impl Level {
    pub(super) fn by(report: &Report) -> Self {
        match &report.strength {
            Ok(_) => Self::Full,
            Err(why) if report.landlock_only => Self::LandlockOnly { why: why.clone() },
            Err(why) => Self::NoCommands { why: why.clone() },
        }
    }

    /// Settings of the configuration.
    pub(super) fn flag(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Full => None,
            Self::LandlockOnly { .. } => Some(("features.use_legacy_landlock", "true")),
            Self::NoCommands { .. } => Some(("features.shell_tool", "false")),
        }
    }

    pub(super) fn runs_commands(&self) -> bool {
        !matches!(self, Self::NoCommands { .. })
    }

    /// What a person should know about the commands of the demo.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Full => {
                "Its commands run in the sandbox: they may write to the folder and to nothing else, and they \
                           have no network. One of them tries."
                    .to_owned()
            }
            Self::LandlockOnly { why } => format!(
                "This machine has no full sandbox ({why}). The demo's commands run at the weaker level, with Landlock \
                 and seccomp alone: they may write to the folder only, but files are not hidden from them. `oarlock \
                 doctor` says what to do."
            ),
            Self::NoCommands { why } => format!(
                "This machine has no sandbox ({why}), so the demo runs no commands; it only reads and changes files. \
                 `oarlock doctor` says what to do."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::Strength;

    #[test]
    fn no_walls_no_commands() {
        let report = |strength: Result<Strength, &str>, landlock_only| Report {
            layers: Vec::new(),
            strength: strength.map_err(str::to_owned),
            landlock_only,
        };
        let full = Level::by(&report(Ok(Strength::Full), true));
        assert!(full == Level::Full && full.flag().is_none() && full.runs_commands());
        let weak = Level::by(&report(Err("no namespaces"), true));
        assert!(
            weak.told().contains("no namespaces") && weak.told().contains("weaker") && weak.runs_commands()
        );
        assert_eq!(weak.flag(), Some(("features.use_legacy_landlock", "true")));
        let none = Level::by(&report(Err("no namespaces"), false));
        assert!(none.told().contains("runs no commands") && !none.runs_commands());
        assert_eq!(none.flag(), Some(("features.shell_tool", "false")));
    }
}
