//! Time that a server adds to that of the model.

use std::sync::Arc;

use anyhow::Result;

use crate::command::ServerCommand;
use crate::metrics::{Sample, TURN};
use crate::session::Bench;
use crate::sse::Reply;

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home()?;
    let mut session = bench.start(command, &home)?;
    let (thread, _) = session.start_thread()?;
    let reply = Arc::new(Reply::message("ok"));
    // The first turn pays for what later ones share; it only warms up.
    bench.turn(&mut session, &thread, "hi", &reply)?;
    let mut samples = Vec::new();
    for _ in 0..bench.workload.turns {
        let times = bench.turn(&mut session, &thread, "hi", &reply)?;
        samples.push(TURN.sample(times.net()));
    }
    session.client.close();
    Ok(samples)
}
