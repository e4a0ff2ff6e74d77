//! Trees and paths by the thousand, the same ones in each run: nothing hidden and nothing outside is ever read.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use broken_input::Random;
use oarlock_workspace::fuzzing;

const ROUNDS: usize = 500;

/// Pieces of random lines.
const PATHS: &[&str] = &[
    "a",
    "b",
    "sub",
    "sub/c",
    "sub/../a",
    "..",
    "../outside/secret",
    "../outside",
    "hidden",
    "hidden/secret",
    "sub/..//../outside/secret",
    "/",
    "/proc/self/root",
    "/proc/self/cwd",
    "a/b/c",
    "./a",
    "sub/d/../../b",
    "",
    "/etc/passwd",
    "a/secret",
    "b/secret",
    "sub/c/secret",
    "\u{202e}",
    "a\0b",
    "**",
    ".gitignore",
    "sub/.ignore",
];

const WHAT: &[&str] = &["f", "d", "l", "l", "l", "h", "r", "r", "r", "s", "w"];

#[test]
fn trees_and_paths() {
    let mut random = Random::default();
    for _ in 0..ROUNDS {
        let mut text = String::new();
        for _ in 0..20 {
            let (what, path, target) = (random.of(WHAT), random.of(PATHS), random.of(PATHS));
            text.push_str(&format!("{what} {path} {target}\n"));
        }
        let folder = tempfile::tempdir().unwrap();
        fuzzing::tree(text.as_bytes(), folder.path());
    }
}
