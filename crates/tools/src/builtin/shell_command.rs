//! `shell_command`: a script in the user's shell that runs to its end.

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::builtin::exec_command::command_spec;
use crate::builtin::shell::{Layout, ShellJob, run_job};
use crate::exec::{PermissionArgs, SandboxPermissions, WantedPermissions, default_shell, login, shell_argv};
use crate::{BuiltinTool, Offer, ShellForm, Standing, ToolCx, ToolError};

// No doc comment on the type: the model would read it as well.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The shell script to run.
    command: String,
    /// Where to run it. Default: the working directory of the thread.
    workdir: Option<String>,
    /// After how many milliseconds it is ended. Default: 10000.
    #[serde(alias = "timeout")]
    timeout_ms: Option<u64>,
    /// Whether the shell reads the user's profile first. Default: true on this machine.
    login: Option<bool>,
    /// `use_default`, or `require_escalated` to have the user asked to run it without a sandbox.
    #[schemars(with = "Option<String>")]
    sandbox_permissions: Option<SandboxPermissions>,
    /// With `require_escalated`: a short question to the user that says what it is for.
    justification: Option<String>,
    /// With `require_escalated`: the leading words of commands like this one that the user could allow for good.
    prefix_rule: Option<Vec<String>>,
    /// With `with_additional_permissions`: what this command needs on top of the sandbox.
    additional_permissions: Option<WantedPermissions>,
}

#[derive(Debug, Clone, Copy)]
pub struct ShellCommand;

impl BuiltinTool for ShellCommand {
    const NAME: &'static str = "shell_command";
    const ABOUT: &'static str = "Run a script in the user's shell to its end and return its output. Set workdir \
        instead of changing the directory.";
    const PROMPT: Option<&'static str> = Some(include_str!("shell_command.md"));
    const PARALLEL: bool = true;
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        match offer.shell {
            ShellForm::Script => Standing::Offered,
            _ if offer.has_shell() => Standing::Unadvertised,
            _ => Standing::Absent,
        }
    }

    fn spec(offer: &Offer) -> Value {
        command_spec::<Args>(Self::NAME, Self::ABOUT, offer)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let argv = shell_argv(&default_shell(cx), login(cx, args.login)?, args.command);
        let asked = PermissionArgs {
            sandbox: args.sandbox_permissions.unwrap_or_default(),
            justification: args.justification,
            prefix_rule: args.prefix_rule,
            additional: args.additional_permissions,
        };
        let job = ShellJob { argv, workdir: args.workdir, timeout_ms: args.timeout_ms, asked };
        run_job(job, Layout::Plain, cx).await
    }
}
