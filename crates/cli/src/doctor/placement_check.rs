//! The check of a placement: one is made, the runtime is copied there, its sandbox is tried, and it is removed again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::host::PlaceOptions;
use anyhow::{Context, Result, bail};
use placements::{
    Placement, PlacementOrder, PlacementSettings, Placements, ProgressSink, RunLimits, SpawnOptions,
    WorkspaceStart,
};
use runtime::SystemClock;
use runtime::config::{Home, LoadRequest, Loader, LoaderOptions};
use serde_json::Value;

use super::DoctorCheck;
use crate::host::places::{self, OwnEndpoints, PlaceArgs};

const ADVICE: &str = "docs/placements.md says what each backend needs";
const APPROVALS: &str = "a command that sets out to can speak for the runtime, so approvals there keep a model from \
    mistakes and no attacker from anything";
/// The self-test starts some processes; a machine may be slow.
const TEST_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn examine(
    name: &str,
    runtime: Option<PathBuf>,
    flags: Vec<(String, String)>,
) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    let tokio = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(tokio) => tokio,
        Err(error) => return vec![DoctorCheck::problem("placement", error.to_string(), ADVICE)],
    };
    if let Err(error) = tokio.block_on(look(name, runtime, flags, &mut checks)) {
        let step = match checks.len() {
            0 => "placement",
            1 => "runtime",
            _ => "sandbox",
        };
        checks.push(DoctorCheck::problem(step, format!("{error:#}"), ADVICE));
    }
    checks
}

async fn look(
    name: &str,
    runtime: Option<PathBuf>,
    flags: Vec<(String, String)>,
    checks: &mut Vec<DoctorCheck>,
) -> Result<()> {
    let loader = Loader::new(Home::look_from_env()?, flags.clone(), LoaderOptions::default());
    let cwd = std::env::current_dir().ok();
    let config = loader.load(&LoadRequest { cwd, ..LoadRequest::default() })?;
    let options = places::options(
        &PlaceArgs::embedded(runtime),
        &config,
        &flags,
        &OwnEndpoints { is_temporary: true, ..OwnEndpoints::default() },
        PathBuf::new(),
    )?;
    let settings = options.settings(name)?;
    let places = Placements::new(&options.owner, Arc::new(SystemClock))?;
    let began = Instant::now();
    let id = format!("doctor-{}", std::process::id());
    let order = PlacementOrder { id, settings: settings.clone(), start: WorkspaceStart::Empty };
    let placement = places.create(order, &ProgressSink::none()).await?;
    let workspace = &placement.reference().workspace;
    let summary = format!("{}: {workspace} was made in {}", settings.backend(), shown(began));
    checks.push(DoctorCheck::ok("placement", summary));
    let looked = look_inside(&placement, &settings, &options, checks).await;
    let removed = placement.destroy().await.context("it could not be removed again");
    looked?;
    removed
}

async fn look_inside(
    placement: &Placement,
    settings: &PlacementSettings,
    options: &PlaceOptions,
    checks: &mut Vec<DoctorCheck>,
) -> Result<()> {
    let began = Instant::now();
    let path = match settings.is_this_machine() {
        true => options.program.to_string_lossy().into_owned(),
        false => {
            let staged = placement.stage(options.builds.all().await?, &ProgressSink::none()).await?;
            let verb = if staged.copied { "copied" } else { "was there" };
            let summary = format!("{verb} in {}: {}", shown(began), staged.path);
            checks.push(DoctorCheck::ok("runtime", summary));
            staged.path
        }
    };
    let limits = RunLimits { time: TEST_LIMIT, ..RunLimits::default() };
    let reference = placement.reference();
    let user = reference.command_user.as_ref().map(|_| ["--command-user-of", &reference.workspace]);
    let words = [path.as_str(), "sandbox-check"].into_iter().chain(user.into_iter().flatten());
    let ran = placement.run(&SpawnOptions::new(words), limits).await?;
    if ran.code != 0 {
        let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
        bail!("{path} does not run there (code {}): {said}", ran.code);
    }
    let report: Value = serde_json::from_slice(&ran.stdout).context("its self-test cannot be read")?;
    let version = env!("CARGO_PKG_VERSION");
    if report["version"] != version {
        bail!("runtimeMismatch: this program is of version {version}, the runtime of {}", report["version"]);
    }
    checks.extend(found(settings, &report));
    Ok(())
}

/// The layers of the sandbox that hold in the placement, and those that do not.
fn found(settings: &PlacementSettings, report: &Value) -> Vec<DoctorCheck> {
    let layers = report["layers"].as_array().into_iter().flatten();
    let held: Vec<&str> =
        layers.filter(|layer| layer["ok"] == true).filter_map(|layer| layer["name"].as_str()).collect();
    let held = if held.is_empty() { "none".to_owned() } else { held.join(", ") };
    let missing = report["missing"].as_str();
    let sandbox = match (settings.is_boundary(), missing) {
        (true, _) => {
            let summary = format!(
                "the {} is the boundary: read-only and workspace-write are refused there; layers of our own that work: {held}",
                settings.backend()
            );
            DoctorCheck::ok("sandbox", summary)
        }
        (false, None) => DoctorCheck::ok("sandbox", format!("works there as here ({held})")),
        (false, Some(missing)) => DoctorCheck::problem(
            "sandbox",
            format!("{missing}; layers that work: {held}"),
            "threads there need the sandbox `danger-full-access`, or a machine that allows one",
        ),
    };
    let mut checks = vec![sandbox];
    if settings.is_boundary() {
        checks.push(separation(&report["separation"]));
    }
    checks
}

/// Whether commands there are kept away from the runtime.
fn separation(found: &Value) -> DoctorCheck {
    let none = "none: commands there run as the user of the runtime";
    let name = "separation";
    let problem = found["problem"].as_str().map_or_else(String::new, |problem| format!(": {problem}"));
    match found["user"].as_u64() {
        Some(user) => DoctorCheck::ok(name, format!("commands there run as user {user}")),
        None => DoctorCheck::note(name, format!("{none}{problem}"), Some(APPROVALS)),
    }
}

fn shown(began: Instant) -> String {
    format!("{:.2} s", began.elapsed().as_secs_f64())
}
