//! Trees and paths by the thousand, the same ones in each run: nothing hidden and nothing outside is ever read.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

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

/// Xorshift: no more than needed to be different each time and the same in each run.
struct Random(u64);

impl Random {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from[usize::try_from(self.0 % from.len() as u64).unwrap()]
    }
}

#[test]
fn trees_and_paths() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..ROUNDS {
        let mut text = String::new();
        for _ in 0..20 {
            let (what, path, target) = (random.pick(WHAT), random.pick(PATHS), random.pick(PATHS));
            text.push_str(&format!("{what} {path} {target}\n"));
        }
        let folder = tempfile::tempdir().unwrap();
        fuzzing::tree(text.as_bytes(), folder.path());
    }
}
