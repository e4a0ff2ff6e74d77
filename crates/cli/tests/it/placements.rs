//! Tasks whose runtimes run elsewhere, in real places: killed, cut off and removed at bad moments.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::host::{APPROVAL, HostClient, RunningHost, code, command, kill_9, pending, state, until};
use crate::placement_sites::{Containers, Ssh, lacks, runtimes_in, small_runtime};
use crate::support::Place;

const DOCKER: &[&str] = &["docker", "dockerd", "containerd", "busybox", "ldd"];

pub(crate) fn configure(place: &Place, table: &str) {
    fs::create_dir_all(place.home()).expect("made");
    fs::write(place.home().join("config.toml"), table).expect("written");
}

/// Entries whose runs are counted in a file beside them.
pub(crate) fn jobs() -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    json!({
        "entries": {
            "job.sh": text("echo x >> runs\n"),
            "slow.sh": text("echo x >> runs\nexec sleep 61\n"),
        },
        "env": {"LEVEL": "3"},
    })
}

pub(crate) fn start(client: &mut HostClient, backend: &str, policy: &str) -> Value {
    let placement = json!({"backend": backend, "manifest": jobs()});
    let params = json!({"placement": placement, "approvalPolicy": policy, "cwd": "/not/there"});
    client.ask("thread/start", &params)
}

pub(crate) fn id_of(started: &Value) -> String {
    started["thread"]["id"].as_str().expect("an id").to_owned()
}

fn steps(client: &HostClient) -> BTreeSet<String> {
    let of_progress = |message: &Value| {
        let is_progress = message["method"] == "placement/progress";
        is_progress.then(|| message["params"]["step"].as_str().unwrap_or_default().to_owned())
    };
    client.heard.iter().filter_map(of_progress).collect()
}

pub(crate) fn completed(client: &mut HostClient) {
    let ended = client.wait_for("turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
}

/// The whole record, as the store has it.
pub(crate) fn store_holds(place: &Place, text: &str) -> bool {
    let read = |name: &str| fs::read(place.root().join(name)).unwrap_or_default();
    let files = [read("tasks.sqlite"), read("tasks.sqlite-wal")];
    files.iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[test]
fn a_task_in_a_container_survives_kills_of_host_runtime_and_container() {
    if lacks(DOCKER) {
        return;
    }
    let place = Place::new();
    let mut docker = Containers::docker();
    configure(&place, &docker.table("box"));
    let runtime = small_runtime(&place);
    let host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let placement = json!({"backend": "box", "manifest": jobs()});
    let refused = client.try_ask("thread/start", &json!({"placement": placement, "sandbox": "read-only"}));
    assert_eq!(refused.expect_err("no sandbox there")["data"]["code"], "sandboxUnavailable");
    assert_eq!(docker.run(&["ps", "-aq"]), "");

    let started = start(&mut client, "box", "untrusted");
    let thread = id_of(&started);
    assert_eq!(
        (&started["cwd"], &started["sandbox"]["type"]),
        (&json!("/workspace"), &json!("externalSandbox"))
    );
    let steps = steps(&client);
    assert!(["creating", "workspace", "staging"].iter().all(|step| steps.contains(*step)), "{steps:?}");
    let warned = client.wait_for("configWarning");
    assert!(warned["params"]["summary"].as_str().is_some_and(|text| text.contains("/not/there")), "{warned}");
    assert_eq!(
        docker.runtime_variables(),
        ["HOME", "LEVEL", "OARLOCK_EXTERNAL_SANDBOX", "OARLOCK_HOME", "OARLOCK_SPAWN", "PATH"]
    );

    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    host.kill();
    let host = RunningHost::start(&place, &["--runtime", &runtime]);
    assert_eq!(pending(&place).len(), 1);
    command(&place, &["approve", &code(&place)]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(docker.sh("cat /workspace/runs"), "x");

    let mut client = HostClient::connect(&place);
    client.ask("thread/resume", &json!({"threadId": thread}));
    client.turn(&thread, "run sh slow.sh", "i2");
    let asked = client.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    until("the command", || (docker.sh("cat /workspace/runs") == "x\nx").then_some(()));
    // The runtime first: one that sees its command end has a result to record.
    docker.sh("kill -9 $(pidof oarlock | tr ' ' '\\n' | sort -n) || true");
    let unknown = until("the unknown outcome", || pending(&place).first().cloned());
    assert_eq!(unknown["state"], "unknown", "{unknown}");
    until("the end of the command", || docker.sh("ps | grep -c '[s]leep 61' || true").eq("0").then_some(()));
    command(&place, &["respond", &code(&place), "it had been done"]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(docker.sh("cat /workspace/runs"), "x\nx");

    let listed = client.ask("placement/list", &json!({}))["data"].clone();
    let placement = listed[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!((&listed[0]["status"], &listed[0]["threadIds"]), (&json!("ready"), &json!([thread])));
    client.ask("placement/snapshot", &json!({"placementId": placement}));
    let first = docker.container();
    docker.run(&["rm", "-f", &first]);
    client.heard.clear();
    client.turn(&thread, "say hello", "i3");
    completed(&mut client);
    assert_ne!(docker.container(), first);
    assert_eq!(docker.sh("cat /workspace/runs"), "x\nx", "from the snapshot");
    assert!(store_holds(&place, "workspace_restored"), "the model is told");

    let in_use = client.try_ask("placement/delete", &json!({"placementId": placement}));
    assert_eq!(in_use.expect_err("a task uses it")["data"]["code"], "placementInUse");
    client.ask("placement/suspend", &json!({"placementId": placement}));
    assert_eq!(docker.run(&["ps", "-q"]), "", "it is stopped");
    let kept = client.ask("placement/snapshot", &json!({"placementId": placement}));
    assert!(kept["placement"]["snapshot"].is_string(), "{kept}");
    assert_eq!(docker.run(&["ps", "-q"]), "", "it is stopped again");
    client.turn(&thread, "run sh job.sh", "i4");
    client.wait_for(APPROVAL);
    docker.restart();
    command(&place, &["approve", &code(&place)]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(docker.sh("cat /workspace/runs"), "x\nx\nx", "the daemon's containers were stopped, not lost");
    client.ask("task/delete", &json!({"threadId": thread}));
    let url = format!("unix://{}", place.root().join("tasks.sqlite.sock").display());
    let gc =
        |more: &[&str]| place.run(&[&["host", "gc", "--host", &url, "--unused-for", "0"], more].concat());
    assert!(gc(&["--dry-run"]).good().out.contains(&format!("would remove {placement}")));
    assert!(gc(&[]).good().out.contains(&format!("removed {placement}")));
    assert_eq!(docker.run(&["ps", "-aq"]), "");
    host.kill();
}

#[test]
fn one_prompt_in_a_container_leaves_nothing_behind() {
    if lacks(DOCKER) {
        return;
    }
    let place = Place::new();
    let docker = Containers::docker();
    configure(&place, &docker.table("box"));
    let runtime = small_runtime(&place);
    let exec = ["exec", "--provider", "offline", "--placement", "box", "--runtime", &runtime];
    let ran = place.run(&[&exec[..], &["run pwd"]].concat()).good();
    assert!(ran.out.contains("/workspace"), "{ran:?}");
    assert!(ran.err.contains("placement: staging"), "{ran:?}");
    assert_eq!(docker.run(&["ps", "-aq"]), "");

    let missing = place.run(&["exec", "--provider", "offline", "--placement", "nowhere", "say x"]).bad();
    assert!(
        missing.err.contains("there is no placement \"nowhere\"; the configuration has: box"),
        "{missing:?}"
    );
    let no_image =
        place.run(&["exec", "--provider", "offline", "--placement", "docker:no/such:1", "say x"]).bad();
    assert!(no_image.err.contains("docker"), "{no_image:?}");
}

#[test]
fn doctor_says_what_holds_in_a_container() {
    if lacks(DOCKER) {
        return;
    }
    let place = Place::new();
    let docker = Containers::docker();
    configure(&place, &docker.table("box"));
    let runtime = small_runtime(&place);
    let report =
        place.run(&["doctor", "--json", "--placement", "box", "--runtime", &runtime]).good().document();
    let checks = report["checks"].as_array().expect("checks");
    let of = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.map(|check| (check["status"].clone(), check["summary"].as_str().unwrap_or_default().to_owned()))
    };
    let (status, sandbox) = of("sandbox").expect("a check");
    assert!(status == "ok" && sandbox.contains("the docker is the boundary"), "{report}");
    let (status, separation) = of("separation").expect("a check");
    assert!(status == "ok" && separation.contains("as user 1000"), "{report}");
    assert!(of("runtime").expect("a check").1.contains("copied in"), "{report}");
    assert_eq!(docker.run(&["ps", "-aq"]), "", "it is removed again");
    let missing = place.run(&["doctor", "--placement", "docker:no/such:1"]).bad();
    assert!(missing.out.contains("problem  placement"), "{missing:?}");
}

#[test]
fn a_client_of_this_machine_may_bring_the_settings_of_a_placement() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let folder = place.root().join("made here");
    let ask = |settings: Value| {
        json!({
            "placement": "mine", "config": {"placements.mine": settings}, "approvalPolicy": "never",
            "sandbox": "danger-full-access",
        })
    };
    let started = client.ask("thread/start", &ask(json!({"backend": "local", "folder": folder})));
    assert!(
        started["cwd"].as_str().is_some_and(|cwd| cwd.starts_with(&*folder.to_string_lossy())),
        "{started}"
    );
    client.turn(&id_of(&started), "run pwd", "i1");
    completed(&mut client);
    let refused = client.try_ask("thread/start", &ask(json!({"backend": "local", "fold": folder})));
    let refused = refused.expect_err("unknown setting")["message"].to_string();
    assert!(refused.contains("config.placements.mine") && refused.contains("fold"), "{refused}");
}

#[test]
fn a_task_works_in_a_folder_of_its_own_that_is_made_again_when_it_is_lost() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let unknown =
        client.try_ask("thread/start", &json!({"placement": "nowhere"})).expect_err("no such place");
    assert!(
        unknown["message"].as_str().is_some_and(|text| text.contains("there is no placement")),
        "{unknown}"
    );
    let placement = json!({"backend": "local", "manifest": jobs()});
    // The sandbox hides what is the program's own, so the folder must lie elsewhere.
    let params = json!({"placement": placement, "approvalPolicy": "untrusted", "sandbox": "workspace-write"});
    let started = client.ask("thread/start", &params);
    let (thread, folder) = (id_of(&started), PathBuf::from(started["cwd"].as_str().expect("a folder")));
    assert!(folder.starts_with(place.root().join(".local/share/oarlock/placements")), "{started}");
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    host.kill();
    let host = RunningHost::start(&place, &[]);
    command(&place, &["approve", &code(&place)]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(fs::read_to_string(folder.join("runs")).expect("it ran"), "x\n");

    let listed = command(&place, &["placements", "--json"]).good().document();
    assert_eq!((&listed[0]["status"], &listed[0]["threadIds"]), (&json!("ready"), &json!([thread])));
    let shown = command(&place, &["placements"]).good().out;
    assert!(shown.starts_with("ID") && shown.contains("ready"), "{shown}");
    command(&place, &["task", "suspend", &thread]).good();
    fs::remove_dir_all(&folder).expect("removed");
    let mut client = HostClient::connect(&place);
    client.ask("thread/resume", &json!({"threadId": thread}));
    command(&place, &["task", "resume", &thread]).good();
    client.turn(&thread, "say hello", "i2");
    completed(&mut client);
    let listed = command(&place, &["placements", "--json"]).good().document();
    let made = PathBuf::from(listed[0]["workspace"].as_str().expect("a folder"));
    assert!(made != folder && made.join("job.sh").is_file(), "from its manifest: {listed}");
    assert!(store_holds(&place, "workspace_restored"), "the model is told");
    host.kill();
}

#[test]
fn files_of_a_placement_are_reached_without_a_runtime() {
    let place = Place::new();
    configure(&place, &open_cage(&place));
    let runtime = small_runtime(&place);
    let _host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let thread = id_of(&start(&mut client, "cage", "never"));
    client.ask("task/suspend", &json!({"threadId": thread}));
    let listed = client.ask("placement/list", &json!({}))["data"][0].take();
    let (id, workspace) = (listed["id"].clone(), listed["workspace"].as_str().expect("a folder").to_owned());
    let at = |path: &str, more: Value| {
        let mut params = json!({"path": format!("{workspace}/{path}"), "placementId": id});
        params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        params
    };
    client.ask("fs/createDirectory", &at("a/b", json!({})));
    client.ask("fs/writeFile", &at("a/b/it's -n", json!({"dataBase64": "AP8="})));
    let read = client.ask("fs/readFile", &at("a/b/it's -n", json!({})));
    assert_eq!(read["dataBase64"], "AP8=");
    fs::write(PathBuf::from(&workspace).join("a/two\nlines"), "").expect("written");
    let mut names = client.ask("fs/readDirectory", &at("a", json!({})))["entries"].take();
    names.as_array_mut().expect("a list").sort_by_key(|entry| entry["fileName"].to_string());
    let expected = json!([
        {"fileName": "b", "isDirectory": true, "isFile": false},
        {"fileName": "two\nlines", "isDirectory": false, "isFile": true},
    ]);
    assert_eq!(names, expected);
    assert!(runtimes_in(&place.root()).is_empty(), "nothing was started for it");

    let mut refused = |method: &str, params: Value, said: &str| {
        let error = client.try_ask(method, &params).expect_err(said);
        assert!(error["message"].as_str().is_some_and(|text| text.contains(said)), "{method}: {error}");
    };
    std::os::unix::fs::symlink("/etc", PathBuf::from(&workspace).join("out")).expect("a link");
    refused("fs/readFile", at("out/passwd", json!({})), "out of the workspace");
    refused("fs/writeFile", at("out/x", json!({"dataBase64": ""})), "out of the workspace");
    refused("fs/readFile", at("../x", json!({})), "not beneath the placement's workspace");
    refused("fs/readFile", at("none", json!({})), "none");
    refused("fs/createDirectory", at("not/there", json!({"recursive": false})), "there");
    let elsewhere = json!({"path": "/w", "placementId": "p-none"});
    refused("fs/readFile", elsewhere, "there is no placement p-none");
}

/// The folder that is given up is still there, as it is on a machine that is only out of reach for a while.
#[test]
fn nothing_runs_in_a_place_that_was_given_up() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let params = json!({
        "placement": {"backend": "local", "manifest": jobs()}, "approvalPolicy": "untrusted",
        "sandbox": "workspace-write",
    });
    let started = client.ask("thread/start", &params);
    let (thread, left) = (id_of(&started), PathBuf::from(started["cwd"].as_str().expect("a folder")));
    let approved_turn = |client: &mut HostClient, input: &str| {
        client.turn(&thread, "run sh job.sh", input);
        client.wait_for(APPROVAL);
        command(&place, &["approve", &code(&place)]).good();
        completed(client);
    };
    let runs = |folder: &PathBuf| fs::read_to_string(folder.join("runs")).unwrap_or_default();
    approved_turn(&mut client, "i1");
    assert_eq!(runs(&left), "x\n");

    let at_present = |client: &mut HostClient| {
        let listed = client.ask("placement/list", &json!({}))["data"].clone();
        let workspace = listed[0]["workspace"].as_str().map(PathBuf::from);
        (listed[0]["id"].as_str().expect("an id").to_owned(), workspace)
    };
    let (placement, _) = at_present(&mut client);
    let given_up = client.ask("placement/abandon", &json!({"placementId": placement}));
    assert_eq!(given_up["placement"]["status"], "lost", "{given_up}");
    client.ask("task/resume", &json!({"threadId": thread}));
    approved_turn(&mut client, "i2");
    let (_, made) = at_present(&mut client);
    let made = made.expect("a folder");
    assert!(made != left && left.is_dir());
    assert_eq!(
        (runs(&left), runs(&made)),
        ("x\n".to_owned(), "x\n".to_owned()),
        "it ran in the new one alone"
    );

    // The same for a turn that waits while the place is given up, and after the host was started anew.
    client.turn(&thread, "run sh job.sh", "i3");
    client.wait_for(APPROVAL);
    client.ask("placement/abandon", &json!({"placementId": placement}));
    host.kill();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    client.ask("thread/resume", &json!({"threadId": thread}));
    client.ask("task/resume", &json!({"threadId": thread}));
    // It is asked about again where it would run elsewhere than it was to.
    until("the end of the turn", || {
        let shown = command(&place, &["pending"]).good().out;
        if let (Some(code), false) = (shown.split_whitespace().next(), pending(&place).is_empty()) {
            command(&place, &["approve", code]);
        }
        (state(&place) == "idle").then_some(())
    });
    let (_, last) = at_present(&mut client);
    let last = last.expect("a folder");
    assert!(last != made && last != left);
    assert_eq!((runs(&left), runs(&made), runs(&last)), ("x\n".into(), "x\n".into(), "x\n".into()));
    host.kill();
}

/// A placement that runs everything as it is here: what counts is that it says to be the boundary.
pub(crate) fn open_cage(place: &Place) -> String {
    let workspace = json!(place.root().join("places/{id}"));
    format!(
        "[placements.cage]\nbackend = \"command\"\nargv = [\"env\"]\ncreate = [\"mkdir\", \"-p\", \"{{workspace}}\"]\n\
         destroy = [\"rm\", \"-rf\", \"{{workspace}}\"]\nworkspace = {workspace}\n"
    )
}

#[test]
fn a_sandbox_that_a_place_cannot_enforce_is_refused_wherever_it_is_asked_for() {
    let place = Place::new();
    configure(&place, &open_cage(&place));
    let runtime = small_runtime(&place);
    let host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let refused = |client: &mut HostClient, method: &str, params: Value, by: &str| {
        let error = client.try_ask(method, &params).expect_err(by);
        assert_eq!(error["data"]["code"], "sandboxUnavailable", "{method} {params}: {error}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(&format!("{by}: ")), "{method} {params}: {message}");
    };
    let start = |more: Value| {
        let mut params = json!({"placement": "cage", "approvalPolicy": "never"});
        params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        params
    };
    let by_config = |key: &str, value: &str| json!({"config": {key: value}});
    refused(&mut client, "thread/start", start(json!({"sandbox": "read-only"})), "sandbox");
    let asked = start(by_config("sandbox_mode", "workspace-write"));
    refused(&mut client, "thread/start", asked, "config.sandbox_mode");
    let asked = start(by_config("default_permissions", "mine"));
    refused(&mut client, "thread/start", asked, "config.default_permissions");
    assert!(!place.root().join("places").exists(), "nothing was made");

    let started = client.ask("thread/start", &start(by_config("sandbox_mode", "danger-full-access")));
    let thread = id_of(&started);
    assert_eq!(started["sandbox"]["type"], "externalSandbox", "{started}");
    client.turn(&thread, "say hello", "i1");
    completed(&mut client);
    for method in ["thread/resume", "thread/fork"] {
        let by_sandbox = json!({"threadId": thread, "sandbox": "read-only"});
        refused(&mut client, method, by_sandbox, "sandbox");
        let by_config = json!({"threadId": thread, "config": {"sandbox_mode": "read-only"}});
        refused(&mut client, method, by_config, "config.sandbox_mode");
    }
    let turn = json!({"threadId": thread, "input": [], "sandboxPolicy": {"type": "readOnly"}});
    refused(&mut client, "turn/start", turn, "sandboxPolicy");
    host.kill();

    configure(&place, &format!("sandbox_mode = \"workspace-write\"\n{}", open_cage(&place)));
    let _host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let by = "sandbox_mode of the host's configuration";
    refused(&mut client, "thread/start", start(json!({})), by);
    client.ask("thread/start", &start(json!({"sandbox": "danger-full-access"})));
    let run = ["exec", "--provider", "offline", "--placement", "cage", "--runtime", &runtime, "say hello"];
    let failed = place.run(&run).bad();
    assert!(failed.err.contains("cannot be enforced in `command`"), "{failed:?}");
    let read_only = [&run[..], &["-c", "sandbox_mode=\"read-only\""]].concat();
    let failed = place.run(&read_only).bad();
    assert!(failed.err.contains("`read-only` cannot be enforced"), "{failed:?}");
}

#[test]
fn what_a_killed_host_had_begun_to_make_is_removed() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let begun = place.root().join("begun");
    let setup = format!("test -e {0} || {{ touch {0}; exec sleep 61; }}", begun.display());
    let placement = json!({"backend": "local", "manifest": {"setup": [["sh", "-c", setup]]}});
    client.write(&json!({"id": 99, "method": "thread/start", "params": {"placement": placement}}));
    until("the setup", || begun.exists().then_some(()));
    let made = || {
        let entries =
            fs::read_dir(place.root().join(".local/share/oarlock/placements")).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    let first = made();
    assert_eq!(first.len(), 1);
    host.kill();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let listed = client.ask("task/list", &json!({}));
    let thread = listed["data"][0]["id"].as_str().expect("the task that was begun").to_owned();
    client.turn(&thread, "say hello", "i1");
    let second =
        until("another folder in its stead", || Some(made()).filter(|now| *now != first && !now.is_empty()));
    assert_eq!(second.len(), 1, "{first:?} {second:?}");
    host.kill();
}

#[test]
fn the_names_of_the_example_can_be_used() {
    let place = Place::new();
    configure(&place, include_str!("../../../../examples/placements/config.toml"));
    let missing = place.run(&["exec", "--provider", "offline", "--placement", "nowhere", "say x"]).bad();
    assert!(missing.err.contains("the configuration has: box, cage, cluster, far;"), "{missing:?}");
    configure(&place, "[placements.box]\nbackend = \"docker\"\nimage = \"x\"\ncolour = \"red\"\n");
    let wrong = place.run(&["exec", "--provider", "offline", "--placement", "box", "say x"]).bad();
    assert!(wrong.err.contains("placements.box: unknown field `colour`"), "{wrong:?}");
}

#[test]
fn a_task_behind_ssh_survives_a_cut_connection_and_a_killed_host() {
    if lacks(&["ssh", "sshd", "ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    let ssh = Ssh::start();
    configure(&place, &ssh.table("far"));
    let runtime = small_runtime(&place);
    let host = RunningHost::start(&place, &["--runtime", &runtime, "--placement", "far"]);
    let mut client = HostClient::connect(&place);
    let placement = json!({"backend": "far", "manifest": jobs()});
    let params =
        json!({"placement": placement, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"});
    let started = client.ask("thread/start", &params);
    let (thread, folder) = (id_of(&started), PathBuf::from(started["cwd"].as_str().expect("a folder")));
    assert!(folder.starts_with(ssh.home()), "{started}");
    let runs = || fs::read_to_string(folder.join("runs")).map_or(0, |text| text.lines().count());
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    ssh.cut();
    host.kill();
    let _host = RunningHost::start(&place, &["--runtime", &runtime]);
    command(&place, &["approve", &code(&place)]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(runs(), 1);

    let mut client = HostClient::connect(&place);
    client.ask("thread/resume", &json!({"threadId": thread}));
    client.turn(&thread, "run sh slow.sh", "i2");
    let asked = client.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    until("the command", || (runs() == 2).then_some(()));
    ssh.cut();
    let unknown = until("the unknown outcome", || pending(&place).first().cloned());
    assert_eq!(unknown["state"], "unknown", "{unknown}");
    command(&place, &["respond", &code(&place), "it had been done"]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(runs(), 2);
}

#[test]
fn a_task_behind_a_command_of_the_users_own_works_there() {
    if lacks(&["bwrap"]) {
        return;
    }
    let place = Place::new();
    let folder = place.root().join("places");
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
    let [argv, create, destroy] =
        [argv.as_slice(), &["mkdir", "-p", "{workspace}"], &["rm", "-rf", "{workspace}"]]
            .map(|words| json!(words).to_string());
    let workspace = json!(folder.join("{id}"));
    let log = place.root().join("log");
    let [suspend, wake] = ["rest", "wake"]
        .map(|word| json!(["sh", "-c", format!("echo {word} >> {}", log.display())]).to_string());
    configure(
        &place,
        &format!(
            "[placements.cage]\nbackend = \"command\"\nargv = {argv}\ncreate = {create}\ndestroy = {destroy}\n\
             suspend = {suspend}\nwake = {wake}\nworkspace = {workspace}\n"
        ),
    );
    let runtime = small_runtime(&place);
    let times = ["--idle-after", "1", "--placement-idle", "2", "--placement-ttl", "2"];
    let host = RunningHost::start(&place, &[&times[..], &["--runtime", &runtime]].concat());
    let mut client = HostClient::connect(&place);
    let started = start(&mut client, "cage", "never");
    let thread = id_of(&started);
    let folder = PathBuf::from(started["cwd"].as_str().expect("a folder"));
    client.turn(&thread, "run sh job.sh", "i1");
    completed(&mut client);
    assert_eq!(fs::read_to_string(folder.join("runs")).expect("it ran"), "x\n");
    for process in runtimes_in(&place.root()) {
        kill_9(&process);
    }
    until("the end of the runtime", || runtimes_in(&place.root()).is_empty().then_some(()));
    client.turn(&thread, "run sh job.sh", "i2");
    completed(&mut client);
    assert_eq!(fs::read_to_string(folder.join("runs")).expect("it ran"), "x\nx\n");

    let said = || fs::read_to_string(&log).unwrap_or_default();
    until("the rest of an idle placement", || (said() == "rest\n").then_some(()));
    let status =
        |client: &mut HostClient| client.ask("placement/list", &json!({}))["data"][0]["status"].clone();
    until("the word for it", || (status(&mut client) == "suspended").then_some(()));
    client.turn(&thread, "run sh job.sh", "i3");
    completed(&mut client);
    assert_eq!(fs::read_to_string(folder.join("runs")).expect("it ran"), "x\nx\nx\n");
    assert_eq!(said(), "rest\nwake\n");
    client.ask("task/delete", &json!({"threadId": thread}));
    until("the removal of what no task uses", || (!folder.exists()).then_some(()));
    host.kill();
}

#[test]
fn a_podman_container_removed_in_mid_turn_is_made_again() {
    if lacks(&["podman", "runc", "busybox", "ldd"]) {
        return;
    }
    let place = Place::new();
    let podman = Containers::podman();
    configure(&place, &podman.table("box"));
    let runtime = small_runtime(&place);
    let _host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let thread = id_of(&start(&mut client, "box", "untrusted"));
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    podman.run(&["rm", "-f", "-t", "0", &podman.container()]);
    // The approval was for the container that is gone, so the question is asked again.
    until("the end of the turn", || {
        if !pending(&place).is_empty() {
            command(&place, &["approve", &code(&place)]);
        }
        (state(&place) == "idle").then_some(())
    });
    assert_eq!(podman.sh("cat /workspace/runs"), "x", "once, in the place that was made from the manifest");
    command(&place, &["task", "delete", &thread]).good();
}
