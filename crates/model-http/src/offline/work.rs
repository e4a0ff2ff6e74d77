//! Works through tasks, one tool call per response: from what has been answered so far follows what to do next.

use super::output::{CommandOutput, quoted, without_line_numbers};
use super::task::OfflineTask;
use super::toolbox::{OfflineToolCall, Toolbox, UnavailableReason};

/// The next thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    Call(OfflineToolCall),
    /// The request is refused in these words.
    Refuse(String),
    /// Everything is done; the report of each task.
    Report(Vec<Note>),
}

/// The outcome of one task.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    Said(String),
    Done {
        what: String,
        answer: String,
    },
    /// A tool was called, and could not do it.
    Failed {
        what: String,
        answer: String,
    },
    NotDone(String),
    /// The report is to be short.
    SumUp,
    /// No rule fits this.
    Unknown(String),
}

/// Where a task is.
enum TaskProgress {
    Needs(OfflineToolCall),
    /// It took this many answers.
    Finished(usize, Note),
}

/// `results` are the answers of tools to all calls made for these tasks, in order.
pub(super) fn next(tasks: &[OfflineTask], tools: &Toolbox<'_>, results: &[String]) -> NextAction {
    let mut left = results;
    let mut notes = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        if let OfflineTask::Fail { text } = task {
            return NextAction::Refuse(text.clone());
        }
        match advance(task, &tasks[..at], tools, left) {
            TaskProgress::Needs(call) => return NextAction::Call(call),
            TaskProgress::Finished(used, note) => {
                left = &left[used..];
                notes.push(note);
            }
        }
    }
    NextAction::Report(notes)
}

fn advance(
    task: &OfflineTask,
    earlier: &[OfflineTask],
    tools: &Toolbox<'_>,
    results: &[String],
) -> TaskProgress {
    match task {
        OfflineTask::List { path } => {
            one_call(tools.list(path), results, format!("list the files in `{path}`"))
        }
        OfflineTask::Read { path } => read(path, tools, results),
        OfflineTask::View { path } => one_call(tools.view(path), results, format!("look at `{path}`")),
        OfflineTask::Search { text, path } => search(text, path.as_deref(), tools, results),
        OfflineTask::Run { command } => run(command, tools, results),
        OfflineTask::Create { path, text } => {
            one_call(tools.create(path, text), results, format!("create `{path}`"))
        }
        OfflineTask::Replace { old, new, path } => replace(old, new, path, tools, results),
        OfflineTask::Plan { steps } => {
            one_call(tools.plan(steps), results, format!("plan {} steps", steps.len()))
        }
        OfflineTask::FinishPlan => finish_plan(earlier, tools, results),
        OfflineTask::SumUp => TaskProgress::Finished(0, Note::SumUp),
        OfflineTask::Call { tool, input } => {
            one_call(tools.named(tool, input), results, format!("call `{tool}`"))
        }
        OfflineTask::Say { text } | OfflineTask::Fail { text } => {
            TaskProgress::Finished(0, Note::Said(text.clone()))
        }
        OfflineTask::Unknown { text } => TaskProgress::Finished(0, Note::Unknown(text.clone())),
    }
}

fn one_call(
    call: Result<OfflineToolCall, UnavailableReason>,
    results: &[String],
    what: String,
) -> TaskProgress {
    match (call, results) {
        (Err(missing), _) => TaskProgress::Finished(0, Note::NotDone(missing)),
        (Ok(call), []) => TaskProgress::Needs(call),
        (Ok(_), [answer, ..]) => TaskProgress::Finished(1, outcome(what, answer)),
    }
}

/// A shell says by its exit code whether it could do what it was used for.
fn outcome(what: String, answer: &str) -> Note {
    let CommandOutput { text: answer, exit_code, .. } = CommandOutput::read(answer);
    match exit_code.filter(|code| *code != 0) {
        Some(code) => Note::Failed { what: format!("{what} (failed with exit code {code})"), answer },
        None => Note::Done { what, answer },
    }
}

fn read(path: &str, tools: &Toolbox<'_>, results: &[String]) -> TaskProgress {
    match one_call(tools.read(path), results, format!("read `{path}`")) {
        TaskProgress::Finished(used, Note::Done { what, answer }) => {
            TaskProgress::Finished(used, Note::Done { what, answer: as_in_the_file(&answer, tools) })
        }
        other => other,
    }
}

/// A shell shows files as they are; the tool for reading counts their lines.
fn as_in_the_file(shown: &str, tools: &Toolbox<'_>) -> String {
    if tools.can_read() { without_line_numbers(shown) } else { shown.to_owned() }
}

/// To find nothing is no failure, though the shell's search ends with 1 then.
fn search(text: &str, path: Option<&str>, tools: &Toolbox<'_>, results: &[String]) -> TaskProgress {
    let what = format!("search for `{text}`");
    let found_nothing = results.first().is_some_and(|answer| {
        let CommandOutput { text, exit_code, .. } = CommandOutput::read(answer);
        exit_code == Some(1) && text.trim().is_empty()
    });
    match one_call(tools.search(text, path), results, what.clone()) {
        TaskProgress::Finished(used, _) if found_nothing => TaskProgress::Finished(
            used,
            Note::Done { what: format!("{what} (found nothing)"), answer: String::new() },
        ),
        other => other,
    }
}

/// The last plan of the same request, with every step done.
fn finish_plan(earlier: &[OfflineTask], tools: &Toolbox<'_>, results: &[String]) -> TaskProgress {
    let plan = earlier.iter().rev().find_map(|task| match task {
        OfflineTask::Plan { steps } => Some(steps),
        _ => None,
    });
    match plan {
        Some(steps) => one_call(tools.finished_plan(steps), results, "finish the plan".to_owned()),
        None => TaskProgress::Finished(0, Note::NotDone("I cannot finish a plan: there is none.".to_owned())),
    }
}

/// A command that takes longer is asked again a few times, then reported as still running.
const MAX_POLLS: usize = 5;

fn run(command: &str, tools: &Toolbox<'_>, results: &[String]) -> TaskProgress {
    let call = match tools.run(command) {
        Ok(call) => call,
        Err(missing) => return TaskProgress::Finished(0, Note::NotDone(missing)),
    };
    let mut answer = String::new();
    for used in 0..=MAX_POLLS {
        let Some(result) = results.get(used) else {
            return TaskProgress::Needs(call);
        };
        let output = CommandOutput::read(result);
        answer.push_str(&output.text);
        let poll = output.session_id.and_then(|session_id| tools.poll(session_id));
        if let Some(poll) = poll.filter(|_| used < MAX_POLLS) {
            if results.len() == used + 1 {
                return TaskProgress::Needs(poll);
            }
            continue;
        }
        let ending = match (output.exit_code, output.session_id) {
            (Some(code), _) => format!(" (exit code {code})"),
            (None, Some(session_id)) => format!(" (still running as session {session_id})"),
            (None, None) => String::new(),
        };
        return TaskProgress::Finished(
            used + 1,
            Note::Done { what: format!("run `{command}`{ending}"), answer },
        );
    }
    TaskProgress::Needs(call)
}

/// Reads the file, then patches the lines that hold the text.
fn replace(old: &str, new: &str, path: &str, tools: &Toolbox<'_>, results: &[String]) -> TaskProgress {
    let what = format!("replace `{old}` with `{new}` in `{path}`");
    let not_done = |used, why: String| TaskProgress::Finished(used, Note::NotDone(why));
    if old.contains('\n') {
        return not_done(0, "I can only replace text within one line.".to_owned());
    }
    if !tools.can_patch() {
        return one_call(tools.replace_by_shell(old, new, path), results, what);
    }
    let read = match tools.read(path) {
        Ok(read) => read,
        Err(missing) => return not_done(0, missing),
    };
    let Some(file) = results.first() else { return TaskProgress::Needs(read) };
    let file = as_in_the_file(&CommandOutput::read(file).text, tools);
    let lines = file.lines().filter(|line| line.contains(old)).map(|line| (line, line.replace(old, new)));
    let lines = Vec::from_iter(lines);
    if lines.is_empty() {
        return not_done(1, format!("I did not find `{old}` in what I was shown of `{path}`."));
    }
    match (results.get(1), tools.change(path, &lines)) {
        (Some(answer), _) => TaskProgress::Finished(2, outcome(what, answer)),
        (None, Some(patch)) => TaskProgress::Needs(patch),
        (None, None) => not_done(1, format!("I cannot change `{path}`: apply_patch is no longer offered.")),
    }
}

const HEAD: &str = "Offline model:";

/// The final message. Paths beneath `cwd` are shown relative to it where the message is short.
pub(super) fn report(notes: &[Note], cwd: Option<&str>) -> String {
    match notes {
        [Note::Said(text)] => format!("{HEAD} {text}"),
        notes if notes.iter().all(|note| matches!(note, Note::Unknown(_) | Note::SumUp)) => help(),
        notes => {
            let is_short = notes.contains(&Note::SumUp);
            let notes = Vec::from_iter(notes.iter().filter(|note| **note != Note::SumUp));
            let done = notes.iter().filter(|note| matches!(note, Note::Said(_) | Note::Done { .. })).count();
            let told = notes
                .iter()
                .zip(1..)
                .map(|(note, number)| format!("{number}. {}", told(note, is_short, cwd)));
            let told = told.collect::<Vec<_>>().join(if is_short { "\n" } else { "\n\n" });
            let lead = if is_short { "." } else { "; this is what the tools answered." };
            format!("{HEAD} {done} of {} done{lead}\n\n{told}", steps(notes.len()))
        }
    }
}

fn told(note: &Note, is_short: bool, cwd: Option<&str>) -> String {
    match note {
        Note::Said(text) | Note::NotDone(text) => text.clone(),
        Note::Done { what, answer } | Note::Failed { what, answer } if is_short => {
            match in_brief(answer, cwd) {
                brief if brief.is_empty() => what.clone(),
                brief => format!("{what}: {brief}"),
            }
        }
        Note::Done { what, answer } | Note::Failed { what, answer } => {
            format!("{what}\n\n{}", quoted(answer))
        }
        Note::Unknown(text) => format!("I have no rule for \"{}\".", shortened(text)),
        Note::SumUp => String::new(),
    }
}

/// An answer on one line, without the head that names the folder of a listing.
fn in_brief(answer: &str, cwd: Option<&str>) -> String {
    let answer = match cwd {
        Some(cwd) => answer.replace(&format!("{}/", cwd.trim_end_matches('/')), ""),
        None => answer.to_owned(),
    };
    let lines = answer.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.filter(|line| !line.starts_with("Absolute path: "));
    shortened(&lines.collect::<Vec<_>>().join(", "))
}

fn steps(count: usize) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

/// The reply to a sentence no rule fits.
fn help() -> String {
    format!(
        "{HEAD} I am the small built-in model for tests and demos, not a language model, and I have no rule for that.\n\
         I understand sentences such as:\n\
         - list files\n\
         - read FILE\n\
         - search for TEXT\n\
         - run COMMAND\n\
         - create FILE with TEXT\n\
         - replace A with B in FILE\n\
         - look at PICTURE\n\
         - plan: first; second; third (and later: finish the plan)\n\
         - call TOOL {{\"key\": \"value\"}}\n\
         - say TEXT\n\
         - sum up\n\
         Join several with \"then\", or put them on lines of their own. For real answers, configure a model provider."
    )
}

pub(super) fn shortened(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
