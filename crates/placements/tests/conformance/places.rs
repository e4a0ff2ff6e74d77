//! The backends as this machine has them: daemons and roots of the test's own, stopped with the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use oarlock_placements::{
    CommandPlaceSettings, ContainerSettings, KubernetesSettings, LocalSettings, PlacementReference,
    PlacementSettings, PullPolicy, SshSettings,
};

use crate::support::{has, is_root, path};

/// A backend to be tested.
pub(crate) struct Site {
    pub(crate) settings: PlacementSettings,
    /// Whether a second process sees the first: not where each gets namespaces of its own.
    pub(crate) shares_processes: bool,
    /// Ends the place from outside, if that can be done, and leaves everything for the next one.
    pub(crate) lose: Option<Lose>,
    /// Whether what was lost reads as gone afterwards, or cannot be asked.
    pub(crate) has_labels: bool,
    // Dropped in this order.
    _cleanup: Option<Cleanup>,
    daemon: Option<Daemon>,
    _folder: tempfile::TempDir,
}

impl Site {
    /// The processes that carry connections of its daemon.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let pid = self.daemon.as_ref().unwrap().0.id();
        let sessions = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        assert!(!sessions.trim().is_empty());
        sessions.split_whitespace().map(str::to_owned).collect()
    }
}

/// Ends what a failed test has left.
pub(crate) struct Cleanup(Box<dyn Fn()>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        (self.0)();
    }
}

type Lose = Box<dyn Fn(&PlacementReference)>;

/// A server of the test's own, stopped by its pid.
pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = fs::File::create(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .env("PATH", path())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        for _ in 0..200 {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn need(tools: &[&str]) -> Result<tempfile::TempDir, String> {
    for tool in tools {
        if !has(tool) {
            return Err(format!("{tool} is not installed; scripts/placement-tools does it"));
        }
    }
    if !is_root() {
        return Err(format!(
            "{} needs root for what this test does with it",
            tools.first().unwrap_or(&"this")
        ));
    }
    // Sockets have short paths.
    Ok(tempfile::Builder::new().prefix("oar").tempdir_in("/tmp").unwrap())
}

fn wait_for(what: &str, ready: impl Fn() -> bool) -> Result<(), String> {
    for _ in 0..400 {
        if ready() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    Err(format!("{what} did not come up within 10 s"))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.env("PATH", path()).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default()
        )),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

pub(crate) fn local() -> Result<Site, String> {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("placements").to_string_lossy().into_owned();
    Ok(Site {
        settings: PlacementSettings::Local(LocalSettings { workspace: None, folder: Some(base) }),
        shares_processes: true,
        lose: Some(Box::new(|place| fs::remove_dir_all(place.handle.as_deref().unwrap()).unwrap())),
        has_labels: true,
        _cleanup: None,
        daemon: None,
        _folder: folder,
    })
}

/// A placement behind a command: its folder is made and removed by commands of the test's own.
fn command(folder: tempfile::TempDir, argv: &[&str]) -> Site {
    let workspace = folder.path().join("w/{id}").to_string_lossy().into_owned();
    let settings = CommandPlaceSettings {
        argv: words(argv),
        create: words(&["mkdir", "-p", "{workspace}"]),
        destroy: words(&["rm", "-rf", "{workspace}"]),
        workspace: Some(workspace),
        ..CommandPlaceSettings::default()
    };
    Site {
        settings: PlacementSettings::Command(settings),
        shares_processes: false,
        lose: None,
        has_labels: false,
        _cleanup: None,
        daemon: None,
        _folder: folder,
    }
}

pub(crate) fn unshare() -> Result<Site, String> {
    let folder = need(&["unshare"])?;
    Ok(command(folder, &["unshare", "--fork", "--pid", "--mount", "--ipc", "--uts", "--net", "--mount-proc"]))
}

pub(crate) fn bwrap() -> Result<Site, String> {
    let folder = need(&["bwrap"])?;
    let argv = [
        "bwrap",
        "--bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--unshare-all",
        "--die-with-parent",
    ];
    succeed(Command::new(argv[0]).args(&argv[1..]).arg("true"))?;
    Ok(command(folder, &argv))
}

/// A read-only tree may be used by several at once; the home is shared, so that what is staged stays. What runs in it outlives
/// its command, unless that is in a process namespace of its own.
pub(crate) fn nspawn() -> Result<Site, String> {
    let folder = need(&["systemd-nspawn", "busybox", "unshare"])?;
    let root = folder.path().join("root");
    root_file_system(&root)?;
    for made in ["root/run", "root/var", "home", "w"] {
        fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    let at = folder.path().display();
    let (home, workspaces) = (format!("--bind={at}/home:/root"), format!("--bind={at}/w"));
    let argv = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "systemd-nspawn",
        "--quiet",
        "--pipe",
        "--register=no",
        "--keep-unit",
        "--timezone=off",
        "--resolv-conf=off",
        "--read-only",
        "--tmpfs=/tmp:mode=1777",
        &home,
        &workspaces,
        "--directory",
        &root.to_string_lossy(),
    ];
    // Not in every container, nor where systemd manages nothing.
    succeed(Command::new(argv[0]).args(&argv[1..]).arg("true"))?;
    Ok(command(folder, &argv))
}

/// busybox and nothing else.
pub(crate) fn root_file_system(root: &Path) -> Result<(), String> {
    for folder in ["bin", "tmp", "etc", "proc", "sys", "dev", "root", "usr"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
    fs::write(root.join("etc/os-release"), "ID=test\n").unwrap();
    fs::copy("/bin/busybox", root.join("bin/busybox")).map_err(|error| format!("busybox: {error}"))?;
    succeed(Command::new("chroot").arg(root).args(["/bin/busybox", "--install", "-s", "/bin"]))
}

fn image(folder: &Path) -> Result<PathBuf, String> {
    root_file_system(&folder.join("root"))?;
    let tar = folder.join("image.tar");
    succeed(Command::new("tar").arg("-C").arg(folder.join("root")).arg("-cf").arg(&tar).arg("."))?;
    Ok(tar)
}

pub(crate) fn docker() -> Result<Site, String> {
    let folder = need(&["docker", "dockerd", "containerd", "busybox"])?;
    let at = folder.path();
    let socket = format!("unix://{}/docker.sock", at.display());
    let mut dockerd = Command::new("dockerd");
    for (option, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
        dockerd.arg(option).arg(at.join(name));
    }
    dockerd.args([
        "-H",
        &socket,
        "--iptables=false",
        "--ip6tables=false",
        "--bridge=none",
        "--storage-driver",
        "overlay2",
    ]);
    let log = at.join("log");
    let daemon = Daemon::start(&mut dockerd, &log);
    let tool = words(&["docker", "-H", &socket]);
    wait_for("dockerd", || succeed(Command::new("docker").args(["-H", &socket, "info"])).is_ok())?;
    succeed(Command::new("docker").args(["-H", &socket, "import"]).arg(image(at)?).arg("oar:1"))?;
    let settings = ContainerSettings {
        image: "oar:1".to_owned(),
        tool,
        network: Some("none".to_owned()),
        memory: Some("512m".to_owned()),
        pids: Some(200),
        ..ContainerSettings::default()
    };
    let lose = move |place: &PlacementReference| {
        succeed(Command::new("docker").args(["-H", &socket, "rm", "-f", place.handle.as_deref().unwrap()]))
            .unwrap();
    };
    Ok(containers(PlacementSettings::Docker(settings), Box::new(lose), Some(daemon), folder))
}

fn containers(
    settings: PlacementSettings,
    lose: Lose,
    daemon: Option<Daemon>,
    folder: tempfile::TempDir,
) -> Site {
    Site {
        settings,
        shares_processes: true,
        lose: Some(lose),
        has_labels: true,
        _cleanup: None,
        daemon,
        _folder: folder,
    }
}

pub(crate) fn podman() -> Result<Site, String> {
    let folder = need(&["podman", "runc", "busybox"])?;
    let at = folder.path().to_string_lossy().into_owned();
    let (root, run) = (format!("{at}/root-of-images"), format!("{at}/run"));
    let tool = words(&[
        "podman",
        "--root",
        &root,
        "--runroot",
        &run,
        "--storage-driver",
        "overlay",
        "--runtime",
        "runc",
    ]);
    let call =
        move |tool: &[String], more: &[&str]| succeed(Command::new(&tool[0]).args(&tool[1..]).args(more));
    call(&tool, &["import", &image(folder.path())?.to_string_lossy(), "oar:1"])?;
    let all = tool.clone();
    let settings = ContainerSettings {
        image: "oar:1".to_owned(),
        tool: tool.clone(),
        network: Some("none".to_owned()),
        pull: PullPolicy::Never,
        // The limits of a root that may not raise its own.
        options: words(&["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000"]),
        ..ContainerSettings::default()
    };
    let lose = move |place: &PlacementReference| {
        call(&tool, &["rm", "-f", "-t", "0", place.handle.as_deref().unwrap()]).unwrap();
    };
    let mut site = containers(PlacementSettings::Podman(settings), Box::new(lose), None, folder);
    site._cleanup = Some(Cleanup(Box::new(move || drop(call(&all, &["rm", "-f", "-a", "-t", "0"])))));
    Ok(site)
}

/// An sshd on a port of its own, with keys of its own, and a home of its own for whoever logs in.
pub(crate) fn ssh() -> Result<Site, String> {
    let folder = need(&["ssh", "sshd", "ssh-keygen"])?;
    let at = folder.path();
    for key in ["host", "user"] {
        succeed(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at.join(key)))?;
    }
    let home = at.join("home");
    fs::create_dir(&home).unwrap();
    fs::create_dir_all("/run/sshd").unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at_text = at.display();
    let server = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {at_text}/host\nAuthorizedKeysFile {at_text}/user.pub\nUsePAM no\nStrictModes no\n\
         PidFile {at_text}/pid\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv HOME={}\n",
        home.display()
    );
    let client = format!(
        "Host place\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {at_text}/user\n IdentitiesOnly yes\n \
         UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n"
    );
    fs::write(at.join("sshd_config"), server).unwrap();
    fs::write(at.join("ssh_config"), client).unwrap();
    let config = at.join("ssh_config").to_string_lossy().into_owned();
    let mut sshd = Command::new("/usr/sbin/sshd");
    sshd.args(["-D", "-e", "-f"]).arg(at.join("sshd_config"));
    let daemon = Daemon::start(&mut sshd, &at.join("log"));
    wait_for("sshd", || succeed(Command::new("ssh").args(["-F", &config, "place", "true"])).is_ok())?;
    let pid = fs::read_to_string(at.join("pid")).unwrap().trim().to_owned();
    // Ends every connection as a cut network would: the listener goes on for the next one.
    let lose = move |_: &PlacementReference| {
        let sessions = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        assert!(!sessions.trim().is_empty());
        succeed(Command::new("kill").arg("-9").args(sessions.split_whitespace())).unwrap();
    };
    Ok(Site {
        settings: PlacementSettings::Ssh(SshSettings {
            host: "place".to_owned(),
            tool: words(&["ssh", "-F", &config]),
            workspace: None,
        }),
        shares_processes: true,
        lose: Some(Box::new(lose)),
        has_labels: true,
        _cleanup: None,
        daemon: Some(daemon),
        _folder: folder,
    })
}

/// A real cluster where `OARLOCK_TEST_KUBECONFIG` names one (with the image `OARLOCK_TEST_KUBE_IMAGE`, busybox unless set),
/// else a stand-in that runs pods as local processes.
pub(crate) fn kubernetes() -> Result<Site, String> {
    if let Ok(config) = std::env::var("OARLOCK_TEST_KUBECONFIG") {
        let image = std::env::var("OARLOCK_TEST_KUBE_IMAGE").unwrap_or_else(|_| "busybox:1".to_owned());
        return Ok(cluster(
            words(&["kubectl", "--kubeconfig", &config]),
            image,
            None,
            tempfile::tempdir().unwrap(),
        ));
    }
    let folder = need(&["python3", "unshare", "nsenter"])?;
    let tool = folder.path().join("kubectl");
    fs::write(&tool, include_str!("kubectl")).unwrap();
    fs::create_dir(folder.path().join("fs")).unwrap();
    let workspace = folder.path().join("fs/workspace").to_string_lossy().into_owned();
    // The system's own starts ten times as fast as one that a version manager picks.
    let at = folder.path().to_owned();
    let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let mut site = cluster(
        words(&[python, "-S", "-E", &tool.to_string_lossy()]),
        "stand-in:1".to_owned(),
        Some(workspace),
        folder,
    );
    site._cleanup = Some(Cleanup(Box::new(move || end_pods(&at))));
    Ok(site)
}

/// Pods of the stand-in are in files beside it.
fn end_pods(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let pod: serde_json::Value = fs::read(entry.path())
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        if let Some(pid) = pod["status"]["pid"].as_u64() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

fn cluster(tool: Vec<String>, image: String, workspace: Option<String>, folder: tempfile::TempDir) -> Site {
    let for_loss = tool.clone();
    let lose = move |place: &PlacementReference| {
        let delete = [
            "delete",
            "pod",
            place.handle.as_deref().unwrap(),
            "--ignore-not-found",
            "--wait=true",
            "--grace-period=2",
        ];
        succeed(
            Command::new(&for_loss[0]).args(&for_loss[1..]).args(["--namespace", "default"]).args(delete),
        )
        .unwrap();
    };
    let namespace = Some("default".to_owned());
    let settings = KubernetesSettings {
        image: Some(image),
        tool,
        workspace,
        namespace,
        ..KubernetesSettings::default()
    };
    Site {
        settings: PlacementSettings::Kubernetes(settings),
        shares_processes: true,
        lose: Some(Box::new(lose)),
        has_labels: true,
        _cleanup: None,
        daemon: None,
        _folder: folder,
    }
}
