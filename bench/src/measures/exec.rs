//! Time that a server adds to that of the model and a command.

use anyhow::Result;

use crate::command::ServerCommand;
use crate::home::SandboxMode;
use crate::metrics::{EXEC, SANDBOXED_EXEC, Sample};
use crate::session::{Bench, milliseconds};

/// Does nothing, so that what is measured is the way to it and back.
const COMMAND: &str = "true";

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand, sandbox: SandboxMode) -> Result<Vec<Sample>> {
    let metric = match sandbox {
        SandboxMode::FullAccess => &EXEC,
        SandboxMode::WorkspaceWrite => &SANDBOXED_EXEC,
    };
    let home = bench.home_with(sandbox)?;
    let mut session = bench.start(command, &home)?;
    let (thread, _) = session.start_thread()?;
    // The first turn pays for what later ones share; it only warms up.
    bench.command_turn(&mut session, &thread, 0, COMMAND)?;
    let mut samples = Vec::new();
    for number in 1..=bench.workload.execs {
        let times = bench.command_turn(&mut session, &thread, number, COMMAND)?;
        samples.push(metric.sample(milliseconds(times.wall.saturating_sub(times.inside_the_model))));
    }
    session.client.close();
    Ok(samples)
}
