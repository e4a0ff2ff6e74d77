//! The checks, in the order in which they build on each other. Each gets a placement of its own or shares one that is as new.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::support::SystemClock;
use oarlock_placements::{
    EnvValue, PlaceState, Placement, PlacementError, PlacementOrder, PlacementReference, Placements,
    ProcessEnd, ProgressSink, ResolvedEnv, RunLimits, SnapshotFile, SpawnOptions, WorkspaceStart,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::places::Site;
use crate::support::{create, runs, sh, text, unique, until};
use crate::{manifests, staging, support};

/// For both directions.
const LARGE: usize = 64 << 20;

pub(crate) async fn run(site: Site) {
    let placements = Placements::new("conformance", Arc::new(SystemClock)).unwrap();
    let placement = create(&placements, &site.settings, WorkspaceStart::Empty).await;
    let started = Instant::now();
    macro_rules! check {
        ($name:literal, $check:expr) => {
            tokio::time::timeout(Duration::from_secs(60), $check).await.expect($name);
            println!("{:6.2} s  {}", started.elapsed().as_secs_f32(), $name);
        };
    }
    check!("every byte", every_byte(&placement));
    check!("64 MB both ways", both_ways(&placement));
    check!("half-close", half_close(&placement));
    check!("exit codes", exit_codes(&placement));
    check!("stderr apart", stderr_apart(&placement));
    check!("environment", environment(&placement));
    check!("bounded output", bounded(&placement));
    check!("many spawns", many_spawns(&placement));
    if site.shares_processes {
        check!("signals", signals(&placement));
    }
    check!("kill leaves nothing", kill_leaves_nothing(&placement, site.shares_processes));
    check!("reattach", reattach(&placement, site.shares_processes));
    check!("staging", staging::twice(&placement));
    check!("tar round trip", manifests::round_trip(&placements, &site.settings));
    check!("snapshot and restore", snapshot_and_restore(&placements, &placement));
    check!("suspend and wake", suspend_and_wake(&placement, site.shares_processes));
    check!("loss", loss(&placements, &site));
    check!("destroy", destroy(&placements, &site, &placement));
}

async fn every_byte(placement: &Placement) {
    let mut process = placement.spawn(&SpawnOptions::new(["cat"])).await.unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(256 * 40).collect();
    process.stdin.as_mut().unwrap().write_all(&bytes).await.unwrap();
    // Unbuffered: it comes back while stdin is open.
    let mut back = vec![0; bytes.len()];
    process.stdout.as_mut().unwrap().read_exact(&mut back).await.unwrap();
    assert_eq!(back, bytes);
    drop(process.stdin.take());
    let mut rest = Vec::new();
    process.stdout.as_mut().unwrap().read_to_end(&mut rest).await.unwrap();
    assert_eq!((rest.len(), process.wait().await), (0, ProcessEnd::Exited(0)));
}

async fn both_ways(placement: &Placement) {
    let mut process = placement.spawn(&SpawnOptions::new(["cat"])).await.unwrap();
    let (mut stdin, mut stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    // A prime length, so that a lost or repeated block shows.
    let block: Vec<u8> = (0..65_521_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let times = LARGE / block.len() + 1;
    let sent = block.clone();
    let write = tokio::spawn(async move {
        for _ in 0..times {
            stdin.write_all(&sent).await.unwrap();
        }
    });
    let mut back = vec![0; block.len()];
    for at in 0..times {
        stdout.read_exact(&mut back).await.unwrap();
        assert!(back == block, "block {at} of {times} differs");
    }
    write.await.unwrap();
    assert_eq!(stdout.read(&mut back).await.unwrap(), 0);
    assert_eq!(process.wait().await, ProcessEnd::Exited(0));
}

async fn half_close(placement: &Placement) {
    let mut process =
        placement.spawn(&SpawnOptions::new(["sh", "-c", "wc -c; echo after; exit 7"])).await.unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(b"12345").await.unwrap();
    drop(stdin);
    let mut answer = String::new();
    process.stdout.take().unwrap().read_to_string(&mut answer).await.unwrap();
    let words: Vec<&str> = answer.split_whitespace().collect();
    assert_eq!(words, ["5", "after"]);
    assert_eq!(process.wait().await, ProcessEnd::Exited(7));
}

async fn exit_codes(placement: &Placement) {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 42", 42),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        assert_eq!(sh(placement, script).await.code, code, "{script}");
    }
    let missing = placement.run(&SpawnOptions::new(["no-such-program"]), RunLimits::default()).await.unwrap();
    assert_eq!(missing.code, 127);
    let folder = placement.run(&SpawnOptions::new(["/"]), RunLimits::default()).await.unwrap();
    assert_eq!(folder.code, 126);
}

async fn stderr_apart(placement: &Placement) {
    let script = "i=0; while [ $i -lt 2000 ]; do echo out; echo err >&2; i=$((i+1)); done; printf 'no newline' >&2; exit 3";
    let output = sh(placement, script).await;
    assert_eq!(output.code, 3);
    assert_eq!(output.stdout, "out\n".repeat(2000).as_bytes());
    assert_eq!(output.stderr, ("err\n".repeat(2000) + "no newline").as_bytes());
    let binary = sh(placement, r"printf '\000\036\377oarlock \036' >&2").await;
    assert_eq!(binary.stderr, b"\0\x1e\xffoarlock \x1e");
}

async fn environment(placement: &Placement) {
    let secret = format!("secret-{}", unique());
    let names = [
        ("ODD", EnvValue::Value("it's \"two\"\nlines $HOME `id` \\".to_owned())),
        ("KEY", EnvValue::Secret { secret: "k".to_owned() }),
    ];
    let names = names.map(|(name, value)| (name.to_owned(), value)).into();
    let env = ResolvedEnv::resolve(&names, |_| Some(secret.clone())).unwrap();
    let script =
        r#"printf '%s|%s|%s' "$ODD" "$KEY" "$CARGO_MANIFEST_DIR"; read -r line; printf '|%s' "$line""#;
    let mut process =
        placement.spawn(&SpawnOptions { env, ..SpawnOptions::new(["sh", "-c", script]) }).await.unwrap();
    assert!(process.cwd_exists());
    assert!(!runs(&secret), "the secret is in a command line");
    process.stdin.take().unwrap().write_all(b"go\n").await.unwrap();
    let mut answer = String::new();
    process.stdout.take().unwrap().read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, format!("it's \"two\"\nlines $HOME `id` \\|{secret}||go"));

    text(placement, "mkdir -p 'a b/c'").await;
    let there = SpawnOptions { cwd: Some("a b/c".to_owned()), ..SpawnOptions::new(["pwd"]) };
    let output = placement.run(&there, RunLimits::default()).await.unwrap();
    assert_eq!(output.stdout, format!("{}/a b/c\n", placement.reference().workspace).as_bytes());
    let missing = SpawnOptions { cwd: Some("not/there".to_owned()), ..SpawnOptions::new(["pwd"]) };
    let mut process = placement.spawn(&missing).await.unwrap();
    let mut answer = String::new();
    process.stdout.take().unwrap().read_to_string(&mut answer).await.unwrap();
    assert_eq!((process.cwd_exists(), answer.trim_end()), (false, placement.reference().workspace.as_str()));
}

async fn bounded(placement: &Placement) {
    let limits = RunLimits { bytes: 1000, time: Duration::from_secs(30) };
    let many = SpawnOptions::new(["sh", "-c", "head -c 300000 /dev/zero; exit 4"]);
    let output = placement.run(&many, limits).await.unwrap();
    assert_eq!((output.code, output.stdout.len(), output.truncated), (4, 1000, true));
    let number = unique().to_string();
    let slow = SpawnOptions::new(["sleep", &number]);
    let error =
        placement.run(&slow, RunLimits { time: Duration::from_millis(300), ..limits }).await.unwrap_err();
    assert!(matches!(error, PlacementError::TimedOut { .. }), "{error}");
    assert!(!runs(&number));
}

async fn many_spawns(placement: &Placement) {
    let count = if support::is_long() { 200 } else { 20 };
    for batch in (0..count).collect::<Vec<_>>().chunks(10) {
        let spawns = batch.iter().map(|number| async move {
            let mut process = placement.spawn(&SpawnOptions::new(["cat"])).await.unwrap();
            let mut stdin = process.stdin.take().unwrap();
            stdin.write_all(number.to_string().as_bytes()).await.unwrap();
            drop(stdin);
            let mut answer = String::new();
            process.stdout.take().unwrap().read_to_string(&mut answer).await.unwrap();
            assert_eq!((answer, process.wait().await), (number.to_string(), ProcessEnd::Exited(0)));
        });
        join_all(spawns).await;
    }
}

/// All at once, on this task.
async fn join_all(work: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut open: Vec<_> = work.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        open.retain_mut(|work| work.as_mut().poll(context).is_pending());
        if open.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

async fn signals(placement: &Placement) {
    let script = "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.1; done";
    let mut process = placement.spawn(&SpawnOptions::new(["sh", "-c", script])).await.unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    process.signal("USR1").await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("got"));
    assert_eq!(process.wait().await, ProcessEnd::Exited(5));
    let process = placement.spawn(&SpawnOptions::new(["sleep", "1000"])).await.unwrap();
    process.signal("INT").await.unwrap();
    assert_eq!(process.wait().await, ProcessEnd::Exited(130));
    assert!(process.signal("INT; id").await.is_err());
}

/// Children that ignore signals, leave the session, lose their parent or clear their environment.
async fn kill_leaves_nothing(placement: &Placement, shares_processes: bool) {
    let number = unique().to_string();
    let script = format!(
        "setsid sleep {number} & (sleep {number} &) ; (trap '' TERM HUP INT; sleep {number}) & env -i sleep {number} & \
         setsid sh -c 'setsid sleep {number} & sleep {number}' & echo ready; wait"
    );
    let mut process = placement.spawn(&SpawnOptions::new(["sh", "-c", &script])).await.unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    until("the sleepers start", || runs(&number)).await;
    process.kill().await.unwrap();
    assert!(!runs(&number), "something survived the kill");
    assert_eq!(process.wait().await, ProcessEnd::Killed);
    process.kill().await.unwrap();

    // One that ended by itself and left something in the background.
    let number = unique().to_string();
    let script = format!("setsid sleep {number} >/dev/null 2>&1 </dev/null & exit 0");
    let process = placement.spawn(&SpawnOptions::new(["sh", "-c", &script])).await.unwrap();
    assert_eq!(process.wait().await, ProcessEnd::Exited(0));
    assert!(runs(&number) || !shares_processes);
    process.kill().await.unwrap();
    assert!(!runs(&number));

    // Dropped without a word.
    let number = unique().to_string();
    let process = placement.spawn(&SpawnOptions::new(["sleep", &number])).await.unwrap();
    until("it runs", || runs(&number)).await;
    drop(process);
    until("the dropped process ends", || !runs(&number)).await;
}

/// Another host, with nothing but the reference and the id of the process.
async fn reattach(placement: &Placement, shares_processes: bool) {
    let json = placement.reference().to_json().unwrap();
    let other = Placements::new("another", Arc::new(SystemClock)).unwrap();
    let again = other.attach(PlacementReference::from_json(&json).unwrap());
    assert_eq!(again.state().await.unwrap(), PlaceState::Running);
    let number = unique().to_string();
    let process = placement.spawn(&SpawnOptions::new(["sleep", &number])).await.unwrap();
    let (pid, start_time) = process.pid_and_start_time();
    assert!(pid > 0 && start_time > 0);
    text(&again, "echo kept > kept").await;
    assert_eq!(text(placement, "cat kept").await, "kept\n");
    if shares_processes {
        again.end_spawn(process.id()).await.unwrap();
        assert!(!runs(&number));
        assert_ne!(process.wait().await, ProcessEnd::Exited(0));
    } else {
        process.kill().await.unwrap();
    }
}

async fn snapshot_and_restore(placements: &Placements, placement: &Placement) {
    let blobs = tempfile::tempdir().unwrap();
    text(placement, "mkdir -p s/t && echo snap > s/t/file && ln -s /etc/hostname s/out && chmod 750 s/t")
        .await;
    let snapshot = placement.snapshot(blobs.path()).await.unwrap();
    assert!(snapshot.path.ends_with(format!("{}.tar", snapshot.digest)));
    assert_eq!(fs::metadata(&snapshot.path).unwrap().len(), snapshot.bytes);
    text(placement, "rm -rf s").await;
    let restored =
        create(placements, &placement.reference().settings, WorkspaceStart::Snapshot(&snapshot)).await;
    assert_eq!(
        text(&restored, "cat s/t/file; readlink s/out; ls -ld s/t | cut -c1-10").await,
        "snap\n/etc/hostname\ndrwxr-x---\n"
    );
    restored.destroy().await.unwrap();

    let mut bytes = fs::read(&snapshot.path).unwrap();
    let content = bytes.windows(4).position(|window| window == b"snap").unwrap();
    bytes[content] = b'S';
    fs::write(&snapshot.path, bytes).unwrap();
    let id = format!("t-{}", unique());
    let order = PlacementOrder {
        id: id.clone(),
        settings: placement.reference().settings.clone(),
        start: WorkspaceStart::Snapshot(&snapshot),
    };
    let error = placements.create(order, &ProgressSink::none()).await.unwrap_err().to_string();
    assert!(error.contains("changed or is damaged"), "{error}");
    let left = placements.leftovers(&placement.reference().settings).await.unwrap();
    assert!(left.iter().all(|left| left.reference.id != id), "a failed creation left its place behind");
    // Backends with one fixed folder have lost it with the other placement.
    text(placement, "true").await;
}

async fn suspend_and_wake(placement: &Placement, shares_processes: bool) {
    let blobs = tempfile::tempdir().unwrap();
    text(placement, "echo mine > mine").await;
    let number = unique().to_string();
    let process = placement.spawn(&SpawnOptions::new(["sleep", &number])).await.unwrap();
    if !shares_processes {
        process.kill().await.unwrap();
    }
    let snapshot = placement.suspend(blobs.path()).await.unwrap();
    until("the process ends with the suspension", || !runs(&number)).await;
    assert_ne!(process.wait().await, ProcessEnd::Exited(0));
    if let Some(snapshot) = &snapshot {
        // A waking that breaks off in the middle of the workspace is in the way of none that follows.
        let path = blobs.path().join("half");
        let whole = fs::read(&snapshot.path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let half = SnapshotFile { path, ..snapshot.clone() };
        placement.wake(Some(&half), &ProgressSink::none()).await.unwrap_err();
    }
    placement.wake(snapshot.as_ref(), &ProgressSink::none()).await.unwrap();
    assert_eq!(placement.state().await.unwrap(), PlaceState::Running);
    assert_eq!(text(placement, "cat mine").await, "mine\n");
}

async fn loss(placements: &Placements, site: &Site) {
    let Some(lose) = &site.lose else { return };
    let placement = create(placements, &site.settings, WorkspaceStart::Empty).await;
    let mut process = placement.spawn(&SpawnOptions::new(["cat"])).await.unwrap();
    let place = placement.reference();
    lose(place);
    match site.settings {
        // The folder is gone, the process is not.
        oarlock_placements::PlacementSettings::Local(_) => {
            drop(process.stdin.take());
            assert_eq!(process.wait().await, ProcessEnd::Exited(0));
        }
        _ => {
            let end = tokio::time::timeout(Duration::from_secs(20), process.wait()).await.unwrap();
            assert!(matches!(end, ProcessEnd::Lost(_)), "{end:?}");
        }
    }
    if matches!(site.settings, oarlock_placements::PlacementSettings::Ssh(_)) {
        // The network is back: the place is as it was, and what was cut off can be ended.
        assert_eq!(placement.state().await.unwrap(), PlaceState::Running);
        placement.end_spawn(process.id()).await.unwrap();
        placement.destroy().await.unwrap();
        return;
    }
    assert_eq!(placement.state().await.unwrap(), PlaceState::Gone);
    let error = placement.spawn(&SpawnOptions::new(["true"])).await.unwrap_err().to_string();
    assert!(!error.is_empty() && !error.contains('\n'), "{error}");
    println!("          lost: {error}");
    placement.destroy().await.unwrap();
}

async fn destroy(placements: &Placements, site: &Site, placement: &Placement) {
    let ours = |left: &oarlock_placements::LeftoverPlacement| left.reference.id == placement.reference().id;
    let before = placements.leftovers(&site.settings).await.unwrap();
    let found = before.into_iter().find(ours);
    assert_eq!(found.is_some(), site.has_labels);
    let number = unique().to_string();
    let process = placement.spawn(&SpawnOptions::new(["sleep", &number])).await.unwrap();
    if site.shares_processes {
        // As `oarlock host gc` does it.
        placements.attach(found.unwrap().reference).destroy().await.unwrap();
        until("the process ends with its place", || !runs(&number)).await;
    }
    drop(process);
    placement.destroy().await.unwrap();
    let after = placements.leftovers(&site.settings).await.unwrap();
    assert!(!after.iter().any(ours));
}
