//! Requests to authorization servers: checked addresses, no redirects, limited size and time.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Client, HeaderMap, HeaderValue, HttpBody, HttpRequest, Method, StatusCode, Uri};
use serde_json::Value;

use super::LoginError;
use super::address::AddressRule;
use super::url::{form, shown};

/// Time limit of a response's headers, and again of its body.
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 256 * 1024;

/// Asks on behalf of one server.
#[derive(Debug, Clone)]
pub(super) struct Fetcher {
    pub(super) client: Client,
    pub(super) rule: AddressRule,
}

/// An answer of any status.
#[derive(Debug)]
pub(super) struct JsonAnswer {
    pub(super) status: StatusCode,
    /// Null where the body is not JSON.
    pub(super) body: Value,
}

impl JsonAnswer {
    /// The error in the response, or its status, on one line.
    pub(super) fn problem(&self) -> String {
        let text =
            |key: &str| self.body.get(key).and_then(Value::as_str).map(shown).filter(|text| !text.is_empty());
        match (text("error"), text("error_description")) {
            (Some(error), Some(why)) => format!("{error}: {why}"),
            (Some(error), None) => error,
            (None, _) if self.status.is_redirection() => {
                format!("it answered {}, and redirects are not followed", self.status)
            }
            (None, _) => format!("it answered {}", self.status),
        }
    }
}

impl Fetcher {
    pub(super) async fn get(&self, subject: &'static str, url: &str) -> Result<JsonAnswer, LoginError> {
        let uri = self.rule.check(subject, url).await?;
        let mut headers = json_wanted();
        headers.insert("mcp-protocol-version", HeaderValue::from_static(crate::server::PROTOCOL_VERSION));
        self.send(HttpRequest { method: Method::GET, url: uri, headers, body: HttpBody::default() }).await
    }

    pub(super) async fn post_json(
        &self,
        subject: &'static str,
        url: &str,
        body: &Value,
    ) -> Result<JsonAnswer, LoginError> {
        let uri = self.rule.check(subject, url).await?;
        self.post(uri, "application/json", body.to_string(), None).await
    }

    /// `basic` is the value of an Authorization header.
    pub(super) async fn post_form(
        &self,
        subject: &'static str,
        url: &str,
        pairs: &[(&str, &str)],
        basic: Option<String>,
    ) -> Result<JsonAnswer, LoginError> {
        let uri = self.rule.check(subject, url).await?;
        self.post(uri, "application/x-www-form-urlencoded", form(pairs), basic).await
    }

    async fn post(
        &self,
        url: Uri,
        kind: &'static str,
        body: String,
        basic: Option<String>,
    ) -> Result<JsonAnswer, LoginError> {
        let mut headers = json_wanted();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(mut basic) = basic.and_then(|basic| HeaderValue::from_str(&basic).ok()) {
            basic.set_sensitive(true);
            headers.insert(AUTHORIZATION, basic);
        }
        self.send(HttpRequest { method: Method::POST, url, headers, body: Bytes::from(body).into() }).await
    }

    async fn send(&self, request: HttpRequest) -> Result<JsonAnswer, LoginError> {
        let url = format!("{}{}", super::url::origin(&request.url), request.url.path());
        let failed =
            |error: http::HttpError| LoginError::Metadata { url: url.clone(), problem: error.to_string() };
        let answer = self.client.send(request, PATIENCE).await.map_err(failed)?;
        let status = answer.status;
        let body = answer.body.read(MAX_ANSWER, PATIENCE).await.map_err(failed)?;
        Ok(JsonAnswer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
    }
}

fn json_wanted() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers
}
