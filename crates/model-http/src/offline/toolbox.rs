//! The tools a request offers, and how each job is put to whichever of them fits.

use std::sync::Arc;

use serde_json::{Value, json};

/// A tool call of the offline model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OfflineToolCall {
    Function { name: String, arguments: String },
    Custom { name: String, input: String },
}

impl OfflineToolCall {
    fn function(name: &str, arguments: &Value) -> Self {
        Self::Function { name: name.to_owned(), arguments: arguments.to_string() }
    }
}

#[derive(Debug)]
pub(super) struct Toolbox<'a> {
    tools: &'a [Arc<Value>],
    cwd: Option<&'a str>,
}

const SHELLS: &str = "exec_command, shell or shell_command";

/// Why a job cannot be done.
pub(super) type UnavailableReason = String;

impl<'a> Toolbox<'a> {
    pub(super) fn new(tools: &'a [Arc<Value>], cwd: Option<&'a str>) -> Self {
        Self { tools, cwd }
    }

    pub(super) fn list(&self, path: &str) -> Result<OfflineToolCall, UnavailableReason> {
        let listed = self.with_path("list_dir", &["dir_path", "path"], path, json!({}));
        let shell = || self.run(&format!("ls -a {}", quoted(path)));
        listed.map_or_else(shell, Ok).map_err(|_| missing("list files", "list_dir"))
    }

    pub(super) fn read(&self, path: &str) -> Result<OfflineToolCall, UnavailableReason> {
        let read = self.with_path("read_file", &["file_path", "path"], path, json!({}));
        let shell = || self.run(&format!("cat {}", quoted(path)));
        read.map_or_else(shell, Ok).map_err(|_| missing("read a file", "read_file"))
    }

    pub(super) fn search(
        &self,
        text: &str,
        path: Option<&str>,
    ) -> Result<OfflineToolCall, UnavailableReason> {
        let arguments = json!({ "pattern": as_pattern(text) });
        let searched = match path {
            Some(path) => self.with_path("grep_files", &["path"], path, arguments),
            None => self.find("grep_files").map(|_| OfflineToolCall::function("grep_files", &arguments)),
        };
        let place = quoted(path.unwrap_or("."));
        let shell = || self.run(&format!("grep -rnF --exclude-dir=.git -e {} {place}", quoted(text)));
        searched.map_or_else(shell, Ok).map_err(|_| missing("search text", "grep_files"))
    }

    pub(super) fn run(&self, command: &str) -> Result<OfflineToolCall, UnavailableReason> {
        let arguments = [
            ("exec_command", json!({ "cmd": command })),
            ("shell", json!({ "command": ["bash", "-lc", command] })),
            ("shell_command", json!({ "command": command })),
        ];
        let offered = arguments.iter().find(|(name, _)| self.find(name).is_some());
        offered
            .map(|(name, arguments)| OfflineToolCall::function(name, arguments))
            .ok_or_else(|| format!("I cannot run a command: this request offers neither {SHELLS}."))
    }

    /// Asks a command that still runs for what it has written since.
    pub(super) fn poll(&self, session_id: i64) -> Option<OfflineToolCall> {
        let arguments = json!({ "session_id": session_id, "chars": "" });
        self.find("write_stdin").map(|_| OfflineToolCall::function("write_stdin", &arguments))
    }

    pub(super) fn create(&self, path: &str, text: &str) -> Result<OfflineToolCall, UnavailableReason> {
        let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
        let lines = if lines.is_empty() { "+\n".to_owned() } else { lines };
        let patched = self.patch(&format!("*** Add File: {path}\n{lines}"));
        let shell = || self.run(&written_by_shell(path, text));
        patched.map_or_else(shell, Ok).map_err(|_| missing("create a file", "apply_patch"))
    }

    /// A patch for these lines of a file, each with what it becomes.
    pub(super) fn change(&self, path: &str, lines: &[(&str, String)]) -> Option<OfflineToolCall> {
        let changes: String =
            lines.iter().map(|(old, new)| format!("@@\n-{old}\n{}\n", added(new))).collect();
        self.patch(&format!("*** Update File: {path}\n{changes}"))
    }

    /// Replaces text where there is a shell but no tool for patches.
    pub(super) fn replace_by_shell(
        &self,
        old: &str,
        new: &str,
        path: &str,
    ) -> Result<OfflineToolCall, UnavailableReason> {
        let script = format!("s/{}/{}/g", sed_escaped(old, "\\/.*[]^$"), sed_escaped(new, "\\/&"));
        let command = format!("sed -i {} {path}", quoted(&script), path = quoted(path));
        self.run(&command).map_err(|_| missing("change a file", "apply_patch"))
    }

    pub(super) fn view(&self, path: &str) -> Result<OfflineToolCall, UnavailableReason> {
        let viewed = self.with_path("view_image", &["path"], path, json!({}));
        viewed.ok_or_else(|| "I cannot look at a picture: this request does not offer view_image.".to_owned())
    }

    /// A plan whose first step is being done.
    pub(super) fn plan(&self, steps: &[String]) -> Result<OfflineToolCall, UnavailableReason> {
        self.plan_with(steps, |at| if at == 0 { "in_progress" } else { "pending" })
    }

    pub(super) fn finished_plan(&self, steps: &[String]) -> Result<OfflineToolCall, UnavailableReason> {
        self.plan_with(steps, |_| "completed")
    }

    fn plan_with(
        &self,
        steps: &[String],
        status: fn(usize) -> &'static str,
    ) -> Result<OfflineToolCall, UnavailableReason> {
        let plan = steps.iter().enumerate().map(|(at, step)| json!({ "step": step, "status": status(at) }));
        let arguments = json!({ "plan": Value::from_iter(plan) });
        let offered = self.find("update_plan").map(|_| OfflineToolCall::function("update_plan", &arguments));
        offered.ok_or_else(|| "I cannot keep a plan: this request does not offer update_plan.".to_owned())
    }

    /// A tool by its name, with what the user wrote as its input.
    pub(super) fn named(&self, name: &str, input: &str) -> Result<OfflineToolCall, UnavailableReason> {
        let Some(tool) = self.find(name) else {
            let names = Vec::from_iter(self.tools.iter().filter_map(|tool| tool.get("name")?.as_str()));
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("I cannot call {name}: this request does not offer it. Offered: {names}."));
        };
        if is_custom(tool) {
            return Ok(OfflineToolCall::Custom { name: name.to_owned(), input: input.to_owned() });
        }
        let arguments = if input.is_empty() { "{}" } else { input };
        match serde_json::from_str::<Value>(arguments) {
            Ok(Value::Object(_)) => {
                Ok(OfflineToolCall::Function { name: name.to_owned(), arguments: arguments.to_owned() })
            }
            _ => Err(format!("I cannot call {name}: its arguments are not a JSON object.")),
        }
    }

    /// There is a tool for reading, not only a shell.
    pub(super) fn can_read(&self) -> bool {
        self.find("read_file").is_some()
    }

    pub(super) fn can_patch(&self) -> bool {
        self.find("apply_patch").is_some()
    }

    fn patch(&self, hunks: &str) -> Option<OfflineToolCall> {
        let tool = self.find("apply_patch")?;
        let patch = format!("*** Begin Patch\n{hunks}*** End Patch\n");
        Some(if is_custom(tool) {
            OfflineToolCall::Custom { name: "apply_patch".to_owned(), input: patch }
        } else {
            OfflineToolCall::function("apply_patch", &json!({ "input": patch }))
        })
    }

    fn find(&self, name: &str) -> Option<&'a Value> {
        let tools = self.tools.iter().map(AsRef::as_ref);
        let callable =
            |tool: &&Value| matches!(tool.get("type").and_then(Value::as_str), Some("function" | "custom"));
        tools.filter(callable).find(|tool| tool.get("name").and_then(Value::as_str) == Some(name))
    }

    /// Calls a tool that takes a path, under the name its own schema has for it.
    fn with_path(
        &self,
        tool: &str,
        fields: &[&str],
        path: &str,
        mut arguments: Value,
    ) -> Option<OfflineToolCall> {
        let parameters = self.find(tool)?.get("parameters");
        let property = |field: &str| parameters.and_then(|all| all.get("properties")?.get(field));
        let field = fields.iter().find(|field| property(field).is_some()).or(fields.first())?;
        // Tools that name the parameter so want it absolute.
        let path = if field.ends_with("_path") { self.absolute(path)? } else { path.to_owned() };
        arguments[*field] = path.into();
        Some(OfflineToolCall::function(tool, &arguments))
    }

    fn absolute(&self, path: &str) -> Option<String> {
        match path {
            _ if path.starts_with('/') => Some(path.to_owned()),
            "." => self.cwd.map(str::to_owned),
            _ => self.cwd.map(|cwd| format!("{}/{path}", cwd.trim_end_matches('/'))),
        }
    }
}

fn missing(job: &str, tool: &str) -> UnavailableReason {
    format!("I cannot {job}: this request offers neither {tool} nor {SHELLS}.")
}

fn is_custom(tool: &Value) -> bool {
    tool.get("type").and_then(Value::as_str) == Some("custom")
}

fn added(text: &str) -> String {
    text.split('\n').map(|line| format!("+{line}")).collect::<Vec<_>>().join("\n")
}

/// A regular expression for exactly this text.
fn as_pattern(text: &str) -> String {
    let escaped = |c: char| if r"\.+*?()|[]{}^$".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // A path that begins with a dash would be read as an option.
    let dot = if word.starts_with('-') { "./" } else { "" };
    format!("'{dot}{}'", word.replace('\'', r"'\''"))
}

fn written_by_shell(path: &str, text: &str) -> String {
    let folder = path.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty());
    let made = folder.map_or_else(String::new, |folder| format!("mkdir -p {} && ", quoted(folder)));
    format!("{made}printf '%s\\n' {} > {}", quoted_text(text), quoted(path))
}

fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn sed_escaped(text: &str, special: &str) -> String {
    let escaped = |c: char| if special.contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escaped).collect()
}
