//! Where the prompt comes from.

use std::io::{self, IsTerminal, Read};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};

/// Whoever pipes something in has usually begun to by then. A pipe that somebody merely left open must not hold up the
/// turn for ever.
const FIRST_BYTE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// No model takes more.
const LONGEST: u64 = 32 << 20;

/// The argument, or standard input where the argument is `-` or missing. What is piped in beside an argument goes with
/// it.
pub(super) fn read(argument: Option<String>) -> Result<String> {
    let is_dash = argument.as_deref() == Some("-");
    let prompt = match argument.filter(|_| !is_dash) {
        Some(prompt) => with_input(prompt)?,
        None => {
            let is_terminal = io::stdin().is_terminal();
            if is_terminal && !is_dash {
                bail!("no prompt; give one as an argument, or pipe it in");
            }
            eprintln!("Reading the prompt from standard input...");
            read_input("the prompt on standard input")?
        }
    };
    if prompt.trim().is_empty() {
        bail!("the prompt is empty; give one as an argument, or pipe it in");
    }
    Ok(prompt)
}

fn with_input(prompt: String) -> Result<String> {
    if prompt.trim().is_empty() || !has_input() {
        return Ok(prompt);
    }
    let input = read_input("standard input")?;
    match input.trim().is_empty() {
        true => Ok(prompt),
        false => Ok(format!("{prompt}\n\n<stdin>\n{}\n</stdin>", input.trim_end_matches('\n'))),
    }
}

/// Whether something was piped in. Not so for devices and sockets, which programs hand on without meaning it.
fn has_input() -> bool {
    let stdin = io::stdin();
    match fstat(&stdin).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::RegularFile) => true,
        Ok(FileType::Fifo) => {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
            let is_there = poll(&mut waiting, Some(&FIRST_BYTE)).is_ok_and(|ready| ready > 0);
            if !is_there {
                eprintln!("Nothing came on standard input, so the turn begins without it.");
            }
            is_there
        }
        _ => false,
    }
}

fn read_input(what: &str) -> Result<String> {
    let mut bytes = Vec::new();
    io::stdin().take(LONGEST + 1).read_to_end(&mut bytes).context("standard input cannot be read")?;
    if bytes.len() as u64 > LONGEST {
        bail!("{what} has more than {} MiB", LONGEST >> 20);
    }
    String::from_utf8(bytes).with_context(|| format!("{what} is not UTF-8"))
}
