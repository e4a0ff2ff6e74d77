//! The sandbox that the demo's commands get on this machine. Without a sandbox the demo says so and runs no commands.

use sandbox::SelfTestReport;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DemoSandbox {
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

impl DemoSandbox {
    pub(super) fn by(report: &SelfTestReport) -> Self {
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

    /// A sentence for the user about the commands of the demo.
    pub(super) fn notice(&self) -> String {
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
    fn no_sandbox_no_commands() {
        let report = |strength: Result<Strength, &str>, landlock_only| SelfTestReport {
            layers: Vec::new(),
            strength: strength.map_err(str::to_owned),
            landlock_only,
        };
        let full = DemoSandbox::by(&report(Ok(Strength::Full), true));
        assert!(full == DemoSandbox::Full && full.flag().is_none() && full.runs_commands());
        let weak = DemoSandbox::by(&report(Err("no namespaces"), true));
        assert!(
            weak.notice().contains("no namespaces")
                && weak.notice().contains("weaker")
                && weak.runs_commands()
        );
        assert_eq!(weak.flag(), Some(("features.use_legacy_landlock", "true")));
        let none = DemoSandbox::by(&report(Err("no namespaces"), false));
        assert!(none.notice().contains("runs no commands") && !none.runs_commands());
        assert_eq!(none.flag(), Some(("features.shell_tool", "false")));
    }
}
