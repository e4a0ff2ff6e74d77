//! Deprecated settings that are in use.

use std::collections::{BTreeMap, BTreeSet};

use super::Sources;
use crate::Deprecation;
use crate::features::Feature;

impl Sources<'_> {
    pub(super) fn deprecations(&self) -> Vec<Deprecation> {
        let (keys, profile) = (self.keys, &self.profile);
        let listed = [&keys.features, &profile.features].into_iter().flatten().flat_map(BTreeMap::keys);
        let unified_exec =
            keys.experimental_use_unified_exec_tool.or(profile.experimental_use_unified_exec_tool);
        let freeform =
            keys.experimental_use_freeform_apply_patch.or(profile.experimental_use_freeform_apply_patch);
        let older = [
            ("experimental_use_unified_exec_tool", unified_exec),
            ("experimental_use_freeform_apply_patch", freeform),
            ("include_apply_patch_tool", profile.include_apply_patch_tool),
        ];
        let older = older.into_iter().filter_map(|(name, set)| set.map(|_| name));
        let names: BTreeSet<&str> = listed.map(String::as_str).chain(older).collect();
        let instructions = [&keys.experimental_instructions_file, &profile.experimental_instructions_file];
        let is_ignored = instructions.into_iter().any(Option::is_some);
        let ignored = is_ignored.then(|| Deprecation {
            summary: "`experimental_instructions_file` is deprecated and has no effect.".to_owned(),
            details: "Name the file in `model_instructions_file`.".to_owned(),
        });
        names.into_iter().filter_map(of_flag).chain(ignored).collect()
    }
}

fn of_flag(name: &str) -> Option<Deprecation> {
    let newer = Feature::newer_name(name);
    if matches!(newer.unwrap_or(name), "web_search_request" | "web_search_cached") {
        return Some(Deprecation {
            summary: format!("`[features].{name}` is deprecated: web search needs no flag any more."),
            details: "Set `web_search` to \"live\", \"cached\" or \"disabled\", outside of `[features]`."
                .to_owned(),
        });
    }
    newer.map(|newer| Deprecation {
        summary: format!("`[features].{name}` is deprecated: the flag is called `[features].{newer}` now."),
        details: format!("Write `{newer}` in its place, under `[features]`."),
    })
}
