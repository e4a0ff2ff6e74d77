//! Postgres: a pool of connections, shared by any number of hosts.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};

use super::postgres_tls::TlsConnector;
use super::{AnyResult, DatabaseBackend, RowLock, SqlFuture, SqlRow, SqlValue, Transaction, Work};
use crate::error::StoreError;

/// Connections of one host, at most.
const CONNECTIONS: usize = 8;
/// All waits for the database stay under a third of a lease, so that a host notices in time that it lost its lease.
const STATEMENT_LIMIT: Duration = Duration::from_secs(4);
const CONNECT_LIMIT: Duration = Duration::from_secs(4);
/// Tries of work that lost to another transaction, or whose connection broke.
const TRIES: u32 = 4;

/// How to reach the database.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://…` or `host=… user=…`.
    pub url: String,
    /// Used unless the address says `sslmode=disable`.
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_struct("PostgresOptions").finish_non_exhaustive()
    }
}

pub(crate) struct PostgresBackend {
    config: Config,
    tls: Option<Arc<rustls::ClientConfig>>,
    idle: Mutex<Vec<Client>>,
    permits: Semaphore,
}

impl fmt::Debug for PostgresBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBackend").finish_non_exhaustive()
    }
}

impl PostgresBackend {
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self, StoreError> {
        // The parser's own message may repeat the address with its password.
        let wrong = || {
            StoreError::Database(
                "the address of the database cannot be read; write it as postgres://USER@HOST/NAME"
                    .to_owned(),
            )
        };
        let mut config = Config::from_str(&options.url).map_err(|_| wrong())?;
        config.connect_timeout(CONNECT_LIMIT).tcp_user_timeout(STATEMENT_LIMIT).application_name("oarlock");
        Ok(Self {
            config,
            tls: options.tls.clone(),
            idle: Mutex::default(),
            permits: Semaphore::new(CONNECTIONS),
        })
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
            limit = STATEMENT_LIMIT.as_millis()
        );
        client.batch_execute(&setup).await.map_err(|error| failure(&error))?;
        Ok(client)
    }

    async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        let plain = self.config.get_ssl_mode() == SslMode::Disable;
        match self.tls.as_ref().filter(|_| !plain) {
            Some(tls) => {
                let (client, connection) = self.config.connect(TlsConnector::new(Arc::clone(tls))).await?;
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
        let mut running = PostgresTransaction { transaction: &transaction, broken: None };
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

struct PostgresTransaction<'a, 'c> {
    transaction: &'a tokio_postgres::Transaction<'c>,
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
            RowLock::Share => " FOR SHARE",
            RowLock::Update => " FOR UPDATE",
            RowLock::UpdateSkipLocked => " FOR UPDATE SKIP LOCKED",
        }
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
    fn run(&self, work: Work) -> Pin<Box<dyn Future<Output = AnyResult> + Send + '_>> {
        Box::pin(async move {
            let closed = |_| StoreError::Unavailable("the store is closed".to_owned());
            let _permit = self.permits.acquire().await.map_err(closed)?;
            let mut tries = 0;
            loop {
                tries += 1;
                match self.try_once(&work).await {
                    Ok(result) => return result,
                    Err(error) if tries < TRIES && is_worth_another_try(&error) => {
                        tracing::debug!(%error, tries, "a transaction is tried again");
                        tokio::time::sleep(Duration::from_millis(20 << tries)).await;
                    }
                    Err(error) => return Err(failure(&error)),
                }
            }
        })
    }

    fn leases_expire(&self) -> bool {
        true
    }
}
