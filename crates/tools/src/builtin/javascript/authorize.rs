//! Gets a script approved as the command `node -e SCRIPT`, which is equivalent.

use std::time::Duration;

use engine::ToolOutcome;
use policy::Escalation;
use protocol::{CommandExecutionSource, FunctionCallOutputBody, ThreadItem};

use crate::exec::{
    Authorization, Blocked, CommandPermissions, EndedCommand, Go, Here, OneShot, Setting, Wish, ended,
    give_up,
};
use crate::{ToolCx, ToolError};

/// Limit of a script.
const MOST_CODE: usize = 1 << 20;

/// An approved script.
pub(super) struct ClearedScript {
    pub(super) here: Box<Here>,
    pub(super) setting: Setting,
    item: ThreadItem,
}

/// Why a script does not run: an error, or the outcome with its item.
pub(super) enum RefusedScript {
    Error(ToolError),
    Outcome(Box<ToolOutcome>),
}

pub(super) async fn authorize(cx: &ToolCx, code: &str) -> Result<ClearedScript, RefusedScript> {
    let refuse = |problem: &str| Err(RefusedScript::Error(ToolError::Refused(problem.to_owned())));
    let Some(node) = &cx.bench().options().node else {
        return refuse("there is no `node` on this machine; install Node or set js_repl_node_path");
    };
    if cx.elsewhere().is_some() {
        return refuse(
            "scripts run on the server's own machine only, and this thread works in another environment",
        );
    }
    if code.len() > MOST_CODE {
        return refuse("the script is too long: put what is long into a file and read it from there");
    }
    let wish = Wish {
        argv: vec![node.to_string_lossy().into_owned(), "-e".to_owned(), code.to_owned()],
        cwd: cx.cwd().to_owned(),
        tty: false,
        permissions: CommandPermissions {
            escalation: Escalation::default(),
            justification: None,
            prefix_rule: None,
            additional: None,
        },
        extra_env: &[("NO_COLOR", "1"), ("NODE_OPTIONS", ""), ("NODE_REPL_HISTORY", "")],
        source: CommandExecutionSource::Agent,
        process_id: None,
        outlives: false,
    };
    let asked = wish.argv.clone();
    let mut authorization = Authorization::new(Setting::of(cx), wish);
    match authorization.clear().await {
        Ok(Go::Here(here)) if here.order.argv.get(2) == asked.get(2) => {
            let (setting, item) = authorization.into_parts();
            Ok(ClearedScript { here, setting, item })
        }
        Ok(_) => {
            let blocked = Blocked::Failed("another command cannot take the place of a script".to_owned());
            Err(blocked_script(&authorization, blocked).await)
        }
        Err(blocked) => Err(blocked_script(&authorization, blocked).await),
    }
}

async fn blocked_script(authorization: &Authorization, blocked: Blocked) -> RefusedScript {
    let OneShot::Blocked(blocked, item) = give_up(authorization, blocked).await else {
        return RefusedScript::Error(ToolError::Failed("the script did not run".to_owned()));
    };
    let text = match blocked {
        Blocked::Declined => "the script was rejected by the user".to_owned(),
        Blocked::Forbidden(reason) => format!("the script was rejected: {reason}"),
        Blocked::Failed(problem) => format!("the script could not be run: {problem}"),
    };
    RefusedScript::Outcome(Box::new(ToolOutcome { item, ..ToolOutcome::failure(text) }))
}

impl RefusedScript {
    pub(super) fn into_result(self) -> Result<ToolOutcome, ToolError> {
        match self {
            Self::Error(error) => Err(error),
            Self::Outcome(outcome) => Ok(*outcome),
        }
    }
}

/// The outcome of a script that ran, with its item.
pub(super) fn outcome(
    item: ThreadItem,
    shown: String,
    output: FunctionCallOutputBody,
    (is_success, duration): (bool, Duration),
) -> ToolOutcome {
    let exit_code = if is_success { 0 } else { 1 };
    let ending = EndedCommand { output: shown, exit_code, duration, whole: None };
    let item = Some(Box::new(ended(item, &ending)));
    let text = ToolOutcome::text("");
    ToolOutcome { output, item, success: is_success, ..text }
}

impl ClearedScript {
    pub(super) fn item(&self) -> &ThreadItem {
        &self.item
    }

    pub(super) fn into_parts(self) -> (Box<Here>, Setting, ThreadItem) {
        (self.here, self.setting, self.item)
    }
}
