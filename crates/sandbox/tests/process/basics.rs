//! Starting commands, their input and output, and their exit.

use oarlock_sandbox::{CommandInputError, Io, OutputStream, SelfTest};

use crate::support::{both, order, read_until, rest, result, shell, spawn};

#[tokio::test]
async fn when_memory_runs_out_a_command_goes_before_the_server() {
    for order in both(shell("cat /proc/self/oom_score_adj")) {
        assert_eq!(result(order).await.stdout, "800\n");
    }
}

/// If a cgroup is available, according to the self-test.
#[tokio::test]
async fn a_command_may_have_most_of_the_memory_and_not_all() {
    let limited = SelfTest::run().layers.iter().any(|layer| layer.detail.contains("memory by cgroup"));
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("there is /proc");
    let total = meminfo.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    let total = total.expect("the first line is the total") * 1024;
    for order in both(shell("ulimit -v; read line")) {
        let (process, mut output) = spawn(order, Io::Pipe).await;
        assert_eq!(read_until(&mut output, "\n").await, "unlimited\n");
        let limit = memory_limit(process.pid());
        assert_eq!(limit.is_some(), limited, "{limit:?}");
        assert!(limit.is_none_or(|limit| limit > 0 && limit <= total / 100 * 80), "{limit:?} of {total}");
        process.kill();
        process.wait().await;
    }
}

/// Of the group created for this process.
fn memory_limit(pid: u32) -> Option<u64> {
    let member = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    member.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let own = path.rsplit('/').next()?.starts_with("oarlock-");
        let file = match controllers {
            "memory" => format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"),
            "" => format!("/sys/fs/cgroup{path}/memory.max"),
            _ => return None,
        };
        std::fs::read_to_string(file).ok().filter(|_| own)?.trim().parse().ok()
    })
}

#[tokio::test]
async fn output_and_errors_are_apart() {
    for order in both(shell("echo out; echo err >&2")) {
        let result = result(order).await;
        assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("out\n", "err\n"));
        assert!(result.exit.success());
    }
}

#[tokio::test]
async fn exit_codes_are_the_commands_own() {
    for code in [0, 1, 42, 127, 255] {
        for order in both(shell(&format!("exit {code}"))) {
            let exit = result(order).await.exit;
            assert_eq!((exit.code, exit.signal), (code, None));
        }
    }
}

#[tokio::test]
async fn a_signal_counts_from_128() {
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("INT", 2)] {
        let exit = result(shell(&format!("kill -{name} $$"))).await.exit;
        assert_eq!((exit.code, exit.signal), (128 + number, Some(number)), "{name}");
    }
}

#[tokio::test]
async fn input_arrives_and_ends() {
    for order in both(order(&["cat"])) {
        let (process, mut output) = spawn(order, Io::Pipe).await;
        process.write(b"one\n").await.expect("it reads");
        assert_eq!(read_until(&mut output, "one\n").await, "one\n");
        process.write(b"two").await.expect("it reads");
        process.close_stdin().await.expect("it is open");
        assert!(matches!(
            process.write(b"three").await,
            Err(CommandInputError::Closed | CommandInputError::NotRead)
        ));
        let result = rest(&process, output).await;
        assert_eq!((result.stdout.as_str(), result.exit.code), ("two", 0));
    }
}

#[tokio::test]
async fn much_input_goes_through_while_output_is_read() {
    let (process, output) = spawn(order(&["cat"]), Io::Pipe).await;
    let sent = "0123456789abcdef".repeat(256 * 1024);
    let write = async {
        process.write(sent.as_bytes()).await.expect("it reads");
        process.close_stdin().await.expect("it is open");
    };
    let ((), result) = tokio::join!(write, rest(&process, output));
    assert!(result.stdout == sent, "{} bytes came back of {}", result.stdout.len(), sent.len());
}

#[tokio::test]
async fn writing_to_a_command_that_does_not_read_ends_with_it() {
    let (process, _output) = spawn(order(&["sleep", "1000"]), Io::Pipe).await;
    let too_much = vec![b'x'; 1024 * 1024];
    let write = process.write(&too_much);
    let kill = async {
        process.kill();
        process.wait().await
    };
    let (written, exit) = tokio::join!(write, kill);
    assert!(matches!(written, Err(CommandInputError::NotRead)), "{written:?}");
    assert_eq!(exit.signal, Some(9));
    assert!(matches!(process.write(b"x").await, Err(CommandInputError::NotRead)));
}

#[tokio::test]
async fn without_input_there_is_nothing_to_read() {
    let (process, output) = spawn(order(&["cat"]), Io::Null).await;
    assert!(matches!(
        process.write(b"x").await,
        Err(CommandInputError::NotOpen | CommandInputError::NotRead)
    ));
    let result = rest(&process, output).await;
    assert_eq!((result.stdout.as_str(), result.exit.code), ("", 0));
}

#[tokio::test]
async fn the_directory_is_the_orders() {
    let folder = tempfile::tempdir().expect("a directory");
    for order in both(order(&["pwd"])) {
        let path = folder.path().canonicalize().expect("it is there");
        let result = result(oarlock_sandbox::Order { cwd: path.clone(), ..order }).await;
        assert_eq!(result.stdout.trim_end(), path.to_str().expect("it is text"));
    }
}

#[tokio::test]
async fn the_environment_is_exactly_the_orders() {
    for mut order in both(order(&["env"])) {
        order.env.insert("GREETING".to_owned(), "hello = world\nagain".to_owned());
        let result = result(order).await;
        let mut lines: Vec<_> = result.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["GREETING=hello = world", "PATH=/usr/local/bin:/usr/bin:/bin", "again"]);
    }
}

#[tokio::test]
async fn everyone_who_waits_gets_the_same_answer() {
    let (process, mut output) = spawn(shell("read line; exit 7"), Io::Pipe).await;
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let process = process.clone();
            tokio::spawn(async move { process.wait().await.code })
        })
        .collect();
    assert_eq!(process.exit(), None);
    process.write(b"go\n").await.expect("it reads");
    for waiter in waiting {
        assert_eq!(waiter.await.expect("it does not panic"), 7);
    }
    assert_eq!(process.wait().await.code, 7);
    assert_eq!(process.exit().map(|exit| exit.code), Some(7));
    assert_eq!(output.next().await, None);
    assert_eq!(output.next().await, None);
}

#[tokio::test]
async fn output_comes_before_the_end() {
    let (process, mut output) = spawn(shell("echo early; read line; echo late >&2"), Io::Pipe).await;
    read_until(&mut output, "early\n").await;
    process.write(b"go\n").await.expect("it reads");
    let chunk = output.next().await.expect("more output");
    assert_eq!((chunk.stream, &chunk.bytes[..]), (OutputStream::Stderr, &b"late\n"[..]));
    assert!(process.wait().await.success());
}

#[tokio::test]
async fn output_waits_for_a_command_that_has_closed_its_own() {
    let (process, mut output) = spawn(shell("exec >&- 2>&-; read line"), Io::Pipe).await;
    let ended = async {
        assert_eq!(output.next().await, None);
        assert!(process.exit().is_some());
    };
    let go = async { process.write(b"go\n").await.expect("it reads") };
    tokio::join!(ended, go);
}
