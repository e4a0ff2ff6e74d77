//! The check of the sandbox: from what its self-test found to what a person should know and do.

use runtime::config::ResolvedConfig;
use sandbox::{LayerResult, SelfTestReport, Strength};
use serde_json::{Value, json};

use super::DoctorCheck;

/// The sandbox that the configuration asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestedSandbox {
    /// Commands run in a sandbox of ours.
    pub(super) is_sandboxed: bool,
    /// The weaker level is asked for.
    pub(super) landlock_only: bool,
}

impl RequestedSandbox {
    pub(super) fn by(config: &ResolvedConfig) -> Self {
        Self {
            is_sandboxed: crate::sandbox_check::is_sandboxed(&config.permissions.sandbox_policy),
            landlock_only: config.features.enabled("use_legacy_landlock"),
        }
    }
}

/// The sandbox that commands get on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxLevel {
    Full,
    LandlockOnly,
    Nothing,
}

fn level(report: &SelfTestReport, wanted: RequestedSandbox) -> SandboxLevel {
    match (&report.strength, wanted.landlock_only) {
        (_, true) if report.landlock_only => SandboxLevel::LandlockOnly,
        (Ok(Strength::Full), false) => SandboxLevel::Full,
        (Ok(Strength::LandlockOnly), false) => SandboxLevel::LandlockOnly,
        _ => SandboxLevel::Nothing,
    }
}

const NAMESPACES: &str = "allow user namespaces: user.max_user_namespaces above 0, \
    kernel.apparmor_restrict_unprivileged_userns=0 where there is such a setting, and in a container a seccomp profile \
    that lets them be made";
const OTHER: &str = "change what the reason names, in the settings of this machine or of its container";
const LANDLOCK: &str = "boot a kernel of 5.13 or later with `landlock` in its `lsm=` list";
const LIMITS: &str = "run as a user other than root, or give this process a cgroup of its own: a command that starts \
    process after process is not stopped here";
const WEAKER: &str = "set features.use_legacy_landlock = true for the weaker level: Landlock alone";

pub(super) fn check(report: &SelfTestReport, wanted: RequestedSandbox) -> DoctorCheck {
    let names: Vec<&str> =
        report.layers.iter().filter(|layer| layer.ok).map(|layer| layer.name.as_str()).collect();
    let limits = report.layers.iter().find(|layer| layer.name == "limits");
    match level(report, wanted) {
        SandboxLevel::Full => {
            let summary = format!("full: every layer was tried and works ({})", names.join(", "));
            match limits.filter(|limits| !limits.ok) {
                Some(limits) => {
                    DoctorCheck::note("sandbox", format!("{summary}; {}", limits.detail), Some(LIMITS))
                }
                None => DoctorCheck::ok("sandbox", summary),
            }
        }
        SandboxLevel::LandlockOnly => {
            let advice = report.strength.is_ok().then_some(
                "the full sandbox works here; remove features.use_legacy_landlock from the configuration",
            );
            let summary =
                "Landlock alone, as asked for: files are not hidden, and processes are not kept apart";
            DoctorCheck::note("sandbox", summary, advice)
        }
        SandboxLevel::Nothing => {
            let why = match &report.strength {
                Err(why) => why.clone(),
                Ok(_) => "Landlock alone is asked for, and this kernel has too little of it".to_owned(),
            };
            let summary = format!("none: {why}{}", missing_layers(&report.layers));
            match wanted.is_sandboxed {
                true => DoctorCheck::problem("sandbox", summary, advice(report)),
                false => DoctorCheck::note("sandbox", format!("{summary} (none is configured)"), None),
            }
        }
    }
}

fn missing_layers(layers: &[LayerResult]) -> String {
    let open = layers.iter().filter(|layer| !layer.ok && layer.name != "start");
    open.map(|layer| format!("; {}: {}", layer.name, layer.detail)).collect()
}

fn advice(report: &SelfTestReport) -> String {
    let is_open = |name: &str| report.layers.iter().any(|layer| layer.name == name && !layer.ok);
    let is_about = |word: &str| report.strength.as_ref().is_err_and(|why| why.contains(word));
    let first = if is_open("landlock") || is_about("no Landlock") {
        LANDLOCK
    } else if is_about("namespace") || is_about("mount") {
        NAMESPACES
    } else {
        OTHER
    };
    match report.landlock_only {
        true => format!("{first}; or {WEAKER}"),
        false => first.to_owned(),
    }
}

/// Everything the self-test found, for programs.
pub(super) fn json(report: &SelfTestReport, wanted: RequestedSandbox) -> Value {
    json!({
        "strength": match level(report, wanted) {
            SandboxLevel::Full => "full",
            SandboxLevel::LandlockOnly => "landlock-only",
            SandboxLevel::Nothing => "none",
        },
        "reason": report.strength.as_ref().err(),
        "landlockOnlyAvailable": report.landlock_only,
        "layers": report.layers,
    })
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;

    fn layer(name: &str, ok: bool) -> LayerResult {
        LayerResult { name: name.to_owned(), ok, detail: format!("{name} tried") }
    }

    fn report(
        strength: Result<Strength, &str>,
        landlock_only: bool,
        layers: &[(&str, bool)],
    ) -> SelfTestReport {
        SelfTestReport {
            layers: layers.iter().map(|(name, ok)| layer(name, *ok)).collect(),
            strength: strength.map_err(str::to_owned),
            landlock_only,
        }
    }

    #[track_caller]
    fn check_is(
        report: &SelfTestReport,
        wanted: RequestedSandbox,
        status: CheckStatus,
        level: &str,
        words: &[&str],
    ) {
        let found = check(report, wanted);
        let said = format!("{} {}", found.summary, found.advice.unwrap_or_default());
        assert_eq!(found.status, status, "{said}");
        assert_eq!(json(report, wanted)["strength"], level);
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }

    const SANDBOXED: RequestedSandbox = RequestedSandbox { is_sandboxed: true, landlock_only: false };

    #[test]
    fn all_layers_work() {
        let good = report(Ok(Strength::Full), true, &[("files", true), ("limits", true)]);
        check_is(&good, SANDBOXED, CheckStatus::Ok, "full", &["full", "(files, limits)"]);
        let unlimited = report(Ok(Strength::Full), true, &[("files", true), ("limits", false)]);
        check_is(&unlimited, SANDBOXED, CheckStatus::Note, "full", &["limits tried", "other than root"]);
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let bare = report(Err("no namespaces"), true, &[("start", false), ("limits", true)]);
        check_is(
            &bare,
            SANDBOXED,
            CheckStatus::Problem,
            "none",
            &["no namespaces", "max_user_namespaces", "legacy_landlock"],
        );
        let old = report(Err("open"), false, &[("files", true), ("landlock", false)]);
        check_is(&old, SANDBOXED, CheckStatus::Problem, "none", &["landlock tried", "5.13"]);
        let limited = report(Err("cannot limit processes"), true, &[("start", false)]);
        check_is(&limited, SANDBOXED, CheckStatus::Problem, "none", &["change what the reason names"]);
        assert!(!check(&old, SANDBOXED).advice.is_some_and(|advice| advice.contains("legacy_landlock")));
        check_is(&bare, RequestedSandbox::default(), CheckStatus::Note, "none", &["none is configured"]);
    }

    #[test]
    fn the_weaker_level_is_called_by_its_name() {
        let weak = RequestedSandbox { landlock_only: true, ..SANDBOXED };
        let bare = report(Err("no namespaces"), true, &[("start", false)]);
        check_is(&bare, weak, CheckStatus::Note, "landlock-only", &["Landlock alone"]);
        let good = report(Ok(Strength::Full), true, &[("files", true)]);
        check_is(&good, weak, CheckStatus::Note, "landlock-only", &["full sandbox works here"]);
        let nothing = report(Err("no namespaces"), false, &[("start", false)]);
        check_is(&nothing, weak, CheckStatus::Problem, "none", &["no namespaces"]);
    }
}
