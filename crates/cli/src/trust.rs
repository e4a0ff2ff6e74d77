//! `oarlock trust`: shows what the settings of a project ask for beyond your own, and records your decision.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use runtime::config::{LoadRequest, Review};

use crate::flags::Flags;

#[derive(Debug, Args)]
pub(crate) struct TrustOptions {
    /// A folder of the project; else the current one.
    folder: Option<PathBuf>,
    /// Accept without a question what is shown.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(options: TrustOptions, root: Flags) -> Result<ExitCode> {
    let folder = crate::exec::folder(options.folder.as_deref())?;
    let loader = root.then(options.flags).loader()?;
    let request = LoadRequest { cwd: Some(folder.clone()), ..LoadRequest::default() };
    let project = loader.load(&request)?.project_docs.project_root.unwrap_or(folder.clone());
    let reviews = loader.to_review(&folder)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", shown(&project.to_string_lossy()))?;
    for review in &reviews {
        show(&mut out, review)?;
    }
    if reviews.is_empty() {
        writeln!(out, "Its settings ask for nothing beyond your own.")?;
    }
    if !options.yes && !agreed(&mut out)? {
        writeln!(out, "Nothing was changed.")?;
        return Ok(ExitCode::FAILURE);
    }
    // Only the content that was shown: should a file have changed since, its digest does not match.
    loader.trust(&project)?;
    loader.accept(&reviews)?;
    writeln!(out, "Written to {}.", loader.home().own_config_file().display())?;
    Ok(ExitCode::SUCCESS)
}

fn show(out: &mut impl Write, review: &Review) -> Result<()> {
    writeln!(out, "\n{} asks for:", shown(&review.settings.to_string_lossy()))?;
    for line in &review.asked {
        writeln!(out, "  {}", shown(line))?;
    }
    for rule in &review.rules {
        writeln!(out, "  rules {}:", shown(&rule.path.to_string_lossy()))?;
        match &rule.text {
            Ok(text) => text.lines().try_for_each(|line| writeln!(out, "    {}", shown(line)))?,
            Err(problem) => writeln!(out, "    cannot be read: {}", shown(problem))?,
        }
    }
    Ok(())
}

/// A file must not be able to show something else than what it says.
fn shown(text: &str) -> String {
    policy::escape_for_display(text)
}

fn agreed(out: &mut impl Write) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("nobody can be asked here; look at what is shown and add --yes to accept it");
    }
    write!(out, "\nTrust this project and accept exactly this? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("no answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
