//! Memory and time that a command with very much output costs the server.

use anyhow::Result;

use crate::command::ServerCommand;
use crate::metrics::{OUTPUT_GROWTH, OUTPUT_WALL, Sample};
use crate::proc;
use crate::session::{Bench, milliseconds};

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home()?;
    let mut session = bench.start(command, &home)?;
    let (thread, _) = session.start_thread()?;
    // A first command costs memory whatever it writes; that is not part of the growth.
    bench.command_turn(&mut session, &thread, 0, "true")?;
    session.client.settle(bench.quiet)?;

    // The server proper: neither what starts it nor the command is charged to it.
    let server = proc::executable(session.client.pid())?.pid;
    let rest = proc::forget_peak(server)?;
    let writes = format!("head -c {} /dev/zero | tr '\\0' x", bench.workload.output_bytes);
    let times = bench.command_turn(&mut session, &thread, 1, &writes)?;
    let growth = proc::peak_mib(server)? - rest;
    session.client.close();
    Ok(vec![OUTPUT_GROWTH.sample(growth.max(0.0)), OUTPUT_WALL.sample(milliseconds(times.wall))])
}
