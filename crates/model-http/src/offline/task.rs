//! The rules: what the offline model understands of a sentence.

use super::clause::{Clause, clauses, starts_with};
use super::words::{
    after, argument, first_code, first_path, looks_like_path, sentence, split_first, split_last, unquoted,
    whole_code,
};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OfflineTask {
    List {
        path: String,
    },
    Read {
        path: String,
    },
    Search {
        text: String,
        path: Option<String>,
    },
    Run {
        command: String,
    },
    Create {
        path: String,
        text: String,
    },
    Replace {
        old: String,
        new: String,
        path: String,
    },
    /// Look at a picture.
    View {
        path: String,
    },
    Plan {
        steps: Vec<String>,
    },
    /// Every step of the plan is done.
    FinishPlan,
    /// Tell at the end what was done, without what the tools answered.
    SumUp,
    Say {
        text: String,
    },
    Call {
        tool: String,
        input: String,
    },
    /// Answer as a provider does that refuses the request.
    Fail {
        text: String,
    },
    /// Understood by no rule.
    Unknown {
        text: String,
    },
}

/// Everything the user asked for, in order.
pub(super) fn tasks(text: &str) -> Vec<OfflineTask> {
    let mut tasks: Vec<OfflineTask> = Vec::new();
    for Clause { joint, text } in clauses(text) {
        match (task(text), tasks.last_mut()) {
            (Some(task), _) => tasks.push(task),
            // Free text continues until the next known task.
            (None, Some(OfflineTask::Say { text: said } | OfflineTask::Create { text: said, .. }))
                if !said.is_empty() =>
            {
                said.push_str(joint);
                said.push_str(text);
            }
            (None, _) => tasks.push(OfflineTask::Unknown { text: text.to_owned() }),
        }
    }
    tasks
}

fn task(clause: &str) -> Option<OfflineTask> {
    let clause = without_manners(clause);
    // A block of code is not asked to be run; it belongs to the sentence before it.
    if let Some(command) = whole_code(clause).filter(|_| !clause.starts_with("```")) {
        return Some(OfflineTask::Run { command });
    }
    let rules = [finish_plan, plan, sum_up, fail, list, call, replace, create, search, run, say, view, read];
    rules.iter().find_map(|rule| rule(clause))
}

fn without_manners(mut clause: &str) -> &str {
    const MANNERS: &[&str] = &[
        "please ",
        "can you ",
        "could you ",
        "now ",
        "first ",
        "first, ",
        "finally ",
        "finally, ",
        "and ",
        "also ",
        "then ",
    ];
    while let Some(manner) = MANNERS.iter().find(|manner| starts_with(clause, manner)) {
        clause = clause[manner.len()..].trim_start();
    }
    clause
}

fn finish_plan(clause: &str) -> Option<OfflineTask> {
    let ways = ["finish the plan", "complete the plan", "check off the plan", "mark the plan as done"];
    ways.iter().any(|way| sentence(clause).eq_ignore_ascii_case(way)).then_some(OfflineTask::FinishPlan)
}

fn sum_up(clause: &str) -> Option<OfflineTask> {
    let rest = after(sentence(clause), &["sum up", "summarize", "summarise"])?;
    let rest =
        after(rest, &["what you did", "what you have done", "what was done", "the work"]).unwrap_or(rest);
    rest.is_empty().then_some(OfflineTask::SumUp)
}

fn fail(clause: &str) -> Option<OfflineTask> {
    let text = after(clause, &["fail with"])?.trim_start_matches(':').trim();
    (!text.is_empty()).then(|| OfflineTask::Fail { text: unquoted(text) })
}

fn plan(clause: &str) -> Option<OfflineTask> {
    let rest = after(clause, &["plan", "make a plan", "update the plan", "make a plan with"])?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let separator = if rest.contains(';') { ';' } else { ',' };
    let steps = rest.split(separator).map(|step| sentence(step).to_owned()).filter(|step| !step.is_empty());
    let steps = Vec::from_iter(steps);
    (!steps.is_empty()).then_some(OfflineTask::Plan { steps })
}

fn list(clause: &str) -> Option<OfflineTask> {
    let clause = sentence(clause);
    if clause.eq_ignore_ascii_case("ls")
        || after(clause, &["what files are here", "what files are there"]).is_some()
    {
        return Some(OfflineTask::List { path: ".".to_owned() });
    }
    let rest = after(clause, &["list", "show", "show me"])?;
    let rest = after(rest, &["all", "the", "all the", "all of the"]).unwrap_or(rest);
    let rest = after(rest, &["files", "folder", "directory", "contents", "content"])?;
    let place = after(rest, &["in", "of", "under", "in the folder", "in the directory"]).map(unquoted);
    let here = ["", "here", "this folder", "this directory", "the current directory", "the workspace"];
    let path = place.filter(|place| !here.contains(&place.as_str())).unwrap_or_else(|| ".".to_owned());
    (!path.contains(char::is_whitespace)).then_some(OfflineTask::List { path })
}

fn read(clause: &str) -> Option<OfflineTask> {
    let clause = sentence(clause);
    if let Some(rest) =
        after(clause, &["read", "cat", "read the", "read the file", "read file", "cat the file"])
    {
        let path = argument(rest).filter(|(_, rest)| rest.is_empty()).map(|(path, _)| path);
        return path.or_else(|| first_path(rest)).map(|path| OfflineTask::Read { path });
    }
    // These verbs mean many things; only with something that looks like a file do they mean this.
    let rest = after(clause, &["show", "show me", "open", "print", "display"])?;
    first_path(rest).map(|path| OfflineTask::Read { path })
}

fn view(clause: &str) -> Option<OfflineTask> {
    const PICTURES: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp"];
    let starts = ["look at", "view", "show", "show me", "open", "view the image", "look at the image"];
    let path = first_path(after(sentence(clause), &starts)?)?;
    let lower = path.to_ascii_lowercase();
    PICTURES.iter().any(|ending| lower.ends_with(ending)).then_some(OfflineTask::View { path })
}

fn search(clause: &str) -> Option<OfflineTask> {
    let clause = sentence(clause);
    let exact = after(
        clause,
        &["search for", "grep", "grep for", "look for", "search the files for", "search the code for"],
    );
    let rest = exact
        .or_else(|| after(clause, &["search", "find"]).filter(|rest| split_last(rest, " in ").is_some()))?;
    let (text, path) = match split_last(rest, " in ") {
        Some((text, path)) if argument(path).is_some_and(|(_, rest)| rest.is_empty()) => {
            (text, Some(unquoted(path)))
        }
        _ => (rest, None),
    };
    let text = unquoted(after(text, &["the text", "text"]).unwrap_or(text));
    (!text.is_empty()).then_some(OfflineTask::Search { text, path })
}

fn run(clause: &str) -> Option<OfflineTask> {
    let rest = after(clause, &["run", "execute", "run the command", "execute the command", "run command"])?;
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim();
    if let Some(code) = first_code(rest) {
        return Some(OfflineTask::Run { command: code });
    }
    // "Run the tests" names no command.
    let is_prose = after(rest, &["the", "a", "an", "all", "my", "this", "it", "that"]).is_some();
    (!rest.is_empty() && !is_prose).then(|| OfflineTask::Run { command: rest.to_owned() })
}

fn create(clause: &str) -> Option<OfflineTask> {
    if let Some(rest) = after(clause, &["write"])
        && let Some((text, path)) = split_last(sentence(rest), " to ")
        && let Some(path) = first_path(path)
    {
        return Some(OfflineTask::Create { path, text: unquoted(text) });
    }
    let rest = after(clause, &["create", "write", "make", "add"])?;
    let named = after(rest, &["a", "the", "a new", "new"]).unwrap_or(rest);
    let file = after(named, &["file", "file called", "file named", "text file"]);
    let (path, rest) = argument(file.unwrap_or(named))?;
    let path = if rest.is_empty() { sentence(&path).to_owned() } else { path };
    if file.is_none() && !looks_like_path(&path) {
        return None;
    }
    let text = after(rest, &["with", "containing", "that says", "saying", "that contains"]);
    if text.is_none() && !rest.trim_end_matches('.').is_empty() {
        return None;
    }
    let text = text.unwrap_or_default();
    let text = after(text, &["the text", "the content", "the contents", "text", "content", "contents"])
        .unwrap_or(text);
    let text = unquoted(text.strip_prefix(':').unwrap_or(text));
    Some(OfflineTask::Create { path, text })
}

fn replace(clause: &str) -> Option<OfflineTask> {
    let rest = after(sentence(clause), &["replace", "change"])?;
    let (change, path) = split_last(rest, " in ")?;
    let path = after(path, &["the file", "file"]).unwrap_or(path);
    let (old, new) = [" with ", " to ", " by "].iter().find_map(|joint| split_first(change, joint))?;
    let (old, new, path) = (unquoted(old), unquoted(new), unquoted(path));
    let is_clear = !old.is_empty() && !path.is_empty() && !path.contains(char::is_whitespace);
    is_clear.then_some(OfflineTask::Replace { old, new, path })
}

fn say(clause: &str) -> Option<OfflineTask> {
    let rest = after(clause, &["say", "reply with", "reply", "respond with", "answer with", "answer"])?;
    let text = unquoted(rest.strip_prefix(':').unwrap_or(rest));
    (!text.is_empty()).then_some(OfflineTask::Say { text })
}

fn call(clause: &str) -> Option<OfflineTask> {
    let rest = after(clause, &["call", "call the tool", "use the tool", "call tool"])?;
    let (tool, rest) = argument(rest)?;
    let input =
        after(rest, &["with", "with the arguments", "with arguments", "with input"]).unwrap_or(rest).trim();
    let input = whole_code(input).unwrap_or_else(|| input.to_owned());
    Some(OfflineTask::Call { tool: sentence(&tool).to_owned(), input })
}
