//! Works through tasks, one tool call per response: from what has been answered so far follows what to do next.

use super::output::{CommandOutput, quoted, without_line_numbers};
use super::task::Task;
use super::toolbox::{Missing, ToolCall, Toolbox};

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Call(ToolCall),
    /// Everything is done; what to tell about each task.
    Report(Vec<Note>),
}

/// What came of one task.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    Said(String),
    Done {
        what: String,
        answer: String,
    },
    NotDone(String),
    /// No rule fits this.
    Unknown(String),
}

/// Where a task is.
enum Progress {
    Needs(ToolCall),
    /// It took this many answers.
    Finished(usize, Note),
}

/// `results` are the answers of tools to all calls made for these tasks, in order.
pub(super) fn next(tasks: &[Task], tools: &Toolbox<'_>, results: &[String]) -> Next {
    let mut left = results;
    let mut notes = Vec::new();
    for task in tasks {
        match advance(task, tools, left) {
            Progress::Needs(call) => return Next::Call(call),
            Progress::Finished(used, note) => {
                left = &left[used..];
                notes.push(note);
            }
        }
    }
    Next::Report(notes)
}

fn advance(task: &Task, tools: &Toolbox<'_>, results: &[String]) -> Progress {
    match task {
        Task::List { path } => one_call(tools.list(path), results, format!("list the files in `{path}`")),
        Task::Read { path } => one_call(tools.read(path), results, format!("read `{path}`")),
        Task::Search { text, path } => {
            one_call(tools.search(text, path.as_deref()), results, format!("search for `{text}`"))
        }
        Task::Run { command } => run(command, tools, results),
        Task::Create { path, text } => {
            one_call(tools.create(path, text), results, format!("create `{path}`"))
        }
        Task::Replace { old, new, path } => replace(old, new, path, tools, results),
        Task::Plan { steps } => one_call(tools.plan(steps), results, format!("plan {} steps", steps.len())),
        Task::Call { tool, input } => one_call(tools.named(tool, input), results, format!("call `{tool}`")),
        Task::Say { text } => Progress::Finished(0, Note::Said(text.clone())),
        Task::Unknown { text } => Progress::Finished(0, Note::Unknown(text.clone())),
    }
}

fn one_call(call: Result<ToolCall, Missing>, results: &[String], what: String) -> Progress {
    match (call, results) {
        (Err(missing), _) => Progress::Finished(0, Note::NotDone(missing)),
        (Ok(call), []) => Progress::Needs(call),
        (Ok(_), [answer, ..]) => {
            let answer = CommandOutput::read(answer).text;
            Progress::Finished(1, Note::Done { what, answer })
        }
    }
}

/// A command that takes longer is asked again a few times, then reported as still running.
const MAX_POLLS: usize = 5;

fn run(command: &str, tools: &Toolbox<'_>, results: &[String]) -> Progress {
    let call = match tools.run(command) {
        Ok(call) => call,
        Err(missing) => return Progress::Finished(0, Note::NotDone(missing)),
    };
    let mut answer = String::new();
    for used in 0..=MAX_POLLS {
        let Some(result) = results.get(used) else {
            return Progress::Needs(call);
        };
        let output = CommandOutput::read(result);
        answer.push_str(&output.text);
        let poll = output.session_id.and_then(|session_id| tools.poll(session_id));
        if let Some(poll) = poll.filter(|_| used < MAX_POLLS) {
            if results.len() == used + 1 {
                return Progress::Needs(poll);
            }
            continue;
        }
        let ending = match (output.exit_code, output.session_id) {
            (Some(code), _) => format!(" (exit code {code})"),
            (None, Some(session_id)) => format!(" (still running as session {session_id})"),
            (None, None) => String::new(),
        };
        return Progress::Finished(used + 1, Note::Done { what: format!("run `{command}`{ending}"), answer });
    }
    Progress::Needs(call)
}

/// Reads the file, then patches the lines that hold the text.
fn replace(old: &str, new: &str, path: &str, tools: &Toolbox<'_>, results: &[String]) -> Progress {
    let what = format!("replace `{old}` with `{new}` in `{path}`");
    let not_done = |used, why: String| Progress::Finished(used, Note::NotDone(why));
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
    let Some(file) = results.first() else { return Progress::Needs(read) };
    let file = without_line_numbers(&CommandOutput::read(file).text);
    let lines = file.lines().filter(|line| line.contains(old)).map(|line| (line, line.replace(old, new)));
    let lines = Vec::from_iter(lines);
    if lines.is_empty() {
        return not_done(1, format!("I did not find `{old}` in what I was shown of `{path}`."));
    }
    match (results.get(1), tools.change(path, &lines)) {
        (Some(answer), _) => {
            Progress::Finished(2, Note::Done { what, answer: CommandOutput::read(answer).text })
        }
        (None, Some(patch)) => Progress::Needs(patch),
        (None, None) => not_done(1, format!("I cannot change `{path}`: apply_patch is no longer offered.")),
    }
}

const HEAD: &str = "Offline model:";

/// The final message.
pub(super) fn report(notes: &[Note]) -> String {
    match notes {
        [Note::Said(text)] => format!("{HEAD} {text}"),
        notes if notes.iter().all(|note| matches!(note, Note::Unknown(_))) => help(),
        notes => {
            let is_done = |note: &&Note| matches!(note, Note::Said(_) | Note::Done { .. });
            let done = notes.iter().filter(is_done).count();
            let told = notes.iter().zip(1..).map(|(note, number)| match note {
                Note::Said(text) => format!("{number}. {text}"),
                Note::Done { what, answer } => format!("{number}. {what}\n\n{}", quoted(answer)),
                Note::NotDone(why) => format!("{number}. {why}"),
                Note::Unknown(text) => format!("{number}. I have no rule for \"{}\".", shortened(text)),
            });
            let told = told.collect::<Vec<_>>().join("\n\n");
            format!(
                "{HEAD} {done} of {} done; this is what the tools answered.\n\n{told}",
                steps(notes.len())
            )
        }
    }
}

fn steps(count: usize) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

/// What is said to a sentence no rule fits.
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
         - plan: first; second; third\n\
         - call TOOL {{\"key\": \"value\"}}\n\
         - say TEXT\n\
         Join several with \"then\", or put them on lines of their own. For real answers, configure a model provider."
    )
}

pub(super) fn shortened(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
