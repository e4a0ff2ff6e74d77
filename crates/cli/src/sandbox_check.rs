//! Whether this machine can run sandboxed commands, checked before the first one is needed.

use protocol::SandboxPolicy;
use sandbox::{LayerResult, SelfTest, SelfTestReport};
use serde_json::{Value, json};

/// Commands run in a sandbox of ours under this policy.
pub(crate) fn is_sandboxed(policy: &SandboxPolicy) -> bool {
    matches!(policy, SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. })
}

/// Why commands would be refused, if they would. Tries the sandbox, which takes a moment the first time.
pub(crate) fn missing(landlock_only: bool) -> Option<String> {
    missing_in(SelfTest::run(), landlock_only)
}

/// The self-test as JSON, for a host that asks how its runtime fares in a place.
pub(crate) fn report_json() -> Value {
    let report = SelfTest::run();
    let layer = |layer: &LayerResult| json!({ "name": layer.name, "ok": layer.ok, "detail": layer.detail });
    let layers: Vec<Value> = report.layers.iter().map(layer).collect();
    let version = env!("CARGO_PKG_VERSION");
    let landlock_only = report.landlock_only;
    json!({ "version": version, "missing": missing(false), "landlockOnly": landlock_only, "layers": layers })
}

fn missing_in(report: &SelfTestReport, landlock_only: bool) -> Option<String> {
    match (&report.strength, landlock_only) {
        (_, true) if report.landlock_only => None,
        (_, true) => Some("Landlock alone is asked for, and this kernel has too little of it".to_owned()),
        (Ok(_), false) => None,
        (Err(why), false) => Some(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::Strength;

    #[test]
    fn what_is_asked_for_counts() {
        let report = |strength: Result<Strength, &str>, landlock_only| SelfTestReport {
            layers: Vec::new(),
            strength: strength.map_err(str::to_owned),
            landlock_only,
        };
        assert_eq!(missing_in(&report(Ok(Strength::Full), false), false), None);
        assert_eq!(missing_in(&report(Err("none here"), true), true), None);
        assert_eq!(missing_in(&report(Err("none here"), true), false).as_deref(), Some("none here"));
        assert!(
            missing_in(&report(Ok(Strength::Full), false), true).is_some_and(|why| why.contains("Landlock"))
        );
    }
}
