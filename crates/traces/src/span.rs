//! A span: one piece of work of a trace, from its beginning to its end.

use std::sync::Arc;

use crate::context::TraceContext;
use crate::tracer::SpanQueue;

/// The longest word that a span holds, in bytes.
const LONGEST_WORD: usize = 128;

/// A piece of work that goes on. Dropping it ends it. One that nobody records has the context it was begun with, and is
/// free.
#[derive(Debug, Default)]
pub struct Span {
    context: Option<TraceContext>,
    open: Option<Box<OpenSpan>>,
}

#[derive(Debug)]
struct OpenSpan {
    queue: Arc<SpanQueue>,
    record: SpanRecord,
}

/// A span as the collector gets it.
#[derive(Debug)]
pub(crate) struct SpanRecord {
    pub(crate) name: &'static str,
    pub(crate) context: TraceContext,
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) attributes: Vec<(&'static str, AttributeValue)>,
    pub(crate) has_failed: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) enum AttributeValue {
    Word(String),
    Number(i64),
}

impl Span {
    /// Not recorded.
    pub(crate) fn passing(context: Option<TraceContext>) -> Self {
        Self { context, open: None }
    }

    pub(crate) fn recorded(queue: Arc<SpanQueue>, record: SpanRecord) -> Self {
        let context = Some(record.context.clone());
        Self { context, open: Some(Box::new(OpenSpan { queue, record })) }
    }

    /// Whether its words are kept.
    pub fn is_recorded(&self) -> bool {
        self.open.is_some()
    }

    /// For what belongs below it.
    pub fn context(&self) -> Option<TraceContext> {
        self.context.clone()
    }

    /// Adds a word: an id, a name, an outcome. What is no word, as any text of people and models, is left out.
    pub fn word(&mut self, name: &'static str, word: &str) {
        let is_word = |word: &str| {
            (1..=LONGEST_WORD).contains(&word.len())
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte))
        };
        if let Some(open) = self.open.as_mut().filter(|_| is_word(word)) {
            open.record.attributes.push((name, AttributeValue::Word(word.to_owned())));
        }
    }

    pub fn number(&mut self, name: &'static str, number: i64) {
        if let Some(open) = &mut self.open {
            open.record.attributes.push((name, AttributeValue::Number(number)));
        }
    }

    /// The work failed, for a reason of this kind.
    pub fn fail(&mut self, kind: &str) {
        self.word("error.type", kind);
        if let Some(open) = &mut self.open {
            open.record.has_failed = true;
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let OpenSpan { queue, mut record } = *open;
            record.ended_ns = queue.now_ns().max(record.began_ns);
            queue.put(record);
        }
    }
}
