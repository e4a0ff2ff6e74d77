//! Owns durable tasks: each one a root thread whose records, inputs and decisions are in the store, and whose runtime is a
//! process that is started, ended and brought back as needed. Must not know prompts, tools or how turns work, nor how
//! clients connect.

mod append;
mod carrier;
mod clients;
mod counters;
mod driver;
mod early;
mod error;
mod guard;
mod handshake;
mod ids;
mod keeper;
mod lease;
mod messages;
mod methods;
mod numbers;
mod open_runtime;
mod operations;
mod options;
mod owners;
mod placing;
mod pump;
mod resync;
mod seen_limits;
mod settings;
mod shared;
mod streams;
mod task_host;
mod views;

use runtime_link as link;

pub use clients::{
    BoxFuture, CarrierAnswer, ClientReply, HostClients, ToolCallEnd, ToolProvider, WantedTool,
};
pub use error::TaskError;
pub use host_limits::HostLimits;
pub use lease::ReplicaOptions;
pub use link::{LinkAnswer, OrderedAnswer, RuntimeClient};
pub use methods::{JoinReply, ResumeManner, ThreadPageOfHost};
pub use numbers::{AppendTimes, HostNumbers};
pub use options::{CarriedProvider, ClientTransports, HostOptions};
pub use owners::TaskOwner;
pub use placements::FileRequest;
pub use placing::{PLACED, PlaceOptions, ProjectedHome, SecretLookup, names_placement};
pub use resync::ThreadStanding;
pub use runtime_link::{LaunchRequest, LocalLauncher, RuntimeEnd, RuntimeLauncher, RuntimeProcess};
pub use task::{BatchResponder, ClientStreamError, HeardTurn, TaskTimes, UnfinishedItems};
pub use task_host::TaskHost;
