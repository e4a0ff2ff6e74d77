//! Finds the authorization server: from a server's metadata (RFC 9728) to that of its authorization server (RFC 8414).

use http::Uri;
use serde_json::Value;

use super::LoginError;
use super::challenge::Challenge;
use super::fetch::Fetcher;
use super::url::{origin, path, shown};

/// The metadata of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuthorizationServer {
    /// Unset if an older server has no metadata with it.
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    /// How clients authenticate at the token endpoint.
    pub(super) auth_methods: Vec<String>,
    /// It identifies itself in the redirect (RFC 9207).
    pub(super) names_itself: bool,
}

/// Metadata found before the login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Discovered {
    pub(super) server: AuthorizationServer,
    /// The resource that the token is for.
    pub(super) resource: String,
    /// The scopes that the server requires.
    pub(super) scopes: Option<String>,
}

/// The protected resource, as its metadata describe it.
struct ProtectedResource {
    resource: String,
    issuer: String,
    scopes: Option<String>,
}

const RESOURCE: &str = "server";
const METADATA: &str = "metadata of the server";
const ISSUER: &str = "metadata of the authorization server";

/// `challenge` is the server's response without a token.
pub(super) async fn discover(
    fetcher: &Fetcher,
    url: &Uri,
    challenge: &Challenge,
) -> Result<Discovered, LoginError> {
    let resource = protected_resource(fetcher, url, challenge).await?;
    let server = match &resource {
        Some(resource) => of_issuer(fetcher, &resource.issuer).await?,
        None => of_older_server(fetcher, url).await?,
    };
    check_endpoints(fetcher, &server)?;
    let scopes = challenge.scope.clone().or_else(|| resource.as_ref().and_then(|found| found.scopes.clone()));
    let resource = resource.map_or_else(|| format!("{}{}", origin(url), path(url)), |found| found.resource);
    Ok(Discovered { server, resource, scopes })
}

/// `None` if the server has no such metadata, like those before 2025-06-18.
async fn protected_resource(
    fetcher: &Fetcher,
    url: &Uri,
    challenge: &Challenge,
) -> Result<Option<ProtectedResource>, LoginError> {
    let (origin_of_server, path) = (origin(url), path(url));
    let mut places = Vec::new();
    match &challenge.resource_metadata {
        Some(named) => {
            let parsed = fetcher.rule.check_form(RESOURCE, named)?;
            // A server may only describe itself, so other hosts are not requested.
            if origin(&parsed) != origin_of_server {
                let (subject, url) = (RESOURCE, shown(named));
                let problem = "which is not its own address, as the place of its metadata";
                return Err(LoginError::Address { subject, url, problem });
            }
            places.push(named.clone());
        }
        None => {
            let root = format!("{origin_of_server}/.well-known/oauth-protected-resource");
            if !path.is_empty() {
                places.push(format!("{root}{path}"));
            }
            places.push(root);
        }
    }
    for place in places {
        let answer = fetcher.get(RESOURCE, &place).await?;
        if answer.status.is_success() && answer.body.is_object() {
            return read_resource(&place, &answer.body, &origin_of_server, path).map(Some);
        }
    }
    Ok(None)
}

fn read_resource(
    place: &str,
    body: &Value,
    origin_of_server: &str,
    path_of_server: &str,
) -> Result<ProtectedResource, LoginError> {
    let wrong = |problem: String| LoginError::Metadata { url: place.to_owned(), problem };
    let named = body.get("resource").and_then(Value::as_str).unwrap_or_default();
    let parsed: Option<Uri> = named.parse().ok();
    // Its tokens would be for another server.
    let is_ours = parsed.as_ref().is_some_and(|resource| {
        let below = path_of_server.strip_prefix(path(resource));
        origin(resource) == origin_of_server
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if !is_ours {
        return Err(wrong(format!("it describes `{}`, which is another server", shown(named))));
    }
    let issuer = body.pointer("/authorization_servers/0").and_then(Value::as_str);
    let issuer = issuer.ok_or_else(|| wrong("it names no authorization server".to_owned()))?.to_owned();
    Ok(ProtectedResource { resource: named.to_owned(), issuer, scopes: words(body, "scopes_supported") })
}

fn words(body: &Value, key: &str) -> Option<String> {
    let words: Vec<&str> = body.get(key)?.as_array()?.iter().filter_map(Value::as_str).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

async fn of_issuer(fetcher: &Fetcher, issuer: &str) -> Result<AuthorizationServer, LoginError> {
    let url = fetcher.rule.check_form(METADATA, issuer)?;
    let (origin, path) = (origin(&url), path(&url));
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    for place in &places {
        let answer = fetcher.get(METADATA, place).await?;
        if !answer.status.is_success() || !answer.body.is_object() {
            continue;
        }
        let server = read_server(place, &answer.body)?;
        // Metadata under another issuer's name could redirect codes.
        if server.issuer.as_deref().map(|found| found.trim_end_matches('/'))
            != Some(issuer.trim_end_matches('/'))
        {
            let found = shown(server.issuer.as_deref().unwrap_or("nobody"));
            let problem = format!("it is the metadata of `{found}`, not of `{}`", shown(issuer));
            return Err(LoginError::Metadata { url: place.clone(), problem });
        }
        return Ok(server);
    }
    Err(LoginError::NotOffered(format!("`{}` has no metadata of an authorization server", shown(issuer))))
}

/// The rules of 2025-03-26: the server's own host is the authorization server, at default addresses without metadata.
async fn of_older_server(fetcher: &Fetcher, url: &Uri) -> Result<AuthorizationServer, LoginError> {
    let (origin, path) = (origin(url), path(url));
    let known = "/.well-known/oauth-authorization-server";
    let mut places = Vec::new();
    if !path.is_empty() {
        places.extend([format!("{origin}{known}{path}"), format!("{origin}{path}{known}")]);
    }
    places.extend([format!("{origin}{known}"), format!("{origin}/.well-known/openid-configuration")]);
    for place in places {
        let answer = fetcher.get(RESOURCE, &place).await?;
        if answer.status.is_success() && answer.body.is_object() {
            return read_server(&place, &answer.body);
        }
    }
    Ok(AuthorizationServer {
        issuer: None,
        authorization_endpoint: format!("{origin}/authorize"),
        token_endpoint: format!("{origin}/token"),
        registration_endpoint: Some(format!("{origin}/register")),
        auth_methods: Vec::new(),
        names_itself: false,
    })
}

fn read_server(place: &str, body: &Value) -> Result<AuthorizationServer, LoginError> {
    let wrong = |problem: &str| LoginError::Metadata { url: place.to_owned(), problem: problem.to_owned() };
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| -> Option<Vec<String>> {
        let entries = body.get(key)?.as_array()?;
        Some(entries.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    };
    if !list("code_challenge_methods_supported")
        .is_some_and(|methods| methods.iter().any(|method| method == "S256"))
    {
        return Err(wrong("it does not offer PKCE with S256, without which a login could be stolen"));
    }
    Ok(AuthorizationServer {
        issuer: text("issuer"),
        authorization_endpoint: text("authorization_endpoint")
            .ok_or_else(|| wrong("it has no authorization_endpoint"))?,
        token_endpoint: text("token_endpoint").ok_or_else(|| wrong("it has no token_endpoint"))?,
        registration_endpoint: text("registration_endpoint"),
        auth_methods: list("token_endpoint_auth_methods_supported").unwrap_or_default(),
        names_itself: body.get("authorization_response_iss_parameter_supported") == Some(&Value::Bool(true)),
    })
}

/// Before the user is sent there. Resolved addresses are checked on each request.
fn check_endpoints(fetcher: &Fetcher, server: &AuthorizationServer) -> Result<(), LoginError> {
    let AuthorizationServer { authorization_endpoint, token_endpoint, registration_endpoint, .. } = server;
    let endpoints = [Some(authorization_endpoint), Some(token_endpoint), registration_endpoint.as_ref()];
    for endpoint in endpoints.into_iter().flatten() {
        fetcher.rule.check_form(ISSUER, endpoint)?;
    }
    Ok(())
}

/// Whether a login is offered, for a list of servers: metadata with both endpoints, from any issuer.
pub(super) async fn offers_login(fetcher: &Fetcher, url: &Uri) -> bool {
    let challenge = Challenge::default();
    match protected_resource(fetcher, url, &challenge).await {
        Ok(Some(resource)) => of_issuer(fetcher, &resource.issuer).await.is_ok(),
        // The default addresses of older servers are only a guess.
        Ok(None) => of_older_server(fetcher, url).await.is_ok_and(|server| server.issuer.is_some()),
        Err(_) => false,
    }
}
