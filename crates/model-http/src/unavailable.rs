//! The transport of a missing provider.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use model::{EventStream, FailureClass, ModelFailure, ModelTransport, PreparedRequest, StreamEvent};

/// Fails every request with instructions. Used for a provider without its key, so that everything that needs no model
/// still works.
#[derive(Debug, Clone)]
pub struct UnavailableTransport {
    failure: ModelFailure,
}

impl UnavailableTransport {
    /// `key_variable` is the environment variable of the provider's key; `instructions` are the user's own on how to
    /// get one.
    pub fn new(provider: &str, key_variable: &str, instructions: Option<&str>) -> Self {
        let mut message = format!(
            "No key for the model provider `{provider}`: set {key_variable}, or choose the offline model with \
             `--provider offline` or `model_provider = \"offline\"`."
        );
        if let Some(instructions) = instructions {
            message = format!("{message} {instructions}");
        }
        Self { failure: ModelFailure::new(FailureClass::NotConfigured, message) }
    }

    /// Nothing is configured, and the environment suggests nothing: lists the options.
    pub fn nothing_chosen() -> Self {
        Self { failure: ModelFailure::new(FailureClass::NotConfigured, WAYS_OUT) }
    }
}

/// The ways to get a model.
pub const WAYS_OUT: &str = "No model is configured. Set the key of a provider (OPENAI_API_KEY, ANTHROPIC_API_KEY, \
    GEMINI_API_KEY, …), or start a server on this machine (`ollama serve`, `llama-server`, `vllm serve`, LM Studio), or \
    set model_provider in config.toml, or try the offline model with `--provider offline`.";

impl ModelTransport for UnavailableTransport {
    fn open(&self, _: PreparedRequest) -> EventStream {
        Box::pin(Once(Some(self.failure.clone())))
    }
}

/// Fails once and ends.
struct Once(Option<ModelFailure>);

impl Stream for Once {
    type Item = Result<StreamEvent, ModelFailure>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Err))
    }
}
