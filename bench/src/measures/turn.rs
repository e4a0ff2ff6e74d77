//! What a server adds to the time the model takes.

use std::sync::Arc;

use anyhow::Result;

use crate::command::ServerCommand;
use crate::metrics::{Sample, TURN};
use crate::session::{Bench, milliseconds};
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
        samples.push(TURN.sample(milliseconds(times.wall.saturating_sub(times.inside_the_model))));
    }
    session.client.close();
    Ok(samples)
}
