//! The second layer, the kernel's own access rules: it protects even where a mount was forgotten.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, fstat};

use super::failure::At;
use super::sys;
use super::wire::{StartFailure, StartStage};

/// The first version with rules for truncating files, without which it is no sufficient barrier.
const ENOUGH_ALONE: i32 = 3;

/// The first version that restricts signals and Unix sockets.
const SCOPES: i32 = 6;

/// The paths and the access that is allowed to each.
pub(crate) struct LandlockRules {
    pub(crate) readable: Vec<PathBuf>,
    /// Folders that may be listed, recursively.
    pub(crate) listable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) network: bool,
}

/// The version of the running kernel, 0 for none.
pub(crate) fn version() -> i32 {
    sys::landlock_version()
}

/// Whether it suffices without namespaces.
pub(crate) fn is_enough_alone() -> bool {
    version() >= ENOUGH_ALONE
}

/// The enforced part of the rules. The supervisor has the same file rules as its command, but must stay out of its
/// reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LandlockPart {
    All,
    /// Files and network.
    Access,
    /// Signals, abstract Unix sockets, and creating names, which only the supervisor may do.
    Supervised,
}

/// Access that a supervised command is refused everywhere. The supervisor creates these names from its own copy of the
/// path, so changing the path after its check has no effect. Sockets are missing here: a command binds them itself.
fn left_to_supervisor() -> BitFlags<AccessFs> {
    AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::MakeFifo
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
}

/// Restricts this process and all it starts, as far as the running kernel supports.
pub(crate) fn enforce(rules: &LandlockRules, part: LandlockPart) -> Result<(), StartFailure> {
    let version = version();
    let Some(abi) = known(version) else {
        return Err(StartFailure::new(
            StartStage::Landlock,
            "this kernel has no Landlock, or it is switched off",
        ));
    };
    let status = restrict(rules, part, version, abi).at(StartStage::Landlock, "set up Landlock")?;
    match status {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err(StartFailure::new(StartStage::Landlock, "Landlock was not fully enforced")),
    }
}

fn known(version: i32) -> Option<ABI> {
    Some(match version {
        ..=0 => return None,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        _ => ABI::V8,
    })
}

fn restrict(
    rules: &LandlockRules,
    part: LandlockPart,
    version: i32,
    abi: ABI,
) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    if part != LandlockPart::Access && version >= SCOPES {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    if part == LandlockPart::Supervised {
        return Ok(ruleset.handle_access(left_to_supervisor())?.create()?.restrict_self()?.ruleset);
    }
    ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
    if !rules.network && version >= 4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    let mut ruleset = ruleset.create()?;
    for path in &rules.readable {
        ruleset = allow(ruleset, path, AccessFs::from_read(abi), abi)?;
    }
    for path in &rules.listable {
        ruleset = allow(ruleset, path, AccessFs::ReadDir.into(), abi)?;
    }
    for path in &rules.writable {
        ruleset = allow(ruleset, path, AccessFs::from_all(abi), abi)?;
    }
    let devices = (AccessFs::from_all(abi) & AccessFs::from_file(abi)) & !AccessFs::Execute;
    ruleset = allow(ruleset, Path::new("/dev"), devices, abi)?;
    for stdio in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()] {
        ruleset = allow_terminal(ruleset, stdio, devices)?;
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

/// A path that does not exist or cannot be opened needs no rule.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(ruleset) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(abi) };
    ruleset.add_rule(PathBeneath::new(opened, access))
}

/// The terminal may come from a `/dev` that is not visible, and scripts open it again as `/dev/stderr`.
fn allow_terminal(
    ruleset: RulesetCreated,
    stdio: BorrowedFd<'_>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let is_device =
        fstat(stdio).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice);
    if is_device { ruleset.add_rule(PathBeneath::new(stdio.as_fd(), access)) } else { Ok(ruleset) }
}
