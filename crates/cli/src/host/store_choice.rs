//! Where tasks are kept, as the command line and the environment say.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use runtime::SystemClock;
use store::{PasswordSources, PostgresOptions, SqliteOptions, TaskStore};

use crate::private_folder::make_private;

/// Names the store for all commands of a shell, and keeps the address out of the list of processes.
const STORE_VARIABLE: &str = "OARLOCK_STORE";

pub(super) const PASSWORD_SHOWS: &str = "every user of this machine can read the password in --store; put it into \
    PGPASSWORD or into a file, and name that with `?passfile=FILE`";

/// How long work waits for a database that is away.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where tasks are kept.
#[derive(Debug)]
pub(crate) enum StoreChoice {
    Sqlite(PathBuf),
    /// The address, which may hold a password.
    Postgres(String),
}

impl StoreChoice {
    /// By what was asked for, else by the environment, else a file beside the configuration.
    pub(crate) fn parse(asked: Option<&str>, home: &Path) -> Result<Self> {
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
                    bail!("--store {kind}…: expected `sqlite:PATH` or `postgres://USER@HOST/NAME`");
                }
            },
        };
        Ok(Self::Sqlite(std::path::absolute(path)?))
    }

    /// The socket of the host that has it open on this machine.
    pub(crate) fn socket(&self, replica: &str, home: &Path) -> PathBuf {
        match self {
            Self::Sqlite(path) => TaskStore::socket_of(path),
            Self::Postgres(_) => home.join(format!("host-{replica}.sock")),
        }
    }

    pub(super) async fn open(&self, lease: Duration, is_synced: bool) -> Result<TaskStore> {
        match self {
            Self::Sqlite(path) => {
                if let Some(folder) = path.parent() {
                    make_private(folder).with_context(|| format!("cannot make {}", folder.display()))?;
                }
                let clock = Arc::new(SystemClock);
                let options = SqliteOptions { path: path.clone(), clock, is_synced };
                Ok(TaskStore::open_sqlite(&options).await?)
            }
            Self::Postgres(address) => {
                // Under a third of the lease, so that the host notices in time that it lost it.
                let wait_limit = (lease * 4 / 15).min(Duration::from_secs(4));
                let options = PostgresOptions::parse(address, &passwords(), wait_limit, PATIENCE)?;
                Ok(TaskStore::open_postgres(&options).await?)
            }
        }
    }

    /// The files that a password of the store is read from.
    pub(super) fn password_files(&self) -> Vec<PathBuf> {
        let Self::Postgres(address) = self else { return Vec::new() };
        let named = PostgresOptions::password_file(address);
        let PasswordSources { file, default_file, .. } = passwords();
        named.into_iter().chain(file).chain(default_file).collect()
    }

    /// Without a password.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(_) => "Postgres".to_owned(),
        }
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

/// Whether an address that everybody may read holds a password.
pub(super) fn holds_password(store: &str) -> bool {
    let Some((_, rest)) = store.split_once("://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    let in_query = rest.split(['?', '&']).skip(1).any(|pair| pair.starts_with("password="));
    in_query || authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
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
            assert_eq!(holds_password(store), has_one, "{store}");
        }
    }
}
