//! Environments that are reached through a command, such as `docker exec -i box` or `ssh host`: the command runs `sh`
//! there, and everything else goes through its input, so that no further quoting is needed.

mod checksum;
mod ere;
mod fetch;
mod gate;
mod push;
mod query;
mod quote;
mod run;
mod talk;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use engine::{Reach, Step};
use protocol::EnvironmentId;
use sandbox::{Limits, Order};
use serde_json::{Value, json};

pub(crate) use ere::{Extended, extended};
pub(crate) use fetch::{FetchRequest, Mirror};
pub(crate) use gate::{MarkerFilter, ScriptMarker};
pub(crate) use push::{PushFailure, push};
pub(crate) use query::{look_there, path_of};
pub(crate) use quote::quoted;
pub(crate) use run::{Errand, RemoteCommand, keys};

/// The script part that prints a found file's path, if it is readable.
pub(crate) const OPEN: &str = include_str!("open.sh");
/// How long a shell may take to answer there.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);
/// Limit of the kept output before that, for the error message.
pub(crate) const DIAGNOSIS_BYTES: usize = 2_048;

/// Variables by which programs such as ssh and docker find their servers, keys and settings. Taken from this program's
/// environment if the thread's does not set them. None of them contains a secret.
const CLIENT_VARIABLES: &[&str] = &[
    "CONTAINER_HOST",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "HOME",
    "KUBECONFIG",
    "LOGNAME",
    "PATH",
    "SSH_AUTH_SOCK",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// The variables of a command that reaches an environment, for calls and for checks.
pub fn client_environment(of_thread: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = of_thread.clone();
    for name in CLIENT_VARIABLES.iter().filter(|name| !of_thread.contains_key(**name)) {
        env.extend(std::env::var(name).ok().map(|value| ((*name).to_owned(), value)));
    }
    env
}

/// An environment behind a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    id: EnvironmentId,
    prefix: Arc<[String]>,
}

impl Elsewhere {
    /// `None` if the step works on this machine.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let primary = step.primary()?;
        match &primary.reach {
            Reach::Local => None,
            Reach::Command { argv } => Some(Self { id: primary.id.clone(), prefix: argv.clone() }),
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.id.as_str()
    }

    /// For digests: environments of the same name differ if they are reached differently.
    pub(crate) fn json(&self) -> Value {
        json!({ "id": self.id(), "prefix": &*self.prefix })
    }

    /// An order that starts a shell there, which reads its script from its input.
    pub(crate) fn order(&self, of_thread: &BTreeMap<String, String>) -> Result<Order, String> {
        if self.prefix.first().is_none_or(String::is_empty) {
            return Err(self.unreachable("no command is known that leads there"));
        }
        Ok(Order {
            argv: self.prefix.iter().cloned().chain(["sh".to_owned()]).collect(),
            cwd: "/".into(),
            env: client_environment(of_thread),
            confinement: None,
            limits: Limits::default(),
            terminal: false,
        })
    }

    pub(crate) fn unreachable(&self, why: impl fmt::Display) -> String {
        format!("environment `{}` cannot be reached: {why}", self.id())
    }

    pub(crate) fn lost(&self, why: impl fmt::Display) -> String {
        format!("environment `{}` was lost: {why}", self.id())
    }

    /// Why an operation there needs a question.
    pub(crate) fn unconfined(&self) -> String {
        format!(
            "environment `{}` cannot be confined from here, and no approval may be asked for; set sandboxPolicy to \
             externalSandbox when that environment is itself the sandbox",
            self.id()
        )
    }

    /// The reason in a question about an operation there.
    pub(crate) fn reason(&self, given: Option<String>) -> String {
        match given {
            Some(given) => format!("{given} (in environment `{}`)", self.id()),
            None => format!("it runs in environment `{}`, which cannot be confined from here", self.id()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step;

    #[test]
    fn the_client_has_the_threads_environment_and_what_it_finds_its_server_by() {
        let mut step = step();
        assert_eq!(Elsewhere::of(&step), None);
        let mut environment = step.environments[0].clone();
        environment.reach = Reach::Command { argv: ["ssh", "host"].map(str::to_owned).to_vec().into() };
        step.environments = [environment].into();
        let place = Elsewhere::of(&step).expect("elsewhere");
        let env = BTreeMap::from([("HOME".to_owned(), "/own".to_owned())]);
        let order = place.order(&env).expect("an order");
        assert_eq!(order.argv, ["ssh", "host", "sh"]);
        assert_eq!((order.cwd.to_str(), order.confinement), (Some("/"), None));
        assert_eq!(order.env["HOME"], "/own");
        assert!(order.env.keys().all(|name| CLIENT_VARIABLES.contains(&name.as_str())));
        let nowhere = Elsewhere { prefix: Arc::new([]), ..place };
        assert!(nowhere.order(&env).is_err());
    }
}
