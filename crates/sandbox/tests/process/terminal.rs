//! Commands on a terminal.

use oarlock_sandbox::{CommandInputError, Io, TerminalSize};

use crate::support::{both, order, read_until, rest, result, shell, spawn};

const SIZE: TerminalSize = TerminalSize { rows: 33, cols: 111 };

#[tokio::test]
async fn all_three_streams_are_the_terminal() {
    for order in both(shell("test -t 0 && test -t 1 && test -t 2 && echo yes; echo error >&2")) {
        let (process, output) = spawn(order, Io::Terminal(SIZE)).await;
        let result = rest(&process, output).await;
        assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("yes\r\nerror\r\n", ""));
    }
}

#[tokio::test]
async fn without_one_there_is_none() {
    let result = result(shell("test -t 0 || test -t 1 || test -t 2 || (: </dev/tty) || echo none")).await;
    assert_eq!(result.stdout, "none\n");
}

#[tokio::test]
async fn it_is_the_controlling_terminal() {
    for order in both(shell("echo through >/dev/tty")) {
        let (process, output) = spawn(order, Io::Terminal(SIZE)).await;
        assert_eq!(rest(&process, output).await.stdout, "through\r\n");
    }
}

#[tokio::test]
async fn its_size_is_known_and_changes() {
    for order in
        both(shell("stty size; trap 'stty size' WINCH; echo ready; while :; do read line && exit; done"))
    {
        let (process, mut output) = spawn(order, Io::Terminal(SIZE)).await;
        assert!(read_until(&mut output, "ready").await.starts_with("33 111\r\n"));
        process.resize(TerminalSize { rows: 10, cols: 20 }).expect("it is a terminal");
        read_until(&mut output, "10 20\r\n").await;
        process.write(b"done\n").await.expect("it reads");
        assert!(rest(&process, output).await.exit.success());
    }
}

#[tokio::test]
async fn typing_and_the_end_key() {
    let (process, mut output) = spawn(order(&["cat"]), Io::Terminal(SIZE)).await;
    process.write(b"hello\n").await.expect("it reads");
    // Once as it is typed, once as it is printed.
    read_until(&mut output, "hello\r\nhello\r\n").await;
    process.close_stdin().await.expect("it is open");
    assert!(rest(&process, output).await.exit.success());
}

#[tokio::test]
async fn control_c_interrupts_what_runs() {
    // Without `exec`, some shells lose the signal when it comes while they start the program.
    for order in both(shell("echo ready; exec sleep 1000")) {
        let (process, mut output) = spawn(order, Io::Terminal(SIZE)).await;
        read_until(&mut output, "ready").await;
        process.interrupt().await.expect("it is a terminal");
        let exit = rest(&process, output).await.exit;
        assert_eq!((exit.code, exit.signal), (130, Some(2)));
    }
}

#[tokio::test]
async fn control_c_can_be_caught() {
    let script = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.01; done";
    let (process, mut output) = spawn(shell(script), Io::Terminal(SIZE)).await;
    read_until(&mut output, "ready").await;
    process.interrupt().await.expect("it is a terminal");
    let result = rest(&process, output).await;
    assert!(result.stdout.contains("caught"), "{result:?}");
    assert_eq!(result.exit.code, 3);
}

#[tokio::test]
async fn pipes_cannot_be_resized() {
    let (process, _output) = spawn(order(&["cat"]), Io::Pipe).await;
    assert!(matches!(process.resize(SIZE), Err(CommandInputError::NotATerminal)));
}

#[tokio::test]
async fn all_output_arrives_after_the_end() {
    let (process, output) = spawn(shell("seq 1 20000"), Io::Terminal(SIZE)).await;
    let expected: String = (1..=20000).map(|number| format!("{number}\r\n")).collect();
    assert!(rest(&process, output).await.stdout == expected);
}
