//! The exported schemas: the same in every run, whole in themselves, and without what stable clients must not see.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeSet;

use oarlock_protocol_export::{File, Surface, json_schema};
use protocol::{
    CLIENT_NOTIFICATIONS, CLIENT_REQUESTS, Method, MethodStage, SERVER_NOTIFICATIONS, SERVER_REQUESTS,
};
use serde_json::Value;

const SURFACES: [Surface; 2] = [Surface::Stable, Surface::Experimental];

fn parse(file: &File) -> Value {
    serde_json::from_str(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path))
}

fn methods() -> impl Iterator<Item = &'static Method> {
    [CLIENT_REQUESTS, SERVER_REQUESTS, SERVER_NOTIFICATIONS, CLIENT_NOTIFICATIONS].into_iter().flatten()
}

/// All strings in all files of a surface: names of fields, words of enums, methods.
fn words(surface: Surface) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for file in json_schema(surface) {
        collect(&parse(&file), &mut words);
    }
    words
}

fn collect(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::String(word) => {
            words.insert(word.clone());
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, words)),
        Value::Object(fields) => {
            words.extend(fields.keys().cloned());
            fields.values().for_each(|field| collect(field, words));
        }
        _ => {}
    }
}

#[test]
fn two_runs_write_the_same_bytes() {
    for surface in SURFACES {
        assert!(json_schema(surface) == json_schema(surface), "{surface:?} differs between two runs");
    }
}

#[test]
fn every_reference_resolves() {
    for file in SURFACES.into_iter().flat_map(json_schema) {
        let document = parse(&file);
        let mut references = BTreeSet::new();
        find_references(&document, &mut references);
        for reference in references {
            let pointer = reference
                .strip_prefix('#')
                .unwrap_or_else(|| panic!("{}: {reference} leaves the file", file.path));
            assert!(document.pointer(pointer).is_some(), "{}: {reference} leads nowhere", file.path);
        }
    }
}

fn find_references(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| find_references(element, references)),
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| find_references(field, references));
        }
        _ => {}
    }
}

#[test]
fn the_stable_surface_shows_stable_and_listed_methods_alone() {
    let stable = words(Surface::Stable);
    let all = words(Surface::Experimental);
    // A name counts as shown when any table shows it: `model/streamEvent` is in two.
    for method in methods() {
        let shown =
            methods().any(|other| other.name == method.name && other.stage != MethodStage::Experimental);
        assert_eq!(stable.contains(method.name), shown, "{} in the stable surface", method.name);
        assert!(all.contains(method.name), "{} in the experimental surface", method.name);
    }
}

/// Fields, variants and types that only experimental connections use.
const HIDDEN: [&str; 30] = [
    "sdkDelegation",
    "dynamicTools",
    "mockExperimentalField",
    "experimentalRawEvents",
    "persistExtendedHistory",
    "builtinTools",
    "manualToolExecution",
    "hostDelegation",
    "rolloutOwnership",
    "initialItems",
    "turnHistory",
    "resolvedOperations",
    "toolSet",
    "environments",
    "additionalContext",
    "collaborationMode",
    "additionalPermissions",
    "skillMetadata",
    "availableDecisions",
    "operationId",
    "argumentsDigest",
    "acceptWithCommandOverride",
    "acceptWithArguments",
    "rateLimitExceeded",
    "sessionBudgetExceeded",
    "modelNotFound",
    "ThreadDelegation",
    "RolloutItem",
    "NetworkRequirements",
    "AppsConfig",
];

/// Experimental in use, but known to stable clients.
const LISTED: [&str; 4] = ["granular", "chatgptAuthTokens", "approvals_reviewer", "thread/realtime/started"];

#[test]
fn the_stable_surface_hides_experimental_fields_and_keeps_listed_ones() {
    let stable = words(Surface::Stable);
    let all = words(Surface::Experimental);
    for word in HIDDEN {
        assert!(!stable.contains(word), "{word} is in the stable surface");
        assert!(all.contains(word), "{word} is not in the experimental surface");
    }
    for word in LISTED {
        assert!(stable.contains(word), "{word} is missing from the stable surface");
    }
}

#[test]
fn the_marks_of_the_gate_stay_inside() {
    for surface in SURFACES {
        assert!(!words(surface).contains("x-experimental"), "{surface:?} shows the mark");
    }
}

#[test]
fn paths_are_unique_and_relative() {
    for surface in SURFACES {
        let files = json_schema(surface);
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), files.len());
        for path in paths {
            let plain = path.split('/').all(|part| !part.is_empty() && part != "..");
            assert!(plain && path.ends_with(".json"), "{path}");
        }
    }
}
