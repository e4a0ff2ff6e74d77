//! Which provider would be asked, why, and whether it answers.

use std::sync::Arc;

use runtime::config::{
    ConfigError, CredentialCaller, Credentials, Loader, ProviderConfig, ProviderKind, ProviderReason,
    ResolvedConfig, without_secrets,
};
use runtime::{ListedModel, ModelDirectory, SystemClock, WAYS_OUT};

use super::DoctorCheck;
use crate::local_servers::offered;

/// How many models are named.
const SHOWN: usize = 5;

/// The choice of the provider and its key; then, if a request may be sent, its models.
pub(super) fn check(loader: &Loader, config: &ResolvedConfig, asks: bool) -> Vec<DoctorCheck> {
    if config.provider.kind == ProviderKind::Offline {
        let summary = "offline: the small test model inside this program, which needs no key and no network";
        return vec![DoctorCheck::ok("provider", summary)];
    }
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tokio = match tokio {
        Ok(tokio) if asks => tokio,
        _ => return vec![key(loader, config)],
    };
    let directory = ModelDirectory::new(loader.clone(), Arc::new(SystemClock));
    if config.provider_reason == ProviderReason::Nothing {
        let found = tokio.block_on(directory.local_server(|id| offered(&config.providers, id)));
        return match found {
            Some((provider, models)) => {
                let summary = format!("{}: chosen because it answers on this machine", named(provider));
                vec![DoctorCheck::ok("provider", summary), listed(&models)]
            }
            None => {
                vec![DoctorCheck::problem("provider", "none is configured, and none offers itself", WAYS_OUT)]
            }
        };
    }
    let of_key = key(loader, config);
    if of_key.status == super::CheckStatus::Problem {
        return vec![of_key];
    }
    let models = match tokio.block_on(directory.models(&config.provider)) {
        Ok(models) => listed(&models),
        Err(problem) => DoctorCheck::problem("models", problem, advice(config)),
    };
    vec![of_key, models]
}

/// Says whether there is a key, and never what it is.
fn key(loader: &Loader, config: &ResolvedConfig) -> DoctorCheck {
    let provider = &config.provider;
    let name = named(provider);
    let without_key = |variable: &str| {
        let advice = format!("set {variable}, or choose the offline model with `--provider offline`");
        DoctorCheck::problem("provider", format!("{name}: there is no key"), advice)
    };
    let stored = match Credentials::new(loader.home()).load() {
        Ok(stored) => stored,
        Err(error) => {
            let advice = "remove that file, or make it readable";
            return DoctorCheck::problem("provider", error.to_string(), advice);
        }
    };
    let why = why(&config.provider_reason);
    match provider.credential(loader.environment(), stored.as_ref(), CredentialCaller::Exec) {
        Ok(Some(_)) => DoctorCheck::ok("provider", format!("{name}: {why}; there is a key")),
        Ok(None) if provider.auth.is_some() => {
            DoctorCheck::ok("provider", format!("{name}: {why}; its token comes from auth.command"))
        }
        Ok(None) if provider.requires_openai_auth => without_key("OPENAI_API_KEY"),
        Ok(None) => DoctorCheck::ok("provider", format!("{name}: {why}; needs no key")),
        Err(ConfigError::MissingEnv { variable, .. }) => without_key(&variable),
        Err(error) => {
            DoctorCheck::problem("provider", format!("{name}: {error}"), "correct the provider's table")
        }
    }
}

fn named(provider: &ProviderConfig) -> String {
    let place = provider.base_url.as_deref().map(|url| format!(" at {}", without_secrets(url)));
    format!("{}{}", provider.id, place.unwrap_or_default())
}

fn why(reason: &ProviderReason) -> String {
    match reason {
        ProviderReason::Requested => "chosen by --provider".to_owned(),
        ProviderReason::Configured => "chosen by model_provider".to_owned(),
        ProviderReason::Login => "chosen by the login".to_owned(),
        ProviderReason::Key(variable) => format!("chosen because {variable} is set"),
        ProviderReason::Nothing => "the default".to_owned(),
    }
}

fn listed(models: &[ListedModel]) -> DoctorCheck {
    if models.is_empty() {
        return DoctorCheck::note(
            "models",
            "the provider answers, and has none",
            Some("load or pull a model"),
        );
    }
    let names: Vec<&str> = models.iter().map(|model| model.id.as_str()).take(SHOWN).collect();
    let more = models.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    DoctorCheck::ok("models", format!("the provider answers: {}{more}", names.join(", ")))
}

fn advice(config: &ResolvedConfig) -> &'static str {
    match config.provider.id.as_str() {
        "ollama" => "start it with `ollama serve`",
        "lmstudio" => "start its server with `lms server start`",
        "llamacpp" => "start it with `llama-server -m MODEL.gguf`",
        "vllm" => "start it with `vllm serve MODEL`",
        _ => "check the key, base_url and the network",
    }
}
