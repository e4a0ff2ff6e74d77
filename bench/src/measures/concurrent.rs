//! Many threads that stream at once.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use crate::command::ServerCommand;
use crate::flood::Flood;
use crate::metrics::{CONCURRENT_CPU, CONCURRENT_WALL, Sample};
use crate::proc::cpu_seconds;
use crate::session::{Bench, milliseconds};
use crate::sse::Reply;

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let streams = bench.workload.streams;
    let reply = Arc::new(Reply::stream(bench.workload.deltas_per_stream, bench.chunk));
    bench.mock.serve(Arc::clone(&reply));
    let home = bench.home()?;
    let mut session = bench.start(command, &home)?;
    let threads = (0..streams).map(|_| Ok(session.start_thread()?.0)).collect::<Result<Vec<String>>>()?;
    session.client.settle(bench.quiet)?;
    session.client.watch(Flood::new(Arc::clone(&reply.text), threads.iter().map(String::as_str)));

    let (cpu_before, served_before) = (cpu_seconds(session.client.pid()), bench.mock.served());
    let begun = Instant::now();
    let requests =
        threads.iter().map(|thread| session.begin_turn(thread, "go")).collect::<Result<Vec<u64>>>()?;
    let mut last = begun;
    for (thread, request) in threads.iter().zip(requests) {
        last = last.max(session.end_turn(thread, request, &reply)?);
    }
    let cpu = cpu_seconds(session.client.pid()) - cpu_before;
    bench.mock.served_since(served_before, streams)?;
    session.client.take_flood()?.complete()?;
    session.client.close();
    Ok(vec![CONCURRENT_WALL.sample(milliseconds(last - begun)), CONCURRENT_CPU.sample(cpu)])
}
