//! `web_search`: the provider's own search. The runtime only configures it.

use engine::{ToolKind, ToolOutcome};
use protocol::{WebSearchMode, WebSearchToolConfig};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {}

/// Runs at the provider within a response; the result is one of the provider's items.
#[derive(Debug, Clone, Copy)]
pub struct WebSearch;

impl BuiltinTool for WebSearch {
    const NAME: &'static str = "web_search";
    const ABOUT: &'static str = "Search the web.";
    const KIND: ToolKind = ToolKind::Hosted;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.web_search != WebSearchMode::Disabled)
    }

    fn spec(offer: &Offer) -> Value {
        let mut spec = Map::new();
        spec.insert("type".to_owned(), json!(Self::NAME));
        spec.insert("external_web_access".to_owned(), json!(offer.web_search == WebSearchMode::Live));
        if let Some(options) = &offer.web_search_options {
            add_options(&mut spec, options);
        }
        if offer.web_search_images {
            spec.insert("search_content_types".to_owned(), json!(["text", "image"]));
        }
        Value::Object(spec)
    }

    /// Never offered as a function, so only a mistaken call gets here.
    async fn call(&self, _: Args, _: &ToolCx) -> Result<ToolOutcome, ToolError> {
        Err(ToolError::UnknownFunction(Self::NAME.to_owned()))
    }
}

fn add_options(spec: &mut Map<String, Value>, options: &WebSearchToolConfig) {
    if let Some(domains) = &options.allowed_domains {
        spec.insert("filters".to_owned(), json!({"allowed_domains": domains}));
    }
    if let Some(location) = &options.location {
        let parts = [
            ("country", &location.country),
            ("region", &location.region),
            ("city", &location.city),
            ("timezone", &location.timezone),
        ];
        let known = parts.into_iter().filter_map(|(key, part)| Some((key.to_owned(), json!(part.as_ref()?))));
        let mut place = Map::from_iter([("type".to_owned(), json!("approximate"))]);
        place.extend(known);
        spec.insert("user_location".to_owned(), Value::Object(place));
    }
    if let Some(size) = &options.context_size {
        spec.insert("search_context_size".to_owned(), json!(size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    fn check(offer: &Offer, expected: Option<&Value>) {
        let specs = Registry::builtin().specs(offer);
        let spec = specs.iter().find(|spec| spec.name == "web_search");
        assert_eq!(spec.and_then(|spec| spec.json.as_deref()), expected);
        assert!(spec.is_none_or(|spec| spec.kind == ToolKind::Hosted && !spec.parallel));
    }

    #[test]
    fn the_mode_decides_whether_and_how_far_it_reaches() {
        let offer = |web_search| Offer { web_search, ..Offer::default() };
        check(&offer(WebSearchMode::Disabled), None);
        let cached = json!({"type": "web_search", "external_web_access": false});
        check(&offer(WebSearchMode::Cached), Some(&cached));
        check(&offer(WebSearchMode::Live), Some(&json!({"type": "web_search", "external_web_access": true})));
    }

    #[test]
    fn options_are_passed_on() {
        let options = |options| Offer {
            web_search: WebSearchMode::Live,
            web_search_options: Some(serde_json::from_value(options).expect("options")),
            web_search_images: true,
            ..Offer::default()
        };
        check(
            &options(json!({"context_size": "high", "allowed_domains": ["a.example"],
                            "location": {"country": "PT", "region": null, "city": "Porto", "timezone": null}})),
            Some(&json!({
                "type": "web_search",
                "external_web_access": true,
                "filters": {"allowed_domains": ["a.example"]},
                "user_location": {"type": "approximate", "country": "PT", "city": "Porto"},
                "search_context_size": "high",
                "search_content_types": ["text", "image"],
            })),
        );
        check(
            &options(json!({"context_size": null, "allowed_domains": null, "location": null})),
            Some(&json!({
                "type": "web_search",
                "external_web_access": true,
                "search_content_types": ["text", "image"],
            })),
        );
    }
}
