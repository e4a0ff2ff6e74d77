//! Plans the resulting content of every file, before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::Mode;

use crate::applied::Applied;
use crate::boundary::Boundary;
use crate::change::{self, PlannedChange};
use crate::edit::{Misfit, edited};
use crate::error::{CommitError, PlanError, VerifyError};
use crate::identity::{NotRegular, is_a_directory};
use crate::kernel::{AS_DIRECTORY, Kernel};
use crate::limits::{MAX_FILE_BYTES, MAX_QUOTED_BYTES, MAX_TOTAL_BYTES};
use crate::names::shown_text;
use crate::patch::{Hunk, Patch, PatchChunk};
use crate::place::Area;
use crate::plan_digest;
use crate::read::{FileReadError, read};
use crate::resolve::Resolver;
use crate::slot::{Content, TouchedFile};
use crate::{commit, parse};

/// The planned effects of a patch on the current disk. Exactly the checked plan is committed.
#[derive(Debug)]
pub struct PatchPlan {
    /// By resolved path, so that two spellings of one file meet.
    pub(crate) slots: BTreeMap<PathBuf, TouchedFile>,
    operations: Vec<(char, String)>,
    digest: [u8; 32],
}

/// Reads and plans a patch text; the error is what the model is told.
///
/// # Errors
/// The text is no patch, or it does not fit the disk.
pub fn verify(text: &str, base: &Path) -> Result<PatchPlan, VerifyError> {
    Ok(plan(&parse::parse(text)?, base)?)
}

/// Plans a patch whose relative paths begin at `base`. Reads the disk and writes nothing.
///
/// # Errors
/// Says which file does not fit and why. Hunks see what the hunks before them will have done.
pub fn plan(patch: &Patch, base: &Path) -> Result<PatchPlan, PlanError> {
    if patch.hunks.is_empty() {
        return Err(PlanError::Empty);
    }
    let mut planner = Planner::new(base)?;
    for hunk in &patch.hunks {
        planner.hunk(hunk)?;
    }
    planner.check_nesting()?;
    let digest = plan_digest::digest(patch, &planner.slots);
    Ok(PatchPlan { slots: planner.slots, operations: planner.operations, digest })
}

impl PatchPlan {
    /// Every file of the patch as an absolute path, including destinations of moves. A file behind a symbolic link is
    /// listed twice: as spelled, and resolved.
    pub fn targets(&self) -> impl Iterator<Item = &Path> {
        self.slots.values().flat_map(|slot| {
            let real = slot.at.linked.then_some(slot.at.real.as_path());
            std::iter::once(slot.at.path.as_path()).chain(real)
        })
    }

    /// The changes for clients: one per file, in the order of their paths.
    #[must_use]
    pub fn changes(&self) -> Vec<PlannedChange> {
        change::changes(&self.slots)
    }

    /// The text for the model once the plan has been committed.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::from("Success. Updated the following files:\n");
        for wanted in ['A', 'M', 'D'] {
            for (kind, path) in self.operations.iter().filter(|(kind, _)| *kind == wanted) {
                text.extend([kind.to_string().as_str(), " ", &shown_text(path), "\n"]);
            }
        }
        text
    }

    /// Covers the patch, its targets and the exact state of every planned file. Equal digests mean equal effects, so
    /// approving the digest approves exactly this.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether the boundary lets every file of the plan be written, as far as can be said before it is carried out.
    ///
    /// # Errors
    /// The first file that it does not, and why.
    pub fn check(&self, boundary: &Boundary) -> Result<(), CommitError> {
        let area = Area::new(boundary);
        self.slots.values().try_for_each(|slot| area.place(&slot.at).map(drop))
    }

    /// Carries the plan out: all of it, or nothing.
    ///
    /// # Errors
    /// A file is outside the boundary, changed since it was read, or could not be written. Every file is then as it
    /// was, except after `NotRestored`, which names what is not.
    pub fn commit(&self, boundary: &Boundary) -> Result<Applied, CommitError> {
        commit::run(self, boundary, &Kernel::default())
    }
}

/// Why a file is read, for the error message.
#[derive(Clone, Copy)]
enum ReadPurpose {
    Add,
    Delete,
    Update,
}

struct Planner {
    resolver: Resolver,
    kernel: Kernel,
    root: OwnedFd,
    slots: BTreeMap<PathBuf, TouchedFile>,
    operations: Vec<(char, String)>,
    held: u64,
}

impl Planner {
    fn new(base: &Path) -> Result<Self, PlanError> {
        let resolver = Resolver::new(base)?;
        let root = rustix::fs::open("/", AS_DIRECTORY, Mode::empty())
            .map_err(|errno| PlanError::Base { path: base.to_owned(), source: errno.into() })?;
        let (slots, operations) = (BTreeMap::new(), Vec::new());
        Ok(Self { resolver, kernel: Kernel::default(), root, slots, operations, held: 0 })
    }

    fn hunk(&mut self, hunk: &Hunk) -> Result<(), PlanError> {
        match hunk {
            Hunk::Add { path, content } => {
                self.hold(content.len())?;
                let slot = self.slot(path, ReadPurpose::Add)?;
                if content.len() as u64 > MAX_FILE_BYTES {
                    return Err(PlanError::TooLarge(slot.at.path.clone()));
                }
                let permissions = slot.now.as_ref().and_then(|now| now.permissions);
                slot.now = Some(Content { bytes: content.as_bytes().into(), permissions, origin: None });
                self.operations.push(('A', path.clone()));
            }
            Hunk::Delete { path } => {
                let slot = self.slot(path, ReadPurpose::Delete)?;
                present(slot, ReadPurpose::Delete)?;
                slot.now = None;
                self.operations.push(('D', path.clone()));
            }
            Hunk::Update { path, move_to, chunks } => {
                self.update(path, move_to.as_deref(), chunks)?;
                self.operations.push(('M', move_to.as_ref().unwrap_or(path).clone()));
            }
        }
        Ok(())
    }

    fn update(&mut self, path: &str, move_to: Option<&str>, chunks: &[PatchChunk]) -> Result<(), PlanError> {
        let slot = self.slot(path, ReadPurpose::Update)?;
        let (text, content) = present(slot, ReadPurpose::Update)?;
        let text = edited(text, chunks).map_err(|misfit| misfit_at(&slot.at.path, misfit))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(PlanError::TooLarge(slot.at.path.clone()));
        }
        let bytes: Arc<[u8]> = text.into_bytes().into();
        let updated = Content { bytes: Arc::clone(&bytes), ..content.clone() };
        let source = slot.at.real.clone();
        slot.now = Some(updated.clone());
        self.hold(bytes.len())?;
        let Some(destination) = move_to else { return Ok(()) };
        let destination = self.slot(destination, ReadPurpose::Add)?;
        // A file that is moved onto itself stays.
        if destination.at.real != source {
            destination.now = Some(updated);
            if let Some(slot) = self.slots.get_mut(&source) {
                slot.now = None;
            }
        }
        Ok(())
    }

    /// The slot of a path, read from disk on first use.
    fn slot(&mut self, written: &str, purpose: ReadPurpose) -> Result<&mut TouchedFile, PlanError> {
        let at = self.resolver.resolve(written)?;
        let key = at.real.clone();
        if !self.slots.contains_key(&key) {
            let beneath_root = key.strip_prefix("/").unwrap_or(&key);
            let found = read(&self.kernel, &self.root, beneath_root)
                .map_err(|error| read_error(&at.path, purpose, error))?;
            self.hold(found.as_ref().map_or(0, |found| found.bytes.len()))?;
            self.slots.insert(key.clone(), TouchedFile::new(at, found));
        }
        self.slots.get_mut(&key).ok_or(PlanError::Empty)
    }

    fn hold(&mut self, bytes: usize) -> Result<(), PlanError> {
        self.held = self.held.saturating_add(bytes as u64);
        if self.held > MAX_TOTAL_BYTES { Err(PlanError::TooMuch) } else { Ok(()) }
    }

    /// No file may be inside another file, including new and removed ones.
    fn check_nesting(&self) -> Result<(), PlanError> {
        let files: BTreeSet<&Path> = self
            .slots
            .values()
            .filter(|slot| slot.found.is_some() || slot.now.is_some())
            .map(|slot| slot.at.real.as_path())
            .collect();
        for file in &files {
            if let Some(above) = file.ancestors().skip(1).find(|above| files.contains(above)) {
                return Err(PlanError::FileAndDirectory(above.to_owned()));
            }
        }
        Ok(())
    }
}

/// The text a slot holds at this point of the patch.
fn present(slot: &TouchedFile, purpose: ReadPurpose) -> Result<(&str, &Content), PlanError> {
    let fail = |source: io::Error| read_error(&slot.at.path, purpose, FileReadError::Io(source));
    let content = slot.now.as_ref().ok_or_else(|| fail(rustix::io::Errno::NOENT.into()))?;
    let text = str::from_utf8(&content.bytes).map_err(|_| fail(io::Error::other("it is not valid UTF-8")))?;
    Ok((text, content))
}

fn read_error(path: &Path, purpose: ReadPurpose, error: FileReadError) -> PlanError {
    let path = path.to_owned();
    let source = match error {
        FileReadError::Io(source) => source,
        FileReadError::TooLarge => return PlanError::TooLarge(path),
        FileReadError::NotRegular(NotRegular::Symlink) => return PlanError::Symlink(path),
        FileReadError::NotRegular(NotRegular::Special(what)) => return PlanError::Special { path, what },
        FileReadError::NotRegular(NotRegular::Directory) => is_a_directory(),
    };
    match purpose {
        ReadPurpose::Add => PlanError::Write { path, source },
        ReadPurpose::Delete => PlanError::ReadForDelete { path, source },
        ReadPurpose::Update => PlanError::ReadForUpdate { path, source },
    }
}

fn misfit_at(path: &Path, misfit: Misfit) -> PlanError {
    let path = path.to_owned();
    match misfit {
        Misfit::Context(context) => PlanError::ContextNotFound { path, context },
        Misfit::Lines(lines) => {
            let mut lines = lines.join("\n");
            if lines.len() > MAX_QUOTED_BYTES {
                let end = (0..=MAX_QUOTED_BYTES).rev().find(|end| lines.is_char_boundary(*end));
                lines.truncate(end.unwrap_or_default());
                lines.push('…');
            }
            PlanError::LinesNotFound { path, lines }
        }
    }
}
