//! Measures the cost of starting the smallest command and seeing it end, under each sandbox policy: `cargo run
//! --release -p oarlock-sandbox --example start_cost [ROUNDS [KIND]]`.
//!
//! The policies alternate, so that other load affects all of them.

#![allow(clippy::expect_used, reason = "an example may panic")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oarlock_sandbox::{
    Confinement, Io, Limits, Order, PROTECTED_NAMES, Process, ReadAccess, SelfTest, Strength,
};

const KINDS: [&str; 6] =
    ["unconfined", "landlock only", "full, read-only", "full, workspace", "full, network", "full, listed"];

const PAUSE: Duration = Duration::from_millis(20);

/// The time until it ran, and until it had ended.
#[derive(Clone, Copy)]
struct Cost {
    start: Duration,
    whole: Duration,
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
    let only = std::env::args().nth(2);
    println!("{:?}", SelfTest::run().strength);
    let workspace = std::env::temp_dir().join(format!("oarlock-start-cost-{}", std::process::id()));
    std::fs::create_dir_all(&workspace).expect("a folder to work in");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("the runtime starts");
    let mut costs: [Vec<Cost>; KINDS.len()] = Default::default();
    runtime.block_on(async {
        for round in 0..rounds + 5 {
            for (kind, costs) in KINDS.iter().zip(&mut costs) {
                if only.as_ref().is_some_and(|only| only != kind) {
                    continue;
                }
                let cost = measure(order(kind, &workspace)).await;
                // The first rounds are warm-up.
                if round >= 5 {
                    costs.push(cost);
                }
            }
        }
    });
    std::fs::remove_dir(&workspace).expect("nothing is left in it");
    println!("{:16} {:>9} {:>9} {:>9} {:>9}   (ms)", "", "start", "p95", "whole", "p95");
    for (kind, costs) in KINDS.iter().zip(&costs).filter(|(_, costs)| !costs.is_empty()) {
        let figure = |part: fn(&Cost) -> Duration, share: usize| {
            let mut times: Vec<Duration> = costs.iter().map(part).collect();
            times.sort();
            let at = (times.len() * share / 100).min(times.len().saturating_sub(1));
            times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
        };
        println!(
            "{kind:16} {:9.2} {:9.2} {:9.2} {:9.2}",
            figure(|cost| cost.start, 50),
            figure(|cost| cost.start, 95),
            figure(|cost| cost.whole, 50),
            figure(|cost| cost.whole, 95),
        );
    }
}

async fn measure(order: Order) -> Cost {
    // A pause, as between the commands of a turn: otherwise the kernel's cleanup after one command slows the next.
    tokio::time::sleep(PAUSE).await;
    let began = Instant::now();
    let (process, mut output) = Process::spawn(order, Io::Null).await.expect("it starts");
    let start = began.elapsed();
    while output.next().await.is_some() {}
    assert!(process.wait().await.success());
    Cost { start, whole: began.elapsed() }
}

fn order(kind: &str, workspace: &Path) -> Order {
    let protected = PROTECTED_NAMES.map(str::to_owned).to_vec();
    let writable = vec![workspace.to_owned(), PathBuf::from("/tmp")];
    let confinement = Confinement { writable, protected, ..Confinement::read_only() };
    let confinement = match kind {
        "unconfined" => None,
        "landlock only" => Some(Confinement { strength: Strength::LandlockOnly, ..confinement }),
        "full, read-only" => Some(Confinement::read_only()),
        "full, network" => Some(Confinement { network: true, ..confinement }),
        "full, listed" => {
            Some(Confinement { read: ReadAccess::Only(confinement.writable.clone()), ..confinement })
        }
        _ => Some(confinement),
    };
    Order {
        argv: vec!["true".to_owned()],
        cwd: workspace.to_owned(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        confinement,
        limits: Limits::default(),
        terminal: false,
    }
}
