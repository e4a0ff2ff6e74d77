//! The tools the demo brings along: they list, read and write files of one folder and of no other.

use std::fs;
use std::path::{Component, Path, PathBuf};

use protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse, DynamicToolSpec,
};
use serde_json::{Value, json};

use crate::session::ClientTools;

/// Files under one folder.
#[derive(Debug)]
pub(super) struct Workshop {
    root: PathBuf,
}

impl Workshop {
    /// `root` must exist.
    pub(super) fn new(root: &Path) -> std::io::Result<Self> {
        Ok(Self { root: root.canonicalize()? })
    }

    /// As the model is offered them.
    pub(super) fn specs() -> Vec<DynamicToolSpec> {
        let tool = |name: &str, description: &str, properties: Value, required: &[&str]| DynamicToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({ "type": "object", "properties": properties, "required": required }),
            defer_loading: false,
        };
        let path = json!({ "type": "string", "description": "Relative to the workspace." });
        let text = json!({ "type": "string" });
        vec![
            tool("list_dir", "List the files of a folder.", json!({ "path": path }), &["path"]),
            tool("read_file", "Read a text file.", json!({ "path": path }), &["path"]),
            tool(
                "write_file",
                "Write a text file.",
                json!({ "path": path, "text": text }),
                &["path", "text"],
            ),
        ]
    }

    fn run(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        let argument = |name: &str| {
            let text = arguments.get(name).and_then(Value::as_str);
            text.ok_or_else(|| format!("the argument `{name}` is missing"))
        };
        let name = argument("path")?;
        let path = self.inside(name)?;
        let told = |error: std::io::Error| format!("{name}: {error}");
        match tool {
            "list_dir" => {
                let entries =
                    fs::read_dir(path).map_err(told)?.collect::<Result<Vec<_>, _>>().map_err(told)?;
                let mut names: Vec<String> =
                    entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
                names.sort_unstable();
                Ok(names.join("\n"))
            }
            "read_file" => fs::read_to_string(path).map_err(told),
            "write_file" => {
                let text = argument("text")?;
                fs::write(path, text).map_err(told)?;
                Ok(format!("wrote {} bytes to {name}", text.len()))
            }
            other => Err(format!("there is no tool `{other}`")),
        }
    }

    /// The path under the root. Neither `..` nor a link leads out of it.
    fn inside(&self, name: &str) -> Result<PathBuf, String> {
        let refused = || format!("{name} is outside of the demo's folder");
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(name).components().all(is_plain) {
            return Err(refused());
        }
        let path = self.root.join(name);
        // A file that is about to be written has no real path yet; its folder has one.
        let real = path.canonicalize().or_else(|_| path.parent().unwrap_or(&path).canonicalize());
        match real {
            Ok(real) if real.starts_with(&self.root) => Ok(path),
            _ => Err(refused()),
        }
    }
}

impl ClientTools for Workshop {
    fn call(&self, params: &DynamicToolCallParams) -> DynamicToolCallResponse {
        let (text, success) = match self.run(&params.tool, &params.arguments) {
            Ok(text) => (text, true),
            Err(problem) => (problem, false),
        };
        let content_items = vec![DynamicToolCallOutputContentItem::InputText { text }];
        DynamicToolCallResponse { content_items, success }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_folder_and_no_others() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root = scratch.path().join("root");
        fs::create_dir(&root).expect("made");
        fs::write(scratch.path().join("secret"), "s").expect("written");
        std::os::unix::fs::symlink(scratch.path(), root.join("way-out")).expect("linked");
        let workshop = Workshop::new(&root).expect("it exists");
        let run = |tool: &str, arguments: Value| workshop.run(tool, &arguments);

        assert_eq!(
            run("write_file", json!({ "path": "a.txt", "text": "hi" })),
            Ok("wrote 2 bytes to a.txt".to_owned())
        );
        assert_eq!(run("read_file", json!({ "path": "./a.txt" })), Ok("hi".to_owned()));
        assert_eq!(run("list_dir", json!({ "path": "." })), Ok("a.txt\nway-out".to_owned()));
        for path in ["../secret", "/etc/passwd", "way-out/secret", "way-out/new"] {
            for (tool, arguments) in
                [("read_file", json!({ "path": path })), ("write_file", json!({ "path": path, "text": "" }))]
            {
                let answer = run(tool, arguments);
                assert_eq!(answer, Err(format!("{path} is outside of the demo's folder")));
            }
        }
        assert!(run("read_file", json!({})).is_err_and(|problem| problem.contains("`path`")));
        assert!(run("remove", json!({ "path": "a.txt" })).is_err_and(|problem| problem.contains("remove")));
    }
}
