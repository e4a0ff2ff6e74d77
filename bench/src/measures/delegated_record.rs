//! Time added to a turn when the host keeps the record and the server waits for acknowledgements.

use anyhow::{Context, Result, ensure};

use crate::command::ServerCommand;
use crate::hosting::Record;
use crate::metrics::{RECORD_BARRIER, RECORD_BARRIERS, RECORD_TURN, RECORD_TURN_WITHOUT, Sample};
use crate::session::{Bench, check_success, command_replies, milliseconds};
use crate::stats::{Better, summarise};

/// A difference needs more turns than a time: it is small, and running a command takes now longer and now shorter.
const ROUNDS: usize = 3;

/// Turns with and without a record by turns on one server. One command in each, for the barriers around an
/// effect. The host acknowledges at once, and the little it needs for that is charged to the server.
pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home()?;
    let mut session = bench.start_hosting(command, &home)?;
    let kept = session.start_delegated(Record::Host)?;
    let unkept = session.start_delegated(Record::Nowhere)?;
    let (mut with, mut without, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..=bench.workload.execs * ROUNDS {
        let (call_id, replies) = command_replies(number, "true");
        for (thread, times) in [(&kept, &mut with), (&unkept, &mut without)] {
            let (turn, barriers) = session.hosted_turn(thread, "run it", &replies)?;
            check_success(&session.client.host()?.last_body, &call_id)?;
            ensure!((barriers > 0) == (*thread == kept), "{barriers} barriers");
            // The first turns pay for what later ones share; they only warm up.
            if number > 0 {
                times.push(milliseconds(turn.wall.saturating_sub(turn.inside_the_model)));
                counts.extend((barriers > 0).then_some(barriers as f64));
            }
        }
    }
    session.client.close();
    let median = |values: &[f64]| summarise(values, Better::Lower).map(|summary| summary.median);
    let medians = median(&with).zip(median(&without)).zip(median(&counts));
    let ((kept, unkept), barriers) = medians.context("no turn was measured")?;
    let mut samples: Vec<Sample> = with.iter().map(|value| RECORD_TURN.sample(*value)).collect();
    samples.extend(without.iter().map(|value| RECORD_TURN_WITHOUT.sample(*value)));
    samples.push(RECORD_BARRIERS.sample(barriers));
    samples.push(RECORD_BARRIER.sample(((kept - unkept) / barriers).max(0.0)));
    Ok(samples)
}
