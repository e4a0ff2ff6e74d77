//! Manifests by the hundred, the same ones in each run: none that is accepted leads out of its workspace.

use broken_input::BrokenInput;
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

#[test]
fn broken_and_hostile_manifests() {
    BrokenInput { seeds: SEEDS, pieces: PIECES, most_changes: 4 }.each(ROUNDS, fuzzing::manifest);
}
