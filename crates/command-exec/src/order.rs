//! The directory, environment and sandbox of a client's command.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{LoadRequest, Loader, ResolvedConfig};
use protocol::SandboxPolicy;
use sandbox::{Confinement, Limits, OffLimits, Order, PROTECTED_NAMES, ScanLimit, Strength, protected_below};

use support::blocking;

use super::error::CommandExecError;
use super::request::CommandRequest;

/// The configuration source of all connections' commands.
#[derive(Clone)]
pub struct CommandSettings {
    pub loader: Loader,
    /// Off-limits paths under a configuration, including this process's listeners.
    pub off_limits: Arc<dyn Fn(&ResolvedConfig) -> OffLimits + Send + Sync>,
    /// This process's environment, of which the configuration passes a part.
    pub variables: fn() -> Vec<(String, String)>,
}

impl fmt::Debug for CommandSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSettings").field("loader", &self.loader).finish_non_exhaustive()
    }
}

/// The configuration is read for each command, so changes apply from the next one on.
pub(super) async fn order(
    settings: &CommandSettings,
    request: CommandRequest,
) -> Result<Order, CommandExecError> {
    let settings = settings.clone();
    blocking(move || order_now(&settings, request)).await?
}

fn order_now(settings: &CommandSettings, request: CommandRequest) -> Result<Order, CommandExecError> {
    let own = std::env::current_dir().map_err(|error| CommandExecError::Spawn(error.to_string()))?;
    let loaded = settings.loader.load(&LoadRequest { cwd: Some(own.clone()), ..LoadRequest::default() });
    let config = loaded.map_err(|error| CommandExecError::Config(error.to_string()))?;
    let policy = policy(&config, request.sandbox)?;
    let cwd =
        directory(own, request.cwd.as_deref()).map_err(|error| CommandExecError::Spawn(error.to_string()))?;
    let mut env = config.permissions.shell_environment.apply((settings.variables)());
    overlay(&mut env, request.env);
    let confinement = confinement(&config, &policy, &cwd, &env, &(settings.off_limits)(&config));
    Ok(Order { argv: request.argv, cwd, env, confinement, limits: Limits::default(), terminal: false })
}

/// `None` if the policy has no sandbox.
fn confinement(
    config: &ResolvedConfig,
    policy: &SandboxPolicy,
    cwd: &Path,
    env: &BTreeMap<String, String>,
    off_limits: &OffLimits,
) -> Option<Confinement> {
    // A weaker sandbox must be enabled explicitly.
    let is_weak = config.features.enabled("use_legacy_landlock");
    let strength = if is_weak { Strength::LandlockOnly } else { Strength::Full };
    let tmpdir = env.get("TMPDIR").map(Path::new);
    let mut confinement = Confinement::for_policy(policy, cwd, tmpdir, strength, off_limits)?;
    let nested = protected_below(&confinement.writable, &PROTECTED_NAMES, ScanLimit::default());
    confinement.protected_paths.extend(nested.paths);
    Some(confinement)
}

/// The administrator's limits apply to a client's choice too; the configured policy satisfies them already.
fn policy(config: &ResolvedConfig, asked: Option<SandboxPolicy>) -> Result<SandboxPolicy, CommandExecError> {
    let Some(policy) = asked else { return Ok(config.permissions.sandbox_policy.clone()) };
    match config.requirements.allow_sandbox(&policy) {
        Ok(()) => Ok(policy),
        Err(error) => Err(CommandExecError::Policy(error.to_string())),
    }
}

/// Relative to the server's directory.
fn directory(own: PathBuf, asked: Option<&str>) -> io::Result<PathBuf> {
    let Some(asked) = asked else { return Ok(own) };
    let path = own.join(asked);
    // Looked up as a directory, to distinguish a file from a missing folder.
    std::fs::metadata(path.join("."))?;
    Ok(path)
}

fn overlay(env: &mut BTreeMap<String, String>, changes: BTreeMap<String, Option<String>>) {
    for (name, value) in changes {
        match value {
            Some(value) => env.insert(name, value),
            None => env.remove(&name),
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn changes_win_and_null_removes() {
        let text = |text: &str| text.to_owned();
        let mut env =
            BTreeMap::from([(text("A"), text("1")), (text("B"), text("2")), (text("C"), text("3"))]);
        let changes = [("A", Some("4")), ("B", None), ("D", Some("")), ("E", None)];
        overlay(&mut env, changes.map(|(name, value)| (text(name), value.map(text))).into());
        assert_eq!(env, BTreeMap::from([("A", "4"), ("C", "3"), ("D", "")].map(|(n, v)| (text(n), text(v)))));
    }

    #[test]
    fn a_directory_must_be_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().to_owned();
        std::fs::write(own.join("file"), "").expect("a file");
        std::fs::create_dir(own.join("sub")).expect("a folder");
        let found = |asked: Option<&str>| directory(own.clone(), asked).map_err(|error| error.kind());
        assert_eq!(found(None), Ok(own.clone()));
        assert_eq!(found(Some("sub")), Ok(own.join("sub")));
        assert_eq!(found(Some("none")), Err(io::ErrorKind::NotFound));
        assert_eq!(found(Some("file")), Err(io::ErrorKind::NotADirectory));
    }
}
