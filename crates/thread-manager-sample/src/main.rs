//! Runs one turn in this process and prints the final message: the smallest program around `oarlock-core-api`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use core_api::protocol::AskForApproval;
use core_api::{ManagerError, ThreadManager, ThreadOptions};

/// Runs one turn with a model and prints the final message.
#[derive(Debug, Parser)]
#[command(name = "oarlock-thread-manager-sample", version, after_help = EXAMPLES)]
struct SampleArgs {
    /// The prompt; read from standard input when it is `-` or missing.
    prompt: Option<String>,
    /// Use this model instead of the configured one.
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// Use this provider instead of the configured one; `offline` needs no key and no network.
    #[arg(short, long, value_name = "ID")]
    provider: Option<String>,
}

const EXAMPLES: &str = "\
The final message goes to standard output, everything else to standard error.
Nobody is asked anything: what would need a yes is refused, and the model is told.
The exit code is 0 when the turn completed, 1 when it failed, and 2 when there is nothing to do.

Examples:
  oarlock-thread-manager-sample --provider offline \"Say hello\"
  oarlock-thread-manager-sample --model gpt-5.2 \"Say hello\"
  printf 'Say hello\\n' | oarlock-thread-manager-sample

Environment:
  OARLOCK_HOME    settings and records; else CODEX_HOME, else ~/.oarlock
  OPENAI_API_KEY  the key of the provider `openai`";

fn main() -> ExitCode {
    let args = SampleArgs::parse();
    let prompt = match read_prompt(args.prompt.as_deref()) {
        Ok(prompt) => prompt,
        Err(problem) => return fail(&problem, 2),
    };
    // Before a key is read: what the agent's commands start must not be able to look into this process.
    if let Err(error) = core_api::seal_process() {
        eprintln!(
            "oarlock-thread-manager-sample: other programs of this user could look into this one: {error}"
        );
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("threads cannot be started: {error}"), 1),
    };
    let answered = runtime.block_on(run(args, prompt));
    // A model request that hangs must not hold up the exit.
    runtime.shutdown_background();
    match answered {
        Ok(Some(message)) => print(&message),
        Ok(None) => fail("the turn ended without a message", 1),
        Err(error) => fail(&error.to_string(), 1),
    }
}

/// One thread, one turn.
async fn run(args: SampleArgs, prompt: String) -> Result<Option<String>, ManagerError> {
    let manager = ThreadManager::builder().client_name("oarlock-thread-manager-sample").build()?;
    let options = ThreadOptions {
        model: args.model,
        provider: args.provider,
        // Nobody is there to be asked.
        approval_policy: Some(AskForApproval::Never),
        ..ThreadOptions::default()
    };
    let thread = manager.start_thread(options).await?;
    let finished = thread.submit(prompt).await?.finish().await;
    manager.shut_down().await;
    Ok(finished?.message)
}

fn read_prompt(argument: Option<&str>) -> Result<String, String> {
    let prompt = match argument.filter(|argument| *argument != "-") {
        Some(prompt) => prompt.to_owned(),
        None if argument.is_none() && io::stdin().is_terminal() => String::new(),
        None => io::read_to_string(io::stdin())
            .map_err(|error| format!("the prompt on standard input cannot be read: {error}"))?,
    };
    match prompt.trim() {
        "" => Err("there is no prompt; give one as an argument, or pipe it in".to_owned()),
        prompt => Ok(prompt.to_owned()),
    }
}

fn print(message: &str) -> ExitCode {
    let mut out = io::stdout();
    match writeln!(out, "{message}").and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("the final message cannot be written: {error}"), 1),
    }
}

fn fail(problem: &str, code: u8) -> ExitCode {
    eprintln!("oarlock-thread-manager-sample: {problem}");
    ExitCode::from(code)
}
