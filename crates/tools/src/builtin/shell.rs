//! `shell`: a command, given as an argv list, that runs to its end.

use std::time::Duration;

use engine::{ToolKind, ToolOutcome};
use protocol::{CommandExecutionSource, FunctionCallOutputBody};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::apply_patch;
use crate::builtin::exec_command::command_spec;
use crate::exec::{
    Authorization, Blocked, CommandPermissions, OneShot, PermissionArgs, SandboxPermissions, Setting, Shot,
    WantedPermissions, Wish, output_of, run_once, working_directory,
};
use crate::{BuiltinTool, Offer, ShellForm, Standing, ToolCx, ToolError};

/// The default time limit of a command.
pub(crate) const TIMEOUT_MS: u64 = 10_000;

// No doc comment on the type: the model would read it as well.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The program and its arguments.
    command: Vec<String>,
    /// Where to run it. Default: the working directory of the thread.
    workdir: Option<String>,
    /// After how many milliseconds it is ended. Default: 10000.
    #[serde(alias = "timeout")]
    timeout_ms: Option<u64>,
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
pub struct Shell;

impl BuiltinTool for Shell {
    const NAME: &'static str = "shell";
    const ALIASES: &'static [&'static str] = &["container.exec", "local_shell"];
    const ABOUT: &'static str = "Run a program to its end and return its output. It is given as a list of words; for \
        pipes and the like use [\"bash\", \"-lc\", script]. Set workdir instead of changing the directory.";
    const PROMPT: Option<&'static str> = Some(include_str!("shell.md"));
    const PARALLEL: bool = true;
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        match offer.shell {
            ShellForm::Words | ShellForm::Local => Standing::Offered,
            _ if offer.has_shell() => Standing::Unadvertised,
            _ => Standing::Absent,
        }
    }

    fn spec(offer: &Offer) -> Value {
        match offer.shell {
            // The provider knows its parameters.
            ShellForm::Local => json!({ "type": "local_shell" }),
            _ => command_spec::<Args>(Self::NAME, Self::ABOUT, offer),
        }
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        if args.command.is_empty() {
            return Err(ToolError::Refused("command must name a program".to_owned()));
        }
        let asked = PermissionArgs {
            sandbox: args.sandbox_permissions.unwrap_or_default(),
            justification: args.justification,
            prefix_rule: args.prefix_rule,
            additional: args.additional_permissions,
        };
        let layout = if writes_freeform_patches(cx) { Layout::Plain } else { Layout::Json };
        let job = ShellJob { argv: args.command, workdir: args.workdir, timeout_ms: args.timeout_ms, asked };
        run_job(job, layout, cx).await
    }
}

/// A call of `shell` or `shell_command`, which both run a command to its end.
pub(crate) struct ShellJob {
    pub(crate) argv: Vec<String>,
    pub(crate) workdir: Option<String>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) asked: PermissionArgs,
}

/// The layout of results for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Json,
    Plain,
}

pub(crate) async fn run_job(job: ShellJob, layout: Layout, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
    let cwd = working_directory(cx, job.workdir.as_deref())?;
    let setting = Setting::of(cx);
    let permissions: CommandPermissions = job.asked.checked(&setting, &cwd)?;
    if let Some(patched) = apply_patch::intercept(&job.argv, &cwd, cx).await {
        return patched;
    }
    let wish = Wish {
        argv: job.argv,
        cwd,
        tty: false,
        permissions,
        extra_env: &[],
        source: CommandExecutionSource::Agent,
        process_id: None,
        outlives: false,
    };
    let timeout = Duration::from_millis(job.timeout_ms.unwrap_or(TIMEOUT_MS));
    match run_once(Authorization::new(setting, wish), timeout).await {
        OneShot::Ran(shot) => Ok(outcome(*shot, layout, cx)),
        OneShot::Blocked(blocked, item) => {
            let text = match blocked {
                Blocked::Declined => "exec command rejected by user".to_owned(),
                Blocked::Forbidden(reason) => reason,
                Blocked::Failed(problem) => format!("the command could not be run: {problem}"),
            };
            Ok(ToolOutcome { item, ..ToolOutcome::failure(text) })
        }
    }
}

fn outcome(shot: Shot, layout: Layout, cx: &ToolCx) -> ToolOutcome {
    let (output, lines) = output_of(&shot.output, cx.step().model.truncation);
    let text = match layout {
        // The output starts with the reason, and there is no exit code.
        _ if shot.lost.is_some() => output,
        Layout::Json => json_text(&shot, &output, lines),
        Layout::Plain => plain_text(&shot, &output, lines),
    };
    ToolOutcome {
        output: FunctionCallOutputBody::Text(text),
        success: shot.exit_code == 0,
        item: Some(Box::new(shot.item)),
        ..ToolOutcome::text("")
    }
}

fn json_text(shot: &Shot, output: &str, lines: Option<usize>) -> String {
    let output = match lines {
        Some(lines) => format!("Total output lines: {lines}\n{}\n{output}", whole(shot)),
        None => output.to_owned(),
    };
    let seconds = (shot.duration.as_secs_f64() * 10.0).round() / 10.0;
    let metadata = json!({ "exit_code": shot.exit_code, "duration_seconds": seconds });
    json!({ "output": output, "metadata": metadata }).to_string()
}

fn plain_text(shot: &Shot, output: &str, lines: Option<usize>) -> String {
    let seconds = shot.duration.as_secs_f64();
    let lines =
        lines.map(|lines| format!("Total output lines: {lines}\n{}", whole(shot))).unwrap_or_default();
    format!("Exit code: {}\nWall time: {seconds:.1} seconds\n{lines}Output:\n{output}", shot.exit_code)
}

/// The line that names the file with the whole output.
fn whole(shot: &Shot) -> String {
    shot.whole.as_ref().map(|whole| whole.line() + "\n").unwrap_or_default()
}

/// A model that writes patches as free text expects plain text results too.
fn writes_freeform_patches(cx: &ToolCx) -> bool {
    let tool = cx.step().tool("apply_patch").filter(|tool| tool.kind == ToolKind::Builtin);
    tool.and_then(|tool| tool.json.as_ref()).is_some_and(|json| json["type"] == "custom")
}

#[cfg(test)]
mod tests {
    use protocol::{CommandExecutionStatus, ThreadItem};

    use super::*;

    fn shot(exit_code: i32, output: &str) -> Shot {
        let item = ThreadItem::CommandExecution {
            id: protocol::ItemId::new("call_1"),
            command: String::new(),
            cwd: String::new(),
            process_id: None,
            source: CommandExecutionSource::Agent,
            status: CommandExecutionStatus::Completed,
            command_actions: Vec::new(),
            aggregated_output: None,
            exit_code: None,
            duration_ms: None,
        };
        let duration = Duration::from_millis(1_260);
        Shot {
            exit_code,
            duration,
            output: output.to_owned(),
            timed_out: false,
            lost: None,
            whole: None,
            item,
        }
    }

    #[test]
    fn results_have_the_layouts_models_know() {
        let hi = shot(3, "hi\n");
        assert_eq!(
            json_text(&hi, &hi.output, None),
            r#"{"output":"hi\n","metadata":{"exit_code":3,"duration_seconds":1.3}}"#
        );
        assert_eq!(plain_text(&hi, &hi.output, None), "Exit code: 3\nWall time: 1.3 seconds\nOutput:\nhi\n");
        assert_eq!(
            plain_text(&hi, "h…i", Some(9)),
            "Exit code: 3\nWall time: 1.3 seconds\nTotal output lines: 9\nOutput:\nh…i"
        );
        assert!(json_text(&hi, "h…i", Some(9)).starts_with(r#"{"output":"Total output lines: 9\n\nh…i""#));
    }
}
