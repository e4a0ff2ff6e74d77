//! The digest that an approval covers.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256, digest as hash};

use crate::patch::{Hunk, Patch, PatchLine};
use crate::slot::TouchedFile;

/// Every field is preceded by its length, so that no two plans have the same input.
struct DigestFields(Context);

impl DigestFields {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// None differs from an empty text.
    fn option(&mut self, text: Option<&String>) {
        self.add(if text.is_some() { b"some" } else { b"none" });
        self.add(text.map_or(&[], |text| text.as_bytes()));
    }

    fn path(&mut self, path: &Path) {
        self.add(path.as_os_str().as_bytes());
    }
}

/// SHA-256 over the patch, its absolute targets, and the identity and content of every file that was read.
pub(crate) fn digest(patch: &Patch, slots: &BTreeMap<PathBuf, TouchedFile>) -> [u8; 32] {
    let mut fields = DigestFields(Context::new(&SHA256));
    for hunk in &patch.hunks {
        add_hunk(&mut fields, hunk);
    }
    for slot in slots.values() {
        fields.add(b"target");
        fields.path(&slot.at.path);
        fields.path(&slot.at.real);
        match &slot.found {
            None => fields.add(b"absent"),
            Some(found) => {
                fields.add(&found.identity.to_bytes());
                fields.add(&found.permissions.mode.to_le_bytes());
                fields.add(hash(&SHA256, &found.bytes).as_ref());
            }
        }
    }
    let mut out = [0; 32];
    for (to, from) in out.iter_mut().zip(fields.0.finish().as_ref()) {
        *to = *from;
    }
    out
}

fn add_hunk(fields: &mut DigestFields, hunk: &Hunk) {
    match hunk {
        Hunk::Add { path, content } => {
            fields.add(b"add");
            fields.add(path.as_bytes());
            fields.add(content.as_bytes());
        }
        Hunk::Delete { path } => {
            fields.add(b"delete");
            fields.add(path.as_bytes());
        }
        Hunk::Update { path, move_to, chunks } => {
            fields.add(b"update");
            fields.add(path.as_bytes());
            fields.option(move_to.as_ref());
            for chunk in chunks {
                fields.add(if chunk.end_of_file { b"chunk at end" } else { b"chunk" });
                fields.option(chunk.context.as_ref());
                for line in &chunk.lines {
                    let (marker, text) = match line {
                        PatchLine::Keep(text) => (b" ", text),
                        PatchLine::Old(text) => (b"-", text),
                        PatchLine::New(text) => (b"+", text),
                    };
                    fields.add(marker);
                    fields.add(text.as_bytes());
                }
            }
        }
    }
}
