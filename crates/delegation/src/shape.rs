//! Adapts the model's tools and abilities to the host's provider.

use protocol::{InputModality, ModelCapabilities, WebSearchMode};
use tools::{Offer, PatchForm, ShellForm};

use catalogue::{ApplyPatchType, ModelEntry};

/// Removes abilities that the provider lacks.
pub fn shape(entry: &mut ModelEntry, capabilities: &ModelCapabilities) {
    if let Some(window) = capabilities.context_window {
        // The host knows its provider better than the catalogue does.
        entry.context_window = Some(i64::try_from(window).unwrap_or(i64::MAX));
    }
    entry.supports_parallel_tool_calls &= capabilities.parallel_tool_calls && capabilities.tools;
    if !capabilities.freeform_tools && entry.apply_patch.is_some() {
        entry.apply_patch = Some(ApplyPatchType::Function);
    }
    if !capabilities.images_in {
        entry.input_modalities.retain(|modality| *modality != InputModality::Image);
    }
}

/// Removes or changes tools that the provider does not support.
pub fn shape_offer(offer: &mut Offer, capabilities: &ModelCapabilities) {
    let has = |hosted: &str| capabilities.hosted_tools.iter().any(|tool| tool == hosted);
    if !capabilities.tools {
        offer.allow = Some(Vec::new());
    }
    if !capabilities.freeform_tools && offer.patch.is_some() {
        offer.patch = Some(PatchForm::Function);
    }
    if !has("web_search") {
        offer.web_search = WebSearchMode::Disabled;
    }
    offer.image_generation &= has("image_generation");
    offer.freeform &= capabilities.freeform_tools;
    offer.tool_search &= has("tool_search");
    if offer.shell == ShellForm::Local && !has("local_shell") {
        offer.shell = ShellForm::Words;
    }
    offer.images &= capabilities.images_in;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use catalogue::Catalogue;

    #[test]
    fn a_limited_provider_gets_fewer_tools() {
        let poor: ModelCapabilities = serde_json::from_value(json!({
            "wire": "chat", "parallelToolCalls": false, "imagesIn": false, "contextWindow": 8_000,
        }))
        .expect("capabilities");
        let mut entry = Catalogue::bundled().lookup("gpt-5.4");
        shape(&mut entry, &poor);
        assert_eq!(entry.context_window, Some(8_000));
        assert!(!entry.supports_parallel_tool_calls && !entry.takes_images());
        assert_eq!(entry.apply_patch, Some(ApplyPatchType::Function));
        let mut offer = Offer {
            shell: ShellForm::Local,
            patch: Some(PatchForm::Freeform),
            web_search: WebSearchMode::Live,
            images: true,
            freeform: true,
            tool_search: true,
            ..Offer::default()
        };
        let full = offer.clone();
        shape_offer(&mut offer, &poor);
        assert_eq!((offer.shell, offer.patch), (ShellForm::Words, Some(PatchForm::Function)));
        assert_eq!((offer.web_search, offer.images, &offer.allow), (WebSearchMode::Disabled, false, &None));
        assert!(!offer.freeform && !offer.tool_search);
        shape_offer(&mut offer, &ModelCapabilities { tools: false, ..poor });
        assert_eq!(offer.allow, Some(Vec::new()));
        let rich: ModelCapabilities = serde_json::from_value(json!({
            "wire": "responses", "freeformTools": true, "hostedTools": ["web_search", "local_shell", "tool_search"],
        }))
        .expect("capabilities");
        let mut offer = full.clone();
        shape_offer(&mut offer, &rich);
        assert_eq!(offer, full);
    }
}
