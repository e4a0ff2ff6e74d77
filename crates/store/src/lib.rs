//! Owns the durable state of a host: tasks and their records, the inbox, operations with their decisions and attempts,
//! finished model streams, usage, leases, placements and the audit trail, on SQLite or Postgres. Must not know
//! runtimes, turns or connections.
//!
//! Every operation is one function over a [`backend::Transaction`], written once. A backend only runs transactions:
//! SQLite on one writer thread with group commit, Postgres on a pool of connections.

mod adoption;
mod audit;
mod backend;
mod choice;
mod counts;
mod decision;
mod error;
mod inbox;
mod leases;
mod migrations;
mod model_streams;
mod operations;
mod placement_rows;
mod records;
mod runtimes;
mod store;
mod tasks;
mod usage;

pub use adoption::{ReplicaRow, TaskOwner};
pub use audit::{AuditEntry, AuditFilter, AuditPage, AuditRow, AuditedChange};
pub use backend::{PasswordSources, PostgresOptions, SqliteOptions, StoreClock, StoreNews};
pub use choice::StoreChoice;
pub use counts::StoreCounts;
pub use decision::{DecidedOperation, DecisionRow, OwnDecision};
pub use error::StoreError;
pub use inbox::{InboxEntry, InboxPut, InboxRow, InboxState};
pub use leases::{LeaseGrant, ReplicaIdentity, ReplicaLease, TaskLease};
pub use model_streams::StoredStream;
pub use operations::{
    AttemptRow, AttemptStart, DecisionOutcome, DecisionRequest, OperationFilter, OperationRow,
    OperationRowState,
};
pub use placement_rows::PlacementRow;
pub use records::{AppendReceipt, NewRecord, StoredRecord};
pub use store::TaskStore;
pub use tasks::{
    NewTask, TaskChange, TaskCreation, TaskFilter, TaskOrder, TaskPage, TaskRow, TaskState,
    parse_task_cursor, task_cursor,
};
pub use usage::{UsageFilter, UsageGroup, UsageRow, UsageTotal};
