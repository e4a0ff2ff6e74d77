//! Model servers that offer themselves on this machine, where nobody chose a provider.

use std::collections::BTreeMap;

use runtime::config::ProviderConfig;

use crate::terminal::clean_line;

/// The provider of this id, unless another user of this machine listens at its address. That user would read the prompts
/// and say what to run, so the provider has to be named.
pub(crate) fn offered<'a>(
    known: &'a BTreeMap<String, ProviderConfig>,
    id: &str,
) -> Option<&'a ProviderConfig> {
    let provider = known.get(id)?;
    let address = provider.base_url.as_deref()?;
    if let Some(uid) = access::foreign_server(address) {
        let (address, id) = (clean_line(address), clean_line(id));
        eprintln!(
            "oarlock: the server at {address} is not asked for models: it belongs to another user of this machine \
             (uid {uid}). If you trust that user, choose it with `--provider {id}`."
        );
        return None;
    }
    Some(provider)
}
