//! Where a command would run: the folder, the settings that count there, and the environment it would get.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use protocol::SandboxPolicy;
use runtime::config::{LoadRequest, RequestOverrides, ResolvedConfig};
use sandbox::{Confinement, Strength};

use crate::flags::Flags;

/// The same for a command of the user as for one of a model.
#[derive(Debug)]
pub(crate) struct Workplace {
    pub(crate) folder: PathBuf,
    pub(crate) config: ResolvedConfig,
    /// The whole environment.
    pub(crate) env: BTreeMap<String, String>,
}

impl Workplace {
    pub(crate) fn load(flags: &Flags, cd: Option<&Path>, overrides: RequestOverrides) -> Result<Self> {
        let folder = crate::exec::folder(cd)?;
        let request = LoadRequest { cwd: Some(folder.clone()), overrides, ..LoadRequest::default() };
        let config = flags.loader()?.load(&request)?;
        let env = config.permissions.shell_environment.apply(variables());
        Ok(Self { folder, config, env })
    }

    /// The confinement that a policy asks for, if any, with the writable paths that exist.
    pub(crate) fn confinement(&self, policy: &SandboxPolicy, landlock_only: bool) -> Option<Confinement> {
        let is_weak = landlock_only || self.config.features.enabled("use_legacy_landlock");
        let strength = if is_weak { Strength::LandlockOnly } else { Strength::Full };
        let tmpdir = self.env.get("TMPDIR").map(Path::new);
        let confinement =
            Confinement::for_policy(policy, &self.folder, tmpdir, strength, &self.config.off_limits());
        confinement.map(|mut confinement| {
            confinement.writable.retain(|path| path.exists());
            confinement
        })
    }
}

/// Of this process, as far as they are text.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
