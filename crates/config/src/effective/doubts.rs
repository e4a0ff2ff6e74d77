//! Keys without effect: misspelt ones, and those of disabled or missing features. The user gets a warning, with the
//! most similar known key.

use std::ops::Range;
use std::path::Path;

use protocol::ExperimentalFeatureStage as Stage;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use crate::features::{Feature, Features, WITHOUT_EFFECT};
use crate::known_keys::{ABSENT, OF_FEATURES, known_in};
use crate::loader::Layers;
use crate::typed::nearest;
use crate::{ConfigError, Home, Review, SettingWarning, SettingsLayer};

/// Warnings about settings that have no effect, in all layers.
pub(super) fn doubts(layers: &Layers, features: &Features, home: &Home) -> Vec<SettingWarning> {
    let mut found: Vec<SettingWarning> = layers.reviews.iter().flat_map(of_review).collect();
    for layer in layers.layers.iter().filter(|layer| layer.is_enabled()) {
        let mut paths = Vec::new();
        unknown(&layer.table, &mut Vec::new(), &mut paths);
        found.extend(paths.into_iter().map(|(path, near)| {
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            warning(layer, &path, format!("`{}` is not a known key{near}", path.join(".")))
        }));
        let removed = |feature: &Feature| feature.stage == Stage::Removed;
        found.extend(idle_flags(layer, removed, "there is no such switch any more"));
        found.extend(without_feature(layer, features));
        // In a folder shared with another program, that program's keys are expected.
        if home.reading() == home.state() {
            found.extend(absent(layer));
            let inert = |feature: &Feature| WITHOUT_EFFECT.contains(&feature.key);
            found.extend(idle_flags(layer, inert, "there is nothing of that kind in this program"));
        }
    }
    found
}

/// Unknown keys of a project have no effect, like unreviewed ones, and are listed with those; this suggests
/// corrections.
fn of_review(review: &Review) -> Vec<SettingWarning> {
    let keys = review.asked.iter().filter_map(|line| line.split_once(" = ").map(|(key, _)| key));
    let told = |problem: String| {
        SettingWarning::with_details(problem, review.settings.join("config.toml").display().to_string())
    };
    keys.filter_map(key_problem).filter(|problem| problem.contains("did you mean")).map(told).collect()
}

/// All of them as one error, if `strict_config` is on.
pub(super) fn refusal(doubts: &[SettingWarning]) -> Option<ConfigError> {
    let sentence = |doubt: &SettingWarning| match &doubt.details {
        Some(place) => format!("{} ({place})", doubt.summary),
        None => doubt.summary.clone(),
    };
    let told = doubts.iter().map(sentence).collect::<Vec<_>>().join("; ");
    (!doubts.is_empty()).then(|| ConfigError::value(format!("{told}; strict_config is set")))
}

/// Every path to an unknown key, with the most similar known one.
fn unknown(table: &Table, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Option<String>)>) {
    let known = known_in(path);
    for (key, value) in table {
        path.push(key.clone());
        match (&known, value) {
            (Some(known), _) if !known.contains(&key.as_str()) => {
                let near = nearest(key, known.iter().copied()).map(str::to_owned);
                found.push((path.clone(), near));
            }
            (_, Value::Table(inner)) => unknown(inner, path, found),
            // Tables in a list are checked individually.
            (_, Value::Array(list)) => {
                list.iter().filter_map(Value::as_table).for_each(|inner| unknown(inner, path, found));
            }
            _ => {}
        }
        path.pop();
    }
}

/// Why a dotted key has no effect, if it has none.
pub fn key_problem(key: &str) -> Option<String> {
    let parts: Vec<String> = key.split('.').map(str::to_owned).collect();
    for (at, part) in parts.iter().enumerate() {
        let Some(known) = known_in(&parts[..at]) else { continue };
        if !known.contains(&part.as_str()) {
            let near = nearest(part, known).map(|near| {
                let near: Vec<&str> = parts[..at].iter().map(String::as_str).chain([near]).collect();
                format!("; did you mean `{}`?", near.join("."))
            });
            return Some(format!("`{key}` is not a known key{}", near.unwrap_or_default()));
        }
    }
    None
}

/// Flags with a value that has no effect.
fn idle_flags(
    layer: &SettingsLayer,
    is_idle: impl Fn(&Feature) -> bool,
    reason: &str,
) -> Vec<SettingWarning> {
    let flags = layer.table.get("features").and_then(Value::as_table).into_iter().flatten();
    let differing = flags.filter(|(key, value)| {
        Feature::find(key)
            .is_some_and(|feature| is_idle(feature) && value.as_bool() != Some(feature.default_enabled))
    });
    let warn = |(key, _): (&String, &Value)| {
        let path = ["features".to_owned(), key.clone()];
        warning(layer, &path, format!("`features.{key}` has no effect: {reason}"))
    };
    differing.map(warn).collect()
}

fn without_feature(layer: &SettingsLayer, features: &Features) -> Vec<SettingWarning> {
    let set = OF_FEATURES.iter().filter(|(key, feature)| {
        layer.table.get(*key).is_some_and(|value| !is_empty(value)) && !features.enabled(feature)
    });
    let told = |(key, feature): &(&str, &str)| {
        let text = format!(
            "`{key}` has no effect while the feature `{feature}` is off; `--enable {feature}` switches it on"
        );
        warning(layer, &[(*key).to_owned()], text)
    };
    set.map(told).collect()
}

/// One warning for all of them, including those of profiles: a file for another program has many.
fn absent(layer: &SettingsLayer) -> Option<SettingWarning> {
    let mut set: Vec<Vec<String>> = Vec::new();
    let mut look = |table: &Table, path: &[&str]| {
        let keys = ABSENT.iter().filter(|key| table.contains_key(**key));
        set.extend(keys.map(|key| path.iter().chain([key]).map(|part| (*part).to_owned()).collect()));
    };
    look(&layer.table, &[]);
    let profiles = layer.table.get("profiles").and_then(Value::as_table).into_iter().flatten();
    for (name, profile) in profiles.filter_map(|(name, profile)| Some((name, profile.as_table()?))) {
        look(profile, &["profiles", name]);
    }
    let first = set.first()?;
    let names = Vec::from_iter(set.iter().map(|path| path.join("."))).join("`, `");
    let verb = if set.len() == 1 { "has" } else { "have" };
    let text = format!("`{names}` {verb} no effect: there is nothing of that kind in this program");
    Some(warning(layer, first, text))
}

fn is_empty(value: &Value) -> bool {
    value.as_table().is_some_and(Table::is_empty)
}

/// With the position of the key in its file.
fn warning(layer: &SettingsLayer, path: &[String], summary: String) -> SettingWarning {
    let Some((file, text)) = layer.file().zip(layer.text()) else {
        return SettingWarning::with_details(summary, "-c, or the settings of a request");
    };
    let error = ConfigError::invalid(file, text, key_span(text, path).unwrap_or(0..0), String::new());
    let place = error.to_warning(summary);
    SettingWarning { details: Some(place_name(file, &place)), ..place }
}

fn place_name(file: &Path, warning: &SettingWarning) -> String {
    match &warning.range {
        Some(range) => format!("{}:{}:{}", file.display(), range.start.line, range.start.column),
        None => file.display().to_string(),
    }
}

/// The position of the last key. Of tables in a list, the first that has it.
fn key_span(text: &str, path: &[String]) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    span_in(document.get_ref(), path)
}

fn span_in(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (key, rest) = path.split_first()?;
    if rest.is_empty() {
        return table.get_key_value(key.as_str()).map(|(key, _)| key.span());
    }
    match table.get(key.as_str())?.get_ref() {
        DeValue::Table(inner) => span_in(inner, rest),
        DeValue::Array(list) => list.iter().find_map(|element| match element.get_ref() {
            DeValue::Table(inner) => span_in(inner, rest),
            _ => None,
        }),
        _ => None,
    }
}
