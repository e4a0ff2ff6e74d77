//! Owns what a server does as a service of the system: its log lines on standard error, its last one where a defect
//! ends it, and its messages to the service manager. Must not know what is served.

mod crash;
mod logging;
mod manager;

pub use crash::abort_on_panic;
pub use logging::{LogFormat, OPEN_TARGET, STORE_TARGET, init_logging, init_logging_as, logs_json};
pub use manager::{Announced, announce_ready};
