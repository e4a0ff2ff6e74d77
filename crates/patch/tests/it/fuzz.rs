//! A small fuzzer with a fixed seed: mutated patches never panic, hang, or reach outside.

use std::fs;
use std::time::{Duration, Instant};

use broken_input::{BrokenInput, Random};
use oarlock_patch::fuzzing;

const SEEDS: &[&str] = &[
    "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\u{1}",
    "*** Begin Patch\n*** Update File: f\n@@ one\n-two\n+2\n three\n*** End of File\n*** End Patch\u{1}one\ntwo\nthree\n",
    "*** Begin Patch\n*** Update File: f\n*** Move to: sub/g\n@@\n one\n\n@@\n-three\n+3\n\n*** End Patch\u{1}one\r\n\r\nthree",
    "*** Begin Patch\n*** Delete File: f\n*** Add File: ../f\n+1\n*** Delete File: link/x\n*** End Patch\u{1}",
    "*** Begin Patch\n*** Add File: link/x\n+1\n*** Add File: .git/x\n+1\n*** End Patch\u{1}",
    "<<'EOF'\n*** Begin Patch\n*** Update File: f\n-“a” – b\n+\"a\" - b\n*** End Patch\nEOF\u{1}\"a\" - b\n\n",
    "cd 'a b' && apply_patch <<-\"X\"\n*** Begin Patch\n*** End Patch\nX\n",
];

/// The dictionary: pieces that make or break the grammar.
const PIECES: &[&str] = &[
    "\n",
    "@@",
    "@@ ",
    "*** ",
    "*** End of File\n",
    "*** End Patch\n",
    "*** Update File: f\n",
    "*** Add File: ",
    "+",
    "-",
    " ",
    "\r\n",
    "..",
    "/",
    "\0",
    "\u{1}",
    "\u{202e}",
    "EOF",
    "<<",
    "'",
    "link/",
    ".git/",
    "sub/",
    "é",
    "\u{a0}",
];

const INPUT: BrokenInput<'_, &str, &str> = BrokenInput { seeds: SEEDS, pieces: PIECES, most_changes: 7 };

#[test]
fn mutated_patches_do_no_harm_in_memory() {
    let mut random = Random::default();
    let begin = Instant::now();
    let mut rounds = 0_usize;
    while begin.elapsed() < Duration::from_millis(900) {
        fuzzing::text(&INPUT.next(&mut random));
        rounds += 1;
    }
    assert!(rounds > 1_000, "only {rounds} rounds");
}

#[test]
fn mutated_patches_do_no_harm_on_disk() {
    let held = tempfile::tempdir().expect("a temporary directory");
    let top = held.path().canonicalize().expect("it is there");
    let (workspace, outside) = (top.join("ws"), top.join("out"));
    fs::create_dir(&outside).expect("made");
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(900) {
        if workspace.exists() {
            fs::remove_dir_all(&workspace).expect("removed");
        }
        fs::create_dir(&workspace).expect("made");
        fs::write(workspace.join("f"), "one\ntwo\nthree\n").expect("written");
        std::os::unix::fs::symlink("../out", workspace.join("link")).expect("linked");
        for _ in 0..20 {
            fuzzing::disk(&INPUT.next(&mut random), &workspace);
        }
        assert_eq!(fs::read_dir(&outside).expect("readable").count(), 0);
        let names: Vec<_> =
            fs::read_dir(&top).expect("readable").map(|e| e.expect("readable").file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        let temporary = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".patch-");
        let left =
            fs::read_dir(&workspace).expect("readable").any(|e| temporary(&e.expect("readable").file_name()));
        assert!(!left && !workspace.join(".git").exists());
    }
}
