//! Properties of every text and every edit.

use std::fmt::Write as _;
use std::fs;

use oarlock_patch::{Boundary, ChangeKind, TurnDiff, invocation, parse, verify};
use proptest::prelude::*;

/// Lines that are likely to mean something to the parser.
fn patch_line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*** Begin Patch".to_owned()),
        Just("*** End Patch".to_owned()),
        Just("*** End of File".to_owned()),
        Just("@@".to_owned()),
        Just("<<'EOF'".to_owned()),
        Just("EOF".to_owned()),
        Just(String::new()),
        "\\*\\*\\* (Add|Delete|Update) File: [a-z./]{0,8}",
        "\\*\\*\\* Move to: [a-z./]{0,8}",
        "@@ [a-z ]{0,6}",
        "[ +-].{0,8}",
        ".{0,12}",
    ]
}

/// The fate of one line of a file.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Untouched,
    Kept,
    Removed,
    Replaced,
    Followed,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Untouched),
        2 => Just(Fate::Kept),
        1 => Just(Fate::Removed),
        1 => Just(Fate::Replaced),
        1 => Just(Fate::Followed),
    ];
    prop::collection::vec(fate, 1..40)
}

/// Every line of a file is unlike all others.
fn line(n: usize) -> String {
    format!("\tline {n} — “{}”", n * 7)
}

/// The same line, typed carelessly.
fn typed(n: usize) -> String {
    format!("line {n} - \"{}\" ", n * 7)
}

/// The chunks that bring the fates about, with the old lines as given, and the lines they must leave.
fn script(fates: &[Fate], given: fn(usize) -> String) -> (String, Vec<String>) {
    let (mut chunks, mut left) = (String::new(), Vec::new());
    let mut in_chunk = false;
    for (n, fate) in fates.iter().enumerate() {
        let (old, real) = (given(n), line(n));
        if matches!(fate, Fate::Untouched) {
            in_chunk = false;
            left.push(real);
            continue;
        }
        if !in_chunk {
            chunks.push_str("@@\n");
            in_chunk = true;
        }
        // Writing to a string cannot fail.
        let _ = match fate {
            Fate::Kept | Fate::Untouched => writeln!(chunks, " {old}"),
            Fate::Removed => writeln!(chunks, "-{old}"),
            Fate::Replaced => writeln!(chunks, "-{old}\n+new {n}"),
            Fate::Followed => writeln!(chunks, " {old}\n+after {n}\n+"),
        };
        match fate {
            Fate::Kept | Fate::Untouched => left.push(real),
            Fate::Removed => {}
            Fate::Replaced => left.push(format!("new {n}")),
            Fate::Followed => left.extend([real, format!("after {n}"), String::new()]),
        }
    }
    (chunks, left)
}

/// Applies a unified diff, trusting nothing but its own numbers.
fn apply_unified(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::new(), 0);
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let ends_here = lines.peek().is_some_and(|next| next.starts_with('\\'));
        let text = if ends_here { line[1..].trim_end_matches('\n') } else { &line[1..] };
        match line.as_bytes()[0] {
            b'@' => {
                let range = line.split(' ').nth(1).expect("a range");
                let (start, length) = range[1..].split_once(',').unwrap_or((&range[1..], "1"));
                let start: usize = start.parse().expect("a number");
                let start = if length == "0" { start } else { start - 1 };
                out.extend(old[at..start].iter().copied());
                at = start;
            }
            b' ' | b'-' => {
                assert_eq!(old[at], text);
                at += 1;
                if line.starts_with(' ') {
                    out.push_str(text);
                }
            }
            b'+' => out.push_str(text),
            _ => assert!(line.starts_with('\\'), "{line}"),
        }
    }
    out.extend(old[at..].iter().copied());
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_never_panics(text in "\\PC{0,80}", lines in prop::collection::vec(patch_line(), 0..14)) {
        let _ = parse(&text);
        let joined = lines.join("\n");
        let _ = parse(&joined);
        let _ = parse(&format!("*** Begin Patch\n{joined}\n*** End Patch"));
        let _ = invocation(&["sh".to_owned(), "-c".to_owned(), format!("apply_patch <<'EOF'\n{joined}\nEOF")]);
        let _ = invocation(&["sh".to_owned(), "-c".to_owned(), text]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_edits_leave_what_they_say(fates in fates(), crlf in any::<bool>(), ended in any::<bool>(), exact in any::<bool>()) {
        let workspace = tempfile::tempdir().expect("a temporary directory");
        let ending = if crlf { "\r\n" } else { "\n" };
        // The patch may be typed loosely; what it keeps is kept as it was.
        let (chunks, left) = script(&fates, if exact { line } else { typed });
        let mut before: String = (0..fates.len()).map(|n| line(n) + ending).collect();
        // The last line may lack its ending; an only line would then leave none to go by.
        if !ended && fates.len() > 1 {
            before.truncate(before.len() - ending.len());
        }
        let file = workspace.path().join("f");
        fs::write(&file, &before).expect("written");
        let patch = format!("*** Begin Patch\n*** Update File: f\n{chunks}*** End Patch");
        if chunks.is_empty() {
            prop_assert!(verify(&patch, workspace.path()).is_err());
            return Ok(());
        }
        let plan = verify(&patch, workspace.path()).expect("it fits");
        let changes = plan.changes();
        let applied = plan.commit(&Boundary::roots(vec![workspace.path().to_owned()])).expect("it commits");
        let after = fs::read_to_string(&file).expect("readable");
        let expected: String = left.iter().map(|line| line.clone() + ending).collect();
        prop_assert_eq!(&after, &expected);

        let ChangeKind::Update { unified_diff, move_path: None } = &changes[0].kind else {
            return Err(TestCaseError::fail("an update"));
        };
        prop_assert_eq!(&apply_unified(&before, unified_diff), &after);
        let mut diff = TurnDiff::new(None);
        diff.note(&applied);
        if let Some(diff) = diff.unified() {
            let hunks = diff.find("\n@@").map_or("", |at| &diff[at + 1..]);
            prop_assert_eq!(&apply_unified(&before, hunks), &after);
        } else {
            prop_assert_eq!(&before, &after);
        }
    }
}
