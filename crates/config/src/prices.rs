//! `[prices]`: what tokens cost, so that a turn can say what it cost.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The prices of models, by name. A name stands for all that begin with it; the longest that fits counts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

/// For a million tokens each, in US dollars or whatever the user counts in.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Input that the provider had cached. Unset: as other input.
    pub cached_input: Option<f64>,
    /// Input that the provider wrote into its cache. Unset: as other input.
    pub cache_write: Option<f64>,
}

impl Prices {
    pub fn of(&self, model: &str) -> Option<Price> {
        let known = self.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        known.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }

    /// Why the table cannot be used.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.iter().find_map(|(name, price)| {
            let Price { input, output, cached_input, cache_write } = *price;
            let amounts = [Some(input), Some(output), cached_input, cache_write];
            let is_fine = amounts.into_iter().flatten().all(|amount| amount.is_finite() && amount >= 0.0);
            (!is_fine).then(|| format!("prices.\"{name}\": an amount must be a number from 0 up"))
        })
    }
}
