//! The binary as people and programs meet it: its words, its files and its exit codes.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod commands;
mod debug;
mod demo;
mod exec;
mod failures;
mod generate;
mod host;
mod host_access;
mod host_children;
mod host_tools;
mod management;
mod mcp;
mod mcp_server;
mod offline_model;
mod operations;
mod placement_losses;
mod placement_sites;
mod placements;
mod plugins;
mod policy;
mod providers;
mod recorder;
mod relay;
mod replicas;
mod requests;
mod responses_bridge;
mod resume;
mod safety;
mod sandbox;
mod strange;
mod support;
mod terminal;
mod wire_scenarios;
mod wires;
mod work;
