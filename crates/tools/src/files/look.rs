//! The item for a tool that reads files: a command whose action says what it reads, lists or searches.

use engine::{NO_EXIT, ToolOutcome};
use protocol::{
    CommandAction, CommandExecutionSource, CommandExecutionStatus, ItemId, ItemStartedNotification,
    ServerNotification, ThreadItem,
};

use crate::{ToolCx, ToolError};

/// A read access in progress. Clients see it when it has ended: it needs no decision, and an interrupted one must not
/// leave an open item.
#[derive(Debug)]
pub(crate) struct Look {
    /// The equivalent command line.
    words: Vec<String>,
    action: LookAction,
    began_ms: i64,
}

#[derive(Debug)]
pub(crate) enum LookAction {
    Read(String),
    List(String),
    Search { pattern: String, path: String },
}

impl Look {
    /// `more`: options after the path.
    pub(crate) fn begin(cx: &ToolCx, action: LookAction, more: Vec<String>) -> Self {
        let mut words = vec![cx.name().to_owned()];
        match &action {
            LookAction::Read(path) | LookAction::List(path) => words.push(path.clone()),
            LookAction::Search { pattern, path } => words.extend([pattern.clone(), path.clone()]),
        }
        words.extend(more);
        Self { words, action, began_ms: cx.bench().now_ms() }
    }

    /// Shows the item, and returns the model's result.
    pub(crate) async fn end(self, cx: &ToolCx, looked: Result<String, ToolError>) -> ToolOutcome {
        let (status, exit_code) = match &looked {
            Ok(_) => (CommandExecutionStatus::Completed, 0),
            Err(ToolError::Refused(_)) => (CommandExecutionStatus::Declined, NO_EXIT),
            Err(_) => (CommandExecutionStatus::Failed, 1),
        };
        let (began_ms, now_ms) = (self.began_ms, cx.bench().now_ms());
        let item = |status, ended: Option<(Option<String>, i32)>| {
            let command = policy::shell_line(&self.words);
            let (aggregated_output, exit_code) =
                ended.map_or((None, None), |(text, code)| (text, Some(code)));
            ThreadItem::CommandExecution {
                id: ItemId::new(cx.call_id()),
                command_actions: vec![self.action.shown(&command)],
                command,
                cwd: cx.step().cwd.clone(),
                process_id: None,
                source: CommandExecutionSource::Agent,
                status,
                aggregated_output,
                exit_code,
                duration_ms: exit_code.map(|_| now_ms.saturating_sub(began_ms).max(0)),
            }
        };
        cx.notify(ServerNotification::ItemStarted(ItemStartedNotification {
            item: item(CommandExecutionStatus::InProgress, None),
            thread_id: cx.thread_id().clone(),
            turn_id: cx.turn_id().clone(),
            started_at_ms: began_ms,
        }))
        .await;
        // The item has no output: clients can read the files.
        let problem = looked.as_ref().err().map(ToString::to_string);
        let ended = item(status, Some((problem, exit_code)));
        let outcome = match looked {
            Ok(text) => ToolOutcome::text(text),
            Err(error) => error.into(),
        };
        ToolOutcome { item: Some(Box::new(ended)), ..outcome }
    }
}

impl LookAction {
    fn shown(&self, command: &str) -> CommandAction {
        let command = command.to_owned();
        match self {
            Self::Read(path) => {
                let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
                CommandAction::Read { command, name, path: path.clone() }
            }
            Self::List(path) => CommandAction::ListFiles { command, path: Some(path.clone()) },
            Self::Search { pattern, path } => {
                CommandAction::Search { command, path: Some(path.clone()), query: Some(pattern.clone()) }
            }
        }
    }
}

/// A value as a command line option, if it is set.
pub(crate) fn option(name: &str, value: Option<impl ToString>) -> Vec<String> {
    value.map(|value| vec![name.to_owned(), value.to_string()]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use protocol::{FunctionCallOutputBody, ServerNotification};
    use serde_json::{Value, json};

    use crate::scene::Scene;

    /// The items of a call, without times.
    async fn seen(scene: &Scene, tool: &str, arguments: Value) -> Vec<Value> {
        let outcome = scene.run(tool, &arguments).await;
        let FunctionCallOutputBody::Text(text) = &outcome.output else { panic!("one text") };
        let begun = scene.told().into_iter().map(|told| match told {
            ServerNotification::ItemStarted(begun) => begun.item,
            other => panic!("{other:?}"),
        });
        let ended = *outcome.item.clone().expect("an item");
        let mut items: Vec<Value> = begun.chain([ended]).map(|item| json!(item)).collect();
        for item in &mut items {
            let item = item.as_object_mut().expect("an object");
            let is_over = item["status"] != "inProgress";
            assert_eq!(item.remove("durationMs").expect("told").is_i64(), is_over);
            assert_eq!((&item["type"], &item["id"]), (&json!("commandExecution"), &json!("call_1")));
            if let Some(problem) = item["aggregatedOutput"].as_str() {
                assert_eq!(problem, text, "people and models read the same");
            }
        }
        items
    }

    #[tokio::test]
    async fn read_files_are_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there").display().to_string();
        fs::write(folder.path().join("a.txt"), "one\n").expect("written");
        for (tool, arguments, command, action) in [
            (
                "read_file",
                json!({"file_path": format!("{root}/a.txt"), "offset": 1}),
                format!("read_file {root}/a.txt --offset 1"),
                json!({"type": "read", "name": "a.txt", "path": format!("{root}/a.txt")}),
            ),
            (
                "list_dir",
                json!({"dir_path": root}),
                format!("list_dir {root}"),
                json!({"type": "listFiles", "path": root}),
            ),
            (
                "grep_files",
                json!({"pattern": "o n", "include": "*.txt"}),
                "grep_files 'o n' . --include '*.txt'".to_owned(),
                json!({"type": "search", "path": ".", "query": "o n"}),
            ),
        ] {
            let items = seen(&Scene::in_folder(folder.path()), tool, arguments).await;
            assert_eq!(
                (&items[0]["status"], &items[1]["status"]),
                (&json!("inProgress"), &json!("completed"))
            );
            let mut action = action;
            action["command"] = json!(command);
            for item in &items {
                assert_eq!((&item["command"], &item["commandActions"]), (&json!(command), &json!([action])));
            }
            assert_eq!((&items[0]["exitCode"], &items[1]["exitCode"]), (&json!(null), &json!(0)));
        }
    }

    #[tokio::test]
    async fn a_forbidden_file_is_declined_and_a_missing_one_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let hidden = folder.path().canonicalize().expect("there").join("keys");
        fs::write(&hidden, "secret").expect("written");
        let scene = || Scene::in_folder(folder.path()).hiding(&[&hidden]);
        for (file, status) in [("keys", "declined"), ("none", "failed")] {
            let items = seen(&scene(), "read_file", json!({"file_path": file})).await;
            assert_eq!((items.len(), &items[1]["status"]), (2, &json!(status)), "{file}");
            assert!(
                items[1]["aggregatedOutput"].as_str().is_some_and(|text| text.contains(file)),
                "{items:?}"
            );
        }
    }
}
