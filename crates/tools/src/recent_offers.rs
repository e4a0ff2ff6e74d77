//! Caches the tool specifications of recent offers. Nearly every step is offered the same tools, and building their
//! schemas takes most of a turn's start time.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

use engine::ToolSpec;

use crate::offer::Offer;

/// The number of cached offers: a few models, modes and roles differ at a time.
const KEPT: usize = 16;

/// Shared by all clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentOffers(Arc<Mutex<VecDeque<RecentOffer>>>);

#[derive(Debug)]
struct RecentOffer {
    offer: Offer,
    specs: Vec<ToolSpec>,
}

impl RecentOffers {
    /// The specs of an offer, built only on a cache miss.
    pub(crate) fn specs(&self, offer: &Offer, make: impl FnOnce() -> Vec<ToolSpec>) -> Vec<ToolSpec> {
        if let Some(known) = self.find(offer) {
            return known;
        }
        // Built without the lock, so that others need not wait.
        let specs = make();
        let mut recent = self.0.lock();
        recent.truncate(KEPT - 1);
        recent.push_front(RecentOffer { offer: offer.clone(), specs: specs.clone() });
        specs
    }

    fn find(&self, offer: &Offer) -> Option<Vec<ToolSpec>> {
        let mut recent = self.0.lock();
        let at = recent.iter().position(|known| known.offer == *offer)?;
        // Least recently used offers are evicted first.
        let known = recent.remove(at)?;
        let specs = known.specs.clone();
        recent.push_front(known);
        Some(specs)
    }
}

#[cfg(test)]
mod tests {
    use crate::Registry;

    use super::*;

    fn denying(name: &str) -> Offer {
        Offer { deny: vec![name.to_owned()], ..Offer::default() }
    }

    #[test]
    fn an_offer_is_built_once() {
        let recent = RecentOffers::default();
        let made = |offer: &Offer| {
            let mut is_made = false;
            recent.clone().specs(offer, || {
                is_made = true;
                Vec::new()
            });
            is_made
        };
        assert!(made(&denying("0")));
        assert!(!made(&denying("0")));
        for other in 1..KEPT {
            assert!(made(&denying(&other.to_string())), "{other}");
        }
        assert!(!made(&denying("0")), "asked for, so kept");
        assert!(made(&denying("one too many")));
        assert!(made(&denying("1")), "not asked for since");
        assert!(!made(&denying("0")));
    }

    #[test]
    fn another_offer_gets_its_own_specs() {
        let registry = Registry::builtin();
        let offers =
            [Offer::default(), denying("update_plan"), Offer { has_environment: false, ..Offer::default() }];
        for offer in offers.iter().chain(&offers) {
            let shown = |specs: Vec<ToolSpec>| {
                specs.into_iter().map(|spec| (spec.name, spec.json, spec.parallel)).collect::<Vec<_>>()
            };
            assert_eq!(shown(registry.specs(offer)), shown(Registry::builtin().specs(offer)));
        }
    }
}
