//! A directory that turns into a link and back while patches are applied never lets one out.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use oarlock_patch::{Boundary, parse, plan};
use rustix::fs::{CWD, RenameFlags, renameat_with};

const ROUNDS: usize = 10_000;
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn ten_thousand_swaps_and_no_write_outside() {
    let held = tempfile::tempdir().expect("a temporary directory");
    let top = held.path().canonicalize().expect("it is there");
    let (workspace, outside) = (top.join("ws"), top.join("out"));
    for directory in ["ws/d/e", "out/e"] {
        fs::create_dir_all(top.join(directory)).expect("made");
    }
    fs::write(outside.join("f"), "0\n").expect("written");
    fs::write(outside.join("e/f"), "0\n").expect("written");
    fs::write(workspace.join("d/f"), "0\n").expect("written");
    symlink(&outside, workspace.join("swap")).expect("linked");

    let stop = AtomicBool::new(false);
    let (applied, refused) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (workspace.join("d"), workspace.join("swap"));
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("swapped");
            }
        });
        let _stopped = StopOnDrop(&stop);
        apply_all(&workspace, &outside)
    });
    check(&outside);
    // Both outcomes must have been met, or the race was none.
    assert!(applied > 10 && refused > 10, "{applied} applied, {refused} refused");
}

/// Ends the other thread, whether this one returns or panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn apply_all(workspace: &Path, outside: &Path) -> (usize, usize) {
    let boundary = Boundary::roots(vec![workspace.to_owned()]);
    let patches = [
        "*** Add File: d/new\n+1",
        "*** Add File: d/e/deep/new\n+1",
        "*** Add File: d/f\n+2",
        "*** Update File: d/f\n@@\n-2\n+0",
        "*** Delete File: d/new",
        "*** Delete File: d/e/deep/new\n*** Add File: d/e/g\n+1",
    ]
    .map(|hunks| parse(&format!("*** Begin Patch\n{hunks}\n*** End Patch")).expect("a patch"));
    let (mut applied, mut refused) = (0, 0);
    let begin = Instant::now();
    for round in 0..ROUNDS {
        let result = plan(&patches[round % patches.len()], workspace);
        match result.map(|plan| plan.commit(&boundary)) {
            Ok(Ok(_)) => applied += 1,
            Ok(Err(_)) | Err(_) => refused += 1,
        }
        if round % 500 == 0 {
            check(outside);
            assert!(begin.elapsed() < LIMIT, "only {round} rounds in {LIMIT:?}");
        }
    }
    (applied, refused)
}

/// Nothing but the two files is outside, and they are as they were.
fn check(outside: &Path) {
    let names = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).expect("readable");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(outside), ["e", "f"]);
    assert_eq!(names(&outside.join("e")), ["f"]);
    for file in ["f", "e/f"] {
        assert_eq!(fs::read_to_string(outside.join(file)).expect("readable"), "0\n");
    }
}
