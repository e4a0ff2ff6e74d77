//! The server's face for a host: the same transports, connections and subscriptions, with tasks behind them instead of a
//! runtime in this process.

mod app;
mod carriers;
mod clients;
mod handlers;
mod numbers;
mod pages;
mod placed;
mod placements;
mod providers;
mod resync;
mod routes;

pub(crate) use app::ALL_TASKS;
pub use app::HostApp;
pub(crate) use carriers::ModelCarriers;
pub use clients::HubClients;
pub(crate) use providers::ToolProviders;
pub(crate) use resync::resync;
#[cfg(test)]
pub(crate) use routes::LOCAL;
pub use routes::host_routes;
