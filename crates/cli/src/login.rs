//! `oarlock login` and `oarlock logout`: a key or an account, kept in the home folder.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::{Account, GetAccountParams, LoginAccountParams, LoginAccountResponse};
use runtime::config::{Credentials, Home, Loader, LoaderOptions};
use runtime::{Catalogue, ClientIdentity, LoginDone};
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;

use crate::flags::Flags;
use crate::session::LocalSession;
use crate::terminal::clean_line;

pub(crate) const EXAMPLES: &str = "\
The key is read from standard input, so that it stands in no command line and in no history of a shell.

Examples:
  oarlock login                         with a ChatGPT account, in the browser
  oarlock login --device-code           the same with a browser on another machine
  oarlock login --api-key < key.txt
  printenv MY_KEY | oarlock login --api-key
  oarlock login status
  oarlock logout";

#[derive(Debug, Args)]
pub(crate) struct AccountLoginOptions {
    /// `status` says who is logged in, and changes nothing.
    #[arg(value_name = "STATUS", value_parser = ["status"])]
    status: Option<String>,
    /// Store an API key of OpenAI, read from standard input.
    #[arg(long, visible_alias = "with-api-key", conflicts_with = "device_code")]
    api_key: bool,
    /// Log in with a browser on another machine.
    #[arg(long, visible_alias = "device-auth")]
    device_code: bool,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
pub(crate) struct LogoutOptions {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(options: AccountLoginOptions, root: Flags) -> Result<ExitCode> {
    service::init_logging(LevelFilter::ERROR);
    let flags = root.then(options.flags);
    if options.status.is_some() {
        return status(&flags);
    }
    let params = match (options.api_key, options.device_code) {
        (true, _) => LoginAccountParams::ApiKey { api_key: read_key()? },
        (false, true) => LoginAccountParams::ChatgptDeviceCode,
        (false, false) => LoginAccountParams::Chatgpt,
    };
    let home = Home::from_env()?;
    let loader = Loader::new(home, flags.pairs()?, LoaderOptions::default());
    let file = Credentials::new(loader.home()).file().display().to_string();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(log_in(loader, params))?;
    println!("Logged in. What was given is in {}, for you alone.", clean_line(&file));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn log_out(options: LogoutOptions, root: Flags) -> Result<ExitCode> {
    let loader = root.then(options.flags).loader()?;
    let was_there = Credentials::new(loader.home()).clear()?;
    println!("{}", if was_there { "Logged out." } else { "Nobody was logged in." });
    Ok(ExitCode::SUCCESS)
}

async fn log_in(loader: Loader, params: LoginAccountParams) -> Result<()> {
    let session = LocalSession::new(loader, Catalogue::bundled());
    let (told, ended) = oneshot::channel();
    let originator = ClientIdentity::default().originator;
    let done = |_| -> LoginDone {
        Box::new(move |ended| {
            drop(told.send(ended));
            Box::pin(async {})
        })
    };
    let begun = session.runtime.log_in(params, &originator, done).await?;
    match begun {
        LoginAccountResponse::Chatgpt { auth_url, .. } => {
            println!("Open this page in your browser and log in there:\n\n  {}\n", clean_line(&auth_url));
        }
        LoginAccountResponse::ChatgptDeviceCode { verification_url, user_code, .. } => {
            println!("Open {} and type {}\n", clean_line(&verification_url), clean_line(&user_code));
        }
        LoginAccountResponse::ApiKey | LoginAccountResponse::ChatgptAuthTokens => return Ok(()),
    }
    println!("Waiting; Ctrl-C ends it.");
    match ended.await.context("the login has ended without a word")? {
        Ok(()) => Ok(()),
        Err(problem) => bail!("not logged in: {problem}"),
    }
}

fn status(flags: &Flags) -> Result<ExitCode> {
    let loader = flags.loader()?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let session = LocalSession::new(loader, Catalogue::bundled());
    let account =
        tokio.block_on(session.runtime.account(&GetAccountParams { refresh_token: false }))?.account;
    let (line, code) = match account {
        Some(Account::ApiKey) => ("Logged in with an API key.".to_owned(), ExitCode::SUCCESS),
        Some(Account::Chatgpt { email, .. }) => {
            (format!("Logged in as {}.", clean_line(&email)), ExitCode::SUCCESS)
        }
        None => ("Not logged in.".to_owned(), ExitCode::FAILURE),
    };
    println!("{line}");
    Ok(code)
}

/// One line. On a terminal it is asked for, and shown while it is typed only as far as the terminal does.
fn read_key() -> Result<String> {
    let stdin = io::stdin();
    let hidden = match stdin.is_terminal() {
        true => {
            eprint!("API key (not shown): ");
            io::stderr().flush()?;
            HiddenInput::begin()
        }
        false => None,
    };
    let mut key = String::new();
    stdin.lock().read_line(&mut key).context("no key could be read from standard input")?;
    drop(hidden);
    let key = key.trim().to_owned();
    if key.is_empty() {
        bail!("no key came on standard input; pipe it in: `oarlock login --api-key < key.txt`");
    }
    if key.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        bail!("what came on standard input is no key: it has spaces in it");
    }
    Ok(key)
}

/// A terminal that does not show what is typed, until this is dropped.
struct HiddenInput(rustix::termios::Termios);

impl HiddenInput {
    fn begin() -> Option<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Now, &silent).ok()?;
        Some(Self(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}
