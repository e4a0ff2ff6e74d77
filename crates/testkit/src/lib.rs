//! Owns what tests of the whole server share: the stage with a server, a client, a scripted model, and a host that
//! carries model requests over JSON-RPC. Must not know how a server works inside, only how it is started and what it
//! sends.
#![allow(clippy::expect_used, reason = "a peer of a test panics where the test must fail")]

mod client;
mod clock;
mod deadline;
mod host;
mod model;
mod outgoing;
mod postgres;
mod process;
mod redact;
mod script;
mod stage;
mod vendor;
mod vendor_answers;
mod vendor_requests;
mod vendor_rules;

pub use crate::model::{ReceivedRequest, ScriptedModel};
pub use client::{RefusedRequest, TestClient, UNKNOWN_THREAD, kinds, text, told, turn, turn_plus};
pub use clock::TestClock;
pub use deadline::{WAIT_LIMIT, until, until_in, within};
pub use host::{Counts, ScriptedHost};
pub use model_http::{OfflineModel, Wire};
pub use postgres::PostgresServer;
pub use process::{EndInTime, LinesInTime, RunInTime, in_time};
pub use redact::Redactor;
pub use script::{Answer, Ending, Manners, text_response};
pub use stage::{PLANTED, Stage, TestServer, endless};
pub use vendor::{VendorServer, call_event, completed_event, text_event};
