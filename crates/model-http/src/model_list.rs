//! The models that a server says it has.

use std::time::Duration;

use http::{Client, HeaderValue, HttpBody, HttpRequest, Method, header};
use model::{FailureClass, ModelFailure};
use serde_json::Value;
use wires::HttpRefusal;

use crate::endpoint::Endpoint;
use crate::{ClientOptions, Provider, ProviderError};

/// A model as its server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The name requests use.
    pub id: String,
    pub display_name: Option<String>,
    /// In tokens.
    pub context_window: Option<i64>,
}

/// Lists are long where a provider sells hundreds of models.
const MAX_LIST_BYTES: usize = 16 << 20;
const MAX_MODELS: usize = 10_000;

/// Asks one provider which models it has.
#[derive(Debug)]
pub struct ModelLister {
    endpoint: Endpoint,
    client: Client,
    asks_props: bool,
}

impl ModelLister {
    pub fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        Ok(Self {
            endpoint: Endpoint::new(provider, options)?,
            client: Endpoint::client(options)?,
            asks_props: provider.id == "llamacpp",
        })
    }

    /// Where requests go, fit to be shown.
    pub fn shown_url(&self) -> &str {
        &self.endpoint.shown_url
    }

    /// One request to the server, or two where the first says too little.
    pub async fn list(&self, patience: Duration) -> Result<Vec<ListedModel>, ModelFailure> {
        let mut models = list(&self.endpoint, &self.client, patience).await?;
        if self.asks_props {
            let props = get(&self.endpoint, &self.client, "/props", patience).await.ok();
            let window = props.and_then(|props| props["default_generation_settings"]["n_ctx"].as_i64());
            // The window that the server was started with counts, not the one the model was trained with.
            models.iter_mut().for_each(|model| model.context_window = window.or(model.context_window));
        }
        Ok(models)
    }
}

/// `GET …/models`, or what Ollama has instead.
pub(crate) async fn list(
    endpoint: &Endpoint,
    client: &Client,
    patience: Duration,
) -> Result<Vec<ListedModel>, ModelFailure> {
    let first = get(endpoint, client, &endpoint.models_path(), patience).await;
    let answer = match first {
        Err(failure) if failure.http_status == Some(404) => {
            get(endpoint, client, "/api/tags", patience).await.map_err(|_| failure)?
        }
        first => first?,
    };
    read(&answer).ok_or_else(|| {
        let message = format!("{} answered, but with no list of models", endpoint.shown_url);
        ModelFailure::new(FailureClass::InvalidRequest, message)
    })
}

/// The JSON at a path of the provider.
pub(crate) async fn get(
    endpoint: &Endpoint,
    client: &Client,
    path: &str,
    patience: Duration,
) -> Result<Value, ModelFailure> {
    let unreachable = |problem: String| {
        let message = endpoint.redactor.clean(problem);
        ModelFailure::new(FailureClass::Connection, message)
    };
    let url =
        endpoint.url_at(path).ok_or_else(|| unreachable("the path cannot be part of a URL".to_owned()))?;
    let mut headers = endpoint.headers.clone();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.remove(header::CONTENT_TYPE);
    let request = HttpRequest { method: Method::GET, url, headers, body: HttpBody::default() };
    let sent = tokio::time::timeout(patience, client.send(request, patience)).await;
    let answer = match sent {
        Ok(sent) => sent.map_err(|error| unreachable(error.to_string()))?,
        Err(_) => return Err(unreachable(format!("no answer within {} s", patience.as_secs()))),
    };
    let status = answer.status;
    let body = answer.body.read_some(MAX_LIST_BYTES, patience).await;
    let body = String::from_utf8_lossy(&body);
    let value = serde_json::from_str(&body).ok();
    match value {
        Some(value) if status.is_success() => Ok(value),
        _ => Err(wires::http_failure(HttpRefusal {
            status: status.as_u16(),
            body: &endpoint.redactor.clean(body.into_owned()),
            retry_after_ms: None,
            request_id: None,
            url: &endpoint.shown_at(path),
            model: "",
        })),
    }
}

/// `{"data": [{"id": …}]}` of most, `{"models": [{"name": …}]}` of Ollama, `[{"id": …}]` of Together.
fn read(answer: &Value) -> Option<Vec<ListedModel>> {
    let rows = [&answer["data"], &answer["models"], answer].into_iter().find_map(Value::as_array)?;
    Some(rows.iter().filter_map(model).take(MAX_MODELS).collect())
}

/// The names under which servers tell the size of the window.
const WINDOWS: &[&str] = &[
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_model_len",
    "/max_input_tokens",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
];

fn model(row: &Value) -> Option<ListedModel> {
    let name = row["id"].as_str().or_else(|| row["name"].as_str())?;
    // Gemini lists its models under a path and takes them without.
    let id = name.strip_prefix("models/").unwrap_or(name);
    let text = |name: &str| row[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let window = WINDOWS.iter().find_map(|path| row.pointer(path)?.as_i64().filter(|window| *window > 0));
    (!id.is_empty()).then(|| ListedModel {
        id: id.to_owned(),
        display_name: text("display_name"),
        context_window: window,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_are_read_as_servers_write_them() {
        let names = |answer: Value| {
            let models = read(&answer)?;
            Some(models.into_iter().map(|model| (model.id, model.context_window)).collect::<Vec<_>>())
        };
        let named = |id: &str, window| Some(vec![(id.to_owned(), window)]);
        let openrouter = json!({"data": [{"id": "a/b", "context_length": 9}]});
        assert_eq!(names(openrouter), named("a/b", Some(9)));
        assert_eq!(names(json!({"data": [{"id": "models/gemini-x"}]})), named("gemini-x", None));
        assert_eq!(names(json!({"models": [{"name": "qwen3:8b"}]})), named("qwen3:8b", None));
        assert_eq!(names(json!([{"id": "t", "context_length": 0}])), named("t", None));
        let llamacpp = json!({"data": [{"id": "m", "meta": {"n_ctx_train": 2048}}]});
        assert_eq!(names(llamacpp), named("m", Some(2048)));
        assert_eq!(names(json!({"hello": "world"})), None);
    }
}
