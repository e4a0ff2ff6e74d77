//! The live view of a turn: a state machine from notifications to lines of text.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use protocol::{
    ErrorNotification, ItemId, ServerNotification, ThreadItem, TokenUsageBreakdown, Turn, TurnCost,
    TurnPlanStep, TurnPlanStepStatus, TurnStatus,
};

use super::items::{OutputKind, WorkItem, WorkStatus, duration, work};
use super::paint::{Paint, TextStyle};
use super::safe::{clean, screened};
use crate::wording::{error_text, with_details};

/// The most lines of one tool's output that are shown.
const OUTPUT_LINES: usize = 12;
/// The most lines of what a patch changed.
const DIFF_LINES: usize = 40;
/// The most characters of one line about work.
const WORK_CHARACTERS: usize = 120;

/// The lines above a turn: names and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) title: String,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) prompt: String,
}

/// The kind of block shown last. A blank line separates different kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    Nothing,
    Facts,
    Prompt,
    Note,
    Work,
    Plan,
    Text(ItemId),
}

/// Shows a turn as it happens.
#[derive(Debug)]
pub(crate) struct View<W> {
    out: W,
    paint: Paint,
    hides_reasoning: bool,
    /// Paths are shown relative to this folder.
    folder: Option<PathBuf>,
    block: Block,
    /// The cursor is not at the beginning of a line.
    is_inside_line: bool,
    /// Items whose text was shown while it grew.
    grown: HashSet<ItemId>,
    plan: Vec<TurnPlanStep>,
    last_error: Option<String>,
    /// The review that was shown last.
    review: Option<String>,
    tokens: Option<TokenUsageBreakdown>,
}

impl<W: Write> View<W> {
    pub(crate) fn new(out: W, paint: Paint, hides_reasoning: bool) -> Self {
        Self {
            out,
            paint,
            hides_reasoning,
            folder: None,
            block: Block::Nothing,
            is_inside_line: false,
            grown: HashSet::new(),
            plan: Vec::new(),
            last_error: None,
            review: None,
            tokens: None,
        }
    }

    /// Shows paths of changed files relative to this folder.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    pub(crate) fn heading(&mut self, heading: &Heading) -> io::Result<()> {
        self.begin(Block::Facts)?;
        let title = self.paint.text(TextStyle::Strong, clean(&heading.title));
        self.line(&title)?;
        let width = heading.facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, fact) in &heading.facts {
            let name = self.paint.text(TextStyle::Faint, format_args!("{name:width$}"));
            self.line(&format!("{name}  {}", clean(fact)))?;
        }
        self.begin(Block::Prompt)?;
        self.label(TextStyle::Strong, "you")?;
        self.text(TextStyle::Plain, &heading.prompt)?;
        self.end_line()?;
        self.out.flush()
    }

    /// Something the user should know that is no part of the turn.
    pub(crate) fn warning(&mut self, text: &str) -> io::Result<()> {
        self.note(TextStyle::Careful, "warning", text)
    }

    pub(crate) fn on(&mut self, notification: &ServerNotification) -> io::Result<()> {
        match notification {
            ServerNotification::ItemStarted(told) => self.work_begins(&told.item)?,
            ServerNotification::ItemCompleted(told) => self.item_ends(&told.item)?,
            ServerNotification::AgentMessageDelta(told) => {
                self.grow(&told.item_id, ("agent", TextStyle::Plain), &told.delta)?;
            }
            ServerNotification::PlanDelta(told) => {
                self.grow(&told.item_id, ("proposed plan", TextStyle::Plain), &told.delta)?;
            }
            ServerNotification::ReasoningSummaryTextDelta(told) if !self.hides_reasoning => {
                self.grow(&told.item_id, ("thinking", TextStyle::Faint), &told.delta)?;
            }
            ServerNotification::ReasoningSummaryPartAdded(told) if self.is_in(&told.item_id) => {
                self.end_line()?;
            }
            ServerNotification::TurnPlanUpdated(told) => self.plan(&told.plan)?,
            ServerNotification::ThreadTokenUsageUpdated(told) => {
                self.tokens = Some(told.token_usage.total.clone());
            }
            ServerNotification::Error(told) => self.error(told)?,
            ServerNotification::ConfigWarning(told) => {
                self.note(
                    TextStyle::Careful,
                    "warning",
                    &with_details(&told.summary, told.details.as_deref()),
                )?;
            }
            ServerNotification::DeprecationNotice(told) => {
                self.note(
                    TextStyle::Careful,
                    "warning",
                    &with_details(&told.summary, told.details.as_deref()),
                )?;
            }
            ServerNotification::ModelRerouted(told) => {
                let text =
                    format!("the provider answered with {} instead of {}", told.to_model, told.from_model);
                self.note(TextStyle::Careful, "warning", &text)?;
            }
            ServerNotification::TurnCompleted(told) => self.turn_ends(&told.turn, told.cost.as_ref())?,
            _ => return Ok(()),
        }
        self.out.flush()
    }

    /// Leaves the cursor at the beginning of a line.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.out.flush()
    }

    fn work_begins(&mut self, item: &ThreadItem) -> io::Result<()> {
        match work(item, self.folder.as_deref()) {
            Some(work) if work.standing == WorkStatus::Running => self.work(&work),
            _ => Ok(()),
        }
    }

    fn item_ends(&mut self, item: &ThreadItem) -> io::Result<()> {
        let id = item.id();
        if self.grown.contains(id) {
            return self.end_line();
        }
        match item {
            // The thread's message after a review repeats it.
            ThreadItem::AgentMessage { text, .. } if self.review.as_ref() == Some(text) => {}
            ThreadItem::AgentMessage { text, .. } => self.grow(id, ("agent", TextStyle::Plain), text)?,
            ThreadItem::Plan { text, .. } => self.grow(id, ("proposed plan", TextStyle::Plain), text)?,
            ThreadItem::ExitedReviewMode { review, .. } => {
                self.grow(id, ("review", TextStyle::Plain), review)?;
                self.review = Some(review.clone());
            }
            ThreadItem::Reasoning { summary, .. } if !self.hides_reasoning => {
                let parts = summary.iter().map(String::as_str).filter(|part| !part.trim().is_empty());
                let text = parts.collect::<Vec<_>>().join("\n");
                if !text.is_empty() {
                    self.grow(id, ("thinking", TextStyle::Faint), &text)?;
                }
            }
            item => {
                if let Some(work) = work(item, self.folder.as_deref()) {
                    self.work(&work)?;
                }
            }
        }
        self.end_line()
    }

    fn work(&mut self, work: &WorkItem) -> io::Result<()> {
        self.begin(Block::Work)?;
        let (mark, style) = match work.standing {
            WorkStatus::Running => ("...", TextStyle::Busy),
            WorkStatus::Done => ("ok ", TextStyle::Good),
            WorkStatus::Failed => ("no ", TextStyle::Bad),
        };
        let mark = self.paint.text(style, mark);
        let ending = match work.ending.as_str() {
            "" => String::new(),
            ending => self.paint.text(TextStyle::Faint, format_args!(" ({ending})")),
        };
        let what = shortened(&clean(&work.what));
        self.line(&format!("{mark} {what}{ending}"))?;
        if work.standing == WorkStatus::Running {
            return Ok(());
        }
        self.output(work)
    }

    fn output(&mut self, work: &WorkItem) -> io::Result<()> {
        let most = match work.output_kind {
            OutputKind::Text => OUTPUT_LINES,
            OutputKind::Diff => DIFF_LINES,
        };
        let output = clean(work.output.as_deref().unwrap_or_default()).trim_end().to_owned();
        let lines: Vec<&str> = output.lines().collect();
        for line in lines.iter().take(most) {
            let style = match (work.output_kind, line.as_bytes().first()) {
                (OutputKind::Diff, Some(b'+')) => TextStyle::Good,
                (OutputKind::Diff, Some(b'-')) => TextStyle::Bad,
                _ => TextStyle::Faint,
            };
            let line = self.paint.text(style, shortened(line));
            self.line(&format!("    {line}"))?;
        }
        if lines.len() > most {
            let more = self.paint.text(TextStyle::Faint, format_args!("({} more lines)", lines.len() - most));
            self.line(&format!("    {more}"))?;
        }
        Ok(())
    }

    /// The whole plan at first and when its steps change; after that only the steps that moved on.
    fn plan(&mut self, plan: &[TurnPlanStep]) -> io::Result<()> {
        let is_same_plan = plan.len() == self.plan.len()
            && plan.iter().zip(&self.plan).all(|(now, before)| now.step == before.step);
        let before = std::mem::replace(&mut self.plan, plan.to_vec());
        let changed = plan.iter().enumerate().filter(|(at, step)| {
            !is_same_plan || before.get(*at).is_none_or(|before| before.status != step.status)
        });
        let changed: Vec<&TurnPlanStep> = changed.map(|(_, step)| step).collect();
        if changed.is_empty() {
            return Ok(());
        }
        self.begin(Block::Plan)?;
        let done = plan.iter().filter(|step| step.status == TurnPlanStepStatus::Completed).count();
        self.label(TextStyle::Strong, &format!("plan ({done} of {} done)", plan.len()))?;
        for step in changed {
            let (mark, style) = match step.status {
                TurnPlanStepStatus::Completed => ("[x]", TextStyle::Good),
                TurnPlanStepStatus::InProgress => ("[>]", TextStyle::Busy),
                TurnPlanStepStatus::Pending => ("[ ]", TextStyle::Faint),
            };
            let mark = self.paint.text(style, mark);
            self.line(&format!("  {mark} {}", shortened(&clean(&step.step))))?;
        }
        Ok(())
    }

    fn error(&mut self, told: &ErrorNotification) -> io::Result<()> {
        let text = error_text(&told.error);
        if told.will_retry {
            return self.note(TextStyle::Careful, "retry", &text);
        }
        self.note(TextStyle::Bad, "error", &text)?;
        self.last_error = Some(text);
        Ok(())
    }

    fn turn_ends(&mut self, turn: &Turn, cost: Option<&TurnCost>) -> io::Result<()> {
        match (&turn.status, &turn.error) {
            (TurnStatus::Failed, Some(error)) => {
                let text = error_text(error);
                // The same error was told when it happened.
                if self.last_error.as_ref() != Some(&text) {
                    self.note(TextStyle::Bad, "error", &text)?;
                }
            }
            (TurnStatus::Interrupted, _) => {
                self.note(TextStyle::Careful, "interrupted", "the turn was stopped")?;
            }
            _ => {}
        }
        let took = duration(turn.duration_ms).map(|took| format!("took {took}"));
        let tokens = self.tokens.as_ref().map(|tokens| {
            let TokenUsageBreakdown { input_tokens, cached_input_tokens, output_tokens, .. } = tokens;
            let about = if tokens.is_estimated { ", estimated" } else { "" };
            format!(
                "tokens so far: {input_tokens} in ({cached_input_tokens} cached), {output_tokens} out{about}"
            )
        });
        let cost = cost.map(|cost| {
            let about = if cost.is_estimated { "about " } else { "" };
            format!("cost of this turn: {about}{:.4}", cost.amount)
        });
        let facts = [took, tokens, cost].into_iter().flatten().collect::<Vec<_>>().join("; ");
        if !facts.is_empty() {
            self.begin(Block::Facts)?;
            let facts = self.paint.text(TextStyle::Faint, facts);
            self.line(&facts)?;
        }
        self.finish()
    }

    fn note(&mut self, style: TextStyle, label: &str, text: &str) -> io::Result<()> {
        self.begin(Block::Note)?;
        let label = self.paint.text(style, format_args!("{label}:"));
        self.line(&format!("{label} {}", clean(text)))?;
        self.out.flush()
    }

    fn grow(&mut self, id: &ItemId, (label, style): (&str, TextStyle), delta: &str) -> io::Result<()> {
        if !self.is_in(id) {
            self.begin(Block::Text(id.clone()))?;
            let label_style = if style == TextStyle::Faint { TextStyle::Faint } else { TextStyle::Strong };
            self.label(label_style, label)?;
        }
        self.grown.insert(id.clone());
        self.text(style, delta)
    }

    fn is_in(&self, id: &ItemId) -> bool {
        matches!(&self.block, Block::Text(open) if open == id)
    }

    fn label(&mut self, style: TextStyle, label: &str) -> io::Result<()> {
        let label = self.paint.text(style, label);
        self.line(&label)
    }

    fn text(&mut self, style: TextStyle, text: &str) -> io::Result<()> {
        let text = clean(text);
        if text.is_empty() {
            return Ok(());
        }
        self.is_inside_line = !text.ends_with('\n');
        write!(self.out, "{}", self.paint.text(style, text))
    }

    fn begin(&mut self, block: Block) -> io::Result<()> {
        self.end_line()?;
        if self.block != block && self.block != Block::Nothing {
            writeln!(self.out)?;
        }
        self.block = block;
        Ok(())
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        writeln!(self.out, "{}", screened(text))
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_inside_line) { writeln!(self.out) } else { Ok(()) }
    }
}

/// One line, cut where it would fill the screen.
fn shortened(text: &str) -> String {
    let line = text.split('\n').collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WORK_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
