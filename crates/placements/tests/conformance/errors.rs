//! Failures are one sentence, with the command and the last line of its stderr.

use std::sync::Arc;

use ::support::SystemClock;
use oarlock_placements::{
    CommandPlaceSettings, ContainerSettings, KubernetesSettings, LocalSettings, PlacementOrder,
    PlacementSettings, Placements, ProgressSink, SshSettings, WorkspaceStart,
};

use crate::places;
use crate::support::{block_on, has, unique};

fn refusal(settings: PlacementSettings) -> String {
    block_on(async {
        let placements = Placements::new("errors", Arc::new(SystemClock)).unwrap();
        let order = PlacementOrder { id: format!("t-{}", unique()), settings, start: WorkspaceStart::Empty };
        let error = placements.create(order, &ProgressSink::none()).await.unwrap_err().to_string();
        assert!(!error.contains('\n') && error.len() < 800, "{error}");
        error
    })
}

fn check(settings: PlacementSettings, said: &[&str]) {
    let error = refusal(settings);
    for word in said {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

fn tool(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn image(words: &[&str]) -> ContainerSettings {
    ContainerSettings { image: "debian:12".to_owned(), tool: tool(words), ..ContainerSettings::default() }
}

#[test]
fn a_tool_that_is_not_installed_is_named() {
    let said = ["`no-such-tool` is not installed", "image inspect"];
    check(PlacementSettings::Docker(image(&["no-such-tool"])), &said);
    check(PlacementSettings::Podman(image(&["no-such-tool"])), &said);
    let ssh = SshSettings { host: "h".to_owned(), tool: tool(&["no-such-tool"]), workspace: None };
    check(PlacementSettings::Ssh(ssh), &["`no-such-tool` is not installed"]);
    let pod = KubernetesSettings {
        image: Some("i".to_owned()),
        tool: tool(&["no-such-tool"]),
        ..KubernetesSettings::default()
    };
    check(PlacementSettings::Kubernetes(pod), &["`no-such-tool` is not installed", "creating the pod"]);
    let command = CommandPlaceSettings { argv: tool(&["no-such-tool"]), ..CommandPlaceSettings::default() };
    check(PlacementSettings::Command(command), &["`no-such-tool` is not installed"]);
}

#[test]
fn a_daemon_that_is_down_is_quoted() {
    if has("docker") {
        check(
            PlacementSettings::Docker(image(&["docker", "-H", "unix:///nowhere.sock"])),
            &["looking for the image failed (`docker -H unix:///nowhere.sock image inspect", "daemon"],
        );
    } else {
        println!("skipped: docker is not installed; scripts/placement-tools does it");
    }
    if has("ssh") {
        let settings =
            SshSettings { host: "127.0.0.1".to_owned(), tool: tool(&["ssh", "-p", "1"]), workspace: None };
        check(PlacementSettings::Ssh(settings), &["connecting failed (`ssh -p 1", "Connection refused"]);
    } else {
        println!("skipped: ssh is not installed");
    }
}

#[test]
fn an_image_that_cannot_be_pulled_is_quoted() {
    match places::docker() {
        Ok(site) => {
            let PlacementSettings::Docker(settings) = &site.settings else { unreachable!() };
            let settings =
                ContainerSettings { image: "127.0.0.1:1/no/such:image".to_owned(), ..settings.clone() };
            check(
                PlacementSettings::Docker(settings),
                &["pulling the image failed (`docker -H", "connection refused"],
            );
        }
        Err(reason) => println!("skipped: {reason}"),
    }
    match places::kubernetes() {
        Ok(site) => {
            let PlacementSettings::Kubernetes(settings) = &site.settings else { unreachable!() };
            let settings = KubernetesSettings {
                image: Some("no/such:image".to_owned()),
                ready_seconds: Some(5),
                ..settings.clone()
            };
            check(PlacementSettings::Kubernetes(settings), &["waiting for the pod failed", "no/such:image"]);
        }
        Err(reason) => println!("skipped: {reason}"),
    }
}

#[test]
fn wrong_settings_name_their_field() {
    check(PlacementSettings::Command(CommandPlaceSettings::default()), &["argv: "]);
    check(
        PlacementSettings::Ssh(SshSettings {
            host: "-oProxyCommand=id".to_owned(),
            ..SshSettings::default()
        }),
        &["host: "],
    );
    check(
        PlacementSettings::Docker(ContainerSettings {
            image: "--privileged".to_owned(),
            ..ContainerSettings::default()
        }),
        &["image: "],
    );
    check(PlacementSettings::Kubernetes(KubernetesSettings::default()), &["image: give either"]);
    let missing = LocalSettings { workspace: Some("/no/such/folder".to_owned()), folder: None };
    check(PlacementSettings::Local(missing), &["opening the workspace failed", "/no/such/folder"]);
    block_on(async {
        let placements = Placements::new("errors", Arc::new(SystemClock)).unwrap();
        let settings = PlacementSettings::Local(LocalSettings::default());
        let order = PlacementOrder { id: "Bad Id".to_owned(), settings, start: WorkspaceStart::Empty };
        let error = placements.create(order, &ProgressSink::none()).await.unwrap_err().to_string();
        assert!(error.starts_with("id: "), "{error}");
    });
}
