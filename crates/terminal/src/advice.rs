//! The way out of what was refused, or stopped by the sandbox.

/// Where commands of the turn may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAccess {
    Nowhere,
    Folder,
    Everywhere,
}

/// A piece of work that did not do what it should.
#[derive(Debug, Clone, Copy)]
pub struct FailedWork<'a> {
    /// A patch; else a command.
    pub is_edit: bool,
    /// Somebody or something said no.
    pub is_refused: bool,
    pub output: &'a str,
    pub reason: &'a str,
}

/// What would have allowed it: in words for a command line, and for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    pub flag: &'static str,
    pub session: &'static str,
}

/// Words of programs that met the walls of the sandbox.
const WALLS: &[&str] = &["Read-only file system", "Permission denied", "Operation not permitted"];
const NO_NETWORK: &[&str] =
    &["Could not resolve host", "Temporary failure in name resolution", "Network is unreachable"];

const NOBODY_ASKED: Advice = Advice {
    flag: "nobody can be asked here: `oarlock resume` goes on in a session where you are",
    session: "/approvals on-request has you asked",
};
const PROTECTED_EDIT: Advice = Advice {
    flag: "--sandbox danger-full-access lets it be written, without a sandbox",
    session: "/approvals with danger-full-access lets it be written, without a sandbox",
};
const READ_ONLY_EDIT: Advice = Advice {
    flag: "the sandbox is read-only: --sandbox workspace-write lets files be changed",
    session: "the sandbox is read-only: /approvals with workspace-write lets files be changed",
};
const OUTSIDE_EDIT: Advice = Advice {
    flag: "--add-dir DIR adds a folder that may be written to",
    session: "/approvals on-request has you asked about files outside of the folder",
};
const DELETION: Advice = Advice {
    flag: "--sandbox danger-full-access lets it run, without a sandbox; a rule can allow it inside of one",
    session: "/approvals on-request has you asked; a rule can allow it without",
};
const FORBIDDEN: Advice = Advice {
    flag: "`oarlock policy check -- COMMAND` names the rule",
    session: "`oarlock policy check -- COMMAND` names the rule",
};
const HIDDEN_FILE: Advice = Advice {
    flag: "--sandbox danger-full-access lets it be read, without a sandbox",
    session: "/approvals with danger-full-access lets it be read, without a sandbox",
};
const REJECTED: Advice = Advice {
    flag: "--sandbox danger-full-access runs commands without a sandbox; `oarlock resume` goes on in a session where \
           you can be asked",
    session: "/approvals on-request has you asked; danger-full-access runs commands without a sandbox",
};
const UNCONNECTED: Advice = Advice {
    flag: "commands have no network: --sandbox workspace-write -c sandbox_workspace_write.network_access=true gives \
           them one",
    session: "commands have no network: -c sandbox_workspace_write.network_access=true gives them one, at the next start",
};
const READ_ONLY_COMMAND: Advice = Advice {
    flag: "the sandbox is read-only: --sandbox workspace-write lets commands write to the folder",
    session: "the sandbox is read-only: /approvals with workspace-write lets commands write to the folder",
};
const OUTSIDE_COMMAND: Advice = Advice {
    flag: "commands may write to the folder alone: --add-dir DIR adds another",
    session: "commands may write to the folder alone: /approvals on-request has you asked about the rest",
};

/// Nothing where nothing would have helped.
pub fn advice(work: &FailedWork<'_>, access: WriteAccess) -> Option<Advice> {
    let has = |words: &[&str]| words.iter().any(|word| work.output.contains(word));
    let is_confined = access != WriteAccess::Everywhere;
    match (work.is_edit, work.is_refused) {
        (true, true) if is_confined && work.reason.contains("is protected") => Some(PROTECTED_EDIT),
        (true, true) => Some(match access {
            WriteAccess::Nowhere => READ_ONLY_EDIT,
            WriteAccess::Folder => OUTSIDE_EDIT,
            WriteAccess::Everywhere => NOBODY_ASKED,
        }),
        (false, true) if has(&["deletes without asking back"]) => Some(DELETION),
        (false, true) if has(&["a rule forbids"]) => Some(FORBIDDEN),
        (false, true) if has(&["may read"]) => Some(HIDDEN_FILE),
        (false, true) if is_confined && has(&["reject command"]) => Some(REJECTED),
        (false, true) => Some(NOBODY_ASKED),
        (false, false) if is_confined && has(NO_NETWORK) => Some(UNCONNECTED),
        (false, false) if has(WALLS) => match access {
            WriteAccess::Nowhere => Some(READ_ONLY_COMMAND),
            WriteAccess::Folder => Some(OUTSIDE_COMMAND),
            WriteAccess::Everywhere => None,
        },
        _ => None,
    }
}
