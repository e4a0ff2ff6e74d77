//! The server's face for a host: the same transports, connections and subscriptions, with tasks behind them instead of a
//! runtime in this process.

mod app;
mod clients;
mod handlers;
mod placements;
mod providers;
mod routes;

pub use app::HostApp;
pub use clients::HubClients;
pub use routes::host_routes;
