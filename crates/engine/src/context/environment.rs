//! Where the model's commands run.

use protocol::EnvironmentId;
use serde::{Deserialize, Serialize};

use super::neutral::value;
use super::{Fragment, Role, StepFragment};
use crate::{EnvironmentState, Step};

pub(crate) struct Environment<'a> {
    step: &'a Step,
    /// Between turns the folder is sent only if it changed.
    with_cwd: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EnvironmentFacts {
    cwd: String,
    current_date: String,
    timezone: String,
    /// The chosen environments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    environments: Vec<(EnvironmentId, String, EnvironmentState)>,
    /// No environment is available.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nowhere: bool,
}

impl Fragment for Environment<'_> {
    const NAME: &'static str = "environment";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<environment_context>";
    const END: &'static str = "</environment_context>";

    fn body(&self) -> String {
        let Step { cwd, shell, current_date, timezone, .. } = self.step;
        let cwd = if self.with_cwd { format!("\n  <cwd>{}</cwd>", value(cwd)) } else { String::new() };
        let (shell, timezone) = (value(shell), value(timezone));
        format!(
            "{cwd}\n  <shell>{shell}</shell>\n  <current_date>{current_date}</current_date>\n  \
             <timezone>{timezone}</timezone>\n{}",
            places(self.step)
        )
    }
}

/// Empty for a thread that works on this machine and never had chosen environments.
fn places(step: &Step) -> String {
    if step.environments.is_empty() {
        return "  <environments>none: nothing can be run, read or written</environments>\n".to_owned();
    }
    let mut text = String::new();
    for environment in step.environments.iter().filter(|environment| environment.is_chosen) {
        let status = match environment.state {
            EnvironmentState::Attached => "attached",
            EnvironmentState::Starting => "starting",
            EnvironmentState::Disconnected => "disconnected",
        };
        let (id, cwd) = (value(environment.id.as_str()).replace('"', "&quot;"), value(&environment.cwd));
        text.push_str(&format!("    <environment id=\"{id}\" status=\"{status}\">{cwd}</environment>\n"));
    }
    if text.is_empty() { text } else { format!("  <environments>\n{text}  </environments>\n") }
}

impl<'a> StepFragment<'a> for Environment<'a> {
    type State = EnvironmentFacts;

    fn state(step: &Step) -> EnvironmentFacts {
        let chosen = step.environments.iter().filter(|environment| environment.is_chosen);
        EnvironmentFacts {
            cwd: step.cwd.clone(),
            current_date: step.current_date.clone(),
            timezone: step.timezone.clone(),
            environments: chosen
                .map(|environment| (environment.id.clone(), environment.cwd.clone(), environment.state))
                .collect(),
            nowhere: step.environments.is_empty(),
        }
    }

    fn full(step: &'a Step) -> Option<Self> {
        Some(Self { step, with_cwd: true })
    }

    fn changed(before: &EnvironmentFacts, step: &'a Step) -> Option<Self> {
        let now = Self::state(step);
        (*before != now).then(|| Self { step, with_cwd: before.cwd != now.cwd })
    }
}
