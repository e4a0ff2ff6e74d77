//! The known providers, as a table.

use crate::Env;
use crate::keys::{ProviderKeys, WireApi};
use crate::provider::ProviderConfig;

/// A known provider. Keys that a user sets under `[model_providers]` with the same name override these.
struct KnownProvider {
    id: &'static str,
    name: &'static str,
    address: Address,
    /// The variable of its key; none for local servers.
    env_key: Option<&'static str>,
    /// The variable of an optional key.
    optional_key: Option<&'static str>,
    wire: WireApi,
    /// The default model. None if only the server knows it.
    default_model: Option<&'static str>,
}

/// The URL.
#[derive(Clone, Copy)]
enum Address {
    Fixed(&'static str),
    /// The first of these variables that is set, between the two texts. A value that is a whole URL is used alone.
    FromEnv {
        variables: &'static [&'static str],
        before: &'static str,
        after: &'static str,
    },
}

const AZURE: Address = Address::FromEnv {
    variables: &["AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_RESOURCE"],
    before: "https://",
    after: ".openai.azure.com/openai/v1",
};
const BEDROCK: Address = Address::FromEnv {
    variables: &["AWS_REGION", "AWS_DEFAULT_REGION"],
    before: "https://bedrock-runtime.",
    after: ".amazonaws.com/openai/v1",
};

const KNOWN: &[KnownProvider] = &[
    KnownProvider {
        default_model: Some("claude-opus-4-6"),
        ..hosted(
            "anthropic",
            "Anthropic",
            "https://api.anthropic.com/v1",
            "ANTHROPIC_API_KEY",
            WireApi::Messages,
        )
    },
    KnownProvider {
        default_model: Some("gemini-2.5-pro"),
        ..hosted(
            "gemini",
            "Gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            WireApi::Chat,
        )
    },
    KnownProvider {
        default_model: Some("mistral-large-latest"),
        ..hosted("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", WireApi::Chat)
    },
    KnownProvider {
        default_model: Some("deepseek-chat"),
        ..hosted("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", WireApi::Chat)
    },
    KnownProvider {
        default_model: Some("openai/gpt-oss-120b"),
        ..hosted("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", WireApi::Chat)
    },
    KnownProvider {
        default_model: Some("openrouter/auto"),
        ..hosted(
            "openrouter",
            "OpenRouter",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
            WireApi::Chat,
        )
    },
    KnownProvider {
        default_model: Some("grok-4"),
        ..hosted("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", WireApi::Responses)
    },
    KnownProvider {
        default_model: Some("openai/gpt-oss-120b"),
        ..hosted("together", "Together", "https://api.together.ai/v1", "TOGETHER_API_KEY", WireApi::Chat)
    },
    KnownProvider {
        default_model: Some("accounts/fireworks/models/gpt-oss-120b"),
        ..hosted(
            "fireworks",
            "Fireworks",
            "https://api.fireworks.ai/inference/v1",
            "FIREWORKS_API_KEY",
            WireApi::Chat,
        )
    },
    // The models of Azure are deployments, which only their owner can name.
    KnownProvider {
        address: AZURE,
        ..hosted("azure", "Azure", "", "AZURE_OPENAI_API_KEY", WireApi::Responses)
    },
    KnownProvider {
        address: BEDROCK,
        default_model: Some("openai.gpt-oss-120b-1:0"),
        ..hosted("bedrock", "Bedrock", "", "AWS_BEARER_TOKEN_BEDROCK", WireApi::Chat)
    },
    local("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY"),
    local("vllm", "vLLM", "http://localhost:8000/v1", "VLLM_API_KEY"),
];

/// The order of preference if several keys are in the environment. OpenAI's comes before all of them.
pub(crate) const IN_ORDER_OF_CHOICE: &[&str] = &[
    "anthropic",
    "gemini",
    "mistral",
    "deepseek",
    "groq",
    "openrouter",
    "xai",
    "together",
    "fireworks",
    "azure",
    "bedrock",
];

const fn hosted(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    env_key: &'static str,
    wire: WireApi,
) -> KnownProvider {
    let address = Address::Fixed(base_url);
    let (env_key, optional_key) = (Some(env_key), None);
    KnownProvider { id, name, address, env_key, optional_key, wire, default_model: None }
}

const fn local(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    optional_key: &'static str,
) -> KnownProvider {
    let address = Address::Fixed(base_url);
    let (env_key, optional_key) = (None, Some(optional_key));
    KnownProvider { id, name, address, env_key, optional_key, wire: WireApi::Chat, default_model: None }
}

/// The provider's URL for another wire than its own, if it differs.
pub(crate) fn address_of_wire(id: &str, wire: WireApi) -> Option<&'static str> {
    matches!((id, wire), ("deepseek", WireApi::Messages)).then_some("https://api.deepseek.com/anthropic")
}

impl KnownProvider {
    fn provider(&self, env: &Env) -> ProviderConfig {
        let keys = ProviderKeys {
            name: self.name.to_owned(),
            // Empty if a variable is missing: choosing the provider then names the variable.
            base_url: Some(self.address.url(env).unwrap_or_default()),
            env_key: self.env_key.map(str::to_owned),
            wire_api: Some(self.wire),
            experimental_bearer_token: self.optional_key.and_then(|name| env.text(name)),
            ..ProviderKeys::default()
        };
        let default_model = self.default_model.map(str::to_owned);
        ProviderConfig { default_model, is_known: true, ..ProviderConfig::new(self.id, &keys) }
    }
}

impl Address {
    fn url(self, env: &Env) -> Option<String> {
        match self {
            Self::Fixed(url) => Some(url.to_owned()),
            Self::FromEnv { variables, before, after } => {
                let value = variables.iter().find_map(|name| env.text(name))?;
                let value = value.trim().trim_end_matches('/');
                match value.strip_prefix("https://").or_else(|| value.strip_prefix("http://")) {
                    Some(_) if value.ends_with("/v1") => Some(value.to_owned()),
                    Some(_) => Some(format!("{value}/openai/v1")),
                    None => Some(format!("{before}{value}{after}")),
                }
            }
        }
    }
}

pub(crate) fn known_providers(env: &Env) -> impl Iterator<Item = ProviderConfig> {
    KNOWN.iter().map(|row| row.provider(env))
}

/// Why a known provider has no URL.
pub(crate) fn no_address(id: &str) -> String {
    let row = KNOWN.iter().find(|row| row.id == id);
    match row.map(|row| row.address) {
        Some(Address::FromEnv { variables, .. }) => {
            format!("the model provider `{id}` needs an address: set {}", variables.join(" or "))
        }
        _ => format!("model_providers.{id} has no base_url"),
    }
}
