//! Commands that check an environment and explore it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::EnvironmentShell;
use sandbox::{Excerpt, FinishedCommand, HeadTail, Limits, Order, RunOptions};

/// Time limit of one command.
const LIMIT: Duration = Duration::from_secs(10);
/// Limit of its output.
const CAP_BYTES: usize = 16 << 10;
/// Limit of a reason, in characters.
const LONGEST_REASON: usize = 300;
/// Shells that run POSIX scripts.
const SHELLS: &[&str] = &["bash", "zsh", "sh", "dash", "ash", "ksh", "mksh"];
const SHELL_MARK: &str = "oarlock-shell ";
const FOLDER_MARK: &str = "oarlock-folder ";

/// How to reach an environment.
#[derive(Debug)]
pub(super) struct Prober {
    pub(super) argv: Arc<[String]>,
    pub(super) probe: Vec<String>,
    pub(super) cwd: String,
    /// For the prefix command, on this machine.
    pub(super) env: BTreeMap<String, String>,
}

/// The shell and the folder of an environment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ProbeAnswer {
    pub(super) shell: Option<EnvironmentShell>,
    pub(super) cwd: Option<String>,
}

impl Prober {
    /// Checks whether the environment responds; the error says why not. Dropping the future kills the command.
    pub(super) async fn answers(&self) -> Result<(), String> {
        let ended = self.run(&self.probe, None).await?;
        if ended.timed_out {
            return Err(format!("the probe took longer than {} s", LIMIT.as_secs()));
        }
        if ended.exit.success() {
            return Ok(());
        }
        let said = last_line(&ended.stderr).or_else(|| last_line(&ended.stdout));
        let how = match ended.exit.signal {
            Some(signal) => format!("the probe was ended by signal {signal}"),
            None => format!("the probe ended with code {}", ended.exit.code),
        };
        Err(said.map_or_else(|| how.clone(), |said| format!("{how}: {said}")))
    }

    /// Finds the shell and the folder. Without them the environment can still be used.
    pub(super) async fn explore(&self) -> ProbeAnswer {
        // As input and not as arguments: a prefix such as ssh joins those and has them parsed again.
        let script = script(&self.cwd).into_bytes();
        match self.run(&["sh".to_owned()], Some(script)).await {
            Ok(ended) => ProbeAnswer::read(&ended.stdout.excerpt()),
            Err(reason) => {
                tracing::debug!(%reason, "an environment could not be explored");
                ProbeAnswer::default()
            }
        }
    }

    async fn run(&self, words: &[String], stdin: Option<Vec<u8>>) -> Result<FinishedCommand, String> {
        let order = Order {
            argv: self.argv.iter().chain(words).cloned().collect(),
            // The environment's folder does not exist on this machine.
            cwd: PathBuf::from("/"),
            env: self.env.clone(),
            confinement: None,
            limits: Limits::default(),
            terminal: false,
        };
        // Other processes with the output open are not awaited.
        let drain_limit = Duration::from_millis(200);
        let (timeout, cap_bytes) = (Some(LIMIT), CAP_BYTES);
        let options = RunOptions { timeout, cap_bytes, stdin, drain_limit, ..RunOptions::default() };
        sandbox::run(order, options).await.map_err(|error| error.to_string())
    }
}

fn script(cwd: &str) -> String {
    let cwd = format!("'{}'", cwd.replace('\'', "'\\''"));
    format!(
        "shell=$(command -v \"${{SHELL:-sh}}\" 2>/dev/null) || shell=$(command -v sh)\n\
         printf '{SHELL_MARK}%s\\n' \"$shell\"\n\
         printf '{SHELL_MARK}%s\\n' \"$(command -v sh)\"\n\
         cd -- {cwd} 2>/dev/null && printf '{FOLDER_MARK}%s\\n' \"$(pwd)\"\n"
    )
}

impl ProbeAnswer {
    /// A login may print other lines before and between.
    fn read(output: &Excerpt) -> Self {
        let lines = || output.head.lines().chain(output.tail.lines());
        let shells = lines().filter_map(|line| shell(line.strip_prefix(SHELL_MARK)?));
        let cwd = lines().find_map(|line| line.strip_prefix(FOLDER_MARK)).map(str::to_owned);
        Self { shell: { shells }.next(), cwd: cwd.filter(|cwd| !cwd.is_empty()) }
    }
}

fn shell(path: &str) -> Option<EnvironmentShell> {
    let name = path.rsplit('/').next()?;
    let is_known = path.starts_with('/') && SHELLS.contains(&name);
    is_known.then(|| EnvironmentShell { name: name.to_owned(), path: path.to_owned() })
}

fn last_line(output: &HeadTail) -> Option<String> {
    let Excerpt { head, tail, .. } = output.excerpt();
    let text = if tail.trim().is_empty() { head } else { tail };
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(plain.take(LONGEST_REASON).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use super::*;

    fn prober(argv: &[&str], probe: &[&str], cwd: &str) -> Prober {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let env = [("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Prober { argv: words(argv).into(), probe: words(probe), cwd: cwd.to_owned(), env }
    }

    #[tokio::test]
    async fn a_probe_says_why_there_is_no_answer() {
        let script = "echo first; echo no box >&2; exit 125";
        let cases: [(&[&str], &str, &str); 5] = [
            (&["env"], "true", "yes"),
            (&["env"], "false", "the probe ended with code 1"),
            (&["sh", "-c", script], "true", "the probe ended with code 125: no box"),
            (&["sh", "-c", "kill -9 $$"], "true", "the probe was ended by signal 9"),
            (&["/nonexistent/docker"], "true", "/nonexistent/docker: no such program"),
        ];
        for (argv, probe, expected) in cases {
            let answer = prober(argv, &[probe], "/").answers().await;
            assert_eq!(answer.map_or_else(|reason| reason, |()| "yes".to_owned()), expected, "{argv:?}");
        }
    }

    #[tokio::test]
    async fn an_environment_that_answers_is_explored() {
        let folder = tempfile::tempdir().expect("a folder");
        let odd = folder.path().canonicalize().expect("a path").join("it's $HOME");
        std::fs::create_dir(&odd).expect("made");
        let odd = odd.to_string_lossy().into_owned();
        let found = prober(&["env"], &["true"], &odd).explore().await;
        let shell = found.shell.expect("a shell");
        assert_eq!((shell.name.as_str(), shell.path.ends_with("/sh")), ("sh", true));
        assert_eq!(found.cwd.as_deref(), Some(odd.as_str()));
        // A prefix that has its words parsed again, like ssh.
        let found = prober(&["sh", "-c", "eval \"$*\"", "sh"], &["true"], &odd).explore().await;
        assert_eq!(found.cwd.as_deref(), Some(odd.as_str()));
        // The folder is missing, and the shell cannot be determined.
        assert_eq!(prober(&["env"], &["true"], "/nonexistent").explore().await.cwd, None);
        assert_eq!(prober(&["false"], &["true"], "/").explore().await, ProbeAnswer::default());
    }

    #[test]
    fn only_shells_of_the_known_kind_are_taken() {
        let read = |head: &str| {
            ProbeAnswer::read(&Excerpt { head: head.to_owned(), omitted_bytes: 0, tail: String::new() })
        };
        let found = read("Welcome!\noarlock-shell /usr/bin/fish\noarlock-shell /bin/sh\noarlock-folder /w\n");
        assert_eq!(found.shell.map(|shell| shell.path).as_deref(), Some("/bin/sh"));
        assert_eq!(found.cwd.as_deref(), Some("/w"));
        assert_eq!(read("oarlock-shell \noarlock-folder \n"), ProbeAnswer::default());
    }
}
