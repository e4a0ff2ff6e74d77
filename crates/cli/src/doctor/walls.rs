//! The check of the sandbox: from what its self-test found to what a person should know and do.

use runtime::config::Config;
use sandbox::{Layer, Report, Strength};
use serde_json::{Value, json};

use super::Check;

/// What the configuration wants of the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Commands run in a sandbox of ours.
    pub(super) walls: bool,
    /// The weaker level is asked for.
    pub(super) landlock_only: bool,
}

impl Wanted {
    pub(super) fn by(config: &Config) -> Self {
        Self {
            walls: crate::walls::are_wanted(&config.permissions.sandbox_policy),
            landlock_only: config.features.enabled("use_legacy_landlock"),
        }
    }
}

/// What commands get here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Full,
    LandlockOnly,
    Nothing,
}

fn level(report: &Report, wanted: Wanted) -> Level {
    match (&report.strength, wanted.landlock_only) {
        (_, true) if report.landlock_only => Level::LandlockOnly,
        (Ok(Strength::Full), false) => Level::Full,
        (Ok(Strength::LandlockOnly), false) => Level::LandlockOnly,
        _ => Level::Nothing,
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

pub(super) fn check(report: &Report, wanted: Wanted) -> Check {
    let names: Vec<&str> =
        report.layers.iter().filter(|layer| layer.ok).map(|layer| layer.name.as_str()).collect();
    let limits = report.layers.iter().find(|layer| layer.name == "limits");
    match level(report, wanted) {
        Level::Full => {
            let summary = format!("full: the walls were tried and hold ({})", names.join(", "));
            match limits.filter(|limits| !limits.ok) {
                Some(limits) => Check::note("sandbox", format!("{summary}; {}", limits.detail), Some(LIMITS)),
                None => Check::ok("sandbox", summary),
            }
        }
        Level::LandlockOnly => {
            let advice = report.strength.is_ok().then_some(
                "the full sandbox works here; remove features.use_legacy_landlock from the configuration",
            );
            let summary =
                "Landlock alone, as asked for: files are not hidden, and processes are not kept apart";
            Check::note("sandbox", summary, advice)
        }
        Level::Nothing => {
            let why = match &report.strength {
                Err(why) => why.clone(),
                Ok(_) => "Landlock alone is asked for, and this kernel has too little of it".to_owned(),
            };
            let summary = format!("none: {why}{}", open_walls(&report.layers));
            match wanted.walls {
                true => Check::problem("sandbox", summary, advice(report)),
                false => Check::note("sandbox", format!("{summary} (none is configured)"), None),
            }
        }
    }
}

fn open_walls(layers: &[Layer]) -> String {
    let open = layers.iter().filter(|layer| !layer.ok && layer.name != "start");
    open.map(|layer| format!("; {}: {}", layer.name, layer.detail)).collect()
}

fn advice(report: &Report) -> String {
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
pub(super) fn json(report: &Report, wanted: Wanted) -> Value {
    json!({
        "strength": match level(report, wanted) {
            Level::Full => "full",
            Level::LandlockOnly => "landlock-only",
            Level::Nothing => "none",
        },
        "reason": report.strength.as_ref().err(),
        "landlockOnlyAvailable": report.landlock_only,
        "layers": report.layers,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn layer(name: &str, ok: bool) -> Layer {
        Layer { name: name.to_owned(), ok, detail: format!("{name} tried") }
    }

    fn report(strength: Result<Strength, &str>, landlock_only: bool, layers: &[(&str, bool)]) -> Report {
        Report {
            layers: layers.iter().map(|(name, ok)| layer(name, *ok)).collect(),
            strength: strength.map_err(str::to_owned),
            landlock_only,
        }
    }

    #[track_caller]
    fn check_is(report: &Report, wanted: Wanted, status: Status, level: &str, words: &[&str]) {
        let found = check(report, wanted);
        let said = format!("{} {}", found.summary, found.advice.unwrap_or_default());
        assert_eq!(found.status, status, "{said}");
        assert_eq!(json(report, wanted)["strength"], level);
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }

    const WALLS: Wanted = Wanted { walls: true, landlock_only: false };

    #[test]
    fn all_walls_hold() {
        let good = report(Ok(Strength::Full), true, &[("files", true), ("limits", true)]);
        check_is(&good, WALLS, Status::Ok, "full", &["full", "(files, limits)"]);
        let unlimited = report(Ok(Strength::Full), true, &[("files", true), ("limits", false)]);
        check_is(&unlimited, WALLS, Status::Note, "full", &["limits tried", "other than root"]);
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let bare = report(Err("no namespaces"), true, &[("start", false), ("limits", true)]);
        check_is(
            &bare,
            WALLS,
            Status::Problem,
            "none",
            &["no namespaces", "max_user_namespaces", "legacy_landlock"],
        );
        let old = report(Err("open"), false, &[("files", true), ("landlock", false)]);
        check_is(&old, WALLS, Status::Problem, "none", &["landlock tried", "5.13"]);
        let limited = report(Err("cannot limit processes"), true, &[("start", false)]);
        check_is(&limited, WALLS, Status::Problem, "none", &["change what the reason names"]);
        assert!(!check(&old, WALLS).advice.is_some_and(|advice| advice.contains("legacy_landlock")));
        check_is(&bare, Wanted::default(), Status::Note, "none", &["none is configured"]);
    }

    #[test]
    fn the_weaker_level_is_called_by_its_name() {
        let weak = Wanted { landlock_only: true, ..WALLS };
        let bare = report(Err("no namespaces"), true, &[("start", false)]);
        check_is(&bare, weak, Status::Note, "landlock-only", &["Landlock alone"]);
        let good = report(Ok(Strength::Full), true, &[("files", true)]);
        check_is(&good, weak, Status::Note, "landlock-only", &["full sandbox works here"]);
        let nothing = report(Err("no namespaces"), false, &[("start", false)]);
        check_is(&nothing, weak, Status::Problem, "none", &["no namespaces"]);
    }
}
