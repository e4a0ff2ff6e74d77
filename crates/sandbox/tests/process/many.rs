//! Many commands at once.

use std::time::Instant;

use oarlock_sandbox::{RunOptions, run};

use crate::support::{confined, order, shell};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_at_once() {
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let order = shell(&format!("echo {number}; echo {number} >&2; exit {}", number % 100));
            tokio::spawn(async move { (number, run(order, RunOptions::default()).await) })
        })
        .collect();
    for task in tasks {
        let (number, finished) = task.await.expect("it does not panic");
        let finished = finished.expect("it starts");
        assert_eq!(finished.exit.code, number % 100);
        assert_eq!(finished.stdout.excerpt().head, format!("{number}\n"));
        assert_eq!(finished.stderr.excerpt().head, format!("{number}\n"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_at_once_within_walls() {
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let order = confined(shell(&format!("exit {number}")));
            tokio::spawn(async move { (number, run(order, RunOptions::default()).await) })
        })
        .collect();
    for task in tasks {
        let (number, finished) = task.await.expect("it does not panic");
        assert_eq!(finished.expect("it starts").exit.code, number);
    }
}

/// `cargo test --test process -- --ignored --nocapture cost_of_one`
#[tokio::test]
#[ignore = "prints a measurement"]
async fn cost_of_one() {
    for (name, order) in
        [("without a sandbox", order(&["true"])), ("in a sandbox", confined(order(&["true"])))]
    {
        let mut times = Vec::new();
        for _ in 0..200 {
            let began = Instant::now();
            run(order.clone(), RunOptions::default()).await.expect("it starts");
            times.push(began.elapsed());
        }
        times.sort_unstable();
        println!("{name}: median {:?}, best {:?}, worst {:?}", times[100], times[0], times[199]);
    }
}
