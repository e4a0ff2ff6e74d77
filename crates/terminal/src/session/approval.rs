//! Approvals: what exactly would happen, and which answers the server takes.

use serde_json::{Value, json};

use super::TerminalState;
use super::facts::text;
use super::items::{AskedPatch, diff_of};
use crate::diff::diff;
use crate::rows::{Ink, ScreenRow, indented, rows, width};
use crate::safe::{escaped, one_line};
use crate::shell::{ShellCall, shell_call, words};

/// An approval that nobody could read is none: a longer diff is cut, and says so.
const DIFF_ROWS: usize = 2_000;

#[derive(Debug, Clone)]
pub(super) struct AskedApproval {
    /// Printed when it is asked, and again for whoever looks at the agent that asks.
    pub(super) shown: Vec<ScreenRow>,
    pub(super) offers: Vec<ApprovalKey>,
    /// Ends the turn as well.
    pub(super) cancel: Option<Value>,
    pub(super) decline: Option<Value>,
    /// The command, where another one may run in its place.
    pub(super) edit: Option<ShellCall>,
    /// The model can be told something in place of a result.
    responds: bool,
    pub(super) mode: ApprovalMode,
}

/// One key and what it answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApprovalKey {
    pub(super) key: char,
    pub(super) label: String,
    pub(super) reply: Value,
    pub(super) told: String,
    pub(super) is_yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalMode {
    Keys,
    /// The command is being changed.
    Editing,
    /// A word to the model is being written.
    Telling,
    /// A command of ours is being written. The question waits.
    Command,
}

impl AskedApproval {
    /// From the decisions that a request lists: no other is offered. `decline` is always taken.
    fn new(shown: Vec<ScreenRow>, decisions: &[Value]) -> Self {
        let mut approval = Self {
            shown,
            offers: Vec::new(),
            cancel: None,
            decline: Some(json!({ "decision": "decline" })),
            edit: None,
            responds: false,
            mode: ApprovalMode::Keys,
        };
        for decision in decisions {
            approval.offer(decision);
        }
        let decline = json!({ "decision": "decline" });
        approval.offers.push(ApprovalKey::no("n", decline));
        approval
    }

    fn offer(&mut self, decision: &Value) {
        let reply = json!({ "decision": decision });
        let name = decision.as_str().or_else(|| Some(decision.as_object()?.keys().next()?.as_str()));
        match name.unwrap_or_default() {
            "accept" => self.offers.push(ApprovalKey::yes('y', "yes", reply)),
            "acceptForSession" => self.offers.push(ApprovalKey::yes('s', "yes, for this session", reply)),
            "acceptWithExecpolicyAmendment" => {
                let words = &decision["acceptWithExecpolicyAmendment"]["execpolicy_amendment"];
                let words: Vec<&str> =
                    words.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let label = format!("always, for `{}`", escaped(&words.join(" ")));
                self.offers.push(ApprovalKey::yes('a', &label, reply));
            }
            "applyNetworkPolicyAmendment" => {
                let rule = &decision["applyNetworkPolicyAmendment"]["network_policy_amendment"];
                // A rule that forbids is not what this key is for.
                if rule["action"].as_str() == Some("allow") {
                    let label = format!("always, for {}", escaped(&text(&rule["host"])));
                    self.offers.push(ApprovalKey::yes('a', &label, reply));
                }
            }
            "cancel" => self.cancel = Some(reply),
            "respond" => self.responds = true,
            "acceptWithCommandOverride" => {
                let command = &decision["acceptWithCommandOverride"]["command"];
                let command: Vec<String> = command.as_array().into_iter().flatten().map(text).collect();
                self.edit = Some(match command.as_slice() {
                    [shell, option, script] => {
                        ShellCall { shell: vec![shell.clone(), option.clone()], script: script.clone() }
                    }
                    _ => ShellCall { shell: Vec::new(), script: String::new() },
                });
            }
            _ => {}
        }
    }

    pub(super) fn can_tell(&self) -> bool {
        self.responds || self.decline.is_some()
    }

    /// The answer that runs another command.
    pub(super) fn with_command(&self, script: &str) -> Option<Value> {
        let ShellCall { shell, .. } = self.edit.as_ref()?;
        let command = match shell.is_empty() {
            true => words(script).filter(|words| !words.is_empty())?,
            false => shell.iter().cloned().chain([script.to_owned()]).collect(),
        };
        Some(json!({ "decision": { "acceptWithCommandOverride": { "command": command } } }))
    }

    /// The answer that gives the model these words, where that can be said in one.
    pub(super) fn with_words(&self, said: &str) -> Option<Value> {
        let said = format!("The user did not allow this, and says: {said}");
        let content = json!([{ "type": "inputText", "text": said }]);
        let respond = json!({ "respond": { "contentItems": content, "success": false } });
        self.responds.then(|| json!({ "decision": respond }))
    }

    /// The keys, for the region: in rows of this width, and no key apart from what it means.
    pub(super) fn keys(&self, between: &str, columns: usize) -> Vec<ScreenRow> {
        let said = match self.mode {
            ApprovalMode::Editing => Some("Enter runs this command instead; Esc goes back"),
            ApprovalMode::Telling => Some("Enter tells the model this, and nothing runs; Esc goes back"),
            ApprovalMode::Command => Some("Enter runs this command, and the question waits; Esc goes back"),
            ApprovalMode::Keys => None,
        };
        if let Some(said) = said {
            return vec![ScreenRow::new(Ink::Careful, said)];
        }
        let edit = self.edit.as_ref().map(|_| ('e', "edit it"));
        let tell = self.can_tell().then_some(('w', "a word to the model"));
        let offers = self.offers.iter().map(|offer| (offer.key, offer.label.as_str()));
        let mut rows = Vec::new();
        let mut row = ScreenRow::default();
        for (key, label) in offers.chain(edit).chain(tell) {
            let piece = ScreenRow::new(Ink::Strong, key.to_string()).with(Ink::Plain, format!(" {label}"));
            if row.width() > 0 && row.width() + width(between) + piece.width() > columns {
                rows.push(std::mem::take(&mut row));
            }
            if row.width() > 0 {
                row.push(Ink::Faint, between);
            }
            piece.parts.iter().for_each(|part| row.push(part.ink, &part.text));
        }
        rows.push(row);
        rows
    }
}

impl ApprovalKey {
    fn yes(key: char, label: &str, reply: Value) -> Self {
        Self { key, label: label.to_owned(), reply, told: label.to_owned(), is_yes: true }
    }

    fn no(key: &str, reply: Value) -> Self {
        let key = key.chars().next().unwrap_or('n');
        Self { key, label: "no".to_owned(), reply, told: "no".to_owned(), is_yes: false }
    }
}

/// The decisions that a server accepts which lists none.
fn usual() -> Vec<Value> {
    vec![json!("accept"), json!("acceptForSession"), json!("cancel")]
}

impl TerminalState {
    fn ask_row(&self, question: &str) -> ScreenRow {
        ScreenRow::new(Ink::Careful, format!("{} ", self.glyphs.ask)).with(Ink::Strong, question).hanging(2)
    }

    fn reason_rows(params: &Value) -> Vec<ScreenRow> {
        let reason = params["reason"].as_str().filter(|reason| !reason.trim().is_empty());
        reason
            .map(|reason| ScreenRow::new(Ink::Faint, format!("  {}", escaped(reason))).hanging(2))
            .into_iter()
            .collect()
    }

    pub(super) fn command_approval(&self, params: &Value) -> AskedApproval {
        let command = text(&params["command"]);
        let call = shell_call(&command);
        let mut shown;
        if let Some(network) = params.get("networkApprovalContext").filter(|network| network.is_object()) {
            let host = escaped(&text(&network["host"]));
            shown = vec![
                self.ask_row(&format!("May the command reach {host} ({})?", text(&network["protocol"]))),
            ];
        } else {
            shown = vec![self.ask_row("May this command run?")];
            let script = call.as_ref().map_or(command.as_str(), |call| call.script.as_str());
            let script: Vec<ScreenRow> =
                rows(Ink::Busy, &escaped(script)).into_iter().map(ScreenRow::literal).collect();
            shown.extend(indented(script, 4));
            let shell = call
                .as_ref()
                .map(|call| format!(" by {}", escaped(&call.shell.join(" "))))
                .unwrap_or_default();
            let place = format!("  in {}{shell}", escaped(&text(&params["cwd"])));
            shown.push(ScreenRow::new(Ink::Faint, place).hanging(2));
        }
        shown.extend(permission_rows(&params["additionalPermissions"]));
        shown.extend(Self::reason_rows(params));
        let mut decisions = params["availableDecisions"].as_array().cloned().unwrap_or_else(usual);
        // Taken for every command, whether or not the list has it.
        let session = json!("acceptForSession");
        if !decisions.contains(&session) {
            let after = decisions.iter().position(|decision| decision.as_str() == Some("accept"));
            decisions.insert(after.map_or(0, |at| at + 1), session);
        }
        let mut approval = AskedApproval::new(shown, &decisions);
        if let Some(edit) = &mut approval.edit
            && edit.shell.is_empty()
        {
            *edit = call.unwrap_or(ShellCall { shell: Vec::new(), script: command });
        }
        approval
    }

    pub(super) fn patch_approval(&mut self, params: &Value) -> AskedApproval {
        let key = (text(&params["threadId"]), text(&params["itemId"]));
        let mut shown = vec![self.ask_row("May these files be changed?")];
        let is_known = self.knows_patch(params);
        match self.asked_patches.get_mut(&key) {
            Some(AskedPatch { changes, is_shown }) => {
                *is_shown = true;
                for change in changes.as_array().into_iter().flatten() {
                    let kind = text(&change["kind"]["type"]);
                    let to = change["kind"]["move_path"].as_str().map(|to| format!(" to {}", escaped(to)));
                    let path =
                        format!("  {kind} {}{}", escaped(&text(&change["path"])), to.unwrap_or_default());
                    shown.push(ScreenRow::new(Ink::Busy, path).literal());
                    shown.extend(indented(diff(&escaped(&diff_of(change)), DIFF_ROWS), 4));
                }
            }
            None => {
                let said = "  the server did not tell which, so you can only say no";
                shown.push(ScreenRow::new(Ink::Careful, said));
            }
        }
        if let Some(root) = params["grantRoot"].as_str() {
            let asks = format!("  and anything below {} for the rest of the session", escaped(root));
            shown.push(ScreenRow::new(Ink::Careful, asks));
        }
        shown.extend(Self::reason_rows(params));
        // A yes to changes that nobody has seen is none.
        let decisions = if is_known { usual() } else { vec![json!("cancel")] };
        AskedApproval::new(shown, &decisions)
    }

    /// Whether the changes were told that are asked about.
    pub(super) fn knows_patch(&self, params: &Value) -> bool {
        self.asked_patches.contains_key(&(text(&params["threadId"]), text(&params["itemId"])))
    }

    pub(super) fn tool_approval(&self, params: &Value) -> AskedApproval {
        let mut shown = vec![self.ask_row(&format!("May {} be called?", escaped(&text(&params["tool"]))))];
        let arguments = serde_json::to_string_pretty(&params["arguments"]).unwrap_or_default();
        let arguments = rows(Ink::Busy, &escaped(&arguments)).into_iter().map(ScreenRow::literal).collect();
        shown.extend(indented(arguments, 4));
        shown.extend(Self::reason_rows(params));
        let decisions = params["availableDecisions"].as_array().cloned().unwrap_or_else(usual);
        AskedApproval::new(shown, &decisions)
    }

    pub(super) fn permissions_approval(&self, params: &Value) -> AskedApproval {
        let mut shown = vec![self.ask_row("May the agent have more from now on?")];
        shown.extend(permission_rows(&params["permissions"]));
        shown.extend(Self::reason_rows(params));
        let grant = |scope: &str| json!({ "permissions": params["permissions"], "scope": scope });
        let none = json!({ "permissions": {}, "scope": "turn" });
        let mut approval = AskedApproval::new(shown, &[]);
        approval.decline = Some(none.clone());
        approval.offers = vec![
            ApprovalKey::yes('y', "yes, for this turn", grant("turn")),
            ApprovalKey::yes('s', "yes, for this session", grant("session")),
            ApprovalKey::no("n", none),
        ];
        approval
    }

    /// An MCP server asks the user to open a page.
    pub(super) fn address_approval(&self, params: &Value) -> AskedApproval {
        let server = escaped(&one_line(&text(&params["serverName"])));
        let mut shown =
            vec![self.ask_row(&format!("{server} asks you to open a page. Have you done what it asks?"))];
        shown.push(
            ScreenRow::plain(format!("  {}", escaped(&text(&params["message"])).replace('\n', " ")))
                .hanging(2),
        );
        shown.push(ScreenRow::new(Ink::Busy, format!("    {}", escaped(&text(&params["url"])))).literal());
        let action = |word: &str| json!({ "action": word, "content": null, "_meta": null });
        let mut approval = AskedApproval::new(shown, &[]);
        approval.offers =
            vec![ApprovalKey::yes('y', "yes", action("accept")), ApprovalKey::no("n", action("decline"))];
        (approval.decline, approval.cancel) = (None, Some(action("cancel")));
        approval
    }
}

/// Rights beyond the sandbox.
fn permission_rows(permissions: &Value) -> Vec<ScreenRow> {
    let mut shown = Vec::new();
    let mut add = |text: String| shown.push(ScreenRow::new(Ink::Careful, format!("    {text}")).literal());
    if permissions["network"]["enabled"].as_bool() == Some(true) {
        add("reach the network".to_owned());
    }
    for (key, word) in [("read", "read"), ("write", "write")] {
        for path in permissions["fileSystem"][key].as_array().into_iter().flatten() {
            add(format!("{word} {}", escaped(&text(path))));
        }
    }
    let known = ["network", "fileSystem"];
    let others = permissions.as_object().into_iter().flatten();
    for (name, value) in others.filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null()) {
        add(format!("{}: {}", escaped(name), escaped(&value.to_string())));
    }
    shown
}
