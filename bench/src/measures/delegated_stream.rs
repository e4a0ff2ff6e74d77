//! One turn of very many deltas that the host hands over in acknowledged batches.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use crate::command::ServerCommand;
use crate::flood::Flood;
use crate::hosting::Record;
use crate::metrics::{DELEGATED_CPU, DELEGATED_NOTIFICATIONS, DELEGATED_RATE, DELEGATED_WALL, Sample};
use crate::proc::cpu_seconds;
use crate::session::{Bench, milliseconds};
use crate::sse::Reply;

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let reply = Arc::new(Reply::stream(bench.workload.deltas, None));
    let home = bench.home()?;
    let mut session = bench.start_hosting(command, &home)?;
    let thread = session.start_delegated(Record::Server)?;
    session.client.settle(bench.quiet)?;
    session.client.watch(Flood::new(Arc::clone(&reply.text), [thread.as_str()]));

    let cpu_before = cpu_seconds(session.client.pid());
    let begun = Instant::now();
    let (times, _) = session.hosted_turn(&thread, "go", &[Arc::clone(&reply)])?;
    let cpu = cpu_seconds(session.client.pid()) - cpu_before;
    let flood = session.client.take_flood()?;
    let last = flood.complete()?;
    session.client.close();

    Ok(vec![
        DELEGATED_RATE.sample(reply.deltas as f64 / (last - begun).as_secs_f64()),
        DELEGATED_WALL.sample(milliseconds(times.wall)),
        DELEGATED_CPU.sample(cpu),
        DELEGATED_NOTIFICATIONS.sample(flood.notifications() as f64),
    ])
}
