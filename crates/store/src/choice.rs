//! Where tasks are kept, as the command line and the environment say.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use support::SystemClock;

use crate::backend::{PasswordSources, PostgresOptions, SqliteOptions};
use crate::error::StoreError;
use crate::store::TaskStore;

/// Names the store for all commands of a shell, and keeps the address out of the list of processes.
const STORE_VARIABLE: &str = "OARLOCK_STORE";

/// How long work waits for a database that is away.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where tasks are kept.
#[derive(Debug)]
pub enum StoreChoice {
    Sqlite(PathBuf),
    /// The address, which may hold a password.
    Postgres(String),
}

impl StoreChoice {
    /// By what was asked for, else by the environment, else a file beside the configuration.
    pub fn parse(asked: Option<&str>, home: &Path) -> Result<Self, StoreError> {
        let named = || std::env::var(STORE_VARIABLE).ok().filter(|store| !store.is_empty());
        let asked = asked.map(str::to_owned).or_else(named);
        let path = match asked.as_deref() {
            None => home.join("host.sqlite"),
            Some(text) if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                return Ok(Self::Postgres(text.to_owned()));
            }
            Some(text) => match text.strip_prefix("sqlite:").map(|path| path.trim_start_matches("//")) {
                Some(path) if !path.is_empty() => PathBuf::from(path),
                _ => {
                    // Only the scheme is shown: the rest may be an address with a password.
                    let kind = text.split(':').next().unwrap_or_default();
                    let expected = "expected `sqlite:PATH` or `postgres://USER@HOST/NAME`";
                    return Err(StoreError::Address(format!("--store {kind}…: {expected}")));
                }
            },
        };
        let absolute = std::path::absolute(&path);
        let failed = |error| StoreError::Address(format!("--store {}: {error}", path.display()));
        absolute.map(Self::Sqlite).map_err(failed)
    }

    /// The socket of the host that has it open on this machine. Of a file, it is in the same folder.
    pub fn socket(&self, replica: &str, home: &Path) -> PathBuf {
        match self {
            Self::Sqlite(path) => TaskStore::socket_of(path),
            Self::Postgres(_) => home.join(format!("host-{replica}.sock")),
        }
    }

    /// The folder of a file must be there.
    pub async fn open(&self, lease: Duration, is_synced: bool) -> Result<TaskStore, StoreError> {
        match self {
            Self::Sqlite(path) => {
                let clock = Arc::new(SystemClock);
                let options = SqliteOptions { path: path.clone(), clock, is_synced };
                TaskStore::open_sqlite(&options).await
            }
            Self::Postgres(address) => {
                // Under a third of the lease, so that the host notices in time that it lost it.
                let wait_limit = (lease * 4 / 15).min(Duration::from_secs(4));
                let options = PostgresOptions::parse(address, &passwords(), wait_limit, PATIENCE)?;
                TaskStore::open_postgres(&options).await
            }
        }
    }

    /// The files that a password of the store is read from.
    pub fn password_files(&self) -> Vec<PathBuf> {
        let Self::Postgres(address) = self else { return Vec::new() };
        let named = PostgresOptions::password_file(address);
        let PasswordSources { file, default_file, .. } = passwords();
        named.into_iter().chain(file).chain(default_file).collect()
    }

    /// Without a password.
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(_) => "Postgres".to_owned(),
        }
    }

    /// Whether an address that everybody may read holds a password.
    pub fn holds_password(store: &str) -> bool {
        let Some((_, rest)) = store.split_once("://") else { return false };
        let authority = rest.split('/').next().unwrap_or_default();
        let in_query = rest.split(['?', '&']).skip(1).any(|pair| pair.starts_with("password="));
        in_query || authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    }
}

/// As other programs find the passwords of Postgres.
fn passwords() -> PasswordSources {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    PasswordSources {
        password: variable("PGPASSWORD").and_then(|password| password.into_string().ok()),
        file: variable("PGPASSFILE").map(PathBuf::from),
        default_file: variable("HOME").map(|home| Path::new(&home).join(".pgpass")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_wherever_it_is_written() {
        for (store, has_one) in [
            ("sqlite:tasks.sqlite", false),
            ("postgres://oar@db:5432/tasks", false),
            ("postgres://oar@db/tasks?passfile=/etc/p", false),
            ("postgres://oar:secret@db/tasks", true),
            ("postgres://oar@db/tasks?sslmode=require&password=secret", true),
        ] {
            assert_eq!(StoreChoice::holds_password(store), has_one, "{store}");
        }
    }
}
