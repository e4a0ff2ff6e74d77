//! Containers, by the commands that docker and podman have in common.

use std::time::Duration;

use serde_json::Value;

use super::{Labeled, MadePlace, PlaceBackend, PlaceFuture, PlaceState, Prefix};
use crate::error::PlacementError;
use crate::process::run_script;
use crate::progress::{PlacementStep, ProgressSink};
use crate::script::short_line;
use crate::settings::{
    CREATED_LABEL, CommandSeparation, ContainerSettings, Labels, OWNER_LABEL, PLACEMENT_LABEL,
    PlacementReference, PullPolicy,
};
use crate::tool::{ToolOutput, ToolRun, words};

/// Keeps the container running, ends at once when it is stopped, and reaps processes that lost their parent.
pub(super) const KEEP_ALIVE: &str = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";
pub(super) const DEFAULT_WORKSPACE: &str = "/workspace";

/// The user of commands in a workspace that is made here, where the runtime is root: the first user of most systems, so that an
/// image that has users has a home for it.
const COMMAND_USER: &str = "1000:1000";

/// Makes the workspace `$1` for the user `$2`, or the user of commands `$3`: a container may have no other user than its root.
/// Says whether it was there, and what `ls` says of it.
const MAKE_WORKSPACE: &str = r#"
if [ -d "$1" ]; then echo there; else
  mkdir -p "$1" || exit 1; echo made;
  [ -z "$2" ] || chown "$2" "$1" || exit 1;
  [ -z "$3" ] || chown "$3" "$1" 2>/dev/null;
fi; ls -nd "$1/."
"#;

const PULL_LIMIT: Duration = Duration::from_secs(1800);
const STOP_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct ContainerPlace(pub(super) ContainerSettings);

impl ContainerPlace {
    async fn call(&self, action: &str, more: &[&str]) -> Result<ToolOutput, PlacementError> {
        let argv = words(&self.0.tool, more);
        ToolRun { limit: STOP_LIMIT, ..ToolRun::new(action, &argv) }.succeed().await
    }

    /// The answer, or `None` where there is no such container.
    async fn call_existing(&self, action: &str, more: &[&str]) -> Result<Option<ToolOutput>, PlacementError> {
        let argv = words(&self.0.tool, more);
        let call = ToolRun { limit: STOP_LIMIT, ..ToolRun::new(action, &argv) };
        let output = call.run().await?;
        let stderr = String::from_utf8_lossy(&output.stderr).to_lowercase();
        match output.success {
            true => Ok(Some(output)),
            false if stderr.contains("no such") || stderr.contains("no container with") => Ok(None),
            false => Err(call.failed(&output)),
        }
    }

    async fn pull(&self, progress: &ProgressSink) -> Result<(), PlacementError> {
        let image = self.0.image.as_str();
        if image.is_empty() || image.starts_with('-') {
            return Err(PlacementError::invalid("image", "name an image, like debian:12"));
        }
        let inspect = ["image", "inspect", "--format", "{{.Id}}", image];
        let is_here = match self.0.pull {
            PullPolicy::Never => return Ok(()),
            PullPolicy::Always => false,
            PullPolicy::Missing => self.call_existing("looking for the image", &inspect).await?.is_some(),
        };
        if is_here {
            return Ok(());
        }
        progress.step(PlacementStep::Pulling, 0, None);
        let argv = words(&self.0.tool, &["pull", "--quiet", image]);
        ToolRun { limit: PULL_LIMIT, ..ToolRun::new("pulling the image", &argv) }.succeed().await.map(drop)
    }

    fn create_words(&self, labels: &Labels) -> Vec<String> {
        let settings = &self.0;
        let mut argv = words(&settings.tool, &["create", "--name", &format!("oarlock-{}", labels.id)]);
        for (name, value) in labels.pairs() {
            argv.extend(["--label".to_owned(), format!("{name}={value}")]);
        }
        let pids = settings.pids.map(|pids| pids.to_string());
        let limits = [
            ("--memory", &settings.memory),
            ("--cpus", &settings.cpus),
            ("--pids-limit", &pids),
            ("--network", &settings.network),
        ];
        for (option, value) in limits {
            argv.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
        }
        argv.extend(settings.mounts.iter().flat_map(|mount| ["--volume".to_owned(), mount.clone()]));
        argv.extend(settings.options.iter().cloned());
        argv.extend(
            ["--pull", "never", "--entrypoint", "sh", &settings.image, "-c", KEEP_ALIVE].map(str::to_owned),
        );
        argv
    }

    fn exec(&self, container: &str, user: Option<&str>) -> Prefix {
        let mut argv = words(&self.0.tool, &["exec", "-i"]);
        argv.extend(user.into_iter().flat_map(|user| ["--user".to_owned(), user.to_owned()]));
        argv.push(container.to_owned());
        Prefix { argv, ..Prefix::default() }
    }

    /// `command_user` owns the workspace if it has to be made.
    async fn start(
        &self,
        container: &str,
        command_user: Option<&str>,
    ) -> Result<FoundWorkspace, PlacementError> {
        self.call("starting the container", &["start", container]).await?;
        let path = self.0.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE);
        let user = self.0.user.as_deref().unwrap_or("");
        let line = short_line(MAKE_WORKSPACE, &[path, user, command_user.unwrap_or("")]);
        let said = run_script(&self.exec(container, Some("0")), "making the workspace", &line).await?;
        Ok(FoundWorkspace::read(&String::from_utf8_lossy(&said)))
    }

    /// Whether the runtime will be root in this container, and its commands are not to be.
    async fn wants_command_user(&self, container: &str) -> Result<bool, PlacementError> {
        if self.0.separation == CommandSeparation::None {
            return Ok(false);
        }
        let user = match &self.0.user {
            Some(user) => user.clone(),
            None => {
                let inspect = ["container", "inspect", "--format", "{{.Config.User}}", container];
                self.call("looking at the container", &inspect).await?.text()
            }
        };
        let name = user.split(':').next().unwrap_or_default();
        Ok(matches!(name, "" | "0" | "root"))
    }

    async fn start_new(&self, container: String) -> Result<MadePlace, PlacementError> {
        let is_wanted = self.wants_command_user(&container).await?;
        let found = self.start(&container, is_wanted.then_some(COMMAND_USER)).await?;
        let path = self.0.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE).to_owned();
        Ok(MadePlace {
            command_user: found.command_user.filter(|_| is_wanted),
            had_workspace: found.was_there,
            ..MadePlace::new(Some(container), path)
        })
    }
}

/// The facts that `MAKE_WORKSPACE` prints.
#[derive(Debug, PartialEq)]
struct FoundWorkspace {
    was_there: bool,
    /// Its owner and its group, unless that is root.
    command_user: Option<String>,
}

impl FoundWorkspace {
    fn read(said: &str) -> Self {
        let mut lines = said.lines();
        let was_there = lines.next() != Some("made");
        // Mode, links, owner, group.
        let mut words = lines.next().unwrap_or_default().split_whitespace().skip(2);
        let mut number = || words.next().and_then(|word| word.parse::<u32>().ok()).unwrap_or(0);
        let (user, group) = (number(), number());
        // The group of root must not come along.
        let group = if group == 0 { user } else { group };
        Self { was_there, command_user: (user != 0).then(|| format!("{user}:{group}")) }
    }
}

fn container(place: &PlacementReference) -> Result<&str, PlacementError> {
    let missing = || PlacementError::invalid("reference.handle", "it must name the container");
    place.handle.as_deref().filter(|handle| !handle.starts_with('-')).ok_or_else(missing)
}

impl PlaceBackend for ContainerPlace {
    fn make<'a>(&'a self, labels: &'a Labels, progress: &'a ProgressSink) -> PlaceFuture<'a, MadePlace> {
        Box::pin(async move {
            self.pull(progress).await?;
            progress.step(PlacementStep::Creating, 0, None);
            let argv = self.create_words(labels);
            let output = ToolRun::new("creating the container", &argv).succeed().await?;
            let id = output.text().lines().last().unwrap_or_default().to_owned();
            match self.start_new(id.clone()).await {
                Ok(made) => Ok(made),
                Err(error) => {
                    let _ = self.call("removing the container", &["rm", "--force", "--volumes", &id]).await;
                    Err(error)
                }
            }
        })
    }

    fn prefix<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, Prefix> {
        Box::pin(async move { Ok(self.exec(container(place)?, self.0.user.as_deref())) })
    }

    fn command_prefix(&self, place: &PlacementReference) -> Result<Option<Prefix>, PlacementError> {
        let Some(user) = &place.command_user else { return Ok(None) };
        Ok(Some(self.exec(container(place)?, Some(user))))
    }

    fn state<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, PlaceState> {
        Box::pin(async move {
            let inspect = ["container", "inspect", "--format", "{{.State.Running}}", container(place)?];
            let answer = self.call_existing("looking at the container", &inspect).await?;
            Ok(match answer.map(|output| output.text()).as_deref() {
                Some("true") => PlaceState::Running,
                Some(_) => PlaceState::Suspended,
                None => PlaceState::Gone,
            })
        })
    }

    fn suspend<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move {
            self.call("stopping the container", &["stop", "--time", "2", container(place)?]).await.map(drop)
        })
    }

    fn wake<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { self.start(container(place)?, place.command_user.as_deref()).await.map(drop) })
    }

    fn destroy<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move {
            let remove = ["rm", "--force", "--volumes", container(place)?];
            self.call_existing("removing the container", &remove).await.map(drop)
        })
    }

    fn leftovers<'a>(&'a self) -> PlaceFuture<'a, Vec<Labeled>> {
        Box::pin(async move {
            let filter = format!("label={PLACEMENT_LABEL}");
            let list = self
                .call("listing containers", &["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter])
                .await?
                .text();
            let mut found = Vec::new();
            for id in list.lines() {
                let inspect = ["container", "inspect", "--format", "{{json .Config.Labels}}", id];
                // One that was removed since the list was made is left by nobody.
                let Some(output) = self.call_existing("looking at a container", &inspect).await? else {
                    continue;
                };
                let labels: Value = serde_json::from_str(&output.text()).unwrap_or_default();
                let text = |name: &str| labels[name].as_str().unwrap_or_default().to_owned();
                let created_s = text(CREATED_LABEL).parse().unwrap_or(0);
                let workspace = self.0.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE).to_owned();
                found.push(Labeled {
                    labels: Labels { id: text(PLACEMENT_LABEL), owner: text(OWNER_LABEL), created_s },
                    place: MadePlace::new(Some(id.to_owned()), workspace),
                });
            }
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_the_workspace_is_the_user_of_commands() {
        let check = |said: &str, was_there: bool, command_user: Option<&str>| {
            let command_user = command_user.map(str::to_owned);
            assert_eq!(FoundWorkspace::read(said), FoundWorkspace { was_there, command_user }, "{said}");
        };
        check(
            "made\ndrwxr-xr-x    2 1000     1000            40 Nov  1 10:00 /w/.\n",
            false,
            Some("1000:1000"),
        );
        check("there\ndrwxr-xr-x. 2 501 0 40 Nov  1 10:00 /w/.\n", true, Some("501:501"));
        check("made\ndrwxr-xr-x 2 0 0 40 Nov  1 10:00 /w/.\n", false, None);
        check("", true, None);
    }

    #[test]
    fn create_carries_labels_and_limits() {
        let settings = ContainerSettings {
            image: "debian:12".into(),
            memory: Some("1g".into()),
            pids: Some(64),
            mounts: vec!["/a:/b:ro".into()],
            ..ContainerSettings::default()
        };
        let labels = Labels { id: "p1".into(), owner: "host-a".into(), created_s: 5 };
        let words = super::super::docker::docker(settings).create_words(&labels).join(" ");
        let expected = "docker create --name oarlock-p1 --label dev.oarlock.created=5 --label dev.oarlock.owner=host-a \
                        --label dev.oarlock.placement=p1 --memory 1g --pids-limit 64 --volume /a:/b:ro --pull never \
                        --entrypoint sh debian:12 -c trap 'exit 0' TERM;";
        assert!(words.starts_with(expected), "{words}");
    }
}
