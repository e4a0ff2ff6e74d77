//! One turn of very many deltas: how fast they get through, and what that costs.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use crate::command::ServerCommand;
use crate::flood::Flood;
use crate::metrics::{STREAM_CPU, STREAM_NOTIFICATIONS, STREAM_RATE, STREAM_WALL, Sample};
use crate::proc::cpu_seconds;
use crate::session::{Bench, milliseconds};
use crate::sse::Reply;

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let reply = Arc::new(Reply::stream(bench.workload.deltas, bench.chunk));
    let home = bench.home()?;
    let mut session = bench.start(command, &home)?;
    let (thread, _) = session.start_thread()?;
    session.client.settle(bench.quiet)?;
    session.client.watch(Flood::new(Arc::clone(&reply.text), [thread.as_str()]));

    let cpu_before = cpu_seconds(session.client.pid());
    let begun = Instant::now();
    let times = bench.turn(&mut session, &thread, "go", &reply)?;
    let cpu = cpu_seconds(session.client.pid()) - cpu_before;
    let flood = session.client.take_flood()?;
    let last = flood.complete()?;
    session.client.close();

    // Deltas of the model: a server that merges them is not slower for sending fewer notifications.
    let rate = reply.deltas as f64 / (last - begun).as_secs_f64();
    Ok(vec![
        STREAM_RATE.sample(rate),
        STREAM_WALL.sample(milliseconds(times.wall)),
        STREAM_CPU.sample(cpu),
        STREAM_NOTIFICATIONS.sample(flood.notifications() as f64),
    ])
}
