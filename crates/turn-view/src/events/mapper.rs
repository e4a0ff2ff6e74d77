//! From what a thread says to the events of `exec --json`. No clock and no I/O: the same words in, the same events out.

use std::collections::BTreeMap;

use protocol::{
    ItemId, ServerNotification, ThreadItem, Turn, TurnCost, TurnPlanStep, TurnPlanStepStatus, TurnStatus,
};
use terminal::WriteAccess;

use super::details::{begins, details};
use super::event::{Details, ExecCost, ExecEvent, ExecProblem, ExecUsage, Item, Todo};
use crate::advice::advice;
use crate::items::work;
use crate::wording::{error_text, missing_server, with_details};

/// Numbers the items of one run and remembers which are still open.
#[derive(Debug, Default)]
pub struct Mapper {
    numbered: usize,
    /// The thread's id of an item that was told to have begun, and how it looked then.
    open: BTreeMap<ItemId, Item>,
    plan: Option<Item>,
    usage: ExecUsage,
    last_error: Option<String>,
    /// Where commands may write, if flags are to be named.
    access: Option<WriteAccess>,
}

impl Mapper {
    /// From now on, names the flags that would have let refused work happen.
    pub fn set_access(&mut self, access: WriteAccess) {
        self.access = Some(access);
    }

    /// Something the user should know that is no part of the turn.
    pub fn warning(&mut self, message: String) -> ExecEvent {
        ExecEvent::ItemCompleted { item: self.number(Details::Error { message }) }
    }

    pub fn on(&mut self, notification: &ServerNotification) -> Vec<ExecEvent> {
        match notification {
            ServerNotification::TurnStarted(_) => vec![ExecEvent::TurnStarted],
            ServerNotification::TurnCompleted(told) => self.turn_completed(&told.turn, told.cost.as_ref()),
            ServerNotification::ItemStarted(told) => self.item_started(&told.item),
            ServerNotification::ItemCompleted(told) => self.item_completed(&told.item),
            ServerNotification::TurnPlanUpdated(told) => vec![self.plan_updated(&told.plan)],
            ServerNotification::ThreadTokenUsageUpdated(told) => {
                let total = &told.token_usage.total;
                self.usage = ExecUsage {
                    input_tokens: total.input_tokens,
                    cached_input_tokens: total.cached_input_tokens,
                    output_tokens: total.output_tokens,
                    reasoning_output_tokens: total.reasoning_output_tokens,
                    is_estimated: total.is_estimated,
                };
                Vec::new()
            }
            ServerNotification::Error(told) => {
                let message = error_text(&told.error);
                self.last_error = Some(message.clone());
                vec![ExecEvent::Error { message }]
            }
            ServerNotification::ConfigWarning(told) => {
                vec![self.warning(with_details(&told.summary, told.details.as_deref()))]
            }
            ServerNotification::DeprecationNotice(told) => {
                vec![self.warning(with_details(&told.summary, told.details.as_deref()))]
            }
            ServerNotification::ModelRerouted(told) => {
                let (from, to) = (&told.from_model, &told.to_model);
                vec![self.warning(format!("the provider answered with {to} instead of {from}"))]
            }
            ServerNotification::McpServerStatusUpdated(told) => {
                missing_server(told).map(|text| self.warning(text)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn number(&mut self, details: Details) -> Item {
        let id = format!("item_{}", self.numbered);
        self.numbered += 1;
        Item { id, details, hint: None }
    }

    fn item_started(&mut self, item: &ThreadItem) -> Vec<ExecEvent> {
        let Some(details) = details(item).filter(begins) else { return Vec::new() };
        let numbered = self.number(details);
        self.open.insert(item.id().clone(), numbered.clone());
        vec![ExecEvent::ItemStarted { item: numbered }]
    }

    fn item_completed(&mut self, item: &ThreadItem) -> Vec<ExecEvent> {
        let Some(details) = details(item) else { return Vec::new() };
        let hint = self.access.and_then(|access| advice(&work(item, None)?, access));
        let ended = match self.open.remove(item.id()) {
            Some(begun) => Item { id: begun.id, details, hint },
            None => Item { hint, ..self.number(details) },
        };
        vec![ExecEvent::ItemCompleted { item: ended }]
    }

    fn plan_updated(&mut self, plan: &[TurnPlanStep]) -> ExecEvent {
        let items = plan.iter().map(|step| Todo {
            text: step.step.clone(),
            completed: matches!(step.status, TurnPlanStepStatus::Completed),
        });
        let details = Details::TodoList { items: items.collect() };
        match self.plan.take() {
            Some(before) => {
                let item = Item { id: before.id, details, hint: None };
                self.plan = Some(item.clone());
                ExecEvent::ItemUpdated { item }
            }
            None => {
                let item = self.number(details);
                self.plan = Some(item.clone());
                ExecEvent::ItemStarted { item }
            }
        }
    }

    fn turn_completed(&mut self, turn: &Turn, cost: Option<&TurnCost>) -> Vec<ExecEvent> {
        let left = std::mem::take(&mut self.open).into_values();
        let left = left.map(|item| Item { details: item.details.clone().abandoned(), ..item });
        let mut events: Vec<ExecEvent> =
            left.chain(self.plan.take()).map(|item| ExecEvent::ItemCompleted { item }).collect();
        let last_error = self.last_error.take();
        match turn.status {
            TurnStatus::Completed => {
                let cost = cost.map(|cost| ExecCost { amount: cost.amount, is_estimated: cost.is_estimated });
                events.push(ExecEvent::TurnCompleted { usage: self.usage, cost });
            }
            TurnStatus::Failed => {
                let told = turn.error.as_ref().map(error_text).or(last_error);
                let message = told.unwrap_or_else(|| "the turn failed".to_owned());
                events.push(ExecEvent::TurnFailed { error: ExecProblem { message } });
            }
            // Not a failure: clients that stop a turn themselves do not expect one.
            TurnStatus::Interrupted => events.push(ExecEvent::TurnInterrupted),
            TurnStatus::InProgress => {}
        }
        events
    }
}

#[cfg(test)]
#[path = "mapper_tests.rs"]
mod tests;
