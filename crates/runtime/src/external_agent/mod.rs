//! Taking over what a user set up for another coding agent: settings, skills and instructions. Adds what is missing and
//! overwrites nothing.

mod folders;
mod place;
mod rewrite;

use std::path::{Path, PathBuf};

use protocol::{
    ExternalAgentConfigDetectParams, ExternalAgentConfigDetectResponse, ExternalAgentConfigImportParams,
    ExternalAgentConfigMigrationItem,
};

use self::place::Place;
use crate::error::RuntimeError;
use crate::runtime::{Runtime, blocking};

impl Runtime {
    /// What could be taken over and is not here yet: of the user, then of each repository.
    pub async fn detect_external_agent(
        &self,
        params: ExternalAgentConfigDetectParams,
    ) -> Result<ExternalAgentConfigDetectResponse, RuntimeError> {
        let home = params.include_home.then(|| self.home_place()).flatten();
        let own = self.loader().home().clone();
        let find = move || {
            let mut roots: Vec<PathBuf> = Vec::new();
            for cwd in params.cwds.iter().flatten() {
                let root = repository(cwd)?;
                if !roots.contains(&root) {
                    roots.push(root);
                }
            }
            let mut items = Vec::new();
            for place in home.into_iter().chain(roots.iter().map(|root| Place::repository(root, &own))) {
                items.extend(place.missing()?);
            }
            Ok(ExternalAgentConfigDetectResponse { items })
        };
        blocking(find).await?
    }

    /// Takes these over, one after the other. Whatever is there meanwhile stays as it is.
    pub async fn import_external_agent(
        &self,
        params: ExternalAgentConfigImportParams,
    ) -> Result<(), RuntimeError> {
        let (home, own) = (self.home_place(), self.loader().home().clone());
        let import = move || {
            for ExternalAgentConfigMigrationItem { item_type, cwd, .. } in params.migration_items {
                let place = match cwd {
                    None => home.clone(),
                    Some(cwd) => Some(Place::repository(&repository(&cwd)?, &own)),
                };
                if let Some(place) = place {
                    place.take_over(item_type)?;
                }
            }
            Ok(())
        };
        blocking(import).await?
    }

    /// Nothing is known of a user without a home folder.
    fn home_place(&self) -> Option<Place> {
        let loader = self.loader();
        Some(Place::home(&loader.user_home()?, loader.home()))
    }
}

/// The repository a folder is in, or the folder itself.
fn repository(cwd: &str) -> Result<PathBuf, RuntimeError> {
    let folder = std::path::absolute(cwd)
        .map_err(|error| RuntimeError::Field { field: "cwds", problem: format!("{cwd:?}: {error}") })?;
    let root = folder.ancestors().find(|ancestor| config::is_marker(&ancestor.join(".git")));
    Ok(root.map(Path::to_owned).unwrap_or(folder))
}

/// What cannot be read or written, and why.
fn trouble(path: &Path, problem: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::ExternalAgent(format!("{}: {problem}", path.display()))
}
