//! Carries out a plan: checks all files, stages all, then swaps all in.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{Access, AtFlags, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::applied::Applied;
use crate::boundary::Boundary;
use crate::error::{CommitError, io_at};
use crate::identity::{FileIdentity, FilePermissions};
use crate::job::{CommitJob, MissingFolders, Spot};
use crate::kernel::Kernel;
use crate::place::Area;
use crate::plan::PatchPlan;
use crate::read::read;
use crate::slot::{Content, TouchedFile};

pub(crate) fn run(plan: &PatchPlan, boundary: &Boundary, kernel: &Kernel) -> Result<Applied, CommitError> {
    let mut job = CommitJob::new(kernel);
    match carry_out(plan, boundary, &mut job) {
        Ok(()) => {
            job.finish();
            Ok(Applied::of(plan))
        }
        Err(cause) => {
            let lost = job.undo();
            if lost.is_empty() {
                Err(cause)
            } else {
                Err(CommitError::NotRestored { cause: Box::new(cause), lost })
            }
        }
    }
}

/// A slot with its open directory, and its new content, if any, in a temporary file there.
struct Staged<'p> {
    slot: &'p TouchedFile,
    spot: Spot,
    temporary: Option<(OsString, FileIdentity)>,
}

fn carry_out(plan: &PatchPlan, boundary: &Boundary, job: &mut CommitJob<'_>) -> Result<(), CommitError> {
    // The whole boundary first: not even a directory is created for a refused patch.
    let area = Area::new(boundary);
    let places: Vec<_> = plan
        .slots
        .values()
        .map(|slot| Ok((slot, area.place(&slot.at)?)))
        .collect::<Result<_, CommitError>>()?;
    let mut staged = Vec::with_capacity(places.len());
    for (slot, place) in &places {
        let make = if slot.now.is_some() && slot.found.is_none() {
            MissingFolders::Make
        } else {
            MissingFolders::Leave
        };
        let Some(spot) = job.spot(place, &slot.at.path, make)? else {
            // The directory is gone, which does not matter for a file that neither existed nor will.
            if slot.found.is_some() {
                return Err(CommitError::Changed(slot.at.path.clone()));
            }
            continue;
        };
        unchanged(job, slot, &spot)?;
        if slot.changes() {
            staged.push(stage(job, slot, spot)?);
        }
    }
    // Files are put in place before any is removed, so that a crash loses none.
    let (put, removed): (Vec<_>, Vec<_>) = staged.into_iter().partition(|staged| staged.temporary.is_some());
    for staged in put.iter().chain(&removed) {
        swap_in(job, staged)?;
    }
    Ok(())
}

/// The file must still be identical to the one that was planned.
fn unchanged(job: &CommitJob<'_>, slot: &TouchedFile, spot: &Spot) -> Result<(), CommitError> {
    let changed = || CommitError::Changed(slot.at.path.clone());
    job.kernel.step().map_err(|errno| io_at("read", &spot.path, errno))?;
    let there = read(job.kernel, job.directory(spot), Path::new(&spot.name)).map_err(|_| changed())?;
    match (&slot.found, there) {
        (None, None) => Ok(()),
        (Some(planned), Some(there))
            if planned.identity == there.identity && planned.bytes == there.bytes =>
        {
            Ok(())
        }
        _ => Err(changed()),
    }
}

fn stage<'p>(job: &mut CommitJob<'_>, slot: &'p TouchedFile, spot: Spot) -> Result<Staged<'p>, CommitError> {
    let Some(content) = &slot.now else { return Ok(Staged { slot, spot, temporary: None }) };
    let fail = |errno| io_at("write", &spot.path, errno);
    if slot.found.is_some() {
        // A new file replaces the old one, which the kernel allows even for a read-only file.
        let flags = AtFlags::EACCESS;
        rustix::fs::accessat(job.directory(&spot), &spot.name, Access::WRITE_OK, flags).map_err(fail)?;
    }
    let name = job.temporary_name().map_err(fail)?;
    let identity = write_temporary(job, &spot, &name, content).map_err(fail)?;
    Ok(Staged { slot, spot, temporary: Some((name, identity)) })
}

fn write_temporary(
    job: &mut CommitJob<'_>,
    spot: &Spot,
    name: &OsStr,
    content: &Content,
) -> Result<FileIdentity, Errno> {
    job.kernel.step()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Private until its final mode is set.
    let mode = if content.permissions.is_some() { 0o600 } else { 0o666 };
    let fd = openat(job.directory(spot), name, flags, Mode::from_raw_mode(mode))?;
    job.made_temporary(spot, name);
    job.kernel.step()?;
    let mut file = File::from(fd);
    let written = file.write_all(&content.bytes);
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if let Some(permissions) = content.permissions {
        job.kernel.step()?;
        give(&file, permissions)?;
    }
    Ok(FileIdentity::of(&rustix::fs::fstat(&file)?))
}

/// Gives the new file the owner and mode of the former one.
fn give(file: impl AsFd, permissions: FilePermissions) -> Result<(), Errno> {
    let now = FilePermissions::of(&rustix::fs::fstat(file.as_fd())?);
    let mut mode = permissions.mode;
    if (now.user, now.group) != (permissions.user, permissions.group) {
        let user = rustix::fs::Uid::from_raw(permissions.user);
        let group = rustix::fs::Gid::from_raw(permissions.group);
        if rustix::fs::fchown(file.as_fd(), Some(user), Some(group)).is_err() {
            // Another user's file that we may write becomes ours; it must not run with our rights.
            mode &= 0o777;
        }
    }
    rustix::fs::fchmod(file.as_fd(), Mode::from_raw_mode(mode))
}

fn swap_in(job: &mut CommitJob<'_>, staged: &Staged<'_>) -> Result<(), CommitError> {
    let spot = &staged.spot;
    // A name that is unexpectedly taken or free means a concurrent change.
    let fail = |doing| {
        move |errno| match errno {
            Errno::EXIST | Errno::NOENT => CommitError::Changed(spot.path.clone()),
            errno => io_at(doing, &spot.path, errno),
        }
    };
    let displaced = match (&staged.temporary, &staged.slot.found) {
        (Some((temporary, new)), Some(_)) => job.replace(spot, temporary, *new).map_err(fail("replace"))?,
        (Some((temporary, new)), None) => return job.put(spot, temporary, *new).map_err(fail("create")),
        (None, _) => job.remove(spot).map_err(fail("delete"))?,
    };
    // The file that was moved away must be the one checked before; if not, undo restores it.
    let planned = staged.slot.found.as_ref().map(|found| found.identity);
    if displaced == planned { Ok(()) } else { Err(CommitError::Changed(spot.path.clone())) }
}
