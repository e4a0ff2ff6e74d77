//! `oarlock pending`, `approve`, `reject`, `respond` and `retry`: what waits, and what is decided about it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use engine::digest_of;
use runtime::{Clock, SystemClock};
use serde_json::{Value, json};
use turn_view::{operation_line, operations_text, table};

use super::client::{HostChoice, HostConnection};
use crate::terminal::{clean, escaped_json};

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock pending                     what waits, since when, and what exactly would run
  oarlock approve 3f9a01c2            the one with this code
  oarlock approve 3f9a01c2 --command \"make check\"    another command instead
  oarlock reject 3f9a01c2 --message \"not on a Friday\"
  oarlock respond 3f9a01c2 \"it is done already\"
  oarlock retry 3f9a01c2              run it again, where the outcome is unknown";

/// Entries that are asked for at once.
const PAGE: u32 = 200;

/// Letters of a code.
const CODE: usize = 8;
/// Fewer letters of a code name nothing.
const FEWEST: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct PendingOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Which operation is decided: by its id, or by its code in `oarlock pending`.
#[derive(Debug, Args)]
pub(crate) struct DecideOptions {
    #[command(flatten)]
    host: HostChoice,
    /// The operation's code in `oarlock pending`, or its id.
    id: String,
    /// The name of the person who decided, where you only pass it on.
    #[arg(long, value_name = "NAME")]
    on_behalf_of: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveOptions {
    #[command(flatten)]
    decide: DecideOptions,
    /// Also approve the same thing again, for as long as the session lasts.
    #[arg(long)]
    session: bool,
    /// Run this command instead; it passes the policy and the sandbox again.
    #[arg(long, value_name = "COMMAND", conflicts_with = "session")]
    command: Option<String>,
    /// Call the tool with these arguments instead.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["session", "command"])]
    arguments: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RejectOptions {
    #[command(flatten)]
    decide: DecideOptions,
    /// Told to the model.
    #[arg(long)]
    message: Option<String>,
    /// Also end the turn.
    #[arg(long)]
    end_turn: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RespondOptions {
    #[command(flatten)]
    decide: DecideOptions,
    /// The result for the model; nothing runs.
    text: String,
    /// The result is a failure.
    #[arg(long)]
    failed: bool,
}

pub(super) fn print(value: &Value) -> Result<ExitCode> {
    println!("{}", escaped_json(&serde_json::to_string_pretty(value)?));
    Ok(ExitCode::SUCCESS)
}

/// A list, as JSON or as a table; or a sentence where there is nothing in it.
pub(super) fn print_list(
    is_json: bool,
    list: &Value,
    (head, nothing): (&[&str], &str),
    row: impl Fn(&Value) -> Vec<String>,
) -> Result<ExitCode> {
    if is_json {
        return print(list);
    }
    let rows: Vec<Vec<String>> = list.as_array().into_iter().flatten().map(row).collect();
    match rows.is_empty() {
        true => println!("{nothing}"),
        false => print!("{}", table(head, &rows)),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All pages of a list.
pub(super) fn every(host: &mut HostConnection, method: &str, mut params: Value) -> Result<Vec<Value>> {
    params["limit"] = json!(PAGE);
    let mut found = Vec::new();
    loop {
        let mut page = host.ask(method, &params)?;
        if let Value::Array(data) = page["data"].take() {
            found.extend(data);
        }
        match page["nextCursor"].take() {
            Value::Null => return Ok(found),
            cursor => params["cursor"] = cursor,
        }
    }
}

pub(super) fn waiting(host: &mut HostConnection) -> Result<Vec<Value>> {
    every(host, "operation/list", json!({}))
}

pub(crate) fn pending(options: &PendingOptions) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let operations = waiting(&mut host)?;
    if options.json {
        return print(&Value::Array(operations));
    }
    if operations.is_empty() {
        println!("nothing waits");
        return Ok(ExitCode::SUCCESS);
    }
    let mut tasks = BTreeMap::new();
    for id in operations.iter().map(|operation| text(&operation["taskId"])) {
        if let Entry::Vacant(free) = tasks.entry(id) {
            // One that was deleted in the meantime has no title.
            let read = host.ask("task/read", &json!({ "threadId": free.key() })).unwrap_or_default();
            free.insert(read);
        }
    }
    let titles = |id: &str| {
        let task = tasks.get(id).map_or(&Value::Null, |read| &read["task"]);
        (text(&task["name"]), text(&task["preview"]), text(&task["cwd"]))
    };
    print!("{}", operations_text(&operations, titles, code, &options.host.words(), SystemClock.now_ms()));
    Ok(ExitCode::SUCCESS)
}

/// A short name for an operation and exactly what it would run. Unlike a place in a list, it never comes to mean
/// something else between looking and answering.
pub(crate) fn code(operation: &Value) -> String {
    let digest = digest_of(&json!([operation["operationId"], operation["argumentsDigest"]]));
    let letters = digest.rsplit(':').next().unwrap_or_default();
    letters.chars().take(CODE).collect()
}

/// By its code or the beginning of it, or by its whole id.
fn chosen(operations: &[Value], id: &str) -> Result<Value> {
    let fits = |operation: &&Value| {
        operation["operationId"] == id || (id.len() >= FEWEST && code(operation).starts_with(id))
    };
    let found: Vec<&Value> = operations.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => bail!("nothing that waits has the code {id}; `oarlock pending` lists what does"),
        _ => bail!("{id} could mean {} operations; give the whole code from `oarlock pending`", found.len()),
    }
}

fn decide(options: &DecideOptions, decision: &Value) -> Result<ExitCode> {
    decide_with(options, |_| Ok(decision.clone()))
}

/// With a decision that depends on what is decided.
fn decide_with(options: &DecideOptions, decision: impl FnOnce(&Value) -> Result<Value>) -> Result<ExitCode> {
    let mut host = HostConnection::open(&options.host)?;
    let operation = chosen(&waiting(&mut host)?, &options.id)?;
    let decision = decision(&operation)?;
    let mut params = json!({
        "operationId": operation["operationId"],
        "argumentsDigest": operation["argumentsDigest"],
        "decision": decision,
    });
    if let Some(name) = &options.on_behalf_of {
        params["onBehalfOf"] = json!(name);
    }
    host.ask("operation/decide", &params)?;
    let done = match decision["type"] == "replace" {
        // The command that runs in its place.
        true => {
            let arguments = decision.get("arguments").unwrap_or(&decision);
            json!({ "tool": operation["tool"], "arguments": arguments })
        }
        false => operation,
    };
    println!("{}: {}", text(&decision["type"]), clean(&operation_line(&done)));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn approve(options: &ApproveOptions) -> Result<ExitCode> {
    if let Some(command) = &options.command {
        return decide_with(&options.decide, |operation| {
            Ok(json!({ "type": "replace", "command": other_command(operation, command)? }))
        });
    }
    if let Some(arguments) = &options.arguments {
        let arguments: Value = serde_json::from_str(arguments).context("--arguments is not JSON")?;
        return decide(&options.decide, &json!({ "type": "replace", "arguments": arguments }));
    }
    let scope = if options.session { "session" } else { "call" };
    decide(&options.decide, &json!({ "type": "approve", "scope": scope }))
}

/// The program and its arguments: a script for the same shell, where the command is one.
fn other_command(operation: &Value, command: &str) -> Result<Vec<String>> {
    let Some(words) = operation["arguments"]["command"].as_array() else {
        bail!("--command: this is no command; --arguments takes the other arguments of a tool");
    };
    let words: Vec<String> = words.iter().map(text).collect();
    if let [shell, option @ ("-c" | "-lc"), _] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return Ok(vec![shell.to_owned(), option.to_owned(), command.to_owned()]);
    }
    match ::terminal::command_words(command) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => bail!("--command: it is empty, or a quotation mark is not closed"),
    }
}

pub(crate) fn reject(options: &RejectOptions) -> Result<ExitCode> {
    let mut decision = json!({ "type": "reject", "endTurn": options.end_turn });
    if let Some(message) = &options.message {
        decision["message"] = json!(message);
    }
    decide(&options.decide, &decision)
}

pub(crate) fn respond(options: &RespondOptions) -> Result<ExitCode> {
    let content = json!([{ "type": "inputText", "text": options.text }]);
    decide(
        &options.decide,
        &json!({ "type": "respond", "contentItems": content, "success": !options.failed }),
    )
}

pub(crate) fn retry(options: &DecideOptions) -> Result<ExitCode> {
    decide(options, &json!({ "type": "retry" }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn another_command_is_for_the_same_shell() -> Result<()> {
        let operation = |command: &[&str]| json!({ "arguments": { "command": command } });
        let other = |command: &[&str], text: &str| other_command(&operation(command), text);
        assert_eq!(other(&["/bin/bash", "-lc", "make deploy"], "make 'x")?, ["/bin/bash", "-lc", "make 'x"]);
        assert_eq!(other(&["git", "push"], "git push 'a b'")?, ["git", "push", "a b"]);
        assert!(other(&["git", "push"], "git 'push").is_err());
        assert!(other_command(&json!({ "arguments": {} }), "ls").is_err());
        Ok(())
    }

    #[test]
    fn a_list_is_read_to_its_last_page() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("host.sock");
        let listener = UnixListener::bind(&socket)?;
        let server = std::thread::spawn(move || -> Result<()> {
            let (stream, _) = listener.accept()?;
            let mut output = stream.try_clone()?;
            for line in BufReader::new(stream).lines() {
                let asked: Value = serde_json::from_str(&line?)?;
                let result = match (text(&asked["method"]).as_str(), asked["params"]["cursor"].as_str()) {
                    ("initialize", _) => json!({ "capabilities": { "host": {} } }),
                    (_, None) => json!({ "data": [1, 2], "nextCursor": "more" }),
                    (_, Some(cursor)) => json!({ "data": [cursor], "nextCursor": null }),
                };
                writeln!(output, "{}", json!({ "id": asked["id"], "result": result }))?;
            }
            Ok(())
        });
        let mut host = HostConnection::connect(&socket)?;
        assert_eq!(every(&mut host, "operation/list", json!({}))?, [json!(1), json!(2), json!("more")]);
        drop(host);
        server.join().expect("the server ends")
    }
}
