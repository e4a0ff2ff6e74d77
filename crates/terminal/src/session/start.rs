//! How a session begins, and what the user chose about its threads.

use serde_json::{Map, Value, json};

/// The thread a session begins with.
#[derive(Debug, Clone)]
pub enum SessionStart {
    New(ThreadChoices),
    /// The last one of this folder.
    Last(ThreadChoices),
    /// By the beginning of its id, or by its name.
    Named(String, ThreadChoices),
    /// The user chooses from a list.
    Choose(ThreadChoices),
}

/// Settings that the user chose. The server decides about the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadChoices {
    pub model: Option<String>,
    pub provider: Option<String>,
    /// As on the wire: `on-request` and the like.
    pub approvals: Option<String>,
    /// `read-only` and the like.
    pub sandbox: Option<String>,
    /// A folder that was named; a thread that is resumed keeps its own otherwise.
    pub folder: Option<String>,
}

impl SessionStart {
    pub(super) fn choices(&self) -> &ThreadChoices {
        match self {
            Self::New(choices) | Self::Last(choices) | Self::Named(_, choices) | Self::Choose(choices) => {
                choices
            }
        }
    }
}

impl ThreadChoices {
    /// Takes the choices of a request that was refused, where nothing else was chosen since.
    pub(super) fn fill_from(&mut self, earlier: Self) {
        self.model = self.model.take().or(earlier.model);
        self.provider = self.provider.take().or(earlier.provider);
        self.folder = self.folder.take().or(earlier.folder);
        self.sandbox = self.sandbox.take().or(earlier.sandbox);
        self.approvals = self.approvals.take().or(earlier.approvals);
    }

    /// A stored thread keeps its sandbox and its approvals where nothing else was chosen.
    pub(super) fn keep_rules(&mut self, earlier: Self) {
        self.sandbox = self.sandbox.take().or(earlier.sandbox);
        self.approvals = self.approvals.take().or(earlier.approvals);
    }

    /// A remote server has folders of its own, so it is told of ours only if that was asked for.
    pub(super) fn start_params(&self, folder: &str, is_remote: bool) -> Value {
        let mut params = self.resume_params();
        if !is_remote && self.folder.is_none() {
            params["cwd"] = folder.into();
        }
        params
    }

    pub(super) fn resume_params(&self) -> Value {
        let chosen = [
            ("model", &self.model),
            ("modelProvider", &self.provider),
            ("approvalPolicy", &self.approvals),
            ("sandbox", &self.sandbox),
            ("cwd", &self.folder),
        ];
        let chosen =
            chosen.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?.into())));
        Value::Object(chosen.collect::<Map<String, Value>>())
    }

    /// A turn takes over what was chosen since the thread was opened.
    pub(super) fn turn_params(&self) -> Value {
        let mut params = json!({});
        if let Some(model) = &self.model {
            params["model"] = model.as_str().into();
        }
        if let Some(approvals) = &self.approvals {
            params["approvalPolicy"] = approvals.as_str().into();
        }
        if let Some(sandbox) = &self.sandbox {
            params["sandboxPolicy"] = sandbox_policy(sandbox);
        }
        params
    }
}

fn sandbox_policy(mode: &str) -> Value {
    let name = match mode {
        "workspace-write" => "workspaceWrite",
        "danger-full-access" => "dangerFullAccess",
        _ => "readOnly",
    };
    json!({ "type": name })
}
