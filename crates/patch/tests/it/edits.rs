//! Where chunks land, and what is left in the file.

use std::fs;

use oarlock_patch::{Boundary, verify};

/// Applies chunks to a file of its own; the result is the new text or the end of the error.
fn edit(text: &str, chunks: &str) -> Result<String, String> {
    let workspace = tempfile::tempdir().expect("a temporary directory");
    let file = workspace.path().join("f");
    fs::write(&file, text).expect("written");
    let patch = format!("*** Begin Patch\n*** Update File: f\n{chunks}\n*** End Patch");
    let plan = verify(&patch, workspace.path()).map_err(|error| {
        assert_eq!(fs::read_to_string(&file).expect("readable"), text, "a plan writes nothing");
        error.to_string().replace(&format!("{}/", workspace.path().display()), "")
    })?;
    plan.commit(&Boundary::roots(vec![workspace.path().to_owned()])).map_err(|error| error.to_string())?;
    assert_eq!(fs::read_dir(workspace.path()).expect("readable").count(), 1, "no temporary file stays");
    Ok(fs::read_to_string(&file).expect("readable"))
}

fn check(text: &str, chunks: &str, expected: &str) {
    assert_eq!(edit(text, chunks).as_deref(), Ok(expected), "{text:?} {chunks:?}");
}

fn refused(text: &str, chunks: &str, expected: &str) {
    let expected = format!("apply_patch verification failed: {expected}");
    assert_eq!(edit(text, chunks), Err(expected), "{text:?} {chunks:?}");
}

#[test]
fn replaces_where_the_lines_are() {
    check("a\nb\nc\n", "@@\n-b\n+B", "a\nB\nc\n");
    check("a\nb\nc\n", "-a\n+A\n b", "A\nb\nc\n");
    check("a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D\n+E", "A\nb\nc\nD\nE\n");
    check("x\nx\nx\n", "@@\n-x\n+1\n@@\n-x\n+2", "1\n2\nx\n");
    check("a\nb\n", "@@\n-a\n-b", "");
    check("a\nb\n", "@@\n a\n+new\n b", "a\nnew\nb\n");
}

#[test]
fn context_lines_lead_to_the_place() {
    check("f\nx\ng\nx\n", "@@ g\n-x\n+y", "f\nx\ng\ny\n");
    check("f\nx\ng\nx\n", "@@   g  \n-x\n+y", "f\nx\ng\ny\n");
    refused("f\nx\n", "@@ nope\n-x\n+y", "context 'nope' not found in f");
    refused("x\ng\n", "@@ g\n-x\n+y", "lines not found in f:\nx");
}

#[test]
fn pure_additions_go_to_the_end() {
    check("a\nb\n", "@@ a\n+new", "a\nb\nnew\n");
    check("a\n\n", "@@\n+new", "a\nnew\n\n");
    check("", "@@\n+new", "new\n");
    check("a\n", "@@\n+1\n@@\n+2\n@@\n-a\n+A", "A\n1\n2\n");
    check("a", "@@\n+new", "a\nnew\n");
}

#[test]
fn loosens_step_by_step_over_the_whole_file() {
    // An exact match further down wins over a loose one further up.
    check("a  \na\n", "@@\n-a\n+b", "a  \nb\n");
    check("  a\na \n", "@@\n-a\n+b", "  a\nb\n");
    check("\tif x {\n", "@@\n-if x {\n+if y {", "if y {\n");
    check("say “hi” – ok\u{a0}now\n", "@@\n-say \"hi\" - ok now\n+bye", "bye\n");
    check("it’s\n", "@@\n-it's\n+its", "its\n");
}

#[test]
fn kept_lines_keep_their_bytes() {
    check("a  \nb\n“q”\n", "@@\n a\n-b\n+B\n \"q\"", "a  \nB\n“q”\n");
    check("a\nb\n\n", "@@\n-a\n+A", "A\nb\n\n");
}

#[test]
fn the_end_of_file_marker_means_only_the_end() {
    check("a\nb\na\nb\n", "@@\n-b\n+Z\n*** End of File", "a\nb\na\nZ\n");
    refused("a\nb\n", "@@\n-a\n+Z\n*** End of File", "lines not found in f:\na");
    refused("a\nb\nc\n", "@@\n-b\n-c\n+Z\n@@\n-c\n+Q\n*** End of File", "lines not found in f:\nc");
}

#[test]
fn chunks_only_move_forward() {
    refused("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A", "lines not found in f:\na");
    refused("a\nb\nc\nd\n", "@@\n a\n-b\n+B\n c\n@@\n c\n-d\n+D", "lines not found in f:\nc\nd");
}

#[test]
fn a_blank_last_line_may_be_missing() {
    check("a\nb\n", "@@\n-b\n+B\n\n@@\n+end", "a\nB\nend\n");
    check("a\nb", "@@\n a\n-b\n-\n+B\n+", "a\nB\n");
    refused("a\n", "@@\n-a\n\n\n+B", "lines not found in f:\na\n\n");
}

#[test]
fn line_endings_stay() {
    check("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+B2\n c", "a\r\nB\r\nB2\r\nc\r\n");
    check("a\r\nb\r\n", "@@\n+end", "a\r\nb\r\nend\r\n");
    check("a\r\nb", "@@\n-b\n+B", "a\r\nB\r\n");
    check("a\r\nb\r\nc", "@@\n-c\n+C", "a\r\nb\r\nC\r\n");
    // In a file with both, a new line ends like the one it stands for.
    check("a\r\nb\nc\n", "@@\n-a\n+A", "A\r\nb\nc\n");
    check("a\nb\r\nc\n", "@@\n-b\n+B\n c", "a\nB\r\nc\n");
    check("lone\rreturn\n", "@@\n-lone\rreturn\n+x", "x\n");
}

#[test]
fn the_result_ends_with_a_line_ending() {
    check("a\nb", "@@\n-a\n+A", "A\nb\n");
    check("a", "@@\n a\n+b", "a\nb\n");
}
