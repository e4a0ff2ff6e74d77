//! Real places for the tests of the host: a docker daemon, an sshd and a bubblewrap of the test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Place;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A server of the test's own, stopped by its pid.
pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = fs::File::create(log).expect("a log");
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().expect("a copy")).stderr(log);
        Self(command.env("PATH", PATH).spawn().expect("it starts"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        for _ in 0..400 {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            sleep(Duration::from_millis(25));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says in one line why a test does nothing here.
pub(crate) fn lacks(tools: &[&str]) -> bool {
    let has = |tool: &&str| PATH.split(':').any(|folder| Path::new(folder).join(tool).exists());
    let missing: Vec<&str> = tools.iter().filter(|tool| !has(tool)).copied().collect();
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if !missing.is_empty() || !is_root {
        println!("skipped: needs root and {missing:?}; scripts/placement-tools installs them");
    }
    !missing.is_empty() || !is_root
}

/// Its standard output, without the last newline.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.env("PATH", PATH).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn works(command: &mut Command) -> bool {
    command.env("PATH", PATH).output().is_ok_and(|output| output.status.success())
}

#[track_caller]
fn wait_for(what: &str, ready: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if ready() {
            return;
        }
        sleep(Duration::from_millis(25));
    }
    panic!("{what} did not come up within 30 s");
}

/// This program without what only debuggers read: a fifth of its size.
pub(crate) fn small_runtime(place: &Place) -> String {
    let to = place.root().join("runtime");
    let program = env!("CARGO_BIN_EXE_oarlock");
    if !works(Command::new("strip").arg("-o").arg(&to).arg(program)) {
        fs::copy(program, &to).expect("copied");
    }
    // A debug build packs slowly.
    run(Command::new("gzip").args(["-1", "-k"]).arg(&to));
    to.to_string_lossy().into_owned()
}

/// The runtimes that were staged beneath a folder of this machine, by their process ids.
pub(crate) fn runtimes_in(folder: &Path) -> Vec<String> {
    let is_ours = |process: &String| {
        let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let mut words = line.split('\0');
        words
            .next()
            .is_some_and(|program| Path::new(program).starts_with(folder) && program.ends_with("/oarlock"))
            && words.next() == Some("app-server")
    };
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(is_ours).collect()
}

/// A root with busybox and the libraries that a build for this machine needs.
fn image(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    for name in ["bin", "tmp", "etc", "proc", "sys", "dev", "root", "lib64"] {
        fs::create_dir_all(root.join(name)).expect("made");
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").expect("written");
    fs::copy("/bin/busybox", root.join("bin/busybox")).expect("busybox");
    run(Command::new("chroot").arg(&root).args(["/bin/busybox", "--install", "-s", "/bin"]));
    let libraries = run(Command::new("ldd").arg(env!("CARGO_BIN_EXE_oarlock")));
    for path in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        fs::copy(path, to).expect("copied");
    }
    let tar = folder.join("image.tar");
    run(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg("."));
    tar
}

/// Containers of docker or podman, with one image, `oar:1`.
pub(crate) struct Containers {
    tool: Vec<String>,
    /// More settings of the placement.
    more: &'static str,
    folder: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl Containers {
    pub(crate) fn docker() -> Self {
        // Sockets have short paths.
        let folder = tempfile::Builder::new().prefix("oar").tempdir_in("/tmp").expect("a folder");
        let socket = format!("unix://{}/docker.sock", folder.path().display());
        let tool = ["docker", "-H", &socket].map(str::to_owned).to_vec();
        let mut docker = Self { tool, more: "", folder, daemon: None };
        docker.restart();
        docker.import()
    }

    pub(crate) fn podman() -> Self {
        let folder = tempfile::Builder::new().prefix("oar").tempdir_in("/tmp").expect("a folder");
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (images, run) = (at("images"), at("run"));
        let tool = ["podman", "--root", &images, "--runroot", &run, "--storage-driver", "overlay"];
        let tool = tool.into_iter().chain(["--runtime", "runc"]).map(str::to_owned).collect();
        // The limits of a root that may not raise its own.
        let more = "backend = \"podman\"\noptions = [\"--ulimit\", \"nofile=20000:20000\", \"--ulimit\", \"nproc=20000:20000\"]\n";
        Self { tool, more, folder, daemon: None }.import()
    }

    fn import(self) -> Self {
        self.run(&["import", &image(self.folder.path()).to_string_lossy(), "oar:1"]);
        self
    }

    /// Stops the daemon, if it runs, and starts it. Containers end with it.
    pub(crate) fn restart(&mut self) {
        self.daemon = None;
        let at = self.folder.path();
        let mut dockerd = Command::new("dockerd");
        for (option, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            dockerd.arg(option).arg(at.join(name));
        }
        let options =
            ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver", "overlay2"];
        dockerd.args(&self.tool[1..]).args(options);
        self.daemon = Some(Daemon::start(&mut dockerd, &at.join("log")));
        wait_for("dockerd", || works(self.command().arg("info")));
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.tool[0]);
        command.args(&self.tool[1..]);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        run(self.command().args(arguments))
    }

    /// As a table of the configuration.
    pub(crate) fn table(&self, name: &str) -> String {
        let backend = if self.more.is_empty() { "backend = \"docker\"\n" } else { self.more };
        format!(
            "[placements.{name}]\nimage = \"oar:1\"\nnetwork = \"none\"\npull = \"never\"\ntool = {:?}\n{backend}",
            self.tool
        )
    }

    /// The names of the runtime's variables in the only container.
    pub(crate) fn runtime_variables(&self) -> Vec<String> {
        let top = self.run(&["top", &self.container(), "-eo", "pid,args"]);
        let is_runtime = |line: &&str| line.contains("/oarlock app-server") && !line.contains("sh -c");
        let process = top.lines().find(is_runtime).and_then(|line| line.split_whitespace().next());
        let environ = fs::read(format!("/proc/{}/environ", process.expect("a runtime"))).expect("readable");
        let names = environ.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
        let name = |variable: &[u8]| {
            let text = String::from_utf8_lossy(variable).into_owned();
            text.split('=').next().unwrap_or_default().to_owned()
        };
        let mut names: Vec<String> = names.map(name).collect();
        names.sort();
        names
    }

    /// The only container.
    pub(crate) fn container(&self) -> String {
        let all = self.run(&["ps", "-aq"]);
        assert_eq!(all.lines().count(), 1, "{all}");
        all
    }

    pub(crate) fn sh(&self, script: &str) -> String {
        self.run(&["exec", &self.container(), "sh", "-c", script])
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        let all = self.run(&["ps", "-aq"]);
        for id in all.lines() {
            let _ = works(self.command().args(["rm", "-f", id]));
        }
    }
}

/// An sshd with keys of its own; whoever logs in has a home of its own.
pub(crate) struct Ssh {
    config: String,
    daemon: Daemon,
    folder: tempfile::TempDir,
}

impl Ssh {
    pub(crate) fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("oar").tempdir_in("/tmp").expect("a folder");
        let at = folder.path();
        for key in ["host", "user"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at.join(key)));
        }
        fs::create_dir(at.join("home")).expect("made");
        fs::create_dir_all("/run/sshd").expect("made");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let text = at.display();
        let server = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {text}/host\nAuthorizedKeysFile {text}/user.pub\nUsePAM no\n\
             StrictModes no\nPidFile {text}/pid\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv HOME={text}/home\n"
        );
        let client = format!(
            "Host place\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {text}/user\n IdentitiesOnly yes\n \
             UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n LogLevel ERROR\n"
        );
        fs::write(at.join("sshd_config"), server).expect("written");
        fs::write(at.join("ssh_config"), client).expect("written");
        let config = at.join("ssh_config").to_string_lossy().into_owned();
        let mut sshd = Command::new("/usr/sbin/sshd");
        let daemon =
            Daemon::start(sshd.args(["-D", "-e", "-f"]).arg(at.join("sshd_config")), &at.join("log"));
        wait_for("sshd", || works(Command::new("ssh").args(["-F", &config, "place", "true"])));
        Self { config, daemon, folder }
    }

    pub(crate) fn table(&self, name: &str) -> String {
        self.table_with(name, &[])
    }

    /// With options that win over those of the host.
    pub(crate) fn table_with(&self, name: &str, options: &[&str]) -> String {
        let tool = [&["ssh", "-F", &self.config], options].concat();
        format!("[placements.{name}]\nbackend = \"ssh\"\nhost = \"place\"\ntool = {tool:?}\n")
    }

    fn sessions(&self) -> String {
        let pid = self.daemon.id();
        let sessions = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("sessions");
        assert!(!sessions.trim().is_empty());
        sessions
    }

    /// Stops every connection without ending it, as a network does that swallows what is sent.
    pub(crate) fn freeze(&self) -> FrozenSessions {
        let sessions = FrozenSessions(self.sessions());
        run(Command::new("kill").arg("-STOP").args(sessions.0.split_whitespace()));
        sessions
    }

    /// Ends every connection as a cut network would. The listener goes on.
    pub(crate) fn cut(&self) {
        run(Command::new("kill").arg("-9").args(self.sessions().split_whitespace()));
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }
}

/// Ended when it is dropped.
pub(crate) struct FrozenSessions(String);

impl Drop for FrozenSessions {
    fn drop(&mut self) {
        let _ = works(Command::new("kill").arg("-9").args(self.0.split_whitespace()));
    }
}

/// Pods of a stand-in for `kubectl`: processes of this machine in namespaces of their own.
pub(crate) struct Pods(tempfile::TempDir);

impl Pods {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("oar").tempdir_in("/tmp").expect("a folder");
        let stand_in = include_str!("../../../placements/tests/conformance/kubectl");
        fs::write(folder.path().join("kubectl"), stand_in).expect("written");
        fs::create_dir(folder.path().join("fs")).expect("made");
        Self(folder)
    }

    fn tool(&self) -> [String; 4] {
        let kubectl = self.0.path().join("kubectl").to_string_lossy().into_owned();
        ["/usr/bin/python3".to_owned(), "-S".to_owned(), "-E".to_owned(), kubectl]
    }

    fn workspace(&self) -> String {
        self.0.path().join("fs/workspace").to_string_lossy().into_owned()
    }

    pub(crate) fn table(&self, name: &str) -> String {
        format!(
            "[placements.{name}]\nbackend = \"kubernetes\"\nimage = \"stand-in:1\"\nnamespace = \"default\"\n\
             tool = {:?}\nworkspace = {:?}\n",
            self.tool(),
            self.workspace()
        )
    }

    /// The files of all pods, with what they hold.
    fn files(&self) -> Vec<(PathBuf, Value)> {
        let files = fs::read_dir(self.0.path()).expect("pods").flatten().map(|file| file.path());
        let is_pod = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        let read = |path: PathBuf| {
            let pod = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            Some((path, pod))
        };
        files.filter(is_pod).filter_map(read).collect()
    }

    pub(crate) fn all(&self) -> usize {
        self.files().len()
    }

    pub(crate) fn running(&self) -> usize {
        self.files().iter().filter(|(_, pod)| pod["status"]["phase"] == "Running").count()
    }

    /// The only pod that runs.
    fn pod(&self) -> (PathBuf, Value) {
        let mut running = self.files();
        running.retain(|(_, pod)| pod["status"]["phase"] == "Running");
        assert_eq!(running.len(), 1, "{running:?}");
        running.remove(0)
    }

    /// Runs a script in its workspace.
    pub(crate) fn sh(&self, script: &str) -> String {
        let (_, pod) = self.pod();
        let [python, more @ ..] = self.tool();
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        let mut kubectl = Command::new(python);
        kubectl.args(more).args(["--namespace", "default", "exec", "-i", &name, "-c", "runtime", "--"]);
        run(kubectl.args(["sh", "-c", &format!("cd {} && {script}", self.workspace())]).stdin(Stdio::null()))
    }

    /// Its node has no room for it any more: its processes end, and the cluster still knows it.
    pub(crate) fn evict(&self) {
        let (path, mut pod) = self.pod();
        end_pod(&pod);
        pod["status"] = json!({"phase": "Failed", "reason": "Evicted"});
        fs::write(path, pod.to_string()).expect("written");
    }
}

fn end_pod(pod: &Value) {
    if let Some(process) = pod["status"]["pid"].as_u64() {
        let _ = works(Command::new("kill").arg("-9").arg(process.to_string()));
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        self.files().iter().for_each(|(_, pod)| end_pod(pod));
    }
}
