//! Whether a command or a patch that the sandbox stopped may be tried again without one.

use protocol::AskForApproval;

/// The kind of attempt that the sandbox stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedAttempt {
    Command,
    Patch,
}

/// Words that programs print when the sandbox stops them, in small letters.
const DENIAL_WORDS: &[&str] = &[
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
];

/// 128 and the number of `SIGSYS`: the end of a program that made a system call it may not make.
const KILLED_BY_FILTER: i32 = 128 + 31;

/// Whether it may be run again without a sandbox, after asking: a yes to a sandboxed attempt is no yes to this.
pub fn may_retry_unsandboxed(approval: &AskForApproval, attempt: StoppedAttempt) -> bool {
    match approval {
        AskForApproval::Untrusted | AskForApproval::OnFailure => true,
        AskForApproval::OnRequest => attempt == StoppedAttempt::Patch,
        AskForApproval::Never => false,
        AskForApproval::Granular { sandbox_approval, .. } => *sandbox_approval,
    }
}

/// Whether the end of a sandboxed command looks as if the sandbox had stopped it.
pub fn looks_denied(exit_code: i32, output: &str) -> bool {
    if exit_code == 0 {
        return false;
    }
    let output = output.to_ascii_lowercase();
    exit_code == KILLED_BY_FILTER || DENIAL_WORDS.iter().any(|words| output.contains(words))
}
