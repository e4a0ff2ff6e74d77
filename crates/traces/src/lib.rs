//! Owns traces: the W3C context that requests carry, spans, and their way to a collector over OTLP/HTTP as JSON. Must not
//! know what the spans are of.
//!
//! A span holds words and numbers: no text that a person or a model wrote fits into one. Without a collector nothing is
//! recorded, queued or allocated, and a context that came with a request is passed on as it is.

mod context;
mod exporter;
mod otlp;
mod settings;
mod span;
mod span_clock;
mod tracer;

pub use context::{TraceContext, current, within};
pub use settings::TraceSettings;
pub use span::Span;
pub use tracer::Tracer;
