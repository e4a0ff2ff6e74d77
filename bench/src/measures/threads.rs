//! Memory of a server at rest, and of each thread.

use std::collections::HashSet;

use anyhow::{Result, ensure};

use crate::command::ServerCommand;
use crate::metrics::{RSS_REST, RSS_THREADS, Sample, THREAD_START};
use crate::proc::resident_mib;
use crate::session::{Bench, milliseconds};

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home()?;
    // A home that has been used: the usual case, and no server is charged for setting one up.
    let mut first = bench.start(command, &home)?;
    first.client.settle(bench.quiet)?;
    first.client.close();

    let mut session = bench.start(command, &home)?;
    session.client.settle(bench.quiet)?;
    let mut samples = vec![RSS_REST.sample(resident_mib(session.client.pid()))];
    let mut ids = HashSet::new();
    for index in 0..bench.workload.threads {
        let (id, time) = session.start_thread()?;
        ids.insert(id);
        // The first one also pays for what all threads share.
        if index > 0 {
            samples.push(THREAD_START.sample(milliseconds(time)));
        }
    }
    ensure!(ids.len() == bench.workload.threads, "two threads have one id");
    session.client.settle(bench.quiet)?;
    samples.push(RSS_THREADS.sample(resident_mib(session.client.pid())));
    session.client.close();
    Ok(samples)
}
