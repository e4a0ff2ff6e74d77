//! Commands of the user's own: one that runs what follows it, and others that make, suspend, wake and end its place.

use std::time::Duration;

use super::container::DEFAULT_WORKSPACE;
use super::{Labeled, MadePlace, PlaceBackend, PlaceFuture, PlaceState, Prefix, folder};
use crate::error::PlacementError;
use crate::process::run_script;
use crate::progress::{PlacementStep, ProgressSink};
use crate::script::short_line;
use crate::settings::{CommandPlaceSettings, Labels, PlacementReference};
use crate::tool::ToolRun;

const LIMIT: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct CommandPlace(pub(crate) CommandPlaceSettings);

impl CommandPlace {
    fn workspace(&self, id: &str) -> String {
        self.0.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE).replace("{id}", id)
    }

    fn fill(&self, argv: &[String], id: &str, handle: Option<&str>) -> Vec<String> {
        let fill = |word: &String| {
            word.replace("{id}", id)
                .replace("{workspace}", &self.workspace(id))
                .replace("{handle}", handle.unwrap_or(""))
        };
        argv.iter().map(fill).collect()
    }

    fn around(&self, id: &str, handle: Option<&str>) -> Result<Prefix, PlacementError> {
        match self.0.argv.is_empty() {
            true => Err(PlacementError::invalid(
                "argv",
                "give the command that runs what follows it, like [\"nsenter\", \"-t\", \"{handle}\"]",
            )),
            false => Ok(Prefix {
                argv: self.fill(&self.0.argv, id, handle),
                clear_environment: true,
                environment: self.0.environment.clone(),
                ..Prefix::default()
            }),
        }
    }

    /// Runs one of the user's commands, if it is given.
    async fn call(
        &self,
        action: &str,
        argv: &[String],
        place: &PlacementReference,
    ) -> Result<(), PlacementError> {
        let argv = self.fill(argv, &place.id, place.handle.as_deref());
        match argv.is_empty() {
            true => Ok(()),
            false => ToolRun { limit: LIMIT, ..ToolRun::new(action, &argv) }.succeed().await.map(drop),
        }
    }

    async fn end_processes(&self, place: &PlacementReference) -> Result<(), PlacementError> {
        folder::end_processes(&self.around(&place.id, place.handle.as_deref())?, place).await
    }
}

impl PlaceBackend for CommandPlace {
    fn make<'a>(&'a self, labels: &'a Labels, progress: &'a ProgressSink) -> PlaceFuture<'a, MadePlace> {
        Box::pin(async move {
            progress.step(PlacementStep::Creating, 0, None);
            let create = self.fill(&self.0.create, &labels.id, None);
            let handle = match create.is_empty() {
                true => None,
                false => {
                    let call =
                        ToolRun { limit: LIMIT, ..ToolRun::new("the placement's create command", &create) };
                    call.succeed().await?.text().lines().next().map(str::to_owned)
                }
            };
            let prefix = self.around(&labels.id, handle.as_deref())?;
            run_script(
                &prefix,
                "making the workspace",
                &short_line(r#"mkdir -p "$1""#, &[&self.workspace(&labels.id)]),
            )
            .await?;
            Ok(MadePlace::new(handle, self.workspace(&labels.id)))
        })
    }

    fn prefix<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, Prefix> {
        Box::pin(async move { self.around(&place.id, place.handle.as_deref()) })
    }

    fn state<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, PlaceState> {
        Box::pin(async move {
            let prefix = self.around(&place.id, place.handle.as_deref())?;
            match folder::state(&prefix, place).await {
                // The command that cannot run anything is the only sign of a place that is not there.
                Err(PlacementError::Failed { .. }) => Ok(PlaceState::Gone),
                other => other,
            }
        })
    }

    fn suspend<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move {
            self.end_processes(place).await?;
            self.call("the placement's suspend command", &self.0.suspend, place).await
        })
    }

    fn wake<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(self.call("the placement's wake command", &self.0.wake, place))
    }

    fn destroy<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move {
            // A place that is gone runs nothing; its destroy command may still have something to remove.
            let _ = self.end_processes(place).await;
            self.call("the placement's destroy command", &self.0.destroy, place).await
        })
    }

    /// Labels of a user's own places are the user's own: only references lead to them.
    fn leftovers<'a>(&'a self) -> PlaceFuture<'a, Vec<Labeled>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
