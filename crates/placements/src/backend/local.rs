//! This machine, without anything in between.

use super::{Labeled, MadePlace, PlaceBackend, PlaceFuture, PlaceState, Prefix, folder};
use crate::progress::ProgressSink;
use crate::search::search_no_tools_beneath;
use crate::settings::{Labels, LocalSettings, PlacementReference};

#[derive(Debug)]
pub(crate) struct LocalPlace(pub(crate) LocalSettings);

impl LocalPlace {
    fn here() -> Prefix {
        Prefix { clear_environment: true, ..Prefix::default() }
    }
}

impl PlaceBackend for LocalPlace {
    fn make<'a>(&'a self, labels: &'a Labels, _: &'a ProgressSink) -> PlaceFuture<'a, MadePlace> {
        let Self(LocalSettings { workspace, folder: base }) = self;
        if let Some(workspace) = workspace {
            search_no_tools_beneath(workspace.as_ref());
        }
        Box::pin(
            async move { folder::make(&Self::here(), workspace.as_deref(), base.as_deref(), labels).await },
        )
    }

    fn prefix<'a>(&'a self, _: &'a PlacementReference) -> PlaceFuture<'a, Prefix> {
        Box::pin(async { Ok(Self::here()) })
    }

    fn state<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, PlaceState> {
        Box::pin(async move { folder::state(&Self::here(), place).await })
    }

    fn suspend<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { folder::end_processes(&Self::here(), place).await })
    }

    fn wake<'a>(&'a self, _: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn destroy<'a>(&'a self, place: &'a PlacementReference) -> PlaceFuture<'a, ()> {
        Box::pin(async move { folder::destroy(&Self::here(), place).await })
    }

    fn leftovers<'a>(&'a self) -> PlaceFuture<'a, Vec<Labeled>> {
        Box::pin(async { folder::leftovers(&Self::here(), self.0.folder.as_deref()).await })
    }
}
