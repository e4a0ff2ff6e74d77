//! `user_shell`: a command that the user typed. Never offered to a model, and not sandboxed: it is the user's own
//! shell.

use std::borrow::Cow;
use std::time::Duration;

use engine::{NO_EXIT, SHELL_ABORTED, ToolOutcome, ToolPayload, USER_SHELL, user_shell_result};
use protocol::CommandExecutionSource;

use crate::exec::{
    Authorization, Blocked, CommandPermissions, OneShot, Setting, Shot, Wish, default_shell, login,
    run_for_user, shell_argv,
};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const TIMEOUT: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, Clone, Copy)]
pub struct UserShell;

impl BuiltinTool for UserShell {
    const NAME: &'static str = USER_SHELL;
    const ABOUT: &'static str = "Run a command of the user's own.";
    const NEEDS_PLACE: bool = true;
    type Args = String;

    fn standing(_: &Offer) -> Standing {
        Standing::Absent
    }

    fn parse(payload: ToolPayload) -> Result<String, ToolError> {
        match payload {
            ToolPayload::Custom { input } => Ok(input),
            ToolPayload::Function { .. } | ToolPayload::Search { .. } => {
                Err(ToolError::UnknownFunction(Self::NAME.to_owned()))
            }
        }
    }

    async fn call(&self, command: String, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let wish = Wish {
            argv: shell_argv(&default_shell(cx), login(cx, None)?, command),
            cwd: cx.cwd().to_owned(),
            tty: false,
            permissions: CommandPermissions::default(),
            extra_env: &[],
            source: CommandExecutionSource::UserShell,
            process_id: None,
            outlives: false,
        };
        Ok(match run_for_user(Authorization::new(Setting::of(cx), wish), TIMEOUT).await {
            OneShot::Ran(shot) => {
                let text = user_shell_result(shot.exit_code, shot.duration, &with_rest(&shot));
                let (success, item) = (shot.exit_code == 0, Some(Box::new(shot.item)));
                ToolOutcome { success, item, ..ToolOutcome::text(text) }
            }
            OneShot::Blocked(blocked, item) => {
                let problem = match blocked {
                    Blocked::Declined => SHELL_ABORTED.to_owned(),
                    Blocked::Forbidden(text) | Blocked::Failed(text) => text,
                };
                ToolOutcome {
                    item,
                    ..ToolOutcome::failure(user_shell_result(NO_EXIT, Duration::ZERO, &problem))
                }
            }
        })
    }
}

/// The output, and the file with the rest.
fn with_rest(shot: &Shot) -> Cow<'_, str> {
    match &shot.whole {
        Some(whole) => Cow::Owned(format!("{}\n{}", whole.line(), shot.output)),
        None => Cow::Borrowed(&shot.output),
    }
}
