//! Taking up a long thread in a process that has not seen it.

use anyhow::Result;
use serde_json::json;

use crate::command::ServerCommand;
use crate::metrics::{RESUME, Sample};
use crate::session::Bench;
use crate::store::{Store, check_long_thread};

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand, store: &Store) -> Result<Vec<Sample>> {
    let mut session = bench.start(command, &store.home)?;
    session.client.settle(bench.quiet)?;
    let (time, result) = session.timed_call("thread/resume", &json!({"threadId": store.long_thread}))?;
    check_long_thread(&bench.workload, &result["thread"])?;
    session.client.close();
    Ok(vec![RESUME.sample(time)])
}
