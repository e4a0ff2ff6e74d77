//! Time that a server adds to that of the model, over each wire.

use std::sync::Arc;

use anyhow::{Context, Result};

use crate::command::ServerCommand;
use crate::metrics::{
    Metric, Sample, WIRE_TURN_CHAT, WIRE_TURN_EXTRA, WIRE_TURN_MESSAGES, WIRE_TURN_RESPONSES,
};
use crate::session::Bench;
use crate::sse::{MockWire, Reply};
use crate::stats::median;

fn metric(wire: MockWire) -> &'static Metric {
    match wire {
        MockWire::Responses => &WIRE_TURN_RESPONSES,
        MockWire::Chat => &WIRE_TURN_CHAT,
        MockWire::Messages => &WIRE_TURN_MESSAGES,
    }
}

/// A thread for each wire on one server, turn by turn, so that all find it in the same state.
pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home_with_wires()?;
    let mut session = bench.start(command, &home)?;
    let mut threads = Vec::new();
    for wire in MockWire::ALL {
        threads.push((wire, session.start_thread_on(wire)?, Arc::new(Reply::said(wire, "ok"))));
    }
    let mut times = [const { Vec::new() }; 3];
    for number in 0..=bench.workload.turns {
        for ((_, thread, reply), times) in threads.iter().zip(&mut times) {
            let net = bench.turn(&mut session, thread, "hi", reply)?.net();
            // The first turns pay for what later ones share; they only warm up.
            if number > 0 {
                times.push(net);
            }
        }
    }
    session.client.close();
    let [responses, chat, messages] = times.each_ref().map(|times| median(times));
    let responses = responses.context("no turn was measured")?;
    let slower = chat.into_iter().chain(messages).fold(f64::MIN, f64::max);
    let samples = threads.iter().zip(&times);
    let samples =
        samples.flat_map(|((wire, ..), times)| times.iter().map(|time| metric(*wire).sample(*time)));
    Ok(samples.chain([WIRE_TURN_EXTRA.sample(slower - responses)]).collect())
}
