//! The context of a command's decision and its thread, owned, so that it can outlive its call.

use std::sync::Arc;

use protocol::{AskForApproval, GrantedPermissionProfile, ItemId, SandboxPolicy, ThreadId, TurnId};
use sandbox::CommandClock;

use super::known_roots::{KnownRoots, SearchAfter};
use super::profile::Profile;
use super::rule_book::RuleBook;
use crate::bench::BenchOptions;
use crate::call_scope::CallScope;
use crate::remote::Elsewhere;
use crate::{Sink, ToolCx};

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) approval: AskForApproval,
    pub(crate) sandbox: SandboxPolicy,
    /// The thread's folder, for which the sandbox is built. A command may run in another one.
    pub(crate) cwd: String,
    /// Set if it is not on this machine.
    pub(crate) elsewhere: Option<Elsewhere>,
    pub(crate) grants: GrantedPermissionProfile,
    pub(crate) thread_id: ThreadId,
    pub(crate) turn_id: TurnId,
    pub(crate) call_id: String,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) options: Arc<BenchOptions>,
    /// Ask a client about the command, whatever the policy says.
    pub(crate) ask_always: bool,
    pub(crate) rules: Arc<RuleBook>,
    pub(crate) clock: CommandClock,
    pub(crate) profile: Arc<Profile>,
    pub(crate) roots: Arc<KnownRoots>,
    /// Set once the command can run and write. Its drop, after the command's end, starts a search.
    pub(crate) search_after: Option<Arc<SearchAfter>>,
    /// The lifetime of what the call starts.
    pub(crate) scope: CallScope,
}

impl Setting {
    pub(crate) fn of(cx: &ToolCx) -> Self {
        let step = cx.step();
        Self {
            approval: step.approval_policy.clone(),
            sandbox: step.sandbox.clone(),
            cwd: step.cwd.clone(),
            elsewhere: cx.elsewhere(),
            grants: cx.grants().clone(),
            thread_id: cx.thread_id().clone(),
            turn_id: cx.turn_id().clone(),
            call_id: cx.call_id().to_owned(),
            sink: cx.sink().clone(),
            options: cx.bench().shared_options(),
            ask_always: cx.bench().options().asks_about(cx.name()),
            rules: cx.bench().rules(),
            clock: cx.bench().clock().clone(),
            profile: cx.bench().profile(),
            roots: cx.bench().roots(),
            search_after: None,
            scope: cx.scope().clone(),
        }
    }

    pub(crate) fn item_id(&self) -> ItemId {
        ItemId::new(self.call_id.clone())
    }
}

#[cfg(test)]
mod tests {
    use engine::{Proposal, ProposalDecision};
    use protocol::{ServerNotification, ThreadItem};

    use super::*;
    use crate::{Bench, BoxFuture};

    #[derive(Debug)]
    struct Nobody;

    impl Sink for Nobody {
        fn notify(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }

        fn propose(&self, _: Proposal) -> BoxFuture<'_, ProposalDecision> {
            Box::pin(std::future::ready(ProposalDecision::declined()))
        }

        fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
            self.notify(notification)
        }

        fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    impl Setting {
        /// Without a sandbox and without questions, in a thread without clients.
        pub(crate) fn for_tests(features: &[&str]) -> Self {
            let features = features.iter().map(|key| (*key).to_owned()).collect();
            let options = BenchOptions { features, ..crate::testing::bench().options().clone() };
            let bench = Bench::new(options);
            Self {
                approval: AskForApproval::Never,
                sandbox: SandboxPolicy::DangerFullAccess,
                cwd: "/".to_owned(),
                elsewhere: None,
                grants: GrantedPermissionProfile { network: None, file_system: None },
                thread_id: ThreadId::new("thread"),
                turn_id: TurnId::new("turn"),
                call_id: "call_1".to_owned(),
                sink: Arc::new(Nobody),
                options: bench.shared_options(),
                ask_always: false,
                rules: bench.rules(),
                clock: bench.clock().clone(),
                profile: bench.profile(),
                roots: bench.roots(),
                search_after: None,
                scope: CallScope::default(),
            }
        }
    }
}
