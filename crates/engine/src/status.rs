//! A thread's status, derived from facts about it.

use protocol::{ThreadActiveFlag, ThreadStatus};

/// The facts behind the status of a loaded thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    pub(crate) running: bool,
    pub(crate) broken: bool,
    pub(crate) waiting_approvals: u32,
    pub(crate) waiting_answers: u32,
}

impl Facts {
    pub(crate) fn status(&self) -> ThreadStatus {
        let mut active_flags = Vec::new();
        if self.waiting_approvals > 0 {
            active_flags.push(ThreadActiveFlag::WaitingOnApproval);
        }
        if self.waiting_answers > 0 {
            active_flags.push(ThreadActiveFlag::WaitingOnUserInput);
        }
        if self.running || !active_flags.is_empty() {
            ThreadStatus::Active { active_flags }
        } else if self.broken {
            ThreadStatus::SystemError
        } else {
            ThreadStatus::Idle
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_counts_as_active_and_flags_keep_their_order() {
        let facts = Facts { broken: true, waiting_approvals: 1, waiting_answers: 2, ..Facts::default() };
        let expected = vec![ThreadActiveFlag::WaitingOnApproval, ThreadActiveFlag::WaitingOnUserInput];
        assert_eq!(facts.status(), ThreadStatus::Active { active_flags: expected });
        assert_eq!(Facts { broken: true, ..Facts::default() }.status(), ThreadStatus::SystemError);
        assert_eq!(Facts::default().status(), ThreadStatus::Idle);
    }
}
