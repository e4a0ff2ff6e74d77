//! Manifests by the hundred, the same ones in each run: none that is accepted leads out of its workspace.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oarlock_placements::fuzzing;

const ROUNDS: usize = 4_000;

const SEEDS: &[&str] = &[
    r#"{"entries": {"a/b": {"type": "text", "text": "x", "mode": 420}, ".": {"type": "dir"}}}"#,
    r#"{"entries": {"r": {"type": "git", "url": "https://h/r", "rev": "v1", "subpath": "a/b", "depth": 0}}}"#,
    r#"{"entries": {"f": {"type": "localFile", "path": "/etc/x"}, "d": {"type": "localDir", "path": "/d", "include": ["*"]}}}"#,
    r#"{"entries": {"b": {"type": "bytes", "base64": "AA=="}}, "env": {"A": "x", "B": {"secret": "s"}}, "setup": ["x", ["y"]]}"#,
];

const PIECES: &[&str] = &[
    "../",
    "/",
    "..",
    ".",
    "//",
    "\\u0000",
    "\\u002e.",
    "-",
    "--upload-pack=x",
    "ext::sh",
    "http://",
    "ssh://-o",
    "\"",
    "{",
    "}",
    ",",
    ":",
    "=",
    "OARLOCK_SPAWN",
    "\"type\": \"dir\"",
    "4095",
    "-1",
    "\u{0}",
    "\u{1}",
    "é",
    "\\n",
    "@",
    "file://",
    ".git",
];

/// Xorshift: no more than needed to be different each time and the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }
}

fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    match random.below(5) {
        0 if at < text.len() => text[at] ^= 1 << random.below(8),
        1 => drop(text.drain(at..(at + random.below(8)).min(text.len()))),
        _ => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
    }
}

#[test]
fn broken_and_hostile_manifests() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    SEEDS.iter().for_each(|seed| fuzzing::manifest(seed.as_bytes()));
    for _ in 0..ROUNDS {
        let mut text = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            mutate(&mut text, &mut random);
        }
        fuzzing::manifest(&text);
    }
}
