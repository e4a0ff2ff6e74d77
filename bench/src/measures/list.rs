//! Going through everything that is stored.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::command::ServerCommand;
use crate::metrics::{LIST_ALL, LIST_FIRST, LIST_PER_100, LISTED, Sample};
use crate::session::{Bench, Session};
use crate::store::Store;

/// The most a page may hold.
const PAGE: usize = 100;

pub(crate) fn run(bench: &Bench<'_>, command: &ServerCommand, store: &Store) -> Result<Vec<Sample>> {
    let mut session = bench.start(command, &store.home)?;
    session.client.settle(bench.quiet)?;
    let stored = bench.workload.stored_in_all();
    let (first, page) = session.timed_call("thread/list", &json!({"limit": 50}))?;
    let (all, listed) = all_pages(&mut session, stored)?;
    let shown = ids(&page)?.len();
    ensure!(shown == listed.min(50), "the first page holds {shown} threads of {listed}");
    session.client.close();
    Ok(vec![
        LIST_FIRST.sample(first),
        LIST_ALL.sample(all),
        LIST_PER_100.sample(all / listed as f64 * 100.0),
        LISTED.sample(listed as f64),
    ])
}

/// Milliseconds spent waiting for pages, and how many different threads they held. That can be fewer than are
/// stored, which is for the reader of the report to see, but not more.
fn all_pages(session: &mut Session, stored: usize) -> Result<(f64, usize)> {
    let (mut total, mut seen, mut cursor) = (0.0, HashSet::new(), Value::Null);
    for _ in 0..stored.div_ceil(PAGE) * 2 + 2 {
        let params = json!({"limit": PAGE, "cursor": cursor});
        let (time, mut page) = session.timed_call("thread/list", &params)?;
        total += time;
        seen.extend(ids(&page)?);
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            ensure!(!seen.is_empty() && seen.len() <= stored, "{} threads listed of {stored}", seen.len());
            return Ok((total, seen.len()));
        }
    }
    anyhow::bail!("thread/list does not come to an end")
}

fn ids(page: &Value) -> Result<Vec<String>> {
    let data = page["data"].as_array().context("thread/list gave no data")?;
    Ok(data.iter().filter_map(|thread| thread["id"].as_str()).map(str::to_owned).collect())
}
