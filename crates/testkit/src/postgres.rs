//! A Postgres server of one test, from what Debian has. The tests of the store include this file, so that they need not be
//! built with the whole server.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A database server for one test, reached by a socket in its folder.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    as_other: bool,
}

impl PostgresServer {
    /// `kept` is a folder for what all tests share. None, after a sentence that says why, where it cannot be had.
    pub fn start(kept: &Path) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: there is no initdb on this machine");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("oarlock-pg").tempdir_in("/tmp").expect("a folder");
        // The server refuses to run as root.
        let as_other = rustix::process::geteuid().is_root();
        if as_other {
            let Some(user) = postgres_user() else {
                eprintln!("skipped: root cannot start Postgres, and there is no user `postgres`");
                return None;
            };
            chown(folder.path(), Some(user), Some(user)).expect("a folder for the server");
        }
        let server = Self { folder, programs, as_other };
        server.make_data(kept);
        server.begin();
        Some(server)
    }

    /// A copy of a database that is made once for all tests: making one takes longer than most of them.
    fn make_data(&self, kept: &Path) {
        let (template, data) = (kept.join("postgres-template"), self.data());
        let lock = fs::File::create(kept.join("postgres-template.lock")).expect("a lock");
        lock.lock().expect("the lock");
        if !template.exists() {
            self.run("initdb", &["-D", &data, "-A", "trust", "-U", "oar", "--no-sync"]);
            let unfinished = kept.join("postgres-template.new");
            let _ = fs::remove_dir_all(&unfinished);
            copy(&data, &unfinished.display().to_string());
            fs::rename(&unfinished, &template).expect("a template");
            return;
        }
        drop(lock);
        copy(&template.display().to_string(), &data);
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    pub fn begin(&self) {
        let options = format!("-c listen_addresses='' -c fsync=off -k {}", self.folder.path().display());
        let log = self.folder.path().join("log").display().to_string();
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-l", &log, "-o", &options, "start"]);
    }

    pub fn stop(&self, mode: &str) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-m", mode, "stop"]);
    }

    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        if !self.as_other {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = self.command(program);
        command.args(arguments).current_dir(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().expect("a program").success(), "{program} {arguments:?}");
    }

    /// As `oarlock host --store` takes it.
    pub fn url(&self) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://oar@{socket}/postgres")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let data = self.data();
        let mut stop = self.command("pg_ctl");
        let stop = stop.args(["-D", &data, "-m", "immediate", "stop"]).current_dir("/");
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Keeps owners and modes, which the server insists on.
fn copy(from: &str, to: &str) {
    let status = Command::new("cp").args(["-a", from, to]).status().expect("cp");
    assert!(status.success(), "cp -a {from} {to}");
}

fn programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

fn postgres_user() -> Option<u32> {
    let output = Command::new("id").args(["-u", "postgres"]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
