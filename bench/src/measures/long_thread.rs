//! Time that a server adds to that of the model while a thread grows.

use std::sync::Arc;

use anyhow::{Context, Result};

use crate::command::ServerCommand;
use crate::metrics::{
    LONG_THREAD_FRESH, LONG_THREAD_GROWTH, LONG_THREAD_LARGE, LONG_THREAD_TURNS, Metric, Sample,
};
use crate::session::{Bench, Session};
use crate::sse::{MockWire, Reply};
use crate::stats::median;

/// Turns that bring a thread from the first size to the second.
const LARGE_TURNS: usize = 20;

/// A thread over each wire, measured when it is fresh, after many turns, and when it is large.
pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home_with_wires()?;
    let mut session = bench.start(command, &home)?;
    let mut samples = Vec::new();
    let mut worst = f64::MIN;
    for wire in MockWire::ALL {
        let mut thread = GrowingThread { bench, wire, id: session.start_thread_on(wire)?, bytes: 0 };
        // The first turn pays for what later ones share; it only warms up.
        thread.grow(&mut session, 1, 100)?;
        let (fresh, _) = thread.measure(&mut session, &LONG_THREAD_FRESH, &mut samples)?;
        let workload = &bench.workload;
        for (metric, turns, bytes) in [
            (&LONG_THREAD_TURNS, workload.history_turns, workload.history_bytes),
            (&LONG_THREAD_LARGE, LARGE_TURNS, workload.large_history_bytes),
        ] {
            let more = bytes.saturating_sub(thread.bytes);
            thread.grow(&mut session, turns, more)?;
            let (time, megabytes) = thread.measure(&mut session, metric, &mut samples)?;
            worst = worst.max((time - fresh) / megabytes);
        }
    }
    session.client.close();
    samples.push(LONG_THREAD_GROWTH.sample(worst));
    Ok(samples)
}

struct GrowingThread<'bench> {
    bench: &'bench Bench<'bench>,
    wire: MockWire,
    id: String,
    /// Bytes of the answers in it so far.
    bytes: usize,
}

impl GrowingThread<'_> {
    /// Adds this many turns, whose answers have this many bytes in all.
    fn grow(&mut self, session: &mut Session, turns: usize, bytes: usize) -> Result<()> {
        let said = "All is well. ".repeat((bytes / turns).div_ceil(13));
        let reply = Arc::new(Reply::said(self.wire, said.trim_end()));
        for _ in 0..turns {
            self.bench.turn(session, &self.id, "go on", &reply)?;
        }
        self.bytes += turns * said.len();
        Ok(())
    }

    /// The median of some short turns, and the history they were made with in MB.
    fn measure(
        &mut self,
        session: &mut Session,
        metric: &'static Metric,
        samples: &mut Vec<Sample>,
    ) -> Result<(f64, f64)> {
        let reply = Arc::new(Reply::said(self.wire, "ok"));
        let mut times = Vec::new();
        for _ in 0..self.bench.workload.turns {
            times.push(self.bench.turn(session, &self.id, "hi", &reply)?.net());
        }
        samples.extend(times.iter().map(|time| metric.sample(*time)));
        Ok((median(&times).context("no turn was measured")?, self.bytes as f64 / 1e6))
    }
}
