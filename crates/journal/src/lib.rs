//! Owns the append-only record of a thread, the history rebuilt from it, and the index of all threads.
//! Must not know transports, the async runtime, or what a turn decides.

mod batch;
mod committer;
mod damage;
mod disk;
mod error;
mod event;
mod facts;
mod history;
mod holder;
mod index;
mod journal_file;
mod layout;
mod line;
mod lock;
mod operations;
mod queue;
mod reader;
mod record;
mod row;
mod salvage;
mod scan;
mod store;
mod tag_first;
mod thread_journal;
mod time;
mod turn_builder;
mod writer;

pub use batch::Batch;
pub use committer::Committer;
pub use damage::{Damage, DamageReport, What};
pub use disk::{Disk, RealDisk, Stat};
pub use error::JournalError;
pub use event::{Observer, RebuildReason, StoreEvent};
pub use facts::Summary;
pub use history::{History, HistoryBuilder};
pub use holder::Holder;
pub use index::{ListQuery, Page};
pub use operations::OpenOperation;
pub use queue::Appended;
pub use reader::{Contents, ReadOptions, ReadSummary, read, read_each};
pub use record::{Entry, Foreign, Record};
pub use row::ThreadRow;
pub use store::{ReadThread, Resumed, Store, StoreOptions, read_history_file};
pub use thread_journal::ThreadJournal;
pub use writer::{Recovery, Writer, WriterOptions};
