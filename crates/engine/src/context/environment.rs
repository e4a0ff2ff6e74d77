//! Where the model's commands will run.

use super::{Fragment, Role};
use crate::Step;

pub(crate) struct Environment<'a> {
    step: &'a Step,
    with_cwd: bool,
}

impl<'a> Environment<'a> {
    pub(crate) fn full(step: &'a Step) -> Self {
        Self { step, with_cwd: true }
    }

    /// Between turns the folder is only told when it changed.
    pub(crate) fn changed(step: &'a Step, moved: bool) -> Self {
        Self { step, with_cwd: moved }
    }
}

impl Fragment for Environment<'_> {
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<environment_context>";
    const END: &'static str = "</environment_context>";

    fn body(&self) -> String {
        let Step { cwd, shell, current_date, timezone, .. } = self.step;
        let cwd = if self.with_cwd { format!("\n  <cwd>{cwd}</cwd>") } else { String::new() };
        format!(
            "{cwd}\n  <shell>{shell}</shell>\n  <current_date>{current_date}</current_date>\n  \
             <timezone>{timezone}</timezone>\n"
        )
    }
}
