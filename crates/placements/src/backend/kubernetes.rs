//! A pod, by the user's `kubectl` with its contexts and plugins. Suspending deletes the pod; its snapshot is kept.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use support::Clock;

use super::container::{DEFAULT_WORKSPACE, KEEP_ALIVE};
use super::{Labeled, MadePlace, PlaceBackend, PlaceFuture, PlaceState, Prefix, seconds};
use crate::error::PlacementError;
use crate::process::run_script;
use crate::progress::{PlacementStep, ProgressSink};
use crate::script::short_line;
use crate::settings::{
    CREATED_LABEL, KubernetesSettings, Labels, OWNER_LABEL, PLACEMENT_LABEL, PlacementReference,
};
use crate::tool::{ToolRun, words};

const READY_SECONDS: u64 = 180;
const DELETE_LIMIT: Duration = Duration::from_secs(180);
const CONTAINER: &str = "runtime";

#[derive(Debug)]
pub(crate) struct Kubernetes {
    pub(crate) settings: KubernetesSettings,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Kubernetes {
    fn words(&self, more: &[&str]) -> Vec<String> {
        let settings = &self.settings;
        let mut argv = settings.tool.clone();
        if argv.is_empty() {
            argv.push("kubectl".to_owned());
        }
        for (option, value) in [("--context", &settings.context), ("--namespace", &settings.namespace)] {
            argv.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
        }
        words(&argv, more)
    }

    /// The pod as the user's template has it, or one container of the image.
    async fn pod(&self, labels: &Labels) -> Result<Value, PlacementError> {
        let mut pod = match (&self.settings.template, &self.settings.image) {
            (Some(template), None) => {
                let argv = self.words(&["create", "--dry-run=client", "-o", "json", "-f", template]);
                let output = ToolRun::new("reading the pod's template", &argv).succeed().await?;
                serde_json::from_slice(&output.stdout)
                    .map_err(|error| PlacementError::invalid("template", error.to_string()))?
            }
            (None, Some(image)) => json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 2,
                    "automountServiceAccountToken": false,
                    "containers": [{"name": CONTAINER, "image": image, "command": ["sh", "-c", KEEP_ALIVE]}],
                },
            }),
            _ => {
                return Err(PlacementError::invalid("image", "give either an image or a template, not both"));
            }
        };
        if pod["kind"] != "Pod" {
            return Err(PlacementError::invalid(
                "template",
                format!("it must hold one Pod, not {}", pod["kind"]),
            ));
        }
        pod["metadata"]["name"] = json!(pod_name(labels));
        for (name, value) in labels.pairs() {
            pod["metadata"]["labels"][name] = json!(value);
        }
        Ok(pod)
    }

    async fn start(&self, labels: &Labels) -> Result<MadePlace, PlacementError> {
        let name = pod_name(labels);
        let pod = self.pod(labels).await?.to_string();
        let argv = self.words(&["create", "-f", "-"]);
        ToolRun { stdin: pod.as_bytes(), ..ToolRun::new("creating the pod", &argv) }.succeed().await?;
        let made = self.wait_until_ready(&name).await;
        if made.is_err() {
            let _ = self.delete(&name).await;
        }
        made
    }

    async fn wait_until_ready(&self, name: &str) -> Result<MadePlace, PlacementError> {
        let seconds = self.settings.ready_seconds.unwrap_or(READY_SECONDS);
        let timeout = format!("--timeout={seconds}s");
        let argv = self.words(&["wait", "--for=condition=Ready", &format!("pod/{name}"), &timeout]);
        let call = ToolRun {
            limit: Duration::from_secs(seconds + 30),
            ..ToolRun::new("waiting for the pod", &argv)
        };
        let output = call.run().await?;
        if !output.success {
            return Err(self.why_not_ready(name).await.unwrap_or_else(|| call.failed(&output)));
        }
        let workspace = self.settings.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE).to_owned();
        run_script(&self.exec(name), "making the workspace", &short_line(r#"mkdir -p "$1""#, &[&workspace]))
            .await?;
        Ok(MadePlace::new(Some(name.to_owned()), workspace))
    }

    /// The reason that the cluster gives, which `wait` does not tell: an image that cannot be pulled, no node with room.
    async fn why_not_ready(&self, name: &str) -> Option<PlacementError> {
        let argv = self.words(&["get", "pod", name, "--ignore-not-found", "-o", "jsonpath={.status}"]);
        let call = ToolRun::new("waiting for the pod", &argv);
        let status: Value = serde_json::from_str(&call.succeed().await.ok()?.text()).ok()?;
        let containers = status["containerStatuses"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|status| &status["state"]["waiting"]);
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let told = containers
            .chain(conditions)
            .find_map(|state| state["message"].as_str().or(state["reason"].as_str()))?;
        let line = told.lines().next().unwrap_or_default().chars().take(400).collect();
        Some(PlacementError::Failed {
            action: call.action.to_owned(),
            command: crate::error::shown(&argv),
            line,
        })
    }

    async fn delete(&self, name: &str) -> Result<(), PlacementError> {
        let argv =
            self.words(&["delete", "pod", name, "--ignore-not-found", "--wait=true", "--grace-period=2"]);
        ToolRun { limit: DELETE_LIMIT, ..ToolRun::new("deleting the pod", &argv) }.succeed().await.map(drop)
    }

    fn exec(&self, name: &str) -> Prefix {
        let mut more = vec!["exec", "-i", name];
        let container = match &self.settings.template {
            Some(_) => self.settings.container.as_deref(),
            None => Some(CONTAINER),
        };
        more.extend(container.into_iter().flat_map(|container| ["-c", container]));
        more.push("--");
        Prefix { argv: self.words(&more), ..Prefix::default() }
    }
}

fn pod_name(labels: &Labels) -> String {
    format!("oarlock-{}", labels.id)
}

fn pod(place: &PlacementReference) -> Result<&str, PlacementError> {
    let missing = || PlacementError::invalid("reference.handle", "it must name the pod");
    place.handle.as_deref().filter(|handle| !handle.starts_with('-')).ok_or_else(missing)
}

impl PlaceBackend for Kubernetes {
    fn make<'a>(&'a self, labels: &'a Labels, progress: &'a ProgressSink) -> PlaceFuture<'a, MadePlace> {
        progress.step(PlacementStep::Creating, 0, None);
        Box::pin(self.start(labels))
    }

    fn prefix<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, Prefix> {
        Box::pin(async move { Ok(self.exec(pod(place)?)) })
    }

    fn state<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, PlaceState> {
        Box::pin(async move {
            let argv = self.words(&[
                "get",
                "pod",
                pod(place)?,
                "--ignore-not-found",
                "-o",
                "jsonpath={.status.phase}",
            ]);
            let phase = ToolRun::new("looking at the pod", &argv).succeed().await?.text();
            Ok(if matches!(phase.as_str(), "Running" | "Pending") {
                PlaceState::Running
            } else {
                PlaceState::Gone
            })
        })
    }

    fn suspend<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { self.delete(pod(place)?).await })
    }

    fn wake<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move {
            let labels =
                Labels { id: place.id.clone(), owner: place.owner.clone(), created_s: seconds(&*self.clock) };
            // A waking that broke off has left its pod, with a workspace that nobody may rely on.
            self.delete(pod(place)?).await?;
            self.start(&labels).await.map(drop)
        })
    }

    fn destroy<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { self.delete(pod(place)?).await })
    }

    fn leftovers<'a>(&'a self) -> PlaceFuture<'a, Vec<Labeled>> {
        Box::pin(async move {
            let argv = self.words(&["get", "pods", "-l", PLACEMENT_LABEL, "-o", "json"]);
            let output = ToolRun::new("listing pods", &argv).succeed().await?;
            let list: Value = serde_json::from_slice(&output.stdout)
                .map_err(|error| PlacementError::invalid("the list of pods", error.to_string()))?;
            let to_labeled = |pod: &Value| {
                let label = |name: &str| pod["metadata"]["labels"][name].as_str().map(str::to_owned);
                let created_s = label(CREATED_LABEL).and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
                let labels = Labels { id: label(PLACEMENT_LABEL)?, owner: label(OWNER_LABEL)?, created_s };
                let workspace = self.settings.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE).to_owned();
                let handle = pod["metadata"]["name"].as_str().map(str::to_owned);
                Some(Labeled { labels, place: MadePlace::new(handle, workspace) })
            };
            Ok(list["items"].as_array().into_iter().flatten().filter_map(to_labeled).collect())
        })
    }

    fn suspend_loses_workspace(&self) -> bool {
        true
    }
}
