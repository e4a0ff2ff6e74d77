//! How long a client waits before it can say anything.

use anyhow::Result;

use crate::command::ServerCommand;
use crate::metrics::{INITIALIZE_FRESH, INITIALIZE_USED, Sample};
use crate::session::{Bench, milliseconds};

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let home = bench.home()?;
    let mut first = bench.start(command, &home)?;
    let fresh = milliseconds(first.initialize);
    // Work that a server does for a new home after its answer must end before the second start.
    first.client.settle(bench.quiet)?;
    first.client.close();
    let second = bench.start(command, &home)?;
    let used = milliseconds(second.initialize);
    second.client.close();
    Ok(vec![INITIALIZE_FRESH.sample(fresh), INITIALIZE_USED.sample(used)])
}
