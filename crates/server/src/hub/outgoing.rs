//! A notification on its way to connections: encoded once for all who get the same bytes.

use std::sync::Arc;

use protocol::{
    AgentMessageDelta, AgentMessageDeltaNotification, CommandExecutionOutputDelta,
    CommandExecutionOutputDeltaNotification, FileChangeOutputDelta, FileChangeOutputDeltaNotification,
    NotificationMethod, PlanDelta, PlanDeltaNotification, ReasoningSummaryTextDelta,
    ReasoningSummaryTextDeltaNotification, ReasoningTextDelta, ReasoningTextDeltaNotification,
    ServerNotification,
};
use rpc::{DeltaKey, OrderGroup, OutgoingMessage};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// A piece of a text that grows. Pieces that wait for a slow reader are merged into one.
trait TextDelta: Clone + Serialize + Send + Sync + 'static {
    const METHOD: &'static str;

    fn text(&mut self) -> &mut String;

    /// Which text of the thread, beside the method.
    fn place(&self) -> (&str, i64);
}

macro_rules! text_deltas {
    ($($marker:ident: $params:ident $(at $index:ident)?;)*) => { $(
        impl TextDelta for $params {
            const METHOD: &'static str = <$marker as NotificationMethod>::METHOD;

            fn text(&mut self) -> &mut String {
                &mut self.delta
            }

            fn place(&self) -> (&str, i64) {
                let index = 0;
                $(let index = index + self.$index;)?
                (self.item_id.as_str(), index)
            }
        }
    )* };
}

text_deltas! {
    AgentMessageDelta: AgentMessageDeltaNotification;
    PlanDelta: PlanDeltaNotification;
    CommandExecutionOutputDelta: CommandExecutionOutputDeltaNotification;
    FileChangeOutputDelta: FileChangeOutputDeltaNotification;
    ReasoningSummaryTextDelta: ReasoningSummaryTextDeltaNotification at summary_index;
    ReasoningTextDelta: ReasoningTextDeltaNotification at content_index;
}

/// `None` for a payload that cannot be JSON, which is logged.
pub(crate) fn encode(notification: ServerNotification, group: Option<OrderGroup>) -> Option<OutgoingMessage> {
    match group {
        Some(group) => match delta(notification, group, None) {
            Ok(message) => Some(message),
            Err(notification) => plain(&notification, Some(group)),
        },
        None => plain(&notification, None),
    }
}

/// A piece of a text, which is merged with the next where it waits; with the last record before it, if that is given.
/// Anything else is given back.
#[allow(
    clippy::result_large_err,
    reason = "it is handed back, not an error; a box would cost every other message"
)]
pub(super) fn delta(
    notification: ServerNotification,
    group: OrderGroup,
    ordinal: Option<u64>,
) -> Result<OutgoingMessage, ServerNotification> {
    use ServerNotification as N;
    Ok(match notification {
        N::AgentMessageDelta(delta) => merging(delta, group, ordinal),
        N::PlanDelta(delta) => merging(delta, group, ordinal),
        N::CommandExecutionOutputDelta(delta) => merging(delta, group, ordinal),
        N::FileChangeOutputDelta(delta) => merging(delta, group, ordinal),
        N::ReasoningSummaryTextDelta(delta) => merging(delta, group, ordinal),
        N::ReasoningTextDelta(delta) => merging(delta, group, ordinal),
        other => return Err(other),
    })
}

/// The same object with one more member, without reading the others.
pub(super) fn with_ordinal(params: &RawValue, ordinal: u64) -> Option<Box<RawValue>> {
    let rest = params.get().strip_prefix('{')?;
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    RawValue::from_string(format!("{{\"ordinal\":{ordinal}{comma}{rest}")).ok()
}

fn plain(notification: &ServerNotification, group: Option<OrderGroup>) -> Option<OutgoingMessage> {
    match rpc::notification(notification.method(), notification) {
        Ok(line) => Some(OutgoingMessage::Plain { group, line }),
        Err(error) => {
            tracing::error!(method = notification.method(), %error, "a notification is lost");
            None
        }
    }
}

fn merging<D: TextDelta>(mut delta: D, group: OrderGroup, ordinal: Option<u64>) -> OutgoingMessage {
    let text = std::mem::take(delta.text());
    let (item, index) = delta.place();
    let stream = format!("{}:{index}:{item}", D::METHOD).into();
    let render = Arc::new(move |text: &str| {
        let mut delta = delta.clone();
        text.clone_into(delta.text());
        // Text and ids always can be written as JSON; a connection skips an empty line.
        match ordinal {
            None => rpc::notification(D::METHOD, &delta).unwrap_or_default(),
            Some(ordinal) => to_raw_value(&delta)
                .ok()
                .and_then(|params| with_ordinal(&params, ordinal))
                .and_then(|params| rpc::notification(D::METHOD, &params).ok())
                .unwrap_or_default(),
        }
    });
    OutgoingMessage::Delta { key: DeltaKey { group, stream }, text, render }
}

/// The two forms of a notification, as far as anybody needs them.
#[derive(Debug)]
pub(crate) struct Outgoing {
    full: Option<OutgoingMessage>,
    stable: Option<OutgoingMessage>,
}

impl Outgoing {
    /// Stable connections do not see what is experimental.
    pub(crate) fn new(
        mut notification: ServerNotification,
        group: Option<OrderGroup>,
        for_full: bool,
        for_stable: bool,
    ) -> Self {
        let full = match (for_full, for_stable) {
            (true, true) => encode(notification.clone(), group),
            (true, false) => return Self { full: encode(notification, group), stable: None },
            (false, _) => None,
        };
        notification.strip_experimental();
        Self { full, stable: encode(notification, group) }
    }

    pub(crate) fn copy(&self, experimental: bool) -> Option<OutgoingMessage> {
        if experimental { self.full.clone() } else { self.stable.clone() }
    }

    /// For the last receiver, most often the only one.
    pub(crate) fn take(self, experimental: bool) -> Option<OutgoingMessage> {
        if experimental { self.full } else { self.stable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_is_written_as_its_notification_is() {
        let delta = ReasoningTextDeltaNotification {
            thread_id: "t".into(),
            turn_id: "u".into(),
            item_id: "i".into(),
            delta: "some text".into(),
            content_index: 3,
        };
        let expected = rpc::notification(ReasoningTextDelta::METHOD, &delta).unwrap_or_default();
        let Some(OutgoingMessage::Delta { key, text, render }) =
            encode(ServerNotification::ReasoningTextDelta(delta), Some(OrderGroup(1)))
        else {
            panic!("a delta")
        };
        assert_eq!(render(&text), expected);
        assert_eq!(&*key.stream, "item/reasoning/textDelta:3:i");
    }
}
