//! The models that a server lists.

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
    /// The name in requests.
    pub id: String,
    pub display_name: Option<String>,
    /// In tokens.
    pub context_window: Option<i64>,
}

/// Limit of a list, which is long for providers with hundreds of models.
const MAX_LIST_BYTES: usize = 16 << 20;
const MAX_MODELS: usize = 10_000;

/// Lists the models of one provider.
#[derive(Debug)]
pub struct ModelLister {
    endpoint: Endpoint,
    client: Client,
    asks_props: bool,
    is_ollama: bool,
}

impl ModelLister {
    pub fn new(provider: &Provider, options: &ClientOptions) -> Result<Self, ProviderError> {
        Ok(Self {
            endpoint: Endpoint::new(provider, options)?,
            client: Endpoint::client(options)?,
            asks_props: provider.id == "llamacpp",
            is_ollama: provider.id == "ollama",
        })
    }

    /// The URL without secrets.
    pub fn shown_url(&self) -> &str {
        &self.endpoint.shown_url
    }

    /// Whether the server runs on this machine.
    pub fn is_local(&self) -> bool {
        self.endpoint.is_local()
    }

    /// The window of an Ollama model, which is in no list: that of the loaded model, else its default.
    pub async fn window_of(&self, model: &str, patience: Duration) -> Option<i64> {
        if !self.is_ollama {
            return None;
        }
        let running = get(&self.endpoint, &self.client, "/api/ps", patience).await.unwrap_or_default();
        let mut rows = running["models"].as_array().into_iter().flatten();
        let loaded = rows.find(|row| row["name"] == model || row["model"] == model);
        if let Some(window) =
            loaded.and_then(|row| row["context_length"].as_i64()).filter(|window| *window > 0)
        {
            return Some(window);
        }
        let body = serde_json::json!({ "model": model }).to_string();
        let body = HttpBody::from_iter([body.into()]);
        let shown = ask(&self.endpoint, &self.client, "/api/show", patience, Some(body)).await.ok()?;
        shown_window(&shown)
    }

    /// One request to the server, or two if the first is not sufficient.
    pub async fn list(&self, patience: Duration) -> Result<Vec<ListedModel>, ModelFailure> {
        let mut models = list(&self.endpoint, &self.client, patience).await?;
        if self.asks_props {
            let props = get(&self.endpoint, &self.client, "/props", patience).await.ok();
            let window = props.and_then(|props| props["default_generation_settings"]["n_ctx"].as_i64());
            // The server's configured window counts, not the model's maximum.
            models.iter_mut().for_each(|model| model.context_window = window.or(model.context_window));
        }
        Ok(models)
    }
}

/// `GET …/models`, or Ollama's equivalent.
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

/// The window in Ollama's description of a model: a parameter, else the model's maximum.
fn shown_window(shown: &Value) -> Option<i64> {
    let lines = shown["parameters"].as_str().unwrap_or_default().lines();
    let set = lines.filter_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok()).next();
    let mut facts = shown["model_info"].as_object().into_iter().flatten();
    let trained = || facts.find(|(name, _)| name.ends_with(".context_length"))?.1.as_i64();
    set.or_else(trained).filter(|window| *window > 0)
}

/// The JSON at a path of the provider.
pub(crate) async fn get(
    endpoint: &Endpoint,
    client: &Client,
    path: &str,
    patience: Duration,
) -> Result<Value, ModelFailure> {
    ask(endpoint, client, path, patience, None).await
}

/// GET, or POST with a body.
async fn ask(
    endpoint: &Endpoint,
    client: &Client,
    path: &str,
    patience: Duration,
    body: Option<HttpBody>,
) -> Result<Value, ModelFailure> {
    let unreachable = |problem: String| {
        let message = endpoint.redactor.clean(problem);
        ModelFailure::new(FailureClass::Connection, message)
    };
    let url =
        endpoint.url_at(path).ok_or_else(|| unreachable("the path cannot be part of a URL".to_owned()))?;
    let mut headers = endpoint.headers.clone();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let method = if body.is_some() { Method::POST } else { Method::GET };
    if body.is_none() {
        headers.remove(header::CONTENT_TYPE);
    }
    let request = HttpRequest { method, url, headers, body: body.unwrap_or_default() };
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
            url: &endpoint.shown_at(path),
            model: "",
            credential: &endpoint.refused_credential,
        })),
    }
}

/// `{"data": [{"id": …}]}` of most, `{"models": [{"name": …}]}` of Ollama, `[{"id": …}]` of Together.
fn read(answer: &Value) -> Option<Vec<ListedModel>> {
    let rows = [&answer["data"], &answer["models"], answer].into_iter().find_map(Value::as_array)?;
    Some(rows.iter().filter_map(model).take(MAX_MODELS).collect())
}

/// The names of the window size in servers' lists.
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
    // Gemini lists its models with a prefix that requests leave out.
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
    fn the_window_of_an_ollama_model_is_in_its_description() {
        let info = json!({"general.architecture": "qwen3", "qwen3.context_length": 40_960});
        assert_eq!(shown_window(&json!({"model_info": info})), Some(40_960));
        let parameters = "stop  \"<|im_end|>\"\nnum_ctx                        8192\ntemperature 0.6";
        assert_eq!(shown_window(&json!({"model_info": info, "parameters": parameters})), Some(8_192));
        assert_eq!(shown_window(&json!({"license": "x"})), None);
    }

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
