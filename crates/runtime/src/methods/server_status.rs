//! Numbers of this process: its threads and turns, and the sandbox of commands.

use protocol::{SandboxStatus, SandboxStatusLevel};
use sandbox::{SelfTest, Strength};

use crate::runtime::Runtime;

/// Counts of threads at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCounts {
    pub loaded: usize,
    pub running: usize,
}

impl Runtime {
    pub fn thread_counts(&self) -> ThreadCounts {
        ThreadCounts { loaded: self.state.threads.ids().len(), running: self.state.threads.busy().len() }
    }

    /// Tests the sandbox on the first call, which takes a moment.
    pub async fn sandbox_status(&self) -> SandboxStatus {
        let landlock_only = self.loader().startup(None).config.features.enabled("use_legacy_landlock");
        let status = move || sandbox_status(SelfTest::run(), landlock_only);
        let failed = |_| SandboxStatus {
            level: SandboxStatusLevel::None,
            reason: Some("the sandbox could not be tried".to_owned()),
        };
        tokio::task::spawn_blocking(status).await.unwrap_or_else(failed)
    }
}

fn sandbox_status(report: &sandbox::SelfTestReport, landlock_only: bool) -> SandboxStatus {
    let asked = "Landlock alone is asked for by features.use_legacy_landlock";
    let (level, reason) = match (&report.strength, landlock_only) {
        (_, true) if report.landlock_only => (SandboxStatusLevel::LandlockOnly, Some(asked.to_owned())),
        (_, true) => {
            let reason = format!("{asked}, and this kernel has too little of it");
            (SandboxStatusLevel::None, Some(reason))
        }
        (Ok(Strength::Full), false) => (SandboxStatusLevel::Full, None),
        (Ok(Strength::LandlockOnly), false) => (SandboxStatusLevel::LandlockOnly, None),
        (Err(why), false) => (SandboxStatusLevel::None, Some(why.clone())),
    };
    SandboxStatus { level, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_what_commands_get() {
        let report = |strength: Result<Strength, &str>, landlock_only| sandbox::SelfTestReport {
            layers: Vec::new(),
            strength: strength.map_err(str::to_owned),
            landlock_only,
        };
        let level = |report, asked| sandbox_status(&report, asked).level;
        assert_eq!(level(report(Ok(Strength::Full), true), false), SandboxStatusLevel::Full);
        assert_eq!(level(report(Ok(Strength::Full), true), true), SandboxStatusLevel::LandlockOnly);
        assert_eq!(level(report(Err("none"), false), true), SandboxStatusLevel::None);
        let none = sandbox_status(&report(Err("no namespaces"), true), false);
        assert_eq!((none.level, none.reason.as_deref()), (SandboxStatusLevel::None, Some("no namespaces")));
    }
}
