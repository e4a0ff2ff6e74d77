//! Whatever a command does, it ends with all its processes.

use std::time::{Duration, Instant};

use oarlock_sandbox::{CommandInputError, Io, Process, RunOptions, TIMEOUT_CODE, TerminalSize, run};

use crate::support::{
    PATIENCE, alone, both, children, count_processes, order, read_until, rest, shell, spawn, unique_seconds,
    until,
};

#[tokio::test]
async fn a_tree_that_ignores_signals_is_gone_after_the_timeout() {
    for make in [0, 1] {
        let seconds = unique_seconds();
        let script = format!(
            "trap '' TERM INT HUP; sh -c 'trap \"\" TERM INT HUP; sleep {seconds} & sleep {seconds}; :' & \
             setsid sleep {seconds} & sleep {seconds}; :"
        );
        let timeout = Duration::from_millis(500);
        let options = RunOptions { timeout: Some(timeout), ..RunOptions::default() };
        let finished = run(both(shell(&script))[make].clone(), options).await.expect("it starts");
        assert_eq!(count_processes(&seconds), 0);
        assert!(finished.timed_out);
        assert_eq!(finished.exit.code, TIMEOUT_CODE);
        assert!(finished.duration >= timeout, "{:?}", finished.duration);
        assert!(finished.duration < timeout + PATIENCE, "{:?}", finished.duration);
    }
}

#[tokio::test]
async fn a_daemon_does_not_outlive_the_command() {
    for order in both(shell("setsid sh -c 'echo up; exec sleep \"$0\"' \"$SECONDS_TO_SLEEP\" & read line")) {
        let seconds = unique_seconds();
        let mut order = order;
        order.env.insert("SECONDS_TO_SLEEP".to_owned(), seconds.clone());
        let (process, mut output) = spawn(order, Io::Pipe).await;
        read_until(&mut output, "up").await;
        until("the daemon runs", || count_processes(&seconds) > 0).await;
        process.write(b"end\n").await.expect("it reads");
        assert!(process.wait().await.success());
        assert_eq!(count_processes(&seconds), 0);
    }
}

#[tokio::test]
async fn a_daemon_of_a_daemon_does_not_either() {
    let seconds = unique_seconds();
    // The processes between have ended, so only the helper is an ancestor of the last one.
    let script = format!("(setsid sh -c '(setsid sleep {seconds} &) ; echo up' &) ; read line");
    let (process, mut output) = spawn(shell(&script), Io::Pipe).await;
    read_until(&mut output, "up").await;
    until("the daemon runs", || count_processes(&seconds) > 0).await;
    process.write(b"end\n").await.expect("it reads");
    process.wait().await;
    assert_eq!(count_processes(&seconds), 0);
}

#[tokio::test]
async fn a_child_that_holds_the_output_open_does_not_hold_up_the_end() {
    for order in both(shell("sleep \"$SECONDS_TO_SLEEP\" & echo done")) {
        let seconds = unique_seconds();
        let mut order = order;
        order.env.insert("SECONDS_TO_SLEEP".to_owned(), seconds.clone());
        let finished = run(order, RunOptions::default()).await.expect("it starts");
        assert_eq!(finished.stdout.excerpt().head, "done\n");
        assert!(finished.exit.success());
        assert!(finished.duration < PATIENCE, "{:?}", finished.duration);
        assert_eq!(count_processes(&seconds), 0);
    }
}

#[tokio::test]
async fn a_stranger_that_holds_the_output_open_is_waited_for_only_so_long() {
    let (process, mut output) = spawn(shell("echo ready; read line; echo last"), Io::Pipe).await;
    let limit = Duration::from_millis(300);
    output.set_drain_limit(limit);
    read_until(&mut output, "ready\n").await;
    // This process does not belong to the command, so nothing kills it.
    let path = format!("/proc/{}/fd/1", process.pid());
    let stranger = std::fs::OpenOptions::new().write(true).open(path).expect("the pipe can be opened");
    process.write(b"go\n").await.expect("it reads");
    process.wait().await;
    let began = Instant::now();
    assert_eq!(rest(&process, output).await.stdout, "last\n");
    assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
    drop(stranger);
}

#[tokio::test]
async fn a_slow_reader_gets_what_was_written_before_the_end() {
    let (process, mut output) = spawn(shell("printf %060000d 0; printf %060000d 0 >&2"), Io::Null).await;
    output.set_drain_limit(Duration::ZERO);
    process.wait().await;
    let result = rest(&process, output).await;
    assert_eq!((result.stdout.len(), result.stderr.len()), (60_000, 60_000));
}

#[tokio::test]
async fn killing_twice_is_killing_once() {
    for io in [Io::Null, Io::Pipe, Io::Terminal(TerminalSize::default())] {
        for order in both(shell("trap '' TERM; echo ready; sleep 1000; :")) {
            let (process, mut output) = spawn(order, io).await;
            read_until(&mut output, "ready").await;
            process.kill();
            process.kill();
            let exit = process.wait().await;
            assert_eq!((exit.code, exit.signal), (137, Some(9)));
            process.kill();
            assert_eq!(rest(&process, output).await.exit, exit);
        }
    }
}

#[tokio::test]
async fn an_interrupt_without_a_terminal_is_a_signal_to_the_group() {
    for order in
        both(shell("(trap 'echo inner; exit' INT; echo ready; while :; do sleep 0.01; done) & wait; :"))
    {
        let (process, mut output) = spawn(order, Io::Null).await;
        read_until(&mut output, "ready").await;
        process.interrupt().await.expect("it runs");
        let result = rest(&process, output).await;
        assert_eq!(result.exit.signal, Some(2), "{result:?}");
        assert!(matches!(process.interrupt().await, Err(CommandInputError::NotRead)));
    }
}

#[tokio::test]
async fn dropping_the_last_handle_kills() {
    for confined in [0, 1] {
        let seconds = unique_seconds();
        let order = both(order(&["sleep", &seconds]))[confined].clone();
        let (process, mut output) = spawn(order, Io::Null).await;
        let other = process.clone();
        drop(process);
        until("it runs", || count_processes(&seconds) > 0).await;
        drop(other);
        assert_eq!(output.next().await, None);
        assert_eq!(count_processes(&seconds), 0);
    }
}

#[tokio::test]
async fn giving_up_a_run_kills() {
    let seconds = unique_seconds();
    let running = tokio::spawn(run(order(&["sleep", &seconds]), RunOptions::default()));
    until("it runs", || count_processes(&seconds) > 0).await;
    running.abort();
    until("it is gone", || count_processes(&seconds) == 0).await;
}

#[test]
fn giving_up_a_start_kills() {
    alone("ending::alone_giving_up_a_start_kills");
}

#[tokio::test]
#[ignore = "counts the children of the whole process"]
async fn alone_giving_up_a_start_kills() {
    let seconds = unique_seconds();
    for _ in 0..20 {
        let start = Process::spawn(order(&["sleep", &seconds]), Io::Null);
        tokio::select! {
            biased;
            _ = start => panic!("nothing starts that fast"),
            () = tokio::task::yield_now() => {}
        }
    }
    assert!(children() > 0);
    until("all helpers are gone", || children() == 0).await;
    assert_eq!(count_processes(&seconds), 0);
}

#[tokio::test]
async fn a_helper_that_is_killed_counts_as_a_killed_command() {
    let (process, _output) = spawn(shell("read line; kill -KILL $PPID; read line"), Io::Pipe).await;
    process.write(b"go\n").await.expect("it reads");
    let exit = process.wait().await;
    assert_eq!((exit.code, exit.signal), (137, Some(9)));
}
