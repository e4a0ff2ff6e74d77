//! One suite that every backend passes, on real tools. A tool that this machine does not have is named and skipped;
//! `scripts/placement-tools` installs them.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod errors;
mod manifests;
mod places;
mod staging;
mod suite;
mod support;

use std::sync::Arc;

use ::support::SystemClock;
use oarlock_placements::{
    KubernetesSettings, PlacementError, PlacementOrder, PlacementSettings, Placements, ProgressSink,
    SpawnOptions, WorkspaceStart,
};
use serde_json::json;

use places::Site;

/// Runs the whole suite, or says in one sentence why not.
fn check(site: Result<Site, String>) {
    match site {
        Ok(site) => support::block_on(suite::run(site)),
        Err(reason) => println!("skipped: {reason}"),
    }
}

#[test]
fn local() {
    check(places::local());
}

#[test]
fn command_unshare() {
    check(places::unshare());
}

#[test]
fn command_bwrap() {
    check(places::bwrap());
}

#[test]
fn command_nspawn() {
    check(places::nspawn());
}

#[test]
fn ssh() {
    check(places::ssh());
}

/// The network swallows what is sent: the tool notices after a while, and until then every call would wait for it.
#[test]
fn ssh_that_only_looks_alive() {
    let site = match places::ssh() {
        Ok(site) => site,
        Err(reason) => return println!("skipped: {reason}"),
    };
    support::block_on(async {
        let placements = Placements::new("conformance", Arc::new(SystemClock)).unwrap();
        let placement = support::create(&placements, &site.settings, WorkspaceStart::Empty).await;
        let process = placement.spawn(&SpawnOptions::new(["sleep", "600"])).await.unwrap();
        let sessions = site.sessions();
        support::signal("-STOP", &sessions);
        let error = placement.end_spawn(process.id()).await.unwrap_err();
        assert!(matches!(error, PlacementError::TimedOut { .. }), "{error}");
        let began = std::time::Instant::now();
        placement.end_spawn(process.id()).await.unwrap();
        assert!(began.elapsed().as_secs() < 10, "over another connection: {:?}", began.elapsed());
        support::signal("-KILL", &sessions);
        placement.destroy().await.unwrap();
    });
}

#[test]
fn docker() {
    check(places::docker());
}

#[test]
fn podman() {
    check(places::podman());
}

/// The user's pod keeps what it says and gets our name and labels.
#[test]
fn kubernetes_template() {
    let site = match places::kubernetes() {
        Ok(site) => site,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let PlacementSettings::Kubernetes(settings) = &site.settings else { unreachable!() };
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("pod.json").to_string_lossy().into_owned();
    let image = settings.image.clone();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"team": "red"}}, "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "work", "image": image, "command": ["sh", "-c", "while :; do sleep 1; done"]}],
    }});
    std::fs::write(&template, pod.to_string()).unwrap();
    let container = Some("work".to_owned());
    let settings =
        KubernetesSettings { image: None, template: Some(template.clone()), container, ..settings.clone() };
    let settings = PlacementSettings::Kubernetes(settings);
    support::block_on(async {
        let placements = Placements::new("conformance", Arc::new(SystemClock)).unwrap();
        let placement = support::create(&placements, &settings, WorkspaceStart::Empty).await;
        assert_eq!(support::text(&placement, "echo hello").await, "hello\n");
        assert_eq!(placements.leftovers(&settings).await.unwrap().len(), 1);
        placement.destroy().await.unwrap();
        std::fs::write(&template, json!({"apiVersion": "v1", "kind": "Job"}).to_string()).unwrap();
        let order = PlacementOrder { id: "job".to_owned(), settings, start: WorkspaceStart::Empty };
        let error = placements.create(order, &ProgressSink::none()).await.unwrap_err().to_string();
        assert!(error.contains("template: it must hold one Pod, not \"Job\""), "{error}");
    });
}

#[test]
fn kubernetes() {
    check(places::kubernetes());
}
