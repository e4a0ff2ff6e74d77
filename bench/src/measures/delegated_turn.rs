//! Time added to a turn when the host carries the model's traffic.

use std::sync::Arc;

use anyhow::{Context, Result};

use crate::command::ServerCommand;
use crate::hosting::Record;
use crate::metrics::{DELEGATED_TURN, DELEGATED_TURN_DIRECT, DELEGATED_TURN_RATIO, Metric, Sample};
use crate::session::Bench;
use crate::sse::Reply;
use crate::stats::median;

/// Delegated and direct turns by turns on one server, so that both find it in the same state.
pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home()?;
    let mut session = bench.start_hosting(command, &home)?;
    let delegated_thread = session.start_delegated(Record::Server)?;
    let (direct_thread, _) = session.start_thread()?;
    let reply = Arc::new(Reply::message("ok"));
    let (mut delegated, mut direct) = (Vec::new(), Vec::new());
    for number in 0..=bench.workload.turns {
        let (hosted, _) = session.hosted_turn(&delegated_thread, "hi", &[Arc::clone(&reply)])?;
        let plain = bench.turn(&mut session, &direct_thread, "hi", &reply)?;
        // The first turns pay for what later ones share; they only warm up.
        if number > 0 {
            delegated.push(hosted.net());
            direct.push(plain.net());
        }
    }
    session.client.close();
    let none = "no turn was measured";
    let ratio = median(&delegated).context(none)? / median(&direct).context(none)?;
    let all = |metric: &'static Metric, values: &[f64]| -> Vec<Sample> {
        values.iter().map(|value| metric.sample(*value)).collect()
    };
    let mut samples = all(&DELEGATED_TURN, &delegated);
    samples.extend(all(&DELEGATED_TURN_DIRECT, &direct));
    samples.push(DELEGATED_TURN_RATIO.sample(ratio));
    Ok(samples)
}
