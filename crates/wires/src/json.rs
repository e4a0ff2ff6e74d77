//! Writing JSON into a growing buffer.

use serde::Serialize;

/// Writing text, numbers and JSON values into memory cannot fail.
pub(crate) fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// `"name":value`, with a comma before it unless it comes first.
pub(crate) fn field(out: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    key(out, name);
    write(out, value);
}

/// `"name":`, with a comma before it unless it comes first.
pub(crate) fn key(out: &mut Vec<u8>, name: &str) {
    comma(out);
    write(out, name);
    out.push(b':');
}

/// A comma, unless an object or array has just begun.
pub(crate) fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'{' | b'[')) {
        out.push(b',');
    }
}
