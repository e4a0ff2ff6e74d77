//! The context of a trace: which span of which trace a request belongs to.

use std::borrow::Cow;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use tokio::task::futures::TaskLocalFuture;

/// The longest `tracestate` that is passed on, in bytes.
const LONGEST_STATE: usize = 512;

/// A span by its ids, as W3C's trace context names it. What is asked of others for it belongs below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    /// Whoever began the trace wants it recorded.
    pub(crate) is_sampled: bool,
    /// Words of other programs, passed on as they came.
    pub(crate) state: Option<Arc<str>>,
}

/// The member `trace` of a request.
#[derive(Deserialize)]
struct RequestTrace<'a> {
    #[serde(borrow)]
    traceparent: Cow<'a, str>,
    #[serde(borrow, default)]
    tracestate: Option<Cow<'a, str>>,
}

impl TraceContext {
    /// The context in the member `trace` of a request. One that cannot be read is none, and no reason to refuse the request.
    #[must_use]
    pub fn read(trace: Option<&RawValue>) -> Option<Self> {
        let trace: RequestTrace<'_> = serde_json::from_str(trace?.get()).ok()?;
        let context = Self::parse(&trace.traceparent)?;
        let is_plain = |state: &Cow<'_, str>| {
            (1..=LONGEST_STATE).contains(&state.len())
                && state.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        let state = trace.tracestate.filter(is_plain).map(|state| Arc::from(&*state));
        Some(Self { state, ..context })
    }

    /// `VERSION-TRACE-SPAN-FLAGS`. A later version may have more parts.
    fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let mut next = || HEXLOWER.decode(parts.next()?.as_bytes()).ok();
        let (version, trace, span, flags) = (next()?, next()?, next()?, next()?);
        let has_more = parts.next().is_some();
        let ([version], [flags]) = (&version[..], &flags[..]) else { return None };
        let (trace, span): ([u8; 16], [u8; 8]) = (trace.try_into().ok()?, span.try_into().ok()?);
        let is_readable = *version != 0xff && !(*version == 0 && has_more);
        let is_set = trace != [0; 16] && span != [0; 8];
        (is_readable && is_set).then_some(Self { trace, span, is_sampled: flags & 1 == 1, state: None })
    }

    fn traceparent(&self) -> String {
        let (trace, span) = (HEXLOWER.encode(&self.trace), HEXLOWER.encode(&self.span));
        format!("00-{trace}-{span}-0{}", u8::from(self.is_sampled))
    }
}

/// As the member `trace` of a request.
impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            traceparent: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            tracestate: Option<&'a str>,
        }
        Written { traceparent: self.traceparent(), tracestate: self.state.as_deref() }.serialize(serializer)
    }
}

tokio::task_local! {
    static CURRENT: Option<TraceContext>;
}

/// The context that the running task works for. Requests that it makes carry it.
#[must_use]
pub fn current() -> Option<TraceContext> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// Does the work for this context. Tasks that it spawns are not within it.
pub fn within<F: Future>(context: Option<TraceContext>, work: F) -> TaskLocalFuture<Option<TraceContext>, F> {
    CURRENT.scope(context, work)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn read(trace: &serde_json::Value) -> Option<TraceContext> {
        TraceContext::read(Some(&to_raw_value(trace).expect("JSON")))
    }

    #[test]
    fn a_context_goes_on_as_it_came() {
        for flags in ["00", "01"] {
            let trace = json!({"traceparent": format!("00-{TRACE}-{SPAN}-{flags}"), "tracestate": "a=1,b=2"});
            let context = read(&trace).expect("a context");
            assert_eq!(context.is_sampled, flags == "01");
            assert_eq!(serde_json::to_value(&context).expect("JSON"), trace);
        }
    }

    #[test]
    fn later_versions_are_read_and_nothing_else() {
        let of = |parent: String| read(&json!({ "traceparent": parent }));
        let later = of(format!("01-{TRACE}-{SPAN}-03-more")).expect("a context");
        let written = serde_json::to_value(later).expect("JSON");
        assert_eq!(written, json!({"traceparent": format!("00-{TRACE}-{SPAN}-01")}));
        for bad in [
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}ab-{SPAN}-01"),
            String::new(),
            "é-é-é-é".to_owned(),
        ] {
            assert_eq!(of(bad.clone()), None, "{bad}");
        }
        for bad in [json!(null), json!(7), json!({}), json!({"traceparent": 7}), json!([])] {
            assert_eq!(read(&bad), None, "{bad}");
        }
        assert_eq!(TraceContext::read(None), None);
    }

    #[test]
    fn a_state_that_is_too_long_or_not_plain_is_left_out() {
        let parent = format!("00-{TRACE}-{SPAN}-01");
        for bad in ["x".repeat(513), "a=\n".to_owned(), "a=é".to_owned(), String::new()] {
            let context = read(&json!({"traceparent": parent, "tracestate": bad}));
            assert_eq!(context.expect("a context").state, None);
        }
    }

    #[tokio::test]
    async fn work_is_within_a_context_and_what_follows_is_not() {
        let context = TraceContext { trace: [1; 16], span: [2; 8], is_sampled: true, state: None };
        let found = within(Some(context.clone()), async {
            tokio::task::yield_now().await;
            current()
        });
        assert_eq!((found.await, current()), (Some(context), None));
    }
}
