//! The output that `run` keeps.

use std::time::Duration;

use oarlock_sandbox::{Excerpt, RunOptions, run, run_with};

use crate::support::{order, shell};

async fn excerpts(script: &str, cap_bytes: usize) -> (Excerpt, Excerpt) {
    let options = RunOptions { cap_bytes, ..RunOptions::default() };
    let finished = run(shell(script), options).await.expect("it starts");
    (finished.stdout.excerpt(), finished.stderr.excerpt())
}

fn excerpt(head: &str, omitted_bytes: u64, tail: &str) -> Excerpt {
    Excerpt { head: head.to_owned(), omitted_bytes, tail: tail.to_owned() }
}

#[tokio::test]
async fn the_two_share_the_room_when_both_want_it() {
    let (stdout, stderr) = excerpts("printf 0123456789abcdef; printf 0123456789abcdef >&2", 12).await;
    assert_eq!(stdout, excerpt("01", 12, "ef"));
    assert_eq!(stderr, excerpt("0123", 8, "cdef"));
}

#[tokio::test]
async fn one_gets_what_the_other_does_not_need() {
    let (stdout, stderr) = excerpts("printf 0123456789abcdef; printf ab >&2", 12).await;
    assert_eq!(stdout, excerpt("01234", 6, "bcdef"));
    assert_eq!(stderr, excerpt("ab", 0, ""));
    let (stdout, stderr) = excerpts("printf ab; printf 0123456789abcdef >&2", 12).await;
    assert_eq!(stdout, excerpt("ab", 0, ""));
    assert_eq!(stderr, excerpt("01234", 6, "bcdef"));
}

#[tokio::test]
async fn input_is_given_and_closed() {
    let options = RunOptions { stdin: Some(b"some input".to_vec()), ..RunOptions::default() };
    let finished = run(order(&["cat"]), options).await.expect("it starts");
    assert_eq!(finished.stdout.excerpt().head, "some input");
    assert!(!finished.timed_out);
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_trouble() {
    let options = RunOptions { stdin: Some(vec![b'x'; 1024 * 1024]), ..RunOptions::default() };
    let finished = run(order(&["true"]), options).await.expect("it starts");
    assert_eq!(finished.exit.code, 0);
}

#[tokio::test]
async fn what_came_before_the_timeout_is_kept_and_shown() {
    let options = RunOptions { timeout: Some(Duration::from_secs(3)), ..RunOptions::default() };
    let mut shown = Vec::new();
    let order = shell("echo before; sleep 1000; echo after");
    let finished =
        run_with(order, options, |chunk| shown.extend_from_slice(&chunk.bytes)).await.expect("it starts");
    assert!(finished.timed_out);
    assert_eq!(finished.stdout.excerpt().head, "before\n");
    assert_eq!(shown, b"before\n");
}

#[tokio::test]
async fn a_command_that_is_in_time_is_not_timed_out() {
    let options = RunOptions { timeout: Some(Duration::from_secs(200)), ..RunOptions::default() };
    let finished = run(shell("exit 5"), options).await.expect("it starts");
    assert_eq!((finished.exit.code, finished.timed_out), (5, false));
}
