//! Installing from folders and repositories, and attacks on it.
#![allow(clippy::expect_used, reason = "a test fails where it expects something")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use config::{Env, Home, LoadRequest, Loader, LoaderOptions, ResolvedConfig};
use oarlock_plugins as plugins;
use plugins::{PluginError, active_plugins, find_plugin, install, mcp_servers, plugin_folder, uninstall};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home and a marketplace `m` with one plugin `p`.
struct Scene {
    dir: TempDir,
}

impl Scene {
    fn new(source: &Value) -> Self {
        let scene = Self { dir: tempfile::tempdir().expect("a directory") };
        let file = json!({"name": "m", "plugins": [{"name": "p", "source": source}]});
        scene.write("market/.agents/plugins/marketplace.json", &file.to_string());
        scene
    }

    fn local() -> Self {
        let scene = Self::new(&json!({"source": "local", "path": "./p"}));
        scene.write("market/p/.codex-plugin/plugin.json", r#"{"name": "p", "description": "d"}"#);
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("there").join(path)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    fn config(&self) -> ResolvedConfig {
        let options = LoaderOptions {
            system_file: None,
            managed_file: None,
            requirements_file: None,
            environment: Env::fixed([("HOME", "/nonexistent")]),
        };
        let loader = Loader::new(Home::at(self.at("home")), Vec::new(), options);
        loader.load(&LoadRequest::default()).expect("plain")
    }

    fn install(&self) -> Result<(), PluginError> {
        let plugin = find_plugin(&self.at("market/.agents/plugins/marketplace.json"), "p")?;
        install(&self.config(), &plugin)
    }

    /// All paths in the cache.
    fn installed(&self) -> Vec<String> {
        let cache = self.at("home/plugins/cache");
        let mut all = Vec::new();
        walk(&cache, &mut |path| all.push(path.strip_prefix(&cache).expect("below").display().to_string()));
        all.sort();
        all
    }
}

fn walk(folder: &Path, seen: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().expect("a kind").is_dir() {
            true => walk(&entry.path(), seen),
            false => seen(&entry.path()),
        }
    }
}

#[test]
fn a_folder_is_copied_whole_and_switched_on() {
    let scene = Scene::local();
    scene.write("market/p/skills/one/SKILL.md", "---\nname: one\ndescription: d\n---\n");
    let script = scene.write("market/p/run.sh", "#!/bin/sh\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o4777)).expect("set");
    scene.write("market/p/.git/config", "[core]\n");
    let servers = json!({"mcpServers": {
        "s": {"command": "x", "cwd": "./sub", "type": "stdio", "oauth": {}, "env": null}, "bad": 5,
    }});
    scene.write("market/p/.mcp.json", &servers.to_string());
    scene.install().expect("installed");
    assert_eq!(
        scene.installed(),
        [
            "m/p/local/.codex-plugin/plugin.json",
            "m/p/local/.mcp.json",
            "m/p/local/run.sh",
            "m/p/local/skills/one/SKILL.md"
        ]
    );
    let mode =
        fs::metadata(scene.at("home/plugins/cache/m/p/local/run.sh")).expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o700, "no other rights come along");
    let config = scene.config();
    let active = active_plugins(&config);
    assert_eq!((active.len(), active[0].name()), (1, "p"));
    let brought = mcp_servers(&config);
    assert_eq!((brought.len(), brought[0].0.as_str(), brought[0].2.as_str()), (1, "s", "p"));
    let cwd = scene.at("home/plugins/cache/m/p/local/./sub");
    let expected = format!("command = \"x\"\ncwd = \"{}\"\n", cwd.display());
    assert_eq!(brought[0].1, expected.parse::<toml::Table>().expect("TOML"));

    // A newer version replaces the older one as a whole.
    fs::remove_file(&script).expect("removed");
    scene.install().expect("installed again");
    assert!(!scene.installed().contains(&"m/p/local/run.sh".to_owned()));
    uninstall(&config.home, "p@m").expect("removed");
    uninstall(&config.home, "p@m").expect("nothing to remove");
    assert!(scene.installed().is_empty() && active_plugins(&scene.config()).is_empty());
    assert_eq!(fs::read_dir(scene.at("home/plugins/staging")).expect("there").count(), 0);
}

#[test]
fn what_is_not_plain_is_refused_and_leaves_nothing() {
    type Spoil = fn(&Scene);
    let cases: [(&str, Spoil); 6] = [
        ("is a link", |scene| symlink("/etc/passwd", scene.at("market/p/link")).expect("linked")),
        ("is a link", |scene| symlink("/etc", scene.at("market/p/folder")).expect("linked")),
        ("neither a file nor a folder", |scene| {
            let pipe = scene.at("market/p/pipe");
            rustix::fs::mkfifoat(rustix::fs::CWD, pipe, 0o600.into()).expect("a pipe");
        }),
        ("larger than 32 MiB", |scene| {
            let file = fs::File::create(scene.at("market/p/giant")).expect("made");
            file.set_len(40 << 30).expect("a file with a hole");
        }),
        ("more than 32 folders deep", |scene| {
            scene.write(&format!("market/p/{}x", "d/".repeat(40)), "");
        }),
        ("another name, `q`", |scene| {
            scene.write("market/p/.codex-plugin/plugin.json", r#"{"name": "q"}"#);
        }),
    ];
    for (expected, prepare) in cases {
        let scene = Scene::local();
        prepare(&scene);
        let error = scene.install().expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(scene.installed().is_empty() && active_plugins(&scene.config()).is_empty(), "{expected}");
    }
}

#[test]
fn marketplaces_do_not_lead_out() {
    let scene = Scene::local();
    for (source, expected) in [
        (json!({"source": "local", "path": "../out"}), "must start with `./`"),
        (json!({"source": "local", "path": "./../out"}), "must stay within"),
        (json!({"source": "local", "path": "/etc"}), "must start with `./`"),
        (
            json!({"source": "git", "url": "ext::sh -c id", "commit": "0".repeat(40)}),
            "must begin with https://",
        ),
        (json!({"source": "git", "url": "https://h/r", "commit": "main"}), "not a branch or tag"),
        (json!({"source": "npm", "package": "x"}), "unknown variant"),
    ] {
        let file = json!({"name": "m", "plugins": [{"name": "p", "source": source}]});
        scene.write("market/.agents/plugins/marketplace.json", &file.to_string());
        let error = scene.install().expect_err("refused").to_string();
        assert!(error.contains("invalid marketplace file") && error.contains(expected), "{error}");
    }
    // A folder of the marketplace that is a link out of it.
    let scene = Scene::local();
    fs::rename(scene.at("market/p"), scene.at("elsewhere")).expect("moved");
    symlink(scene.at("elsewhere"), scene.at("market/p")).expect("linked");
    scene.install().expect("a folder that the user linked is the user's own");
    // The file itself.
    let scene = Scene::local();
    let file = scene.at("market/.agents/plugins/marketplace.json");
    fs::rename(&file, scene.at("real.json")).expect("moved");
    symlink(scene.at("real.json"), &file).expect("linked");
    assert!(scene.install().expect_err("refused").to_string().contains("leads out"));
}

/// A repository in which every setting tries to run something.
fn hostile_repository(scene: &Scene, marker: &Path, submodule: &str) -> String {
    let repository = scene.at("repository");
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(&repository).output().expect("git runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let touch = format!("touch {}", marker.display());
    scene.write("repository/.codex-plugin/plugin.json", r#"{"name": "p"}"#);
    scene.write("repository/skills/one/SKILL.md", "---\ndescription: d\n---\n");
    scene.write(
        "repository/.gitattributes",
        "* filter=evil diff=evil\n*.md text working-tree-encoding=UTF-8\n",
    );
    scene.write(
        "repository/.gitmodules",
        &format!("[submodule \"s\"]\npath = s\nurl = ext::{touch}\n{submodule}"),
    );
    scene.write("repository/.lfsconfig", &format!("[lfs]\nurl = ext::{touch}\n"));
    symlink("/etc/passwd", repository.join("link")).expect("linked");
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"]);
    // The repository's own settings, which apply if git runs inside it.
    for (key, value) in [
        ("filter.evil.smudge", touch.as_str()),
        ("core.fsmonitor", &touch),
        ("core.sshCommand", &touch),
        ("uploadpack.packObjectsHook", &touch),
    ] {
        git(&["config", key, value]);
    }
    for hook in ["post-checkout", "pre-receive", "post-update", "reference-transaction", "post-index-change"]
    {
        let hook = scene.write(&format!("repository/.git/hooks/{hook}"), &format!("#!/bin/sh\n{touch}\n"));
        fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).expect("set");
    }
    git(&["rev-parse", "HEAD"])
}

#[test]
fn a_repository_is_installed_at_its_commit_and_nothing_of_it_runs() {
    let scene = Scene::local();
    let marker = scene.at("it-ran");
    let commit = hostile_repository(&scene, &marker, "");
    let url = format!("file://{}", scene.at("repository").display());
    let file = json!({"name": "m", "plugins": [{"name": "p", "source": {"source": "git", "url": url, "commit": commit}}]});
    scene.write("market/.agents/plugins/marketplace.json", &file.to_string());
    scene.install().expect("installed");
    assert!(!marker.exists(), "something of the repository ran");
    let installed = scene.installed();
    assert!(installed.contains(&format!("m/p/{commit}/skills/one/SKILL.md")), "{installed:?}");
    assert!(!installed.iter().any(|path| path.contains("/.git/")), "{installed:?}");
    let link = scene.at(&format!("home/plugins/cache/m/p/{commit}/link"));
    assert!(fs::symlink_metadata(&link).expect("there").is_file(), "a link is only the text of its target");
    assert_eq!(fs::read_to_string(link).expect("readable"), "/etc/passwd");
    assert_eq!(active_plugins(&scene.config()).len(), 1);

    // Only the commit counts, not the repository's current state, and it is here now.
    scene.write("repository/skills/one/SKILL.md", "changed");
    fs::rename(scene.at("repository"), scene.at("gone")).expect("moved");
    let plugin = find_plugin(&scene.at("market/.agents/plugins/marketplace.json"), "p").expect("offered");
    let folder = plugin_folder(&scene.config(), &plugin).expect("here");
    assert!(
        fs::read_to_string(folder.join("skills/one/SKILL.md")).expect("readable").contains("description: d")
    );
}

#[test]
fn a_repository_that_git_itself_finds_hostile_is_refused() {
    let scene = Scene::local();
    let marker = scene.at("it-ran");
    let commit = hostile_repository(&scene, &marker, "update = !id\n");
    let url = format!("file://{}", scene.at("repository").display());
    let source = json!({"source": "git", "url": url, "commit": commit});
    let file = json!({"name": "m", "plugins": [{"name": "p", "source": source}]});
    scene.write("market/.agents/plugins/marketplace.json", &file.to_string());
    let error = scene.install().expect_err("refused").to_string();
    assert!(error.contains("gitmodulesUpdate"), "{error}");
    assert!(!marker.exists() && scene.installed().is_empty());
}

/// Its settings name a program that fetches missing objects, and its object folder is a link.
#[test]
fn a_repository_that_is_not_whole_has_nothing_run() {
    let scene = Scene::local();
    let marker = scene.at("it-ran");
    let commit = hostile_repository(&scene, &marker, "");
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(scene.at("")).output().expect("git runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let touch = format!("touch {}; false", marker.display());
    git(&["-C", "repository", "config", "--unset", "core.fsmonitor"]);
    git(&["-C", "repository", "config", "--unset", "uploadpack.packObjectsHook"]);
    git(&["-C", "repository", "config", "uploadpack.allowFilter", "true"]);
    git(&["clone", "-q", "--bare", "--filter=blob:none", "--no-local", "repository", "partial"]);
    git(&["-C", "partial", "config", "remote.origin.uploadpack", &touch]);
    git(&["-C", "partial", "config", "uploadpack.allowAnySHA1InWant", "true"]);
    fs::create_dir(scene.at("linked")).expect("made");
    for name in ["HEAD", "config", "refs", "packed-refs"] {
        symlink(scene.at("partial").join(name), scene.at("linked").join(name)).expect("linked");
    }
    symlink("/dev/zero", scene.at("linked/objects")).expect("linked");
    for repository in ["partial", "linked"] {
        let url = format!("file://{}", scene.at(repository).display());
        let source = json!({"source": "git", "url": url, "commit": commit});
        let file = json!({"name": "m", "plugins": [{"name": "p", "source": source}]});
        scene.write("market/.agents/plugins/marketplace.json", &file.to_string());
        let error = scene.install().expect_err(repository).to_string();
        assert!(error.contains("could not be fetched"), "{error}");
        assert!(!marker.exists() && scene.installed().is_empty(), "{repository}");
    }
}

/// A server that does not respond holds git and its child processes, which are then inspected.
#[test]
fn a_password_in_an_address_is_in_no_command_line_and_no_error() {
    let scene = Scene::local();
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let url = format!("https://me:hunter{port}@127.0.0.1:{port}/r.git");
    let source = json!({"source": "git", "url": url, "commit": "0".repeat(40)});
    let file = json!({"name": "m", "plugins": [{"name": "p", "source": source}]});
    scene.write("market/.agents/plugins/marketplace.json", &file.to_string());
    let with = |text: &str| {
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(text)).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let installing = scope.spawn(|| scene.install().expect_err("nobody answers").to_string());
        let (connection, _) = server.accept().expect("a connection");
        let programs = with(&format!("127.0.0.1:{port}/r.git"));
        assert!(programs.iter().any(|line| line.contains("remote-https")), "{programs:?}");
        assert_eq!(with(&format!("hunter{port}")), [""; 0]);
        drop((connection, server));
        let error = installing.join().expect("no panic");
        assert!(error.contains(&format!("https://127.0.0.1:{port}/r.git")), "{error}");
        assert!(!error.contains("hunter"), "{error}");
    });
}

#[test]
fn a_repository_that_cannot_be_fetched_is_named() {
    let scene = Scene::local();
    let url = format!("file://{}", scene.at("nowhere").display());
    let source = json!({"source": "git", "url": url, "commit": "0".repeat(40), "path": "./sub"});
    let file = json!({"name": "m", "plugins": [{"name": "p", "source": source}]});
    scene.write("market/.agents/plugins/marketplace.json", &file.to_string());
    let error = scene.install().expect_err("refused").to_string();
    assert!(error.starts_with(&format!("plugin `p` could not be fetched from {url}: ")), "{error}");
    assert!(scene.installed().is_empty());
}

/// Repeats the test of a hostile repository, with a writable folder first in the search path.
#[test]
fn git_is_not_taken_from_where_commands_can_write() {
    let dir = tempfile::tempdir().expect("a directory");
    let (git, ran) = (dir.path().join("git"), dir.path().join("ran"));
    // Only the installing git has this variable; the one that creates the repository has not.
    let script = format!(
        "#!/bin/sh\n[ -z \"$GIT_CONFIG_NOSYSTEM\" ] || : > {}\nPATH=/usr/bin:/bin\nexec git \"$@\"\n",
        ran.display()
    );
    fs::write(&git, script).expect("written");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("set");
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
    let test = "a_repository_is_installed_at_its_commit_and_nothing_of_it_runs";
    let own = std::env::current_exe().expect("this test");
    let output = Command::new(own).args(["--exact", test]).env("PATH", path).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    assert!(!ran.exists(), "a git of the workspace ran");
}
