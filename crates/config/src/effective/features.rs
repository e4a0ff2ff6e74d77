//! The enabled feature flags.

use std::collections::BTreeMap;
use std::path::Path;

use super::Sources;
use crate::features::Feature;
use crate::{Features, SettingWarning};

impl Sources<'_> {
    pub(super) fn features(
        &self,
        runtime: &BTreeMap<String, bool>,
        warnings: &mut Vec<SettingWarning>,
    ) -> Features {
        let mut features = Features::default();
        for (key, enabled) in runtime {
            features.set(key, *enabled);
        }
        let (keys, profile) = (self.keys, &self.profile);
        let older = [
            ("apply_patch_freeform", keys.experimental_use_freeform_apply_patch),
            ("unified_exec", keys.experimental_use_unified_exec_tool),
        ];
        let older_in_profile = [
            ("apply_patch_freeform", profile.include_apply_patch_tool),
            ("apply_patch_freeform", profile.experimental_use_freeform_apply_patch),
            ("unified_exec", profile.experimental_use_unified_exec_tool),
        ];
        let set = |features: &mut Features, flags: &[(&str, Option<bool>)]| {
            flags.iter().for_each(|(key, enabled)| enabled.iter().for_each(|on| features.set(key, *on)));
        };
        set(&mut features, &older);
        features.apply(keys.features.as_ref());
        set(&mut features, &older_in_profile);
        features.apply(profile.features.as_ref());
        features.settle();
        self.pin_features(&mut features, warnings);
        features
    }

    /// Flags that the administrator fixed. Different settings give a warning.
    pub(super) fn pin_features(&self, features: &mut Features, warnings: &mut Vec<SettingWarning>) {
        let set =
            [&self.keys.features, &self.profile.features].into_iter().flatten().flat_map(BTreeMap::keys);
        let explicit: Vec<&str> = set.filter_map(|key| Some(Feature::find(key)?.key)).collect();
        for (key, enabled) in self.requirements.features() {
            if features.enabled(key) != enabled && explicit.contains(&key) {
                let file = self.requirements.features_file().unwrap_or(Path::new("requirements.toml"));
                warnings.push(SettingWarning::with_details(
                    format!("The feature `{key}` is fixed to {enabled}, so the setting has no effect."),
                    format!("It is fixed in {}.", file.display()),
                ));
            }
            features.set(key, enabled);
        }
    }
}
