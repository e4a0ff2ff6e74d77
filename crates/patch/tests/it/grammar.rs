//! The grammar of patches, and the errors for other texts.

use oarlock_patch::{Hunk, Patch, PatchChunk, PatchLine, parse};

fn check(text: &str, expected: &[Hunk]) {
    assert_eq!(parse(text), Ok(Patch { hunks: expected.to_vec() }), "{text}");
}

fn refused(text: &str, expected: &str) {
    let error = parse(text).expect_err(text).to_string();
    assert!(error.starts_with(expected), "{text}\ngot      {error}\nexpected {expected}");
}

fn body(lines: &str) -> String {
    format!("*** Begin Patch\n{lines}\n*** End Patch")
}

fn add(path: &str, content: &str) -> Hunk {
    Hunk::Add { path: path.to_owned(), content: content.to_owned() }
}

fn update(path: &str, move_to: Option<&str>, chunks: Vec<PatchChunk>) -> Hunk {
    Hunk::Update { path: path.to_owned(), move_to: move_to.map(str::to_owned), chunks }
}

fn chunk(context: Option<&str>, lines: &str, end_of_file: bool) -> PatchChunk {
    let line = |line: &str| match line.split_at(line.len().min(1)) {
        ("-", text) => PatchLine::Old(text.to_owned()),
        ("+", text) => PatchLine::New(text.to_owned()),
        (_, text) => PatchLine::Keep(text.to_owned()),
    };
    PatchChunk {
        context: context.map(str::to_owned),
        lines: lines.split('|').map(line).collect(),
        end_of_file,
    }
}

#[test]
fn additions() {
    check(&body("*** Add File: a.txt\n+one\n+\n+two"), &[add("a.txt", "one\n\ntwo\n")]);
    check(&body("*** Add File: empty"), &[add("empty", "")]);
    check(&body("*** Add File: a b/ c.txt  \n++x"), &[add("a b/ c.txt", "+x\n")]);
    check("*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n", &[add("a", "x\n")]);
}

#[test]
fn deletions_and_several_hunks() {
    let delete = Hunk::Delete { path: "x".to_owned() };
    check(&body("*** Delete File: x\n*** Add File: x\n+1"), &[delete, add("x", "1\n")]);
    check("*** Begin Patch\n*** End Patch", &[]);
}

#[test]
fn updates() {
    let one = |lines| update("f", None, vec![chunk(None, lines, false)]);
    check(&body("*** Update File: f\n@@\n-a\n+b"), &[one("-a|+b")]);
    check(&body("*** Update File: f\n-a\n+b"), &[one("-a|+b")]);
    check(&body("*** Update File: f\n\n\n@@\n a"), &[one(" a")]);
    check(&body("*** Update File: f\n@@\n a\n\n-b"), &[one(" a||-b")]);
    check(&body("*** Update File: f\n@@ \n a"), &[one(" a")]);
    check(
        &body("*** Update File: f\n*** Move to: g \n@@ fn x()\n-a\n+b\n*** End of File\n\n@@\n c"),
        &[update("f", Some("g"), vec![chunk(Some("fn x()"), "-a|+b", true), chunk(None, " c", false)])],
    );
}

#[test]
fn markers_may_be_indented_and_wrapped() {
    check("\n  *** Begin Patch\n  *** Add File: a\n+x\n   *** End Patch  \n", &[add("a", "x\n")]);
    for open in ["<<EOF", "<<'EOF'", "<<\"EOF\""] {
        check(&format!("{open}\n{}\nEOF", body("*** Add File: a\n+x")), &[add("a", "x\n")]);
    }
    refused("<<\"EOF'\n*** Begin Patch\n*** End Patch\nEOF", "invalid patch: ");
    refused("<<EOF\n*** Begin Patch\n*** End Patch", "invalid patch: ");
    refused("<<EOF\n*** Begin Patch\nEOF", "invalid patch: ");
}

#[test]
fn what_is_missing_is_named() {
    refused("", "invalid patch: it must begin");
    refused("foo\n*** End Patch", "invalid patch: it must begin");
    refused("*** Begin Patch", "invalid patch: it must end");
    refused("*** Begin Patch\n*** Add File: x\n+a", "invalid patch: it must end");
}

#[test]
fn the_line_that_does_not_belong_is_named() {
    for (lines, expected) in [
        (
            "nonsense",
            "invalid hunk at line 2, 'nonsense' is not a valid hunk header. Valid hunk headers: \
             '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'",
        ),
        ("*** Add File: a\n+x\nfoo", "invalid hunk at line 4, 'foo' is not"),
        ("*** Add File: a\n+x\n\n*** Delete File: b", "invalid hunk at line 4, '' is not"),
        ("*** Add File: \n+a", "invalid hunk at line 2, '*** Add File:' is not"),
        ("*** Begin Patch\n*** Add File: a", "invalid hunk at line 2, '*** Begin Patch' is not"),
        ("*** Add File: a\n*** End Patch\nfoo", "invalid hunk at line 3, '*** End Patch' is not"),
        ("*** Update File: f", "invalid hunk at line 2, the update of 'f' changes nothing"),
        ("*** Update File: f\n*** Move to: g", "invalid hunk at line 2, the update of 'f'"),
        ("*** Update File: f\n\n*** Move to: g\n@@\n a", "invalid hunk at line 2, the update of 'f'"),
        ("*** Update File: f\n@@", "invalid hunk at line 4, the chunk has no lines"),
        ("*** Update File: f\n@@\n*** End of File", "invalid hunk at line 4, the chunk has no lines"),
        ("*** Update File: f\n@@ a\n@@ b\n-b", "invalid hunk at line 4, a line of a chunk"),
        ("*** Update File: f\n@@\nxone", "invalid hunk at line 4, a line of a chunk"),
        ("*** Update File: f\n@@\n one\nxone", "invalid hunk at line 5, a further chunk begins"),
        ("*** Update File: f\n-a\n*** End of File\n b", "invalid hunk at line 5, a further chunk begins"),
        ("*** Update File: f\n@@\n a\n***foo", "invalid hunk at line 5, '***foo' is not"),
    ] {
        refused(&body(lines), expected);
    }
    refused("<<EOF\n*** Begin Patch\nfoo\n*** End Patch\nEOF", "invalid hunk at line 3, ");
}
