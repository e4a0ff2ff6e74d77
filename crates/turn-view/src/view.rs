//! The live view of a turn: a state machine from notifications to lines of text.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{
    ErrorNotification, ItemId, ServerNotification, ThreadItem, TokenUsageBreakdown, Turn, TurnCost,
    TurnError, TurnPlanStep, TurnPlanStepStatus, TurnStatus,
};
use terminal::{RenderedMarkdown, WriteAccess, wrapped_text};

use crate::advice::advice;
use crate::items::{OutputKind, WorkItem, WorkStatus, duration, work};
use crate::live::{LiveBlock, LiveScreen};
use crate::paint::{Paint, TextStyle};
use crate::safe::{clean, clean_line, screened};
use crate::width::cut;
use crate::wording::{error_text, missing_server, with_details};

/// The most lines of one tool's output that are shown.
const OUTPUT_LINES: usize = 12;
/// The most lines of what a patch changed.
const DIFF_LINES: usize = 40;
/// The most characters of one line about work.
const WORK_CHARACTERS: usize = 120;

/// The lines above a turn: names and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heading {
    pub title: String,
    pub facts: Vec<(&'static str, String)>,
    pub prompt: String,
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
pub struct View<W> {
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
    /// Why the last request was sent again.
    retry_reason: Option<String>,
    /// The review that was shown last.
    review: Option<String>,
    tokens: Option<TokenUsageBreakdown>,
    /// Where commands may write, if flags are to be named.
    access: Option<WriteAccess>,
    /// Details of failures are shown.
    is_verbose: bool,
    live: Option<LiveBlock>,
    /// The text that grows, on a live screen.
    markdown: Option<(RenderedMarkdown, TextStyle)>,
}

impl<W: Write> View<W> {
    pub fn new(out: W, paint: Paint, hides_reasoning: bool) -> Self {
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
            retry_reason: None,
            review: None,
            tokens: None,
            access: None,
            is_verbose: false,
            live: None,
            markdown: None,
        }
    }

    /// From now on, names the flags that would have let refused work happen.
    pub fn set_access(&mut self, access: WriteAccess) {
        self.access = Some(access);
    }

    /// Shows the details of failures.
    pub fn verbose(mut self, is_verbose: bool) -> Self {
        self.is_verbose = is_verbose;
        self
    }

    /// Shows what goes on below the rest, writes one line for each step, and Markdown as it is meant.
    pub fn live(mut self, screen: LiveScreen) -> Self {
        self.live = Some(LiveBlock::new(screen));
        self
    }

    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Time has passed since the turn began; the screen has this size now.
    pub fn tick(&mut self, elapsed: Duration, screen: Option<LiveScreen>) -> io::Result<()> {
        if let Some(live) = &mut self.live {
            live.elapsed = elapsed;
            live.screen = screen.unwrap_or(live.screen);
        }
        self.draw()?;
        self.out.flush()
    }

    fn draw(&mut self) -> io::Result<()> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let unfinished = self.markdown.as_ref().map(|(markdown, _)| markdown.unfinished());
        live.draw(&mut self.out, &unfinished.unwrap_or_default())
    }

    /// The live lines make room for what is to stay.
    fn lift(&mut self) -> io::Result<()> {
        match &mut self.live {
            Some(live) => live.lift(&mut self.out),
            None => Ok(()),
        }
    }

    /// Shows paths of changed files relative to this folder.
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    pub fn heading(&mut self, heading: &Heading) -> io::Result<()> {
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
        self.broken(TextStyle::Plain, heading.prompt.trim_end(), 0)?;
        self.out.flush()
    }

    /// Something the user should know that is no part of the turn.
    pub fn warning(&mut self, text: &str) -> io::Result<()> {
        self.note(TextStyle::Careful, "warning", text)
    }

    /// A last word below the turn.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        self.broken(TextStyle::Faint, text, 0)?;
        self.out.flush()
    }

    pub fn on(&mut self, notification: &ServerNotification) -> io::Result<()> {
        self.lift()?;
        self.heard(notification)?;
        self.draw()?;
        self.out.flush()
    }

    fn heard(&mut self, notification: &ServerNotification) -> io::Result<()> {
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
            ServerNotification::McpServerStatusUpdated(told) => {
                if let Some(text) = missing_server(told) {
                    self.note(TextStyle::Careful, "warning", &text)?;
                }
            }
            ServerNotification::CommandExecutionOutputDelta(told) => {
                if let Some(live) = &mut self.live {
                    live.output(&told.item_id, &told.delta);
                }
            }
            ServerNotification::TurnCompleted(told) => self.turn_ends(&told.turn, told.cost.as_ref())?,
            _ => {}
        }
        Ok(())
    }

    /// Leaves the cursor at the beginning of a line.
    pub fn finish(&mut self) -> io::Result<()> {
        self.lift()?;
        if let Some(live) = &mut self.live {
            live.finish();
        }
        self.end_line()?;
        self.out.flush()
    }

    fn work_begins(&mut self, item: &ThreadItem) -> io::Result<()> {
        match work(item, self.folder.as_deref()) {
            Some(work) if work.standing == WorkStatus::Running => match &mut self.live {
                Some(live) => {
                    live.begin(item.id(), &work.what);
                    Ok(())
                }
                None => self.work(&work),
            },
            _ => Ok(()),
        }
    }

    fn item_ends(&mut self, item: &ThreadItem) -> io::Result<()> {
        let id = item.id();
        if let Some(live) = &mut self.live {
            live.end(id);
        }
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
        let has_signs = self.live.as_ref().is_some_and(|live| !live.screen.is_ascii);
        let (mark, style) = match (work.standing, has_signs) {
            (WorkStatus::Running, _) => ("...", TextStyle::Busy),
            (WorkStatus::Done, false) => ("ok ", TextStyle::Good),
            (WorkStatus::Done, true) => ("✓", TextStyle::Good),
            (WorkStatus::Failed, false) => ("no ", TextStyle::Bad),
            (WorkStatus::Failed, true) => ("✗", TextStyle::Bad),
        };
        let mark = self.paint.text(style, mark);
        let ending = match work.ending.as_str() {
            "" => String::new(),
            ending => self.paint.text(TextStyle::Faint, format_args!(" ({ending})")),
        };
        let what = self.shortened(&clean(&work.what), work.ending.len() + 8);
        self.line(&format!("{mark} {what}{ending}"))?;
        if work.standing == WorkStatus::Running {
            return Ok(());
        }
        self.output(work)?;
        if let Some(reason) = work.reason.as_deref().filter(|reason| !reason.trim().is_empty()) {
            let reason = self.paint.text(TextStyle::Faint, clean(reason.trim_end()));
            self.line(&format!("    {reason}"))?;
        }
        match self.access.and_then(|access| advice(work, access)) {
            Some(advice) => {
                let advice = format!("    -> {advice}");
                self.broken(TextStyle::Careful, &advice, 7)
            }
            None => Ok(()),
        }
    }

    fn output(&mut self, work: &WorkItem) -> io::Result<()> {
        let most = match work.output_kind {
            OutputKind::Text => OUTPUT_LINES,
            OutputKind::Diff => DIFF_LINES,
        };
        let output = clean(work.output.as_deref().unwrap_or_default()).trim_end().to_owned();
        let lines: Vec<&str> = output.lines().collect();
        let hidden = lines.len().saturating_sub(most);
        // The end of a failing output says why it failed.
        let is_end =
            hidden > 0 && work.standing == WorkStatus::Failed && work.output_kind == OutputKind::Text;
        if is_end {
            let before = self.paint.text(TextStyle::Faint, format_args!("({hidden} lines before)"));
            self.line(&format!("    {before}"))?;
        }
        for line in lines.iter().skip(if is_end { hidden } else { 0 }).take(most) {
            let style = match (work.output_kind, line.as_bytes().first()) {
                (OutputKind::Diff, Some(b'+')) => TextStyle::Good,
                (OutputKind::Diff, Some(b'-')) => TextStyle::Bad,
                _ => TextStyle::Faint,
            };
            let line = self.paint.text(style, self.shortened(line, 5));
            self.line(&format!("    {line}"))?;
        }
        if hidden > 0 && !is_end {
            let more = self.paint.text(TextStyle::Faint, format_args!("({hidden} more lines)"));
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
            self.line(&format!("  {mark} {}", self.shortened(&clean(&step.step), 7)))?;
        }
        Ok(())
    }

    fn error(&mut self, told: &ErrorNotification) -> io::Result<()> {
        if told.will_retry {
            let details =
                told.error.additional_details.as_deref().filter(|details| !details.trim().is_empty());
            let why = details.unwrap_or(&told.error.message).to_owned();
            // A provider that fails in the same way again and again is told of once.
            if self.retry_reason.as_ref() == Some(&why) {
                return Ok(());
            }
            self.note(TextStyle::Careful, "retry", &why)?;
            self.retry_reason = Some(why);
            return Ok(());
        }
        let text = self.failure(&told.error);
        self.note(TextStyle::Bad, "error", &text)?;
        self.last_error = Some(text);
        Ok(())
    }

    /// One sentence; with what lies behind it for those who look closer.
    fn failure(&self, error: &TurnError) -> String {
        clean_line(&if self.is_verbose { error_text(error) } else { error.message.clone() })
    }

    fn turn_ends(&mut self, turn: &Turn, cost: Option<&TurnCost>) -> io::Result<()> {
        match (&turn.status, &turn.error) {
            (TurnStatus::Failed, Some(error)) => {
                let text = self.failure(error);
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
            self.broken(TextStyle::Faint, &facts, 0)?;
        }
        self.finish()
    }

    fn note(&mut self, style: TextStyle, label: &str, text: &str) -> io::Result<()> {
        self.begin(Block::Note)?;
        let lines = self.fitting(&format!("{label}: {}", clean(text)), 2);
        for (number, line) in lines.iter().enumerate() {
            match line.strip_prefix(label).filter(|_| number == 0) {
                Some(rest) => {
                    let label = self.paint.text(style, format_args!("{label}:"));
                    self.line(&format!("{label}{}", rest.trim_start_matches(':')))?;
                }
                None => self.line(line)?,
            }
        }
        self.out.flush()
    }

    fn grow(&mut self, id: &ItemId, (label, style): (&str, TextStyle), delta: &str) -> io::Result<()> {
        if !self.is_in(id) {
            self.begin(Block::Text(id.clone()))?;
            let label_style = if style == TextStyle::Faint { TextStyle::Faint } else { TextStyle::Strong };
            self.label(label_style, label)?;
        }
        self.grown.insert(id.clone());
        let Some(live) = &self.live else { return self.text(style, delta) };
        let columns = live.screen.columns.saturating_sub(1);
        let has_colours = self.paint.is_on() && style != TextStyle::Faint;
        let (markdown, _) =
            self.markdown.get_or_insert_with(|| (RenderedMarkdown::new(columns, has_colours), style));
        let lines = markdown.push(delta);
        self.rendered(&lines, style)
    }

    /// Lines of Markdown, which hold no colours but ours.
    fn rendered(&mut self, lines: &[String], style: TextStyle) -> io::Result<()> {
        lines.iter().try_for_each(|line| writeln!(self.out, "{}", self.paint.text(style, line)))
    }

    /// A text in lines that fit, on a live screen; elsewhere as it is.
    fn fitting(&self, text: &str, hang: usize) -> Vec<String> {
        match &self.live {
            Some(live) => wrapped_text(text, live.screen.columns.saturating_sub(1), hang),
            None => vec![text.to_owned()],
        }
    }

    fn broken(&mut self, style: TextStyle, text: &str, hang: usize) -> io::Result<()> {
        let paint = self.paint;
        let lines = self.fitting(&clean(text), hang);
        lines.iter().try_for_each(|line| self.line(&paint.text(style, line)))
    }

    /// One line, cut where it would fill the screen; `beside` is what else stands in it.
    fn shortened(&self, text: &str, beside: usize) -> String {
        let line = text.split('\n').collect::<Vec<_>>().join(" ");
        match &self.live {
            Some(live) => cut(&line, live.screen.columns.saturating_sub(beside)),
            None => match line.char_indices().nth(WORK_CHARACTERS) {
                Some((end, _)) => format!("{}…", &line[..end]),
                None => line,
            },
        }
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
        self.markdown = None;
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
        if let Some((markdown, style)) = &mut self.markdown {
            let (lines, style) = (markdown.finish(), *style);
            self.rendered(&lines, style)?;
        }
        if std::mem::take(&mut self.is_inside_line) { writeln!(self.out) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
