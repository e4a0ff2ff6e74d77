//! `initialize`, and several connections to one server.

mod initialize;
mod several_clients;
