//! `exec_command`: a command in a shell, which may continue after the call has returned.

use std::path::PathBuf;
use std::time::Duration;

use engine::ToolOutcome;
use protocol::CommandExecutionSource;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::builtin::apply_patch;
use crate::exec::terminals::{Launch, MANY, Session, TerminalReport, chunk_id};
use crate::exec::{
    Authorization, Blocked, CommandPermissions, PermissionArgs, SandboxPermissions, Setting, WIDENING,
    WantedPermissions, Wish, login, named_shell, shell_argv, working_directory,
};
use crate::files::shown::room;
use crate::schema::function_json;
use crate::{BuiltinTool, Offer, ShellForm, Standing, ToolCx, ToolError};

const WAIT_MS: u64 = 10_000;
/// Too short a wait costs a call, too long a wait delays the user.
const WAITS_MS: (u64, u64) = (250, 30_000);
const TOKENS: u64 = 10_000;

/// Variables that make programs print plain text.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("LANG", "C.UTF-8"),
    ("LC_CTYPE", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("COLORTERM", ""),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("CODEX_CI", "1"),
];

// No doc comment on the type: the model would read it as well.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The shell script to run.
    cmd: String,
    /// Where to run it. Default: the working directory of the thread.
    workdir: Option<String>,
    /// The shell to run it in. Default: the user's.
    shell: Option<String>,
    /// Whether the shell reads the user's profile first. Default: true on this machine.
    login: Option<bool>,
    /// Whether it gets a terminal, which it needs to be written to with write_stdin. Default: false.
    tty: Option<bool>,
    /// How many milliseconds to wait for its end before it goes on in the background. Default: 10000.
    yield_time_ms: Option<u64>,
    /// How much output to return at most; the middle of what is longer is left out. Default: 10000.
    max_output_tokens: Option<u64>,
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
pub struct ExecCommand;

impl BuiltinTool for ExecCommand {
    const NAME: &'static str = "exec_command";
    const ABOUT: &'static str = "Run a shell command. Returns its output, and either its exit code or, when it \
        still runs after yield_time_ms, a session ID for write_stdin.";
    const PROMPT: Option<&'static str> = Some(include_str!("exec_command.md"));
    const PARALLEL: bool = true;
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.shell == ShellForm::Terminals)
    }

    fn spec(offer: &Offer) -> Value {
        command_spec::<Args>(Self::NAME, Self::ABOUT, offer)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let cwd = working_directory(cx, args.workdir.as_deref())?;
        let argv = shell_argv(&named_shell(cx, args.shell), login(cx, args.login)?, args.cmd);
        let setting = Setting::of(cx);
        let asked = PermissionArgs {
            sandbox: args.sandbox_permissions.unwrap_or_default(),
            justification: args.justification,
            prefix_rule: args.prefix_rule,
            additional: args.additional_permissions,
        };
        let permissions = asked.checked(&setting, &cwd)?;
        if let Some(patched) = apply_patch::intercept(&argv, &cwd, cx).await {
            return patched;
        }
        let wait = args.yield_time_ms.unwrap_or(WAIT_MS).clamp(WAITS_MS.0, WAITS_MS.1);
        let max_tokens = max_tokens(cx, args.max_output_tokens);
        let looks = Looks { wait: Duration::from_millis(wait), max_tokens };
        let script = TerminalCommand { argv, cwd, tty: args.tty.unwrap_or(false), permissions };
        run(cx, setting, script, looks).await
    }
}

/// The spec of a tool with commands, without parameters that have no effect in this thread.
pub(crate) fn command_spec<A: JsonSchema>(name: &str, about: &str, offer: &Offer) -> Value {
    let mut spec = function_json::<A>(name, about);
    if let Some(properties) = spec.pointer_mut("/parameters/properties").and_then(Value::as_object_mut) {
        if !offer.login_shell {
            properties.shift_remove("login");
        }
        if !offer.has_feature(WIDENING) {
            properties.shift_remove("additional_permissions");
        } else if let Some(words) = properties.get_mut("sandbox_permissions") {
            words["description"] =
                "`use_default`, `require_escalated` to have the user asked to run it without a \
                sandbox, or `with_additional_permissions` to have the user asked for what is in \
                additional_permissions."
                    .into();
        }
    }
    spec
}

/// At most the model's own limit, above which the result would be cut again.
pub(crate) fn max_tokens(cx: &ToolCx, wanted: Option<u64>) -> usize {
    let wanted = usize::try_from(wanted.unwrap_or(TOKENS)).unwrap_or(usize::MAX);
    wanted.min(room(cx.step()) / 4)
}

struct TerminalCommand {
    argv: Vec<String>,
    cwd: PathBuf,
    tty: bool,
    permissions: CommandPermissions,
}

/// The wait and output limits of a call.
struct Looks {
    wait: Duration,
    max_tokens: usize,
}

async fn run(
    cx: &ToolCx,
    setting: Setting,
    script: TerminalCommand,
    looks: Looks,
) -> Result<ToolOutcome, ToolError> {
    let terminals = cx.bench().terminals();
    // Unless the call returns, its processes end with it.
    let unless_returned = cx.scope().cancel_on_drop();
    let Some(reservation) = terminals.reserve(cx.scope()) else {
        return Err(ToolError::Refused("too many commands are starting at once; try again".to_owned()));
    };
    let count = reservation.count();
    let line = policy::shell_line(&script.argv);
    let wish = Wish {
        argv: script.argv,
        cwd: script.cwd,
        tty: script.tty,
        permissions: script.permissions,
        extra_env: ENVIRONMENT,
        source: CommandExecutionSource::UnifiedExecStartup,
        process_id: Some(reservation.id().to_string()),
        outlives: true,
    };
    let authorization = Authorization::new(setting, wish);
    let early = cx.bench().options().early;
    let launch = Launch { authorization, reservation, tty: script.tty, early };
    let session = match terminals.launch(launch).await {
        Ok(Ok(session)) => session,
        Ok(Err(blocked)) => return Err(failed(&line, &blocked)),
        Err(_) => return Err(failed(&line, &Blocked::Failed("the thread is being closed".to_owned()))),
    };
    let mut outcome = look(cx, &session, &looks).await;
    unless_returned.disarm();
    outcome.note = (count >= MANY).then(|| {
        format!(
            "{count} sessions of exec_command are open. At 64, the one that was used longest ago is ended to make \
             room. End those you no longer need."
        )
    });
    Ok(outcome)
}

async fn look(cx: &ToolCx, session: &Session, looks: &Looks) -> ToolOutcome {
    let left = looks.wait.saturating_sub(session.began.elapsed());
    let collected = session.collect(cx.bench().clock(), left).await;
    if collected.exit.is_some() {
        cx.bench().terminals().remove(session.id);
    }
    let report = TerminalReport {
        command: &session.command,
        session_id: session.id,
        wall_time: session.began.elapsed(),
        collected: &collected,
        max_tokens: looks.max_tokens,
        remark: session.remark(),
    };
    report.outcome(&chunk_id())
}

/// The model gets the same text as the user.
fn failed(line: &str, blocked: &Blocked) -> ToolError {
    ToolError::Failed(match blocked {
        Blocked::Declined => format!("exec_command failed for `{line}`: rejected by user"),
        // It names the command itself.
        Blocked::Forbidden(reason) => reason.clone(),
        Blocked::Failed(problem) => format!("exec_command failed for `{line}`: {problem}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Registry;

    const COMMANDS: &[&str] =
        &["exec_command", "write_stdin", "shell", "container.exec", "local_shell", "shell_command"];

    /// The command tools, and whether they are advertised.
    fn offered(offer: &Offer) -> Vec<(String, bool)> {
        let mut specs = Registry::builtin().specs(offer);
        specs.retain(|spec| COMMANDS.contains(&spec.name.as_str()));
        specs.into_iter().map(|spec| (spec.name, spec.json.is_some())).collect()
    }

    #[test]
    fn the_form_a_model_knows_is_advertised_and_older_forms_work() {
        let cases = [
            (ShellForm::Terminals, COMMANDS, &["exec_command", "write_stdin"][..]),
            (ShellForm::Words, &COMMANDS[2..], &["shell"]),
            (ShellForm::Local, &COMMANDS[2..], &["shell"]),
            (ShellForm::Script, &COMMANDS[2..], &["shell_command"]),
            (ShellForm::Disabled, &[], &[]),
        ];
        for (shell, there, shown) in cases {
            let expected: Vec<_> =
                there.iter().map(|name| ((*name).to_owned(), shown.contains(name))).collect();
            assert_eq!(offered(&Offer { shell, ..Offer::default() }), expected, "{shell:?}");
        }
    }

    #[test]
    fn the_providers_own_shell_has_the_providers_own_spec() {
        let specs = Registry::builtin().specs(&Offer { shell: ShellForm::Local, ..Offer::default() });
        let shell = specs.iter().find(|spec| spec.name == "shell").expect("there");
        assert_eq!(shell.json.as_deref(), Some(&json!({"type": "local_shell"})));
    }

    #[test]
    fn parameters_that_have_no_effect_are_not_advertised() {
        let names = |offer: &Offer| -> Vec<String> {
            let spec = ExecCommand::spec(offer);
            spec["parameters"]["properties"].as_object().expect("properties").keys().cloned().collect()
        };
        let usual = [
            "cmd",
            "justification",
            "login",
            "max_output_tokens",
            "prefix_rule",
            "sandbox_permissions",
            "shell",
            "tty",
            "workdir",
            "yield_time_ms",
        ];
        assert_eq!(names(&Offer::default()), usual);
        let without = names(&Offer { login_shell: false, ..Offer::default() });
        assert!(!without.contains(&"login".to_owned()));
        let widening = Offer { features: [WIDENING.to_owned()].into(), ..Offer::default() };
        assert!(names(&widening).contains(&"additional_permissions".to_owned()));
        assert_eq!(ExecCommand::spec(&widening)["parameters"]["required"], json!(["cmd"]));
    }

    #[test]
    fn errors_are_plain_sentences() {
        let check = |blocked, expected: &str| {
            assert_eq!(failed("sh -c x", &blocked).to_string(), expected);
        };
        check(Blocked::Declined, "exec_command failed for `sh -c x`: rejected by user");
        check(
            Blocked::Forbidden("`sh -c x` was rejected: a rule forbids it".to_owned()),
            "`sh -c x` was rejected: a rule forbids it",
        );
        check(Blocked::Failed("gone".to_owned()), "exec_command failed for `sh -c x`: gone");
    }
}
