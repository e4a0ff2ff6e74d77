//! `[prices]`: token prices, for the cost of a turn.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The prices of models, by name. A name matches all models with that prefix; the longest match counts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

/// Per million tokens, in US dollars or another currency of the user's choice.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Input from the provider's cache. Unset: like other input.
    pub cached_input: Option<f64>,
    /// Input written to the provider's cache. Unset: like other input.
    pub cache_write: Option<f64>,
}

impl Prices {
    pub fn of(&self, model: &str) -> Option<Price> {
        let known = self.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        known.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }

    /// Why the table is invalid.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.iter().find_map(|(name, price)| {
            let Price { input, output, cached_input, cache_write } = *price;
            let amounts = [Some(input), Some(output), cached_input, cache_write];
            let is_fine = amounts.into_iter().flatten().all(|amount| amount.is_finite() && amount >= 0.0);
            (!is_fine).then(|| format!("prices.\"{name}\": an amount must be a number from 0 up"))
        })
    }
}
