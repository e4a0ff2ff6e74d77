//! Facts about a server from /proc: its process tree, memory, processor time and executable.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// Programs that only start the server proper when they have a child.
const INTERPRETERS: &[&str] = &["node", "bun", "deno", "python", "sh", "bash", "dash", "zsh", "env"];

/// The numbers of one `/proc/PID/stat` line that are used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Clock ticks spent by the process and by the children it has waited for.
    ticks: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in parentheses may hold anything, so fields are counted from the last one.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Self { parent: fields.get(1)?.parse().ok()?, ticks })
    }
}

/// The process and its descendants, parents before children.
fn tree(root: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, Stat::of(pid)?.parent))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, its_parent)| *its_parent == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

/// Resident memory of the tree in MiB; pages that its processes share count for each.
pub(crate) fn resident_mib(root: u32) -> f64 {
    let pages: u64 = tree(root)
        .iter()
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/statm")).ok())
        .filter_map(|statm| statm.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    (pages * rustix::param::page_size() as u64) as f64 / f64::from(1 << 20)
}

/// Resident memory of this process without its children, in MiB. Resets its peak to that.
///
/// A server may keep its own user from that; then its growth includes what it needed before, for a moment.
pub(crate) fn forget_peak(pid: u32) -> Result<f64> {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    status_mib(pid, "VmRSS:")
}

/// The most that was resident of this process since then.
pub(crate) fn peak_mib(pid: u32) -> Result<f64> {
    status_mib(pid, "VmHWM:")
}

fn status_mib(pid: u32, field: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib =
        line.and_then(|line| line.split_ascii_whitespace().next()).with_context(|| format!("no {field}"))?;
    Ok(kib.parse::<f64>()? / 1024.0)
}

/// Seconds of processor time the tree has used, in steps of a clock tick.
pub(crate) fn cpu_seconds(root: u32) -> f64 {
    let ticks: u64 = tree(root).iter().filter_map(|pid| Stat::of(*pid)).map(|stat| stat.ticks).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// The executable that does a server's work.
#[derive(Debug, Clone)]
pub(crate) struct Executable {
    pub(crate) pid: u32,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// Looks at what runs instead of what was asked for, so launchers in any language are followed to the program
/// they start.
pub(crate) fn executable(root: u32) -> Result<Executable> {
    let running: Vec<(u32, PathBuf)> = tree(root)
        .into_iter()
        .filter_map(|pid| Some((pid, fs::read_link(format!("/proc/{pid}/exe")).ok().or_else(|| named(pid))?)))
        .collect();
    let native = running.iter().find(|(_, path)| !is_interpreter(path));
    let (pid, path) = native.or(running.first()).context("the server runs no executable")?;
    // Asked through /proc if that is allowed: the file may have been replaced since it was started.
    let found = fs::metadata(format!("/proc/{pid}/exe")).or_else(|_| fs::metadata(path));
    let bytes = found.context("the executable cannot be looked at")?.len();
    Ok(Executable { pid: *pid, path: path.clone(), bytes })
}

/// The program by its command line, which stays readable where a server closes the rest to its own user.
fn named(pid: u32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let program = PathBuf::from(OsStr::from_bytes(line.split(|byte| *byte == 0).next()?));
    if program.components().count() > 1 {
        return fs::canonicalize(program).ok();
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(&program)).find(|path| path.is_file())
}

fn is_interpreter(path: &std::path::Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 5 0 99 1 2";
        assert_eq!(Stat::parse(line), Some(Stat { parent: 3, ticks: 124 }));
        assert_eq!(Stat::parse("torn"), None);
    }

    #[test]
    fn a_launcher_is_followed_to_what_it_started() {
        // The shell stays because another command follows.
        let mut shell = Command::new("sh")
            .args(["-c", "echo; cat; true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = shell.stdin.take();
        // The answer comes from the child, so the child runs.
        let mut stdout = shell.stdout.take().expect("piped");
        let mut byte = [0];
        std::io::Read::read_exact(&mut stdout, &mut byte).expect("the shell speaks");
        let mut input = input.expect("piped");
        std::io::Write::write_all(&mut input, b"x").expect("cat reads");
        std::io::Read::read_exact(&mut stdout, &mut byte).expect("cat answers");
        let found = executable(shell.id()).expect("something runs");
        let pids = tree(shell.id()).len();
        drop(input);
        shell.wait().expect("the shell ends");
        assert_eq!(pids, 2);
        assert!(!is_interpreter(&found.path), "{}", found.path.display());
        assert!(found.bytes > 0);
    }

    #[test]
    fn a_program_is_known_by_its_command_line_too() {
        let own = std::env::current_exe().expect("this test runs").canonicalize().expect("it has a file");
        assert_eq!(named(std::process::id()), Some(own));
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
        std::io::Write::write_all(cat.stdin.as_mut().expect("piped"), b"x").expect("cat reads");
        let mut byte = [0];
        std::io::Read::read_exact(cat.stdout.as_mut().expect("piped"), &mut byte).expect("cat answers");
        let found = named(cat.id());
        drop(cat.stdin.take());
        cat.wait().expect("cat ends");
        assert!(found.is_some_and(|path| path.ends_with("cat")));
        assert_eq!(named(u32::MAX), None);
    }

    #[test]
    fn interpreters_are_known_with_and_without_a_version() {
        for name in ["/usr/bin/node", "/usr/bin/python3.11", "/bin/sh"] {
            assert!(is_interpreter(Path::new(name)), "{name}");
        }
        assert!(!is_interpreter(Path::new("/opt/server")));
    }

    #[test]
    fn this_process_uses_memory() {
        let own = std::process::id();
        assert!(resident_mib(own) > 0.5);
        assert!(cpu_seconds(own) >= 0.0);
        let before = forget_peak(own).expect("this process has memory");
        let ballast = std::hint::black_box(vec![1_u8; 48 << 20]);
        drop(ballast);
        let after = peak_mib(own).expect("this process has memory");
        assert!(after - before > 24.0, "{before} {after}");
    }
}
