//! Whether a command or patch that the sandbox stopped may be retried without one.

use protocol::AskForApproval;

/// The kind of attempt that the sandbox stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedAttempt {
    Command,
    Patch,
}

/// Messages of programs that the sandbox stops, in lower case.
const DENIAL_WORDS: &[&str] = &[
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
];

/// 128 plus the number of `SIGSYS`: the program made a forbidden system call.
const KILLED_BY_FILTER: i32 = 128 + 31;

/// Whether it may run again without a sandbox, after a question: approval of the sandboxed attempt does not cover this.
pub fn may_retry_unsandboxed(approval: &AskForApproval, attempt: StoppedAttempt) -> bool {
    match approval {
        AskForApproval::Untrusted | AskForApproval::OnFailure => true,
        AskForApproval::OnRequest => attempt == StoppedAttempt::Patch,
        AskForApproval::Never => false,
        AskForApproval::Granular { sandbox_approval, .. } => *sandbox_approval,
    }
}

/// Whether a sandboxed command seems to have been stopped by the sandbox.
pub fn looks_denied(exit_code: i32, output: &str) -> bool {
    if exit_code == 0 {
        return false;
    }
    let output = output.to_ascii_lowercase();
    exit_code == KILLED_BY_FILTER || DENIAL_WORDS.iter().any(|words| output.contains(words))
}
