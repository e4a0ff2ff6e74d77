//! Owns what a server does as a service of the system: its log lines on standard error, and its messages to the service
//! manager. Must not know what is served.

mod logging;
mod manager;

pub use logging::{LogFormat, OPEN_TARGET, STORE_TARGET, init_logging, init_logging_as, logs_json};
pub use manager::{Announced, announce_ready};
