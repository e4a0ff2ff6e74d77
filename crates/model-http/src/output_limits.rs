//! Limits of an answer's length, which the messages wire requires in every request.

use std::time::Duration;

use http::Client;
use parking_lot::Mutex;
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::model_list;

/// A turn waits no longer for this, and then uses the limit for the model's name.
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_MODELS: usize = 64;
/// A smaller number is not a limit of answers.
const LEAST: u64 = 256;

/// The limits of the provider's models, from `GET …/models/{id}`. Requested once per model, whatever the result.
#[derive(Debug, Default)]
pub(crate) struct OutputLimits(Mutex<Vec<(String, Option<u32>)>>);

impl OutputLimits {
    pub(crate) async fn of(&self, model: &str, endpoint: &Endpoint, client: &Client) -> Option<u32> {
        if let Some(known) = self.known(model) {
            return known;
        }
        let path = endpoint.model_path(model);
        let answer = model_list::get(endpoint, client, &path, PATIENCE).await.ok();
        let limit = answer.and_then(|answer| read(&answer));
        let mut kept = self.0.lock();
        if kept.len() >= MOST_MODELS {
            kept.remove(0);
        }
        kept.push((model.to_owned(), limit));
        limit
    }

    fn known(&self, model: &str) -> Option<Option<u32>> {
        let kept = self.0.lock();
        kept.iter().find(|(known, _)| known == model).map(|(_, limit)| *limit)
    }
}

fn read(answer: &Value) -> Option<u32> {
    let limit = ["max_tokens", "max_output_tokens"].into_iter().find_map(|name| answer[name].as_u64())?;
    u32::try_from(limit).ok().filter(|_| limit >= LEAST)
}
