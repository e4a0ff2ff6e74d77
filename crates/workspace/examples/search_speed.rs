//! Measures a keystroke of a file search with 100,000 files: until the first matches are there, and until all are.
//!
//!     cargo run --release -p oarlock-workspace --example search_speed
#![allow(clippy::expect_used, reason = "an example may panic")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use oarlock_workspace::{SearchEvent, SearchReports, SearchSession};

const FILES: usize = 100_000;
/// The target: first matches within this time after a keystroke.
const LIMIT: Duration = Duration::from_millis(30);
const TYPED: [&str; 4] = ["handlers", "src/main", "zzzq", "te st rs"];

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let began = Instant::now();
    let (session, mut reports) =
        SearchSession::start(vec![folder.path().to_string_lossy().into_owned()]).expect("started");
    wait(&mut reports, "").await;
    println!("walk of {FILES} files: {} ms", began.elapsed().as_millis());
    let (mut first, mut all) = (Vec::new(), Vec::new());
    for typed in TYPED {
        for end in 1..=typed.len() {
            let began = Instant::now();
            session.set_query(typed[..end].to_owned());
            let (until_first, until_all) = wait(&mut reports, &typed[..end]).await;
            first.push(until_first.duration_since(began));
            all.push(until_all.duration_since(began));
        }
    }
    show("first matches", &mut first);
    show("all matches", &mut all);
    let worst = first.last().copied().unwrap_or_default();
    assert!(worst <= LIMIT, "the first matches took {worst:?}");
}

/// The times of a query's first report and of its completion.
async fn wait(reports: &mut SearchReports, wanted: &str) -> (Instant, Instant) {
    let mut first = None;
    loop {
        match reports.next().await.expect("the session goes on") {
            SearchEvent::Updated { query, .. } if query == wanted => first = first.or(Some(Instant::now())),
            SearchEvent::Completed { query } if query == wanted => {
                return (first.expect("reported before"), Instant::now());
            }
            _ => {}
        }
    }
}

fn show(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1_000.0;
    println!("{what}: p50 {:.1} ms, p95 {:.1} ms, max {:.1} ms", at(50), at(95), at(100));
}

fn fill(folder: &Path) {
    let words =
        ["config", "server", "handlers", "thread", "protocol", "alpha", "tests", "render", "main", "store"];
    for number in 0..FILES / 100 {
        let below =
            folder.join(words[number % 10]).join("src").join(format!("{}{number}", words[number / 10 % 10]));
        fs::create_dir_all(&below).expect("made");
        for file in 0..100 {
            let name = format!("{}_{}_{file}.rs", words[file % 10], words[file / 10]);
            fs::write(below.join(name), "").expect("written");
        }
    }
}
