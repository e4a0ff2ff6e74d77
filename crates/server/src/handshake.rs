//! `initialize`: who the client is, and what it is told about the server.

use std::sync::OnceLock;

use protocol::{
    ConfigWarning, DelegationFeature, ExperimentalGate, HostDelegationAgreed, InitializeParams,
    InitializeResponse, NotificationMethod, ServerCapabilities, ServerNotification,
};
use rpc::shorten;
use runtime::{DELEGATION_FEATURES, DELEGATION_VERSION};
use serde_json::value::RawValue;

use crate::hub::{ClientConnection, ClientProfile};
use crate::options::ServerOptions;
use crate::reply::ReplyTo;
use crate::router::{gate, object};
use crate::user_agent::{System, is_header_value, originator, user_agent};
use crate::wire_error::WireError;

/// The part of the `initialize` answer that is the same for every connection.
#[derive(Debug)]
pub(crate) struct Greeting {
    system: System,
    /// Of the whole process: the first client's, unless something else was asked for.
    originator: OnceLock<String>,
}

impl Greeting {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        let originator = OnceLock::new();
        if let Some(name) = options.originator.as_ref().filter(|name| is_header_value(name)) {
            let _ = originator.set(name.clone());
        }
        Self { system: System::of_this_machine(), originator }
    }

    fn user_agent(&self, name: &str, version: &str) -> String {
        let originator = self.originator.get_or_init(|| originator(name).to_owned());
        user_agent(originator, &self.system, name, version)
    }
}

/// Reads the params. The capability that a field needs may be in the same message. Who `is_known` cannot say again who
/// it is.
pub(crate) fn read(params: Option<&RawValue>, is_known: bool) -> Result<InitializeParams, WireError> {
    let params: InitializeParams = protocol::decode(object::<InitializeParams>(params)?)?;
    if is_known {
        return Err(WireError::already_initialized());
    }
    gate(&params, is_experimental(&params))?;
    let name = &params.client_info.name;
    if !is_header_value(name) {
        let name = shorten(name, 64);
        let message = format!("Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value.");
        return Err(WireError::invalid_request(message));
    }
    Ok(params)
}

fn is_experimental(params: &InitializeParams) -> bool {
    params.capabilities.as_ref().is_some_and(|capabilities| capabilities.experimental_api)
}

/// Capabilities beyond the stock protocol that both the client and this server have. A host that finds less than it
/// needs, or nothing, must stop.
pub(crate) fn agree(params: &InitializeParams, runtime_instance_id: &str) -> Option<ServerCapabilities> {
    let offer = params.capabilities.as_ref()?.host_delegation.as_ref()?;
    if !offer.versions.contains(&DELEGATION_VERSION) {
        return None;
    }
    let holds = |feature: &&DelegationFeature| match feature {
        DelegationFeature::CommandUser => runtime::has_command_user(),
        _ => true,
    };
    let features =
        DELEGATION_FEATURES.iter().filter(holds).filter(|feature| offer.features.contains(feature));
    let agreed = HostDelegationAgreed {
        version: DELEGATION_VERSION,
        features: features.cloned().collect(),
        runtime_instance_id: runtime_instance_id.to_owned(),
    };
    Some(ServerCapabilities { host_delegation: Some(agreed), host: None })
}

/// Answers, tells what is wrong with the configuration, and only then lets the connection hear anything else.
pub(crate) async fn welcome(
    connection: &ClientConnection,
    greeting: &Greeting,
    options: &ServerOptions,
    params: InitializeParams,
    agreed: Option<ServerCapabilities>,
    to: ReplyTo,
) {
    let is_experimental = is_experimental(&params);
    let (name, version) = (params.client_info.name, params.client_info.version);
    let capabilities = params.capabilities.and_then(|capabilities| capabilities.opt_out_notification_methods);
    let profile = ClientProfile {
        user_agent: greeting.user_agent(&name, &version),
        client_name: name,
        client_version: version,
        experimental: is_experimental,
        opt_outs: capabilities.unwrap_or_default().into_iter().collect(),
        agreed: agreed.clone(),
    };
    let mut response = InitializeResponse {
        user_agent: profile.user_agent.clone(),
        codex_home: options.home.clone(),
        platform_family: std::env::consts::FAMILY.to_owned(),
        platform_os: std::env::consts::OS.to_owned(),
        capabilities: agreed,
    };
    if !is_experimental {
        response.strip_experimental();
    }
    let line = rpc::response(&to.id, &response).unwrap_or_else(|_| WireError::unanswered().to_line(&to.id));
    // When the connection is gone, nobody is left to tell.
    let _ = to.slot.reply_now(line);
    if !profile.opt_outs.contains(ConfigWarning::METHOD) {
        for warning in &options.config_warnings {
            connection.notify(ServerNotification::ConfigWarning(warning.clone())).await;
        }
    }
    connection.introduce(profile);
}
