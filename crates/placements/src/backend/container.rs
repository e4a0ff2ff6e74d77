//! Containers, by the commands that docker and podman have in common.

use std::time::Duration;

use serde_json::Value;

use super::{Labeled, MadePlace, PlaceBackend, PlaceFuture, PlaceState, Prefix};
use crate::error::PlacementError;
use crate::process::run_script;
use crate::progress::{PlacementStep, ProgressSink};
use crate::script::short_line;
use crate::settings::{
    CREATED_LABEL, ContainerSettings, Labels, OWNER_LABEL, PLACEMENT_LABEL, PlacementReference, PullPolicy,
};
use crate::tool::{ToolOutput, ToolRun, words};

/// Keeps the container running, ends at once when it is stopped, and reaps processes that lost their parent.
pub(super) const KEEP_ALIVE: &str = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";
pub(super) const DEFAULT_WORKSPACE: &str = "/workspace";

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

    async fn start(&self, container: &str) -> Result<String, PlacementError> {
        self.call("starting the container", &["start", container]).await?;
        let workspace = self.0.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE);
        let user = self.0.user.as_deref().unwrap_or("");
        let line = short_line(
            r#"[ -d "$1" ] || { mkdir -p "$1" && { [ -z "$2" ] || chown "$2" "$1"; }; }"#,
            &[workspace, user],
        );
        run_script(&self.exec(container, Some("0")), "making the workspace", &line).await?;
        Ok(workspace.to_owned())
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
            match self.start(&id).await {
                Ok(workspace) => Ok(MadePlace { handle: Some(id), workspace }),
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
        Box::pin(async move { self.start(container(place)?).await.map(drop) })
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
                    place: MadePlace { handle: Some(id.to_owned()), workspace },
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
