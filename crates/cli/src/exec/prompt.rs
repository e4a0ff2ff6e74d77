//! Where the prompt comes from.

use std::io::{self, IsTerminal, Read};

use anyhow::{Context, Result, bail};

/// The argument, or standard input where the argument is `-` or missing.
pub(super) fn read(argument: Option<String>) -> Result<String> {
    let is_dash = argument.as_deref() == Some("-");
    let prompt = match argument.filter(|_| !is_dash) {
        Some(prompt) => prompt,
        None => {
            let is_terminal = io::stdin().is_terminal();
            if is_terminal && !is_dash {
                bail!("no prompt; give one as an argument, or pipe it in");
            }
            eprintln!("Reading the prompt from standard input...");
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).context("standard input cannot be read")?;
            String::from_utf8(bytes).context("the prompt on standard input is not UTF-8")?
        }
    };
    if prompt.trim().is_empty() {
        bail!("the prompt is empty");
    }
    Ok(prompt)
}
