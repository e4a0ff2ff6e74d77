//! Commands in a container that set out to speak for their runtime: they run as another user, so that nothing of the runtime
//! is theirs to touch. With `separation = "none"` the same attempts succeed, which shows that they are real.

use std::fs;

use serde_json::{Value, json};

use crate::host::{HostClient, RunningHost, until};
use crate::placement_sites::{Containers, lacks, small_runtime};
use crate::placements::{completed, configure, id_of};
use crate::support::Place;

/// `$1` is the thread, `$2` the home of root. What succeeds is written into `broken`; `tried` counts the runtime's processes.
const ATTACK: &str = r#"
id -u > who; echo mine >> job.sh; : > broken; : > tried
for f in $(grep -lE 'app-server|oarlock:' /proc/[0-9]*/cmdline 2>/dev/null); do
  p=${f%/cmdline}
  [ -d "$p" ] || continue
  echo "$p" >> tried
  ( : > "$p/fd/1" ) 2>/dev/null && { echo pipe >> broken; [ -n "$forged" ] || {
    printf '{"method":"item/agentMessage/delta","params":{"threadId":"%s","turnId":"t","itemId":"i","delta":"forged words"}}\n' "$1" > "$p/fd/1"
    forged=1; }; }
  ( : < "$p/mem" ) 2>/dev/null && echo memory >> broken
  cat "$p/environ" > /dev/null 2>&1 && echo environment >> broken
  ls "$p/fd/" > /dev/null 2>&1 && echo descriptors >> broken
  kill -CONT "${p#/proc/}" 2>/dev/null && echo signal >> broken
done
ls "$2"/.oarlock/homes/* > /dev/null 2>&1 && echo home >> broken
touch "$2/.oarlock/bin/planted" 2>/dev/null && echo binary >> broken
ln -s "$2/secret" peek; ln -s "$2" out
setsid sleep 77 > /dev/null 2>&1 &
exit 0
"#;

struct Scene<'a> {
    containers: &'a Containers,
    client: HostClient,
    thread: String,
    placement: Value,
    turns: u32,
}

impl Scene<'_> {
    fn do_turn(&mut self, text: &str) {
        self.turns += 1;
        let input = format!("i{}", self.turns);
        self.client.turn(&self.thread, text, &input);
        completed(&mut self.client);
    }

    fn attack(&mut self) {
        let home = self.sh("cd; pwd");
        self.do_turn(&format!("run sh attack.sh {} {home}", self.thread));
    }

    fn info(&mut self) -> Value {
        self.client.ask("placement/read", &json!({"placementId": self.placement}))["placement"].take()
    }

    /// Runs a script as root.
    fn sh(&self, script: &str) -> String {
        self.containers.sh(script)
    }

    fn broken(&self) -> Vec<String> {
        let mut broken: Vec<String> =
            self.sh("cat /workspace/broken").split_whitespace().map(str::to_owned).collect();
        broken.sort();
        broken.dedup();
        broken
    }
}

fn start<'a>(containers: &'a Containers, mut client: HostClient, backend: &str) -> Scene<'a> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let entries =
        json!({"attack.sh": text(ATTACK), "job.sh": text("echo x >> runs\n"), "sub/file": text("old\n")});
    let manifest = json!({"entries": entries, "setup": ["mkdir made && echo by-root > made/file"]});
    let params = json!({
        "placement": {"backend": backend, "manifest": manifest}, "approvalPolicy": "never",
        "cwd": "/workspace",
    });
    let thread = id_of(&client.ask("thread/start", &params));
    let listed = client.ask("placement/list", &json!({}))["data"].take();
    let is_ours = |info: &&Value| info["threadIds"] == json!([thread]);
    let placement = listed.as_array().into_iter().flatten().find(is_ours).expect("a placement")["id"].clone();
    containers.sh("cd; chmod 700 .; umask 077; echo closed words > secret");
    Scene { containers, client, thread, placement, turns: 0 }
}

fn attack(containers: &Containers, table: &str) {
    let place = Place::new();
    configure(
        &place,
        &format!("{}separation = \"none\"\n{}", containers.table("open"), containers.table(table)),
    );
    let runtime = small_runtime(&place);
    let host = RunningHost::start(&place, &["--runtime", &runtime]);

    // Without the separation everything that is tried succeeds, but for what the runtime itself keeps closed.
    let mut open = start(containers, HostClient::connect(&place), "open");
    assert_eq!(open.info()["separation"], "none");
    open.attack();
    let broken = open.broken();
    for hole in ["binary", "descriptors", "environment", "home", "pipe", "signal"] {
        assert!(broken.iter().any(|found| found == hole), "{hole} is not really tried: {broken:?}");
    }
    assert!(
        open.client.log.iter().any(|message| message["params"]["delta"] == "forged words"),
        "it is forged"
    );
    open.client.ask("task/delete", &json!({"threadId": open.thread}));
    containers.run(&["rm", "-f", &containers.container()]);

    let mut apart = start(containers, HostClient::connect(&place), table);
    assert_eq!(apart.info()["separation"], "user");
    apart.attack();
    assert!(apart.sh("wc -l < /workspace/tried").parse::<u32>().is_ok_and(|tried| tried >= 3));
    assert_eq!(apart.broken(), Vec::<String>::new());
    assert!(!apart.client.log.iter().any(|message| message["params"]["delta"] == "forged words"));
    assert_eq!(apart.sh("cat /workspace/who; tail -n 1 /workspace/job.sh"), "1000\nmine");
    let left = || apart.sh("ps | grep -c '[s]leep 77' || true");
    until("the end of what the command left", || left().eq("0").then_some(()));

    // Files are the commands' own, and the runtime does for nobody what a command could not do.
    apart.do_turn("run echo more >> made/file");
    apart.do_turn("create sub/new.txt with ```fresh```");
    apart.do_turn("read peek");
    apart.do_turn("create out/planted.txt with ```x```");
    assert_eq!(apart.sh("tail -n 1 /workspace/made/file; stat -c %u /workspace/sub/new.txt"), "more\n1000");
    assert!(!crate::placements::store_holds(&place, "closed words"), "read for a command that could not");
    assert_eq!(apart.sh("cd; ls | grep -c planted || true"), "0");
    let file = json!({"path": "/workspace/by-client", "placementId": apart.placement, "dataBase64": "AA=="});
    apart.client.ask("fs/writeFile", &file);
    assert_eq!(apart.sh("stat -c %u /workspace/by-client"), "1000");

    // A place that is made again from its snapshot is the same in this.
    let placement = json!({"placementId": apart.placement});
    apart.client.ask("placement/snapshot", &placement);
    let first = containers.container();
    containers.run(&["rm", "-f", &first]);
    apart.do_turn("run sh job.sh");
    assert_ne!(containers.container(), first);
    assert_eq!(
        apart.sh("cat /workspace/runs; stat -c %u /workspace/runs /workspace/job.sh"),
        "x\n1000\n1000"
    );
    assert_eq!(apart.info()["separation"], "user");
    host.kill();
}

#[test]
fn no_command_of_docker_speaks_for_its_runtime() {
    if !lacks(&["docker", "dockerd", "containerd", "busybox", "ldd"]) {
        attack(&Containers::docker(), "box");
    }
}

#[test]
fn no_command_of_podman_speaks_for_its_runtime() {
    if !lacks(&["podman", "runc", "busybox", "ldd"]) {
        attack(&Containers::podman(), "box");
    }
}

/// A folder of somebody's, mounted as the workspace: commands run as its owner, and none of the other files change hands.
#[test]
fn commands_run_as_the_owner_of_a_mounted_workspace() {
    if lacks(&["docker", "dockerd", "containerd", "busybox", "ldd"]) {
        return;
    }
    let place = Place::new();
    let docker = Containers::docker();
    let folder = place.root().join("mine");
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("roots"), "").expect("written");
    std::os::unix::fs::chown(&folder, Some(4321), Some(4322)).expect("given away");
    let mounts = format!("mounts = [\"{}:/workspace\"]\n", folder.display());
    configure(&place, &(docker.table("box") + &mounts));
    let runtime = small_runtime(&place);
    let host = RunningHost::start(&place, &["--runtime", &runtime]);
    let mut client = HostClient::connect(&place);
    let manifest = json!({"entries": {"sent": {"type": "text", "text": "x"}}});
    let params = json!({
        "placement": {"backend": "box", "manifest": manifest}, "approvalPolicy": "never", "cwd": "/workspace",
    });
    let thread = id_of(&client.ask("thread/start", &params));
    client.turn(&thread, "run id -u > who", "i1");
    completed(&mut client);
    assert_eq!(fs::read_to_string(folder.join("who")).expect("written"), "4321\n");
    let owner = |name: &str| {
        let found = fs::metadata(folder.join(name)).expect("there");
        (std::os::unix::fs::MetadataExt::uid(&found), std::os::unix::fs::MetadataExt::gid(&found))
    };
    assert_eq!((owner("who"), owner("sent"), owner("roots")), ((4321, 4322), (4321, 4322), (0, 0)));
    client.ask("task/delete", &json!({"threadId": thread}));
    host.kill();
}
