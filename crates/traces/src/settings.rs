//! Where spans go, by the variables that OpenTelemetry has for it.

use data_encoding::HEXLOWER_PERMISSIVE;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// The only protocol that is spoken.
const PROTOCOL: &str = "http/json";

/// The collector, and what it is told of this process.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    pub(crate) endpoint: Uri,
    /// Those of every request. Values of the user's own are marked as sensitive.
    pub(crate) headers: HeaderMap,
    /// Words about this process.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) version: &'static str,
}

/// The value of an environment variable.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

impl TraceSettings {
    /// All that `of_environment` looks at.
    pub const VARIABLES: &[&str] = &[
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_SDK_DISABLED",
        "OTEL_SERVICE_NAME",
        "OTEL_TRACES_EXPORTER",
    ];

    /// By the variables of this process.
    #[must_use]
    pub fn of_environment(component: &'static str, version: &'static str) -> Option<Self> {
        Self::read(component, version, &|name| std::env::var(name).ok())
    }

    /// Nothing where no collector is named. A variable that cannot be used is one warning, without its value: it may hold
    /// a key.
    #[must_use]
    pub fn read(component: &'static str, version: &'static str, variable: Variable<'_>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        // What is said of traces alone wins.
        let of_traces = |name: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
            let shared = format!("OTEL_EXPORTER_OTLP_{name}");
            set(&own)
                .map(|value| (own, value, true))
                .or_else(|| set(&shared).map(|value| (shared, value, false)))
        };
        let (name, address, is_whole) = of_traces("ENDPOINT")?;
        if set("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").as_deref() == Some("none")
        {
            return None;
        }
        let Some(endpoint) = endpoint(&address, is_whole) else {
            tracing::warn!(
                "{name} is no address of a collector, and no traces are sent; write it like http://localhost:4318, \
                 and a login into OTEL_EXPORTER_OTLP_HEADERS"
            );
            return None;
        };
        if let Some((name, protocol, _)) = of_traces("PROTOCOL")
            && protocol.trim() != PROTOCOL
        {
            tracing::warn!(
                "{name}: traces are sent as {PROTOCOL}, whatever it says; give the collector's port for HTTP"
            );
        }
        let mut headers = HeaderMap::new();
        if let Some((name, text, _)) = of_traces("HEADERS") {
            let unusable = pairs(&text).filter_map(|pair| add_header(&mut headers, pair).err()).count();
            if unusable > 0 {
                tracing::warn!("{name}: what is no header is left out; write it like NAME=VALUE,NAME=VALUE");
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let text = set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut resource: Vec<(String, String)> = pairs(&text).flatten().collect();
        if let Some(name) = set("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".to_owned(), name));
        } else if !resource.iter().any(|(key, _)| key == "service.name") {
            resource.push(("service.name".to_owned(), format!("oarlock-{component}")));
        }
        resource.push(("oarlock.component".to_owned(), component.to_owned()));
        Some(Self { endpoint, headers, resource, version })
    }
}

fn endpoint(address: &str, is_whole: bool) -> Option<Uri> {
    let address = address.trim();
    let address = match is_whole {
        true => address.to_owned(),
        false => format!("{}/v1/traces", address.trim_end_matches('/')),
    };
    let url: Uri = address.parse().ok()?;
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let has_login = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    (is_web && url.host().is_some_and(|host| !host.is_empty()) && !has_login).then_some(url)
}

/// `NAME=VALUE,NAME=VALUE`, values with `%` and two digits for bytes that would have another meaning. `None` for what is
/// no pair.
fn pairs(text: &str) -> impl Iterator<Item = Option<(String, String)>> {
    text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), decoded(value.trim())?))
    })
}

fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let [byte, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *byte == b'%');
        match digits.and_then(|digits| HEXLOWER_PERMISSIVE.decode(digits).ok()) {
            Some(decoded) => {
                bytes.extend(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

struct NoHeader;

fn add_header(headers: &mut HeaderMap, pair: Option<(String, String)>) -> Result<(), NoHeader> {
    let (name, value) = pair.ok_or(NoHeader)?;
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| NoHeader)?;
    let mut value = HeaderValue::from_str(&value).map_err(|_| NoHeader)?;
    value.set_sensitive(true);
    headers.append(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<TraceSettings> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        TraceSettings::read("host", "1", &find)
    }

    fn address(variables: &[(&str, &str)]) -> Option<String> {
        read(variables).map(|settings| settings.endpoint.to_string())
    }

    #[test]
    fn traces_go_to_the_endpoint_that_is_named_and_nowhere_without_one() {
        const SHARED: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const OWN: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        assert_eq!(address(&[]), None);
        assert_eq!(address(&[(SHARED, " "), ("OTEL_SERVICE_NAME", "x")]), None);
        assert_eq!(address(&[(SHARED, "http://a:4318/")]).as_deref(), Some("http://a:4318/v1/traces"));
        assert_eq!(address(&[(SHARED, "https://a/b")]).as_deref(), Some("https://a/b/v1/traces"));
        let both = [(SHARED, "http://a:1"), (OWN, "http://b:2/traces")];
        assert_eq!(address(&both).as_deref(), Some("http://b:2/traces"));
        for bad in ["localhost:4318", "grpc://a:1", "http://", "not an address", "http://u:p@a:1", "/v1"] {
            assert_eq!(address(&[(SHARED, bad)]), None, "{bad}");
        }
        for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(address(&[(SHARED, "http://a:1"), off]), None, "{off:?}");
        }
        assert!(address(&[(SHARED, "http://a:1"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_some());
    }

    #[test]
    fn headers_are_sent_as_they_are_meant_and_shown_nowhere() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1");
        let text =
            "authorization=Bearer%20planted, x-two=a=b,bad header=1,nothing,content-type=text/plain,half=5%";
        let settings = read(&[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", text)]).expect("settings");
        assert!(!format!("{settings:?}").contains("planted"));
        let of = |name: &str| settings.headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(of("authorization"), Some("Bearer planted"));
        assert_eq!((of("x-two"), of("half")), (Some("a=b"), Some("5%")));
        assert_eq!(of("content-type"), Some("application/json"));
        assert_eq!(settings.headers.len(), 4);
    }

    #[test]
    fn a_process_has_a_name() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1");
        let named = |more: &[(&str, &str)]| {
            let settings = read(&[&[endpoint], more].concat()).expect("settings");
            settings
                .resource
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a%2Cb,deployment.environment=test");
        assert_eq!(named(&[]), "service.name=oarlock-host oarlock.component=host");
        assert_eq!(
            named(&[attributes]),
            "service.name=a,b deployment.environment=test oarlock.component=host"
        );
        assert_eq!(
            named(&[attributes, ("OTEL_SERVICE_NAME", "mine")]),
            "deployment.environment=test service.name=mine oarlock.component=host"
        );
    }
}
