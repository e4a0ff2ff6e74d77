//! The handshake with a runtime: it must be of this host's release, and do what a host cannot do without.

use rpc::ErrorObject;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::link::RuntimeLink;
use crate::messages::OpenFailure;
use crate::settings::DELEGATION_VERSION;

/// JSON-RPC's code for values that a method refuses.
const INVALID_PARAMS: i64 = -32602;
/// The features that a host cannot do without.
const NEEDED_FEATURES: [&str; 5] = ["modelTransport", "clientRollout", "operations", "suspend", "toolSet"];
/// Agreed where commands run as another user than the runtime.
const COMMAND_USER: &str = "commandUser";

/// Whether commands run as another user than the runtime.
pub(crate) async fn greet(link: &RuntimeLink, version: &str) -> Result<bool, OpenFailure> {
    let features: Vec<&str> = NEEDED_FEATURES.into_iter().chain([COMMAND_USER]).collect();
    let params = json!({
        "clientInfo": { "name": "oarlock_host", "title": null, "version": version },
        "capabilities": {
            "experimentalApi": true,
            "hostDelegation": { "versions": [DELEGATION_VERSION], "features": features },
        },
    });
    let answer: Value = link.call("initialize", &params).await?;
    let agent = answer["userAgent"].as_str().unwrap_or_default();
    if !agent.contains(&format!(" oarlock/{version} ")) {
        return Err(mismatch(&format!("this host is of version {version}, the runtime is `{agent}`")));
    }
    let agreed = &answer["capabilities"]["hostDelegation"];
    let has = |feature: &str| {
        agreed["features"].as_array().is_some_and(|all| all.iter().any(|agreed| agreed == feature))
    };
    let missing: Vec<&str> = NEEDED_FEATURES.into_iter().filter(|feature| !has(feature)).collect();
    if !missing.is_empty() {
        return Err(mismatch(&format!("the runtime does not do {}", missing.join(", "))));
    }
    link.notify("initialized");
    Ok(has(COMMAND_USER))
}

/// Another release answers: trying again changes nothing.
pub(crate) fn mismatch(problem: &str) -> OpenFailure {
    coded_failure("runtimeMismatch", format!("runtimeMismatch: {problem}"))
}

pub(crate) fn coded_failure(code: &str, message: String) -> OpenFailure {
    let data = to_raw_value(&json!({ "code": code })).ok();
    OpenFailure {
        refusal: Some(ErrorObject { code: INVALID_PARAMS, message: message.clone(), data }),
        message,
    }
}
