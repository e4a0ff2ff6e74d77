//! Postgres: a pool of connections, shared by any number of hosts.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};

use super::postgres_news::{NEWS_CHANNEL, listen};
use super::postgres_password::PasswordSources;
use super::postgres_tls::{TlsConnector, tls_config};
use super::{
    AnyResult, CommitSync, DatabaseBackend, RowLock, SqlFuture, SqlRow, SqlValue, StoreNews, Transaction,
    Work,
};
use crate::error::StoreError;

/// Connections of one host, at most.
const CONNECTIONS: usize = 8;
/// The pause before work is tried again that met a database which was away.
const AWAY_PAUSE: Duration = Duration::from_millis(100);
/// Tries of work that lost to another transaction, or whose connection broke.
const TRIES: u32 = 4;

/// How to reach the database.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://…` or `host=… user=…`.
    pub url: String,
    /// Where the address holds none.
    pub password: Option<String>,
    /// Used unless the address says `sslmode=disable`.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The longest wait for one statement, lock or connection: under a third of a lease, so that a host notices in time
    /// that it lost its lease.
    pub wait_limit: Duration,
    /// How long work waits for a database that is away before it fails.
    pub patience: Duration,
}

impl PostgresOptions {
    /// By an address such as `postgres://USER@HOST/NAME?sslmode=require`. Beyond what Postgres addresses always hold,
    /// `sslrootcert` names a file with the certificates to trust instead of the system's, and `sslmode` may be
    /// `verify-full`, which is what `require` means here; `passfile` names a file with passwords.
    pub fn parse(
        address: &str,
        passwords: &PasswordSources,
        wait_limit: Duration,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let SplitAddress { url, authorities, password_file } = split_address(address);
        let tls = tls_config(authorities.as_deref())?;
        let password = passwords.find(password_file.as_deref(), &config_of(&url)?)?;
        Ok(Self { url, password, tls: Some(tls), wait_limit, patience })
    }

    /// The file that an address says its password is in.
    pub fn password_file(address: &str) -> Option<PathBuf> {
        split_address(address).password_file.map(PathBuf::from)
    }
}

/// The parser's own message may repeat the address with its password.
fn config_of(url: &str) -> Result<Config, StoreError> {
    let problem = "the address of the database cannot be read; write it as postgres://USER@HOST/NAME";
    Config::from_str(url).map_err(|_| StoreError::Database(problem.to_owned()))
}

/// The address as the driver reads it, and the files it names.
#[derive(Debug, Default, PartialEq)]
struct SplitAddress {
    url: String,
    authorities: Option<String>,
    password_file: Option<String>,
}

fn split_address(address: &str) -> SplitAddress {
    let Some((base, query)) = address.split_once('?') else {
        return SplitAddress { url: address.to_owned(), ..SplitAddress::default() };
    };
    let (mut authorities, mut password_file) = (None, None);
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslrootcert", file)) => authorities = Some(file.to_owned()),
            Some(("passfile", file)) => password_file = Some(file.to_owned()),
            Some(("sslmode", "verify-full" | "verify-ca")) => kept.push("sslmode=require"),
            _ => kept.push(pair),
        }
    }
    let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    SplitAddress { url, authorities, password_file }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_struct("PostgresOptions").finish_non_exhaustive()
    }
}

pub(crate) struct PostgresBackend {
    options: PostgresOptions,
    config: Config,
    /// Marks what this host tells others, so that it does not listen to itself.
    mark: Arc<str>,
    idle: Mutex<Vec<Client>>,
    permits: Semaphore,
    /// Work waits for it, and somebody was told.
    is_away: AtomicBool,
}

impl fmt::Debug for PostgresBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBackend").finish_non_exhaustive()
    }
}

impl PostgresBackend {
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self, StoreError> {
        let mut config = config_of(&options.url)?;
        if let Some(password) = &options.password {
            config.password(password);
        }
        let limit = options.wait_limit;
        config.connect_timeout(limit).tcp_user_timeout(limit).application_name("oarlock");
        config.keepalives_idle(limit);
        Ok(Self {
            options: options.clone(),
            config,
            mark: format!("{:032x}", support::entropy()).into(),
            idle: Mutex::default(),
            permits: Semaphore::new(CONNECTIONS),
            is_away: AtomicBool::new(false),
        })
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The encryption of connections, where there is any: none over a socket of this machine.
    pub(super) fn tls(&self) -> Option<TlsConnector> {
        let is_local = self.config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        let plain = is_local || self.config.get_ssl_mode() == SslMode::Disable;
        self.options.tls.as_ref().filter(|_| !plain).map(|tls| TlsConnector::new(Arc::clone(tls)))
    }

    async fn client(&self) -> Result<Client, StoreError> {
        loop {
            let Some(client) = self.idle.lock().pop() else { break };
            if !client.is_closed() {
                return Ok(client);
            }
        }
        let client = self.connect().await.map_err(|error| failure(&error))?;
        let setup = format!(
            "SET synchronous_commit = on; SET statement_timeout = {limit}; SET lock_timeout = {limit}; \
             SET idle_in_transaction_session_timeout = {limit}",
            limit = self.options.wait_limit.as_millis()
        );
        client.batch_execute(&setup).await.map_err(|error| failure(&error))?;
        Ok(client)
    }

    async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        match self.tls() {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls).await?;
                tokio::spawn(follow(connection));
                Ok(client)
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(follow(connection));
                Ok(client)
            }
        }
    }

    async fn try_once(&self, work: &Work) -> Result<AnyResult, tokio_postgres::Error> {
        let mut client = match self.client().await {
            Ok(client) => client,
            Err(error) => return Ok(Err(error)),
        };
        let transaction = client.transaction().await?;
        let mut running = PostgresTransaction { transaction: &transaction, mark: &self.mark, broken: None };
        let result = work(&mut running).await;
        if let Some(error) = running.broken {
            return Err(error);
        }
        if result.is_ok() {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        self.idle.lock().push(client);
        Ok(result)
    }
}

/// Carries the bytes of one connection until it ends.
async fn follow(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the database ended");
    }
}

/// Whether the same work may succeed in a new transaction. Work is written so that doing it a second time, after a
/// commit whose answer was lost, gives the same result.
fn is_worth_another_try(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(state) => {
            *state == SqlState::T_R_SERIALIZATION_FAILURE
                || *state == SqlState::T_R_DEADLOCK_DETECTED
                || *state == SqlState::ADMIN_SHUTDOWN
                || *state == SqlState::CRASH_SHUTDOWN
        }
        None => {
            error.is_closed()
                || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
        }
    }
}

fn failure(error: &tokio_postgres::Error) -> StoreError {
    if let Some(problem) = untrusted(error) {
        return StoreError::Untrusted(problem);
    }
    let Some(refused) = error.as_db_error() else {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        return StoreError::Unavailable(format!("{error}{cause}"));
    };
    let text = refused.message().to_owned();
    // Classes of conditions that pass: connections, resources, an operator's doing, time limits.
    let is_passing =
        ["08", "53", "57", "40", "55"].iter().any(|class| refused.code().code().starts_with(class));
    if is_passing { StoreError::Unavailable(text) } else { StoreError::Database(text) }
}

/// Trying again does not make a certificate trusted.
fn untrusted(error: &tokio_postgres::Error) -> Option<String> {
    let source = std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?;
    match source.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(problem) => Some(format!("{problem:?}")),
        _ => None,
    }
}

struct PostgresTransaction<'a, 'c> {
    transaction: &'a tokio_postgres::Transaction<'c>,
    mark: &'a str,
    /// The error of a statement that may go away with another try.
    broken: Option<tokio_postgres::Error>,
}

impl PostgresTransaction<'_, '_> {
    fn note(&mut self, error: tokio_postgres::Error) -> StoreError {
        let said = failure(&error);
        if is_worth_another_try(&error) {
            self.broken = Some(error);
        }
        said
    }
}

fn parameters(values: &[SqlValue]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn value(row: &Row, column: usize) -> Result<SqlValue, tokio_postgres::Error> {
    let kind = row.columns()[column].type_();
    Ok(match *kind {
        Type::INT8 => row.try_get::<_, Option<i64>>(column)?.into(),
        Type::INT4 => row.try_get::<_, Option<i32>>(column)?.map(i64::from).into(),
        Type::BOOL => row.try_get::<_, Option<bool>>(column)?.into(),
        // The answer of functions that answer nothing.
        Type::VOID => SqlValue::Null,
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(column)?.into(),
        _ => row.try_get::<_, Option<String>>(column)?.into(),
    })
}

fn values_of(row: &Row) -> Result<SqlRow, StoreError> {
    let values = (0..row.len()).map(|column| value(row, column)).collect::<Result<_, _>>();
    values.map(SqlRow::new).map_err(|error| StoreError::Damaged(error.to_string()))
}

impl Transaction for PostgresTransaction<'_, '_> {
    fn execute<'a>(&'a mut self, sql: &'a str, values: Vec<SqlValue>) -> SqlFuture<'a, u64> {
        Box::pin(async move {
            let changed = self.transaction.execute(sql, &parameters(&values)).await;
            changed.map_err(|error| self.note(error))
        })
    }

    fn query<'a>(&'a mut self, sql: &'a str, values: Vec<SqlValue>) -> SqlFuture<'a, Vec<SqlRow>> {
        Box::pin(async move {
            let rows = self.transaction.query(sql, &parameters(&values)).await;
            let rows = rows.map_err(|error| self.note(error))?;
            rows.iter().map(values_of).collect()
        })
    }

    fn now_ms(&mut self) -> SqlFuture<'_, i64> {
        Box::pin(async move {
            let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
            let rows = self.query(sql, Vec::new()).await?;
            rows.first().ok_or_else(|| StoreError::Damaged("the database told no time".to_owned()))?.int(0)
        })
    }

    fn row_lock(&self, lock: RowLock) -> &'static str {
        match lock {
            RowLock::Nothing => "",
            RowLock::Share => " FOR SHARE",
            RowLock::Update => " FOR UPDATE",
            RowLock::UpdateSkipLocked => " FOR UPDATE SKIP LOCKED",
        }
    }

    fn notify<'a>(&'a mut self, task: &'a str) -> SqlFuture<'a, ()> {
        Box::pin(async move {
            let values = vec![NEWS_CHANNEL.into(), format!("{} {task}", self.mark).into()];
            self.query("SELECT pg_notify($1, $2)", values).await.map(drop)
        })
    }

    fn timeline(&mut self) -> SqlFuture<'_, i64> {
        Box::pin(async move {
            // The first eight digits of a log file's name, which anybody may ask for.
            let rows = self.query("SELECT pg_walfile_name(pg_current_wal_lsn())", Vec::new()).await?;
            let name = rows.first().map(|row| row.text(0)).transpose()?.unwrap_or_default();
            let digits = name.get(..8).unwrap_or_default();
            i64::from_str_radix(digits, 16)
                .map_err(|_| StoreError::Damaged(format!("no timeline in `{name}`")))
        })
    }
}

impl DatabaseBackend for PostgresBackend {
    /// Always on the disk before the answer: hosts on other machines act on it.
    fn run(&self, work: Work, _sync: CommitSync) -> Pin<Box<dyn Future<Output = AnyResult> + Send + '_>> {
        Box::pin(async move {
            let closed = |_| StoreError::Unavailable("the store is closed".to_owned());
            let _permit = self.permits.acquire().await.map_err(closed)?;
            let begun = Instant::now();
            let mut tries = 0;
            loop {
                tries += 1;
                let error = match self.try_once(&work).await {
                    Ok(Err(error)) if error.is_temporary() => error,
                    Ok(result) => {
                        if result.is_ok() && self.is_away.swap(false, Ordering::Relaxed) {
                            tracing::info!("the database is back");
                        }
                        return result;
                    }
                    Err(error) if tries < TRIES && is_worth_another_try(&error) => {
                        tracing::debug!(%error, tries, "a transaction is tried again");
                        tokio::time::sleep(Duration::from_millis(20 << tries)).await;
                        continue;
                    }
                    Err(error) => failure(&error),
                };
                if !error.is_temporary() || begun.elapsed() >= self.options.patience {
                    return Err(error);
                }
                // Said once, and not by everything that waits.
                match self.is_away.swap(true, Ordering::Relaxed) {
                    false => tracing::warn!(%error, "work waits for the database"),
                    true => tracing::debug!(%error, tries, "work waits for the database"),
                }
                tokio::time::sleep(AWAY_PAUSE).await;
            }
        })
    }

    fn news(&self) -> Option<mpsc::Receiver<StoreNews>> {
        let own = Self { mark: self.mark.clone(), ..Self::new(&self.options).ok()? };
        Some(listen(own))
    }

    fn beside(&self) -> Option<Arc<dyn DatabaseBackend>> {
        let options = PostgresOptions { patience: Duration::ZERO, ..self.options.clone() };
        Some(Arc::new(Self { mark: self.mark.clone(), ..Self::new(&options).ok()? }))
    }

    fn leases_expire(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_certificates_and_every_mode() {
        for (address, url, authorities, password_file) in [
            ("postgres://u@h/n", "postgres://u@h/n", None, None),
            ("postgres://u@h/n?sslmode=verify-full", "postgres://u@h/n?sslmode=require", None, None),
            ("postgres://u@h/n?passfile=/p", "postgres://u@h/n", None, Some("/p".to_owned())),
            (
                "postgres://u@h/n?sslrootcert=/etc/ca.pem&sslmode=require&passfile=/p&connect_timeout=3",
                "postgres://u@h/n?sslmode=require&connect_timeout=3",
                Some("/etc/ca.pem".to_owned()),
                Some("/p".to_owned()),
            ),
        ] {
            let split = SplitAddress { url: url.to_owned(), authorities, password_file };
            assert_eq!(split_address(address), split, "{address}");
        }
    }

    #[test]
    fn no_error_repeats_a_password() {
        let options = PostgresOptions {
            url: "postgres://u:hunter2@[::/n".to_owned(),
            password: None,
            tls: None,
            wait_limit: Duration::ZERO,
            patience: Duration::ZERO,
        };
        let error = PostgresBackend::new(&options).map(drop).map_err(|error| error.to_string());
        assert!(error.as_ref().is_err_and(|text| !text.contains("hunter2")), "{error:?}");
    }
}
