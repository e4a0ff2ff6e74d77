//! Hosts that send without pause and do not do their part: what that costs the server.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::command::ServerCommand;
use crate::host::Keeping;
use crate::hosting::Record;
use crate::metrics::{
    Metric, Sample, UNACKNOWLEDGED_GROWTH, UNACKNOWLEDGED_PUSHED, UNREAD_GROWTH, UNREAD_PUSHED,
};
use crate::outgoing::batch;
use crate::proc;
use crate::session::{Bench, Session};
use crate::sse::{self, Reply};

/// Bytes of text in each event, and how many events are in a batch: of both kinds half of the flood is made.
const KINDS: [(usize, usize); 2] = [(8 * 1024, 8), (512 * 1024, 1)];

/// Bytes in a microsecond while the server is to take all of them: as a fast provider sends.
const PACE: usize = 20;
/// Bytes sent at that pace. More than a server has any use for.
const PACED: usize = 32_000_000;

/// A server that takes nothing for so long takes nothing more.
const STUCK: Duration = Duration::from_millis(500);

/// A batch that is not answered by then is not going to be soon.
const HELD: Duration = Duration::from_millis(100);

/// A stream that the host has accepted and not begun, and what the server's memory is then.
struct Opened {
    session: Session,
    of: (String, String),
    server: u32,
    rest: f64,
}

impl Opened {
    fn new(bench: &Bench<'_>, mut session: Session, record: Record) -> Result<Self> {
        let thread = session.start_delegated(record)?;
        // A first turn costs memory whatever it contains; that is not part of the growth.
        session.hosted_turn(&thread, "hi", &[Reply::message("ok").into()])?;
        session.client.settle(bench.quiet)?;
        session.client.host()?.serve_in_turn(&[Reply::nothing().into()]);
        let server = proc::executable(session.client.pid())?.pid;
        let rest = proc::forget_peak(server)?;
        session.begin_turn(&thread, "go")?;
        let of = session.client.model_request()?;
        Ok(Self { session, of, server, rest })
    }

    fn growth(&self) -> Result<f64> {
        Ok((proc::peak_mib(self.server)? - self.rest).max(0.0))
    }

    fn batch(&mut self, seq: usize, events: &[String]) -> (u64, String) {
        let (id, mut line) = (self.session.client.take_id(), String::new());
        batch(&mut line, id, (&self.of.0, &self.of.1), seq, events);
        (id, line)
    }
}

/// The host reads nothing from the first event on, so it cannot know what credit it has. First it sends as fast as a
/// provider does, then as fast as it can, until it has sent all or the server takes nothing more.
pub(crate) fn unread(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let kinds = KINDS.map(|(length, count)| flood_unread(bench, command, &"x".repeat(length), count));
    both(kinds, (&UNREAD_GROWTH, &UNREAD_PUSHED))
}

/// The host keeps the record and acknowledges no append of it from the first event on. It sends what it gets credit
/// for, and when there is none it sends the next batch again and again.
pub(crate) fn unacknowledged(bench: &Bench<'_>, command: &ServerCommand) -> Result<Vec<Sample>> {
    let kinds = KINDS.map(|(length, count)| flood_unacknowledged(bench, command, &"x".repeat(length), count));
    both(kinds, (&UNACKNOWLEDGED_GROWTH, &UNACKNOWLEDGED_PUSHED))
}

/// The growth of the worse one, and what was sent in both.
fn both(kinds: [Result<Cost>; 2], metrics: (&'static Metric, &'static Metric)) -> Result<Vec<Sample>> {
    let [first, second] = kinds;
    let (first, second) = (first?, second?);
    Ok(vec![
        metrics.0.sample(first.growth.max(second.growth)),
        metrics.1.sample((first.pushed + second.pushed) as f64 / 1e6),
    ])
}

struct Cost {
    /// MiB.
    growth: f64,
    /// Bytes.
    pushed: usize,
}

fn flood_unread(bench: &Bench<'_>, command: &ServerCommand, text: &str, count: usize) -> Result<Cost> {
    let home = bench.home()?;
    let mut opened = Opened::new(bench, bench.start_hosting(command, &home)?, Record::Server)?;
    let gate = opened.session.client.reading();
    let unread = gate.lock();
    opened.session.client.stop_waiting()?;
    let events = vec![sse::delta("msg_0", text).to_string(); count];
    let (_, mut line) = opened.batch(0, &[sse::item_added("msg_0").to_string()]);
    let (mut pushed, mut number) = (0, 0);
    while pushed < bench.workload.flood_bytes / KINDS.len() {
        let taken = write_until_stuck(&mut opened.session, line.as_bytes())?;
        pushed += taken;
        if taken < line.len() {
            break;
        }
        if pushed < PACED {
            thread::sleep(Duration::from_micros((taken / PACE) as u64));
        }
        line = opened.batch(1 + number * count, &events).1;
        number += 1;
    }
    let growth = opened.growth()?;
    drop(unread);
    opened.session.client.close();
    Ok(Cost { growth, pushed })
}

/// How much of it was taken before the server took nothing more.
fn write_until_stuck(session: &mut Session, mut bytes: &[u8]) -> Result<usize> {
    let whole = bytes.len();
    let mut last = Instant::now();
    while !bytes.is_empty() && last.elapsed() < STUCK {
        let taken = session.client.write_some(bytes)?;
        if taken == 0 {
            thread::sleep(Duration::from_millis(1));
        } else {
            bytes = &bytes[taken..];
            last = Instant::now();
        }
    }
    Ok(whole - bytes.len())
}

fn flood_unacknowledged(
    bench: &Bench<'_>,
    command: &ServerCommand,
    text: &str,
    count: usize,
) -> Result<Cost> {
    let home = bench.home()?;
    let mut opened = Opened::new(bench, bench.start_hosting(command, &home)?, Record::Host)?;
    opened.session.client.host()?.keeping = Keeping::Never;
    let (mut pushed, mut number, mut refused) = (0, 0, 0);
    while pushed < bench.workload.flood_bytes / KINDS.len() {
        let seq = number * count;
        let item = |at: usize| sse::item_done(&format!("msg_{at}"), text).to_string();
        let events: Vec<String> = (seq..seq + count).map(item).collect();
        let (id, line) = opened.batch(seq, &events);
        opened.session.client.write_lines(&line)?;
        pushed += line.len();
        number = match opened.session.client.answer_within(id, HELD)? {
            // One without an answer was taken, too: it is told so when there is credit to give.
            None | Some(Ok(_)) => number + 1,
            Some(Err(error)) => {
                refused += 1;
                let data = &error["data"];
                let expected = data["nextSeq"].as_u64().or(data["expected"].as_u64());
                usize::try_from(expected.with_context(|| format!("a batch was refused: {error}"))?)? / count
            }
        };
    }
    let growth = opened.growth()?;
    ensure!(refused > 0, "the server takes everything, though nothing is acknowledged");
    opened.session.client.close();
    Ok(Cost { growth, pushed })
}
