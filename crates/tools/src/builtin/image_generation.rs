//! `image_generation`: images that the provider makes. The runtime saves them.

use engine::{ToolKind, ToolOutcome};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {}

/// Runs at the provider within a response; the result is one of the provider's items.
#[derive(Debug, Clone, Copy)]
pub struct ImageGeneration;

impl BuiltinTool for ImageGeneration {
    const NAME: &'static str = "image_generation";
    const ABOUT: &'static str = "Make a picture.";
    const KIND: ToolKind = ToolKind::Hosted;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.image_generation)
    }

    fn spec(_: &Offer) -> Value {
        json!({"type": Self::NAME, "output_format": "png"})
    }

    /// Never offered as a function, so only a mistaken call gets here.
    async fn call(&self, _: Args, _: &ToolCx) -> Result<ToolOutcome, ToolError> {
        Err(ToolError::UnknownFunction(Self::NAME.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    #[test]
    fn it_is_offered_if_the_provider_makes_images() {
        let spec = |image_generation: bool| {
            let offer = Offer { image_generation, ..Offer::default() };
            let specs = Registry::builtin().specs(&offer);
            specs.iter().find(|spec| spec.name == "image_generation").and_then(|spec| spec.json.clone())
        };
        assert_eq!(spec(false), None);
        let json = spec(true).expect("offered");
        assert_eq!(*json, json!({"type": "image_generation", "output_format": "png"}));
    }
}
