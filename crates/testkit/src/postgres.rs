//! A Postgres server for one test, from Debian's packages. The tests of the store include this file, so that they need
//! not be built with the whole server.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A database server for one test, reached by a socket in its folder, or with TLS by a local port.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    as_other: bool,
    /// Of a server with TLS only.
    tls_port: Option<u16>,
}

impl PostgresServer {
    /// `kept` is a folder shared by all tests. None, after printing the reason, if the server is not available.
    pub fn start(kept: &Path) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: there is no initdb on this machine");
            return None;
        };
        Self::with_port(kept, programs, None)
    }

    /// A server with TLS only. Its certificate is self-signed: [`Self::authority`].
    pub fn start_tls(kept: &Path) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: there is no initdb on this machine");
            return None;
        };
        if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
            eprintln!("skipped: there is no openssl on this machine");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Self::with_port(kept, programs, Some(port.expect("a port").port()))
    }

    fn with_port(kept: &Path, programs: PathBuf, tls_port: Option<u16>) -> Option<Self> {
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
        let server = Self { folder, programs, as_other, tls_port };
        server.make_data(kept);
        if tls_port.is_some() {
            server.make_certificate();
        }
        server.begin();
        Some(server)
    }

    /// Copies a database that is created once for all tests, because creating one is slow.
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

    /// A certificate for `localhost` and 127.0.0.1, and its key, which the server must own.
    fn make_certificate(&self) {
        let data = self.data();
        let arguments = [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ];
        let mut command = Command::new("openssl");
        command.args(arguments).args(["-keyout", "server.key", "-out", "server.crt"]).current_dir(&data);
        assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("openssl").success());
        for name in ["server.key", "server.crt"] {
            let path = Path::new(&data).join(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
            if let Some(user) = self.as_other.then(postgres_user).flatten() {
                chown(&path, Some(user), Some(user)).expect("an owner");
            }
        }
        fs::copy(Path::new(&data).join("server.crt"), self.authority()).expect("a copy");
        fs::write(
            Path::new(&data).join("pg_hba.conf"),
            "local all all trust\nhostssl all all 127.0.0.1/32 trust\n",
        )
        .expect("written");
    }

    /// The file of the authority that signed the server's certificate.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    pub fn begin(&self) {
        let reached = match self.tls_port {
            Some(port) => format!("-c listen_addresses=127.0.0.1 -c ssl=on -p {port}"),
            None => "-c listen_addresses=''".to_owned(),
        };
        let options = format!("{reached} -c fsync=off -k {}", self.folder.path().display());
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

    /// Requires this password for new connections.
    pub fn require_password(&self, password: &str) {
        let folder = self.folder.path().display().to_string();
        let sql = format!("ALTER USER oar PASSWORD '{password}'");
        self.run("psql", &["-h", &folder, "-U", "oar", "-d", "postgres", "-c", &sql]);
        fs::write(Path::new(&self.data()).join("pg_hba.conf"), "local all all scram-sha-256\n")
            .expect("written");
        self.run("pg_ctl", &["-D", &self.data(), "reload"]);
    }

    /// In the form of `oarlock host --store`.
    pub fn url(&self) -> String {
        if let Some(port) = self.tls_port {
            return format!("postgres://oar@localhost:{port}/postgres?sslmode=require");
        }
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

/// Keeps owners and modes, which the server requires.
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
