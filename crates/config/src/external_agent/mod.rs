//! Imports the user's settings, skills and instructions of another coding agent. Adds what is missing and overwrites
//! nothing.

mod folders;
mod inside;
mod migration;
mod rewrite;

use std::path::{Path, PathBuf};

use protocol::{
    ExternalAgentConfigDetectParams, ExternalAgentConfigDetectResponse, ExternalAgentConfigImportParams,
    ExternalAgentConfigMigrationItem,
};
use workspace::is_marker;

use self::migration::Migration;
use crate::error::ConfigError;
use crate::loader::Loader;

/// Why detection or import failed.
#[derive(Debug, thiserror::Error)]
pub enum ExternalAgentError {
    #[error("cwds {0}")]
    Folder(String),
    #[error("{}: {problem}", path.display())]
    Failed { path: PathBuf, problem: String },
    /// One of our own files cannot be read.
    #[error(transparent)]
    Settings(ConfigError),
    /// The settings are unchanged.
    #[error(transparent)]
    Write(ConfigError),
}

/// Lists everything that can be imported and is missing here: of the user, then of each repository. Blocking.
pub fn detect_external_agent(
    loader: &Loader,
    params: &ExternalAgentConfigDetectParams,
) -> Result<ExternalAgentConfigDetectResponse, ExternalAgentError> {
    let mut roots: Vec<PathBuf> = Vec::new();
    for cwd in params.cwds.iter().flatten() {
        let root = repository(cwd)?;
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    let home = params.include_home.then(|| home_migration(loader)).flatten();
    let of_repositories = roots.iter().map(|root| Migration::repository(root, loader.home()));
    let mut items = Vec::new();
    for migration in home.into_iter().chain(of_repositories) {
        items.extend(migration.missing()?);
    }
    Ok(ExternalAgentConfigDetectResponse { items })
}

/// Imports these items in order. Existing files and settings stay unchanged.
pub fn import_external_agent(
    loader: &Loader,
    params: ExternalAgentConfigImportParams,
) -> Result<(), ExternalAgentError> {
    let home = home_migration(loader);
    for ExternalAgentConfigMigrationItem { item_type, cwd, .. } in params.migration_items {
        let migration = match cwd {
            None => home.clone(),
            Some(cwd) => Some(Migration::repository(&repository(&cwd)?, loader.home())),
        };
        if let Some(migration) = migration {
            migration.take_over(item_type)?;
        }
    }
    Ok(())
}

/// Unset for a user without a home folder.
fn home_migration(loader: &Loader) -> Option<Migration> {
    Some(Migration::home(&loader.user_home()?, loader.home()))
}

/// The repository around a folder, or the folder itself.
fn repository(cwd: &str) -> Result<PathBuf, ExternalAgentError> {
    let folder =
        std::path::absolute(cwd).map_err(|error| ExternalAgentError::Folder(format!("{cwd:?}: {error}")))?;
    let root = folder.ancestors().find(|ancestor| is_marker(&ancestor.join(".git")));
    Ok(root.map(Path::to_owned).unwrap_or(folder))
}

fn trouble(path: &Path, problem: impl std::fmt::Display) -> ExternalAgentError {
    ExternalAgentError::Failed { path: path.to_owned(), problem: problem.to_string() }
}
