//! A real question to the model: the way of a turn, with a prompt of a few words.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use model::{Metadata, PreparedRequest, RequestBody, StreamEvent, ToolChoice};
use protocol::{ContentItem, ResponseItem, ThreadId, TurnId};
use runtime::config::{Home, LoadRequest, Loader, LoaderOptions, ProviderKind};
use runtime::{Catalogue, ClientIdentity};
use server::Hub;

use super::DoctorCheck;

/// A slow model on a small machine still answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

const ADVICE: &str =
    "see the sentence of the provider; `oarlock models` lists what can be asked for with --model";

pub(super) fn check(flags: Vec<(String, String)>, provider: Option<String>) -> DoctorCheck {
    match ask(flags, provider) {
        Ok(summary) => DoctorCheck::ok("online", summary),
        Err(error) => DoctorCheck::problem("online", format!("{error:#}"), ADVICE),
    }
}

fn ask(mut flags: Vec<(String, String)>, provider: Option<String>) -> Result<String> {
    flags.extend(provider.map(|id| ("model_provider".to_owned(), format!("{id:?}"))));
    let loader = Loader::new(Home::look_from_env()?, flags, LoaderOptions::default());
    let request = LoadRequest { cwd: std::env::current_dir().ok(), ..LoadRequest::default() };
    let config = loader.load(&request)?;
    let model = match config.provider.kind {
        ProviderKind::Offline => model_http::OfflineModel::NAME.to_owned(),
        _ => {
            let chosen = config.model.name.clone().or_else(|| config.provider.default_model.clone());
            chosen.unwrap_or_else(|| Catalogue::bundled().default_model().to_owned())
        }
    };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let runtime = crate::host::local_runtime(loader, &Hub::new(), &config);
        let transport = runtime.model_transport(&ClientIdentity::default())?;
        let began = Instant::now();
        let asking = answer(transport.open(question(&model)));
        let answered = tokio::time::timeout(ANSWER_LIMIT, asking).await;
        let words = answered.with_context(|| format!("no answer in {} s", ANSWER_LIMIT.as_secs()))??;
        let seconds = began.elapsed().as_secs_f64();
        Ok(format!("{model} answered in {seconds:.1} s: {words}"))
    })
}

fn question(model: &str) -> PreparedRequest {
    let content = vec![ContentItem::InputText { text: "say ok".to_owned() }];
    let message =
        ResponseItem::Message { id: None, role: "user".to_owned(), content, end_turn: None, phase: None };
    let body = RequestBody {
        model: model.to_owned(),
        instructions: "Answer with one word.".to_owned(),
        input: vec![Arc::new(message)],
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: false,
        reasoning: None,
        store: false,
        stream: true,
        include: Vec::new(),
        service_tier: None,
        prompt_cache_key: "doctor".to_owned(),
        text: None,
    };
    let metadata = Metadata::first(ThreadId::new("doctor"), TurnId::new("doctor"));
    PreparedRequest { body: Arc::new(body), metadata }
}

/// The number of letters and of tokens: whether the words make sense is not for a program to say.
async fn answer(mut events: model::EventStream) -> Result<String> {
    let mut letters = 0;
    while let Some(event) = events.next().await {
        match event {
            Ok(StreamEvent::TextDelta { delta }) => letters += delta.chars().count(),
            Ok(StreamEvent::Completed { usage, .. }) => {
                let tokens = usage.map(|usage| {
                    format!(", {} tokens in and {} out", usage.input_tokens, usage.output_tokens)
                });
                return Ok(format!("{letters} letters{}", tokens.unwrap_or_default()));
            }
            Ok(StreamEvent::Failed(failure)) => bail!("{}", failure.message),
            Ok(_) => {}
            Err(failure) => bail!("{}", failure.message),
        }
    }
    bail!("the answer ended before it was complete")
}
