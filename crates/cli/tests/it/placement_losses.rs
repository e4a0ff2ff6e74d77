//! Places that are lost, left behind or cut off, and what is kept of them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::host::{APPROVAL, HostClient, RunningHost, code, command, pending, state, until};
use crate::placement_sites::{Pods, Ssh, lacks, small_runtime};
use crate::placements::{completed, configure, id_of, jobs, start, store_holds};
use crate::support::Place;

/// Approves whatever is asked until the turn is over: a question for a place that is gone is asked again.
fn approve_all(place: &Place) {
    until("the end of the turn", || {
        if !pending(place).is_empty() {
            command(place, &["approve", &code(place)]);
        }
        (state(place) == "idle").then_some(())
    });
}

fn snapshots(place: &Place) -> Vec<PathBuf> {
    let files = fs::read_dir(place.root().join("tasks.sqlite.blobs")).into_iter().flatten().flatten();
    files.map(|file| file.path()).collect()
}

fn the_placement(client: &mut HostClient) -> Value {
    client.ask("placement/list", &json!({}))["data"][0].take()
}

fn gc(place: &Place, more: &[&str]) -> String {
    let url = format!("unix://{}", place.root().join("tasks.sqlite.sock").display());
    place.run(&[&["host", "gc", "--host", &url, "--unused-for", "0"], more].concat()).good().out
}

#[test]
fn a_task_in_a_pod_survives_eviction_suspension_and_a_killed_host() {
    if lacks(&["python3", "unshare", "nsenter"]) {
        return;
    }
    let place = Place::new();
    let pods = Pods::new();
    configure(&place, &pods.table("cluster"));
    let runtime = small_runtime(&place);
    let host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let thread = id_of(&start(&mut client, "cluster", "untrusted"));
    let runs = || pods.sh("cat runs 2>/dev/null || true");

    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    pods.evict();
    approve_all(&place);
    assert_eq!(runs(), "x", "once, in the pod that was made from the manifest");

    client.turn(&thread, "run sh slow.sh", "i2");
    until("the question", || pending(&place).first().cloned());
    command(&place, &["approve", &code(&place)]).good();
    until("the command", || (runs() == "x\nx").then_some(()));
    pods.evict();
    let unknown = until("the unknown outcome", || pending(&place).first().cloned());
    assert_eq!(unknown["state"], "unknown", "{unknown}");
    command(&place, &["respond", &code(&place), "it had been done"]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert!(store_holds(&place, "workspace_restored"), "the model is told");

    client.turn(&thread, "run sh job.sh", "i3");
    approve_all(&place);
    assert_eq!(runs(), "x", "it began anew");
    let placement = the_placement(&mut client)["id"].clone();
    let of_it = json!({"placementId": placement});
    client.ask("placement/suspend", &of_it);
    assert_eq!((pods.running(), snapshots(&place).len()), (0, 1));
    let kept = client.ask("placement/snapshot", &of_it);
    assert_eq!(kept["placement"]["status"], "suspended", "what is kept already needs no pod: {kept}");
    host.kill();

    let host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    client.ask("thread/resume", &json!({"threadId": thread}));
    client.turn(&thread, "run sh job.sh", "i4");
    approve_all(&place);
    assert_eq!(runs(), "x\nx", "from its snapshot");

    client.ask("placement/suspend", &of_it);
    let [snapshot] = &snapshots(&place)[..] else {
        panic!("the one before is gone: {:?}", snapshots(&place))
    };
    fs::remove_file(snapshot).expect("removed");
    client.turn(&thread, "say hello", "i5");
    completed(&mut client);
    assert_eq!(runs(), "", "from the manifest");
    assert!(store_holds(&place, "was made anew"), "nothing goes on as if nothing had happened");

    client.ask("placement/snapshot", &of_it);
    assert_eq!(snapshots(&place).len(), 1);
    client.ask("task/delete", &json!({"threadId": thread}));
    // As a host leaves it that is killed while it writes one.
    fs::write(place.root().join("tasks.sqlite.blobs/.new-0"), "half").expect("written");
    assert!(gc(&place, &["--dry-run"]).contains(".new-0"));
    gc(&place, &[]);
    assert_eq!((pods.all(), snapshots(&place)), (0, Vec::new()));
    host.kill();
}

#[test]
fn a_suspended_place_is_kept_as_it_is() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let params = json!({"placement": {"backend": "local", "manifest": jobs()}, "approvalPolicy": "never"});
    client.ask("thread/start", &params);
    let of_it = json!({"placementId": the_placement(&mut client)["id"]});
    client.ask("placement/suspend", &of_it);
    let kept = client.ask("placement/snapshot", &of_it)["placement"].take();
    assert_eq!((&kept["status"], snapshots(&place).len()), (&json!("suspended"), 1), "{kept}");
    assert_eq!(kept["separation"], Value::Null, "there the sandbox keeps commands apart: {kept}");
}

/// One folder for everything that is made.
fn folders(place: &Place) -> String {
    let folder = json!(place.root().join("made"));
    format!("[placements.mine]\nbackend = \"local\"\nfolder = {folder}\n")
}

fn made(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.root().join("made")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn what_a_killed_prompt_has_left_is_found() {
    let place = Place::new();
    configure(&place, &folders(&place));
    let exec = ["exec", "--provider", "offline", "--placement", "mine", "--sandbox", "danger-full-access"];
    let failed = place.run(&[&exec[..], &["--image", "/not/there.png", "say x"]].concat()).bad();
    assert!(failed.err.contains("/not/there.png cannot be read"), "{failed:?}");
    assert_eq!(made(&place), [""; 0].map(PathBuf::from), "what failed on this side leaves nothing behind");

    let number = format!("61.{}", std::process::id());
    let mut prompt = place.command(&[&exec[..], &[&format!("run sleep {number}")]].concat());
    let mut prompt = prompt.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until("the command", || (!crate::support::running(&number).is_empty()).then_some(()));
    let _host = RunningHost::start(&place, &[]);
    gc(&place, &[]);
    assert_eq!(made(&place).len(), 1, "it is used");
    prompt.kill().expect("killed");
    prompt.wait().expect("ended");
    assert_eq!(made(&place).len(), 1);
    gc(&place, &[]);
    assert_eq!(made(&place).len(), 0);
    until("the end of the command", || crate::support::running(&number).is_empty().then_some(()));
}

/// A laptop with a placement in its configuration does not dial it every minute.
#[test]
fn a_place_that_no_task_uses_is_left_alone() {
    let place = Place::new();
    let (log, tool) = (place.root().join("log"), place.root().join("tool"));
    fs::write(&tool, format!("echo \"$@\" >> {}\n", log.display())).expect("written");
    let far = format!("[placements.far]\nbackend = \"docker\"\nimage = \"x\"\ntool = [\"sh\", {tool:?}]\n");
    configure(&place, &format!("{far}{}", folders(&place)));
    let _host = RunningHost::start(&place, &["--placement-ttl", "1"]);
    let mut client = HostClient::connect(&place);
    // Each is removed by another sweep: the second one comes after all that the first one does.
    for round in 0..2 {
        let params = json!({"placement": "mine", "approvalPolicy": "never"});
        let thread = id_of(&client.ask("thread/start", &params));
        client.ask("task/delete", &json!({"threadId": thread}));
        until("the removal of what no task uses", || made(&place).is_empty().then_some(()));
        assert!(!log.exists(), "{round}: {:?}", fs::read_to_string(&log));
    }
    gc(&place, &["--dry-run"]);
    assert!(fs::read_to_string(&log).is_ok_and(|log| log.contains("ps --all")));
}

#[test]
fn a_place_that_is_made_again_has_the_commits_it_began_with() {
    let place = Place::new();
    let origin = place.root().join("origin");
    let git = |words: &[&str]| {
        let login = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-C"];
        let mut command = Command::new("git");
        assert!(command.args(login).arg(&origin).args(words).status().expect("git").success(), "{words:?}");
    };
    let commit = |text: &str| {
        fs::write(origin.join("file"), text).expect("written");
        git(&["add", "."]);
        git(&["commit", "-q", "-m", text]);
    };
    fs::create_dir(&origin).expect("made");
    git(&["init", "-q", "-b", "main"]);
    commit("first");
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let repository = json!({"type": "git", "url": format!("file://{}", origin.display()), "rev": "main"});
    let placement = json!({"backend": "local", "manifest": {"entries": {"repo": repository}}});
    let started = client.ask("thread/start", &json!({"placement": placement, "approvalPolicy": "never"}));
    let folder = PathBuf::from(started["cwd"].as_str().expect("a folder"));
    assert_eq!(fs::read_to_string(folder.join("repo/file")).expect("there"), "first");
    commit("second");
    let thread = id_of(&started);
    command(&place, &["task", "suspend", &thread]).good();
    fs::remove_dir_all(&folder).expect("removed");
    client.turn(&thread, "say hello", "i1");
    completed(&mut client);
    let again = PathBuf::from(the_placement(&mut client)["workspace"].as_str().expect("a folder"));
    assert!(again != folder);
    assert_eq!(fs::read_to_string(again.join("repo/file")).expect("there"), "first");
}

#[test]
fn a_connection_that_only_looks_alive_is_given_up() {
    if lacks(&["ssh", "sshd", "ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    let ssh = Ssh::start();
    configure(
        &place,
        &ssh.table_with("far", &["-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2"]),
    );
    let runtime = small_runtime(&place);
    let _host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let placement = json!({"backend": "far", "manifest": jobs()});
    let params =
        json!({"placement": placement, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"});
    let started = client.ask("thread/start", &params);
    let (thread, folder) = (id_of(&started), PathBuf::from(started["cwd"].as_str().expect("a folder")));
    let runs = || fs::read_to_string(folder.join("runs")).map_or(0, |text| text.lines().count());
    client.turn(&thread, "run sh slow.sh", "i1");
    client.wait_for(APPROVAL);
    command(&place, &["approve", &code(&place)]).good();
    until("the command", || (runs() == 1).then_some(()));
    let frozen = ssh.freeze();
    let began = Instant::now();
    let unknown = until("the unknown outcome", || pending(&place).first().cloned());
    assert_eq!(unknown["state"], "unknown", "{unknown}");
    assert!(began.elapsed().as_secs() < 15, "{:?}", began.elapsed());
    command(&place, &["respond", &code(&place), "it had been done"]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(runs(), 1, "the command of the frozen connection was ended and not run again");
    drop(frozen);
}
