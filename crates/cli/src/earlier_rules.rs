//! The sandbox and the approvals that a stored thread last had. A thread that goes on keeps them, unless the command line
//! says otherwise.

use protocol::{AskForApproval, SandboxMode, SandboxPolicy, ThreadId};
use runtime::config::Home;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// From the context of the thread's last turn. Nothing where the thread had none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EarlierRules {
    pub(crate) sandbox: Option<SandboxPolicy>,
    pub(crate) approvals: Option<AskForApproval>,
}

impl EarlierRules {
    /// Reads the thread's record, and locks and writes nothing. One that cannot be read is complained about by whoever
    /// opens it.
    pub(crate) fn of(home: &Home, thread: &ThreadId) -> Self {
        let context = journal::look_up(home.state(), thread).ok().and_then(|read| read.history.turn_context);
        context.map(|context| Self::in_context(&context)).unwrap_or_default()
    }

    fn in_context(context: &Value) -> Self {
        Self { sandbox: member(context, "sandbox"), approvals: member(context, "approvalPolicy") }
    }

    /// As far as a mode can say it; the rest comes from the configuration.
    pub(crate) fn mode(&self) -> Option<SandboxMode> {
        match self.sandbox.as_ref()? {
            SandboxPolicy::DangerFullAccess => Some(SandboxMode::DangerFullAccess),
            SandboxPolicy::ReadOnly { .. } => Some(SandboxMode::ReadOnly),
            SandboxPolicy::WorkspaceWrite { .. } => Some(SandboxMode::WorkspaceWrite),
            SandboxPolicy::ExternalSandbox { .. } => None,
        }
    }

    /// The difference between the thread's sandbox and the one of now, in a sentence.
    pub(crate) fn lost(&self, now: &SandboxPolicy, words: fn(&SandboxPolicy) -> String) -> Option<String> {
        let before = self.sandbox.as_ref().filter(|before| *before != now)?;
        let (before, now) = (words(before), words(now));
        (before != now).then(|| format!("the sandbox of this thread was: {before}; from now on it is: {now}"))
    }
}

fn member<T: DeserializeOwned>(context: &Value, name: &str) -> Option<T> {
    context.get(name).and_then(|value| protocol::from_value(value).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_context_tells_the_rules_and_what_changed() {
        let context = json!({
            "approvalPolicy": "on-request",
            "sandbox": { "type": "workspaceWrite", "networkAccess": true },
            "model": "x",
        });
        let rules = EarlierRules::in_context(&context);
        assert_eq!(
            (rules.mode(), rules.approvals.clone()),
            (Some(SandboxMode::WorkspaceWrite), Some(AskForApproval::OnRequest))
        );
        let words = |policy: &SandboxPolicy| format!("{}", policy == &SandboxPolicy::DangerFullAccess);
        let told = rules.lost(&SandboxPolicy::DangerFullAccess, words);
        assert_eq!(told.as_deref(), Some("the sandbox of this thread was: false; from now on it is: true"));
        assert_eq!(rules.sandbox.as_ref().and_then(|same| rules.lost(same, words)), None);
        assert_eq!(EarlierRules::in_context(&json!({ "sandbox": 3 })), EarlierRules::default());
    }
}
