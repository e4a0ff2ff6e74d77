//! `command/exec*`: commands of a connection, outside any thread.

use std::sync::Arc;

use command_exec::{ClientCommands, CommandSettings};

use crate::runtime::Runtime;
use crate::step::tool_settings::variables;

impl Runtime {
    /// The commands of one connection.
    pub fn client_commands(&self) -> ClientCommands {
        let state = self.state.clone();
        ClientCommands::new(CommandSettings {
            loader: self.loader().clone(),
            off_limits: Arc::new(move |config| state.off_limits(config)),
            variables: || variables().collect(),
        })
    }
}
