//! A search that follows the query while the user types.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nucleo_matcher::Matcher;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use super::candidates::Candidates;
use super::ranking::{Ranking, path_matcher};
use super::{FileMatch, SearchError, walk};

/// Delay of the first report, so that a query sent right after the start is the first one.
const FIRST_DELAY: Duration = Duration::from_millis(10);
/// Maximum delay of a new query by the work on the previous one.
const SLICE: Duration = Duration::from_millis(8);
/// Interval of reports while the list grows, or a query takes several slices.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Limit of unread reports. Work pauses when it is reached.
const WAITING_EVENTS: usize = 4;

/// Something a session reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchEvent {
    /// All matches of the query so far.
    Updated { query: String, matches: Vec<FileMatch> },
    /// Everything was found and matched.
    Completed { query: String },
}

impl SearchEvent {
    fn query(&self) -> &str {
        match self {
            Self::Updated { query, .. } | Self::Completed { query } => query,
        }
    }
}

/// A session. Dropping it ends the walk and the matching.
#[derive(Debug)]
pub struct SearchSession {
    list: Arc<Candidates>,
    query: watch::Sender<String>,
}

/// The reports of one session.
#[derive(Debug)]
pub struct SearchReports {
    events: mpsc::Receiver<SearchEvent>,
    query: watch::Receiver<String>,
}

impl SearchReports {
    /// The next report about the latest query. `None` once the session has ended.
    pub async fn next(&mut self) -> Option<SearchEvent> {
        loop {
            let event = self.events.recv().await?;
            if *self.query.borrow() == event.query() {
                return Some(event);
            }
        }
    }
}

impl SearchSession {
    /// Starts walking the folders. The query is empty until it is set.
    pub fn start(roots: Vec<String>) -> Result<(Self, SearchReports), SearchError> {
        if roots.is_empty() {
            return Err(SearchError::NoRoots);
        }
        let list = walk::start(&roots)?;
        let (query, queries) = watch::channel(String::new());
        let (events, receiver) = mpsc::channel(WAITING_EVENTS);
        let reports = SearchReports { events: receiver, query: queries.clone() };
        let follower = QueryFollower { list: list.clone(), roots: roots.into(), queries, events };
        tokio::spawn(follower.run());
        Ok((Self { list, query }, reports))
    }

    /// Reports the matches of this query, even if it is unchanged.
    pub fn set_query(&self, query: String) {
        self.query.send_replace(query);
    }
}

impl Drop for SearchSession {
    fn drop(&mut self) {
        self.list.stop();
    }
}

/// Whether to report a query's matches before it is complete. An empty result is delayed at first: the next slice or
/// folder may have matches.
fn is_first_due(since: Duration, is_complete: bool, is_empty: bool) -> bool {
    match (is_complete, is_empty) {
        (true, false) => true,
        (true, true) => since >= 2 * FIRST_DELAY,
        (false, false) => since >= FIRST_DELAY,
        (false, true) => since >= REPORT_INTERVAL,
    }
}

/// Matches the latest query against the list as it grows.
struct QueryFollower {
    list: Arc<Candidates>,
    roots: Arc<[String]>,
    queries: watch::Receiver<String>,
    events: mpsc::Sender<SearchEvent>,
}

impl QueryFollower {
    /// Ends with the session, or when the reports are no longer read.
    async fn run(mut self) {
        let (mut ranking, mut matcher) = (Ranking::new(""), path_matcher());
        let delay = tokio::time::sleep(FIRST_DELAY);
        tokio::select! {
            () = delay => {}
            changed = self.queries.changed() => if changed.is_err() { return },
        }
        loop {
            let query = self.queries.borrow_and_update().clone();
            ranking = ranking.next_query(&query);
            let Some(done) = self.follow(&query, ranking, matcher).await else { return };
            (ranking, matcher) = done;
            // Fails once the session is dropped.
            if self.queries.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns when the query has changed, or everything is reported. `None` when the session has ended.
    async fn follow(
        &mut self,
        query: &str,
        mut ranking: Ranking,
        mut matcher: Matcher,
    ) -> Option<(Ranking, Matcher)> {
        let began = Instant::now();
        let mut reported: Option<(Instant, Vec<FileMatch>)> = None;
        loop {
            // Read before the work: paths found meanwhile are for the next round.
            let is_complete = self.list.is_complete();
            let (list, roots) = (self.list.clone(), self.roots.clone());
            let slice = move || {
                let is_done = ranking.advance(&list, &mut matcher, Instant::now() + SLICE);
                let best = ranking.best(&roots, &mut matcher);
                (ranking, matcher, is_done, best)
            };
            let (is_done, best);
            (ranking, matcher, is_done, best) = spawn_blocking(slice).await.ok()?;
            if self.queries.has_changed().ok()? {
                return Some((ranking, matcher));
            }
            let is_last = is_done && is_complete;
            let is_due = match &reported {
                None => is_last || is_first_due(began.elapsed(), is_complete, best.is_empty()),
                Some((at, before)) => (is_last || at.elapsed() >= REPORT_INTERVAL) && *before != best,
            };
            if is_due {
                let event = SearchEvent::Updated { query: query.to_owned(), matches: best.clone() };
                self.events.send(event).await.ok()?;
                reported = Some((Instant::now(), best));
            }
            if is_last {
                self.events.send(SearchEvent::Completed { query: query.to_owned() }).await.ok()?;
                return Some((ranking, matcher));
            }
            if is_done && !self.wait_for_paths().await? {
                return Some((ranking, matcher));
            }
        }
    }

    /// Waits briefly until the list has grown. False when the query has changed; `None` when the session has ended.
    async fn wait_for_paths(&mut self) -> Option<bool> {
        let list = self.list.clone();
        tokio::select! {
            changed = self.queries.changed() => {
                changed.ok()?;
                // Seen again by the caller.
                self.queries.mark_changed();
                Some(false)
            }
            () = async {
                list.changed.notified().await;
                // More paths come soon, to be matched together.
                tokio::time::sleep(SLICE).await;
            } => Some(!list.is_stopped()),
            // A slow folder: reports what was found until then.
            () = tokio::time::sleep(REPORT_INTERVAL) => Some(true),
        }
    }
}
