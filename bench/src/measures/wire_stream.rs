//! One turn of very many deltas over each wire: how fast they get through.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use crate::command::ServerCommand;
use crate::flood::Flood;
use crate::metrics::{
    Metric, Sample, WIRE_STREAM_CHAT, WIRE_STREAM_MESSAGES, WIRE_STREAM_RESPONSES, WIRE_STREAM_SHARE,
};
use crate::session::Bench;
use crate::sse::{MockWire, Reply};

fn metric(wire: MockWire) -> &'static Metric {
    match wire {
        MockWire::Responses => &WIRE_STREAM_RESPONSES,
        MockWire::Chat => &WIRE_STREAM_CHAT,
        MockWire::Messages => &WIRE_STREAM_MESSAGES,
    }
}

/// One after the other on one server, each after a short turn that warms up.
pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home_with_wires()?;
    let mut session = bench.start(command, &home)?;
    let mut rates = Vec::new();
    for wire in MockWire::ALL {
        let reply = Arc::new(Reply::streamed(wire, bench.workload.deltas, bench.chunk));
        let thread = session.start_thread_on(wire)?;
        bench.turn(&mut session, &thread, "hi", &Arc::new(Reply::said(wire, "ok")))?;
        session.client.settle(bench.quiet)?;
        session.client.watch(Flood::new(Arc::clone(&reply.text), [thread.as_str()]));
        let begun = Instant::now();
        bench.turn(&mut session, &thread, "go", &reply)?;
        let last = session.client.take_flood()?.complete()?;
        rates.push((wire, reply.deltas as f64 / (last - begun).as_secs_f64()));
    }
    session.client.close();
    let rate_of = |wanted: fn(MockWire) -> bool| {
        let rates = rates.iter().filter(|(wire, _)| wanted(*wire)).map(|(_, rate)| *rate);
        rates.fold(f64::MAX, f64::min)
    };
    let (slower, responses) =
        (rate_of(|wire| wire != MockWire::Responses), rate_of(|wire| wire == MockWire::Responses));
    let samples = rates.iter().map(|(wire, rate)| metric(*wire).sample(*rate));
    Ok(samples.chain([WIRE_STREAM_SHARE.sample(slower / responses)]).collect())
}
