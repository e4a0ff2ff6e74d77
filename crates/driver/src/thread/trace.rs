//! Records the effects that the engine emitted and those that the actor performed, to test that they are the same.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use engine::Effect;
use parking_lot::Mutex;
use protocol::{RolloutRecord, ServerNotification};

thread_local! {
    static CURRENT: RefCell<EffectTrace> = RefCell::default();
}

/// The effects that one actor emitted and performed, in order. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct EffectTrace(Arc<Mutex<Vec<TraceEvent>>>);

#[derive(Debug)]
enum TraceEvent {
    Emitted(Vec<Effect>),
    Performed(Effect),
    /// Passed to the recorder, and whether they became durable.
    Written(Vec<Effect>, bool),
}

impl EffectTrace {
    /// The trace of the next thread that is opened on this OS thread.
    pub(crate) fn current() -> Self {
        CURRENT.with_borrow(Self::clone)
    }

    /// Starts a new trace for the next thread that is opened here.
    pub(crate) fn renew() -> Self {
        CURRENT.with_borrow_mut(|current| {
            *current = Self::default();
            current.clone()
        })
    }

    pub(crate) fn emitted(&self, effects: &[Effect]) {
        self.0.lock().push(TraceEvent::Emitted(effects.to_vec()));
    }

    pub(crate) fn performed(&self, effect: &Effect) {
        self.0.lock().push(TraceEvent::Performed(effect.clone()));
    }

    pub(crate) fn written(&self, records: &[RolloutRecord], is_durable: bool) {
        let records = records.iter().map(|record| Effect::Record(Box::new(record.clone()))).collect();
        self.0.lock().push(TraceEvent::Written(records, is_durable));
    }

    /// Panics unless the effects of every input were performed in order, unchanged and complete. The one exception:
    /// after a failed record, only effects that stop something are performed.
    pub(crate) fn check(&self) {
        let mut inputs: Vec<VecDeque<Effect>> = Vec::new();
        for event in &*self.0.lock() {
            match event {
                TraceEvent::Emitted(effects) => inputs.push(effects.iter().cloned().collect()),
                TraceEvent::Performed(effect) => drop(next_of(&mut inputs, effect).pop_front()),
                TraceEvent::Written(records, true) => {
                    records.iter().for_each(|record| drop(next_of(&mut inputs, record).pop_front()));
                }
                TraceEvent::Written(records, false) => {
                    let first = records.first().expect("no empty batch is written");
                    next_of(&mut inputs, first).retain(Effect::stops);
                }
            }
            inputs.retain(|effects| !effects.is_empty());
        }
        assert!(inputs.is_empty(), "emitted and never performed: {inputs:?}");
    }

    /// The performed notifications, in order.
    pub(crate) fn notifications(&self) -> Vec<ServerNotification> {
        let performed = |event: &TraceEvent| match event {
            TraceEvent::Performed(Effect::Emit(notification)) => Some((**notification).clone()),
            _ => None,
        };
        self.0.lock().iter().filter_map(performed).collect()
    }

    /// Whether such an effect was performed, so that a test knows its coverage.
    pub(crate) fn has(&self, is_it: impl Fn(&Effect) -> bool) -> bool {
        self.0.lock().iter().any(|event| matches!(event, TraceEvent::Performed(effect) if is_it(effect)))
    }

    pub(crate) fn has_lost_a_record(&self) -> bool {
        self.0.lock().iter().any(|event| matches!(event, TraceEvent::Written(_, false)))
    }
}

/// The input whose next effect is this one. Searches the newest first: its effects may be performed while an older one
/// waits for calls to end.
#[track_caller]
fn next_of<'a>(inputs: &'a mut [VecDeque<Effect>], effect: &Effect) -> &'a mut VecDeque<Effect> {
    let at = inputs.iter().rposition(|effects| effects.front() == Some(effect));
    match at {
        Some(at) => &mut inputs[at],
        None => panic!("performed out of order, changed, or never emitted: {effect:?}; next were {inputs:?}"),
    }
}
