use oarlock_config::{CredentialCaller, ProviderKind, ProviderReason, ResolvedConfig, SecretText, WireApi};

use crate::support::Machine;

const PROVIDER: &str = r#"
    model_provider = "p"
    [model_providers.p]
    name = "Mine"
    base_url = "http://localhost:9/v1"
    env_key = "P_KEY"
    env_key_instructions = "Ask the team for one."
    experimental_bearer_token = "file-token"
    http_headers = { "X-One" = "1", "bad name" = "2", "X-Break" = "a\nb" }
    env_http_headers = { "X-Env" = "P_HEADER", "X-Unset" = "P_NONE", "X-Blank" = "P_BLANK" }
    query_params = { "api-version" = "7" }
    request_max_retries = 500
    stream_max_retries = 0
"#;

#[test]
fn a_provider_is_read_with_its_defaults() {
    let provider = Machine::with(PROVIDER).load().provider;
    assert_eq!(
        (provider.id.as_str(), provider.name.as_str(), provider.kind),
        ("p", "Mine", ProviderKind::Compatible)
    );
    assert_eq!(provider.base_url.as_deref(), Some("http://localhost:9/v1"));
    assert_eq!((provider.request_max_retries, provider.stream_max_retries), (100, 0));
    assert_eq!((provider.stream_idle_timeout_ms, provider.websocket_connect_timeout_ms), (300_000, 15_000));
    assert!(!provider.requires_openai_auth && !provider.supports_websockets);
    let debug = format!("{provider:?} {:?}", Machine::with(PROVIDER).load());
    assert!(!debug.contains("file-token"), "{debug}");
}

#[test]
fn providers_known_by_name_have_their_wire_and_can_be_overridden() {
    let config = Machine::new().load();
    let wire = |id: &str| config.providers[id].wire;
    assert_eq!(
        (wire("openai"), wire("ollama"), wire("groq")),
        (WireApi::Responses, WireApi::Chat, WireApi::Chat)
    );
    let anthropic = &config.providers["anthropic"];
    assert_eq!(
        (anthropic.wire, anthropic.env_key.as_deref()),
        (WireApi::Messages, Some("ANTHROPIC_API_KEY"))
    );
    assert!(config.providers["llamacpp"].env_key.is_none());
    let mine =
        "[model_providers.anthropic]\nname = \"Mine\"\nbase_url = \"http://host/v1\"\nwire_api = \"chat\"";
    let mine = Machine::with(mine).load().providers["anthropic"].clone();
    assert_eq!((mine.name.as_str(), mine.wire, mine.env_key), ("Mine", WireApi::Chat, None));
}

/// Address, wire and key variable of a provider with these keys under its name.
fn overridden(id: &str, keys: &str) -> (String, WireApi, Option<String>) {
    let provider = Machine::with(&format!("[model_providers.{id}]\n{keys}")).load().providers[id].clone();
    (provider.base_url.unwrap_or_default(), provider.wire, provider.env_key)
}

#[test]
fn keys_under_a_known_name_override_only_themselves() {
    let url = |url: &str| url.to_owned();
    let key = |name: &str| Some(name.to_owned());
    let anthropic = url("https://api.anthropic.com/v1");
    // Nothing but one key: the rest is that of the row.
    assert_eq!(
        overridden("anthropic", "max_output_tokens = 9000"),
        (anthropic, WireApi::Messages, key("ANTHROPIC_API_KEY"))
    );
    let config = Machine::with("[model_providers.anthropic]\nmax_output_tokens = 9000").load();
    let provider = &config.providers["anthropic"];
    assert_eq!((provider.name.as_str(), provider.max_output_tokens), ("Anthropic", Some(9_000)));
    assert!(provider.default_model.is_some());
    // Another address keeps the wire; the key does not go there unless it is named.
    assert_eq!(
        overridden("anthropic", "base_url = \"http://proxy\""),
        (url("http://proxy"), WireApi::Messages, None)
    );
    assert_eq!(
        overridden("anthropic", "base_url = \"http://proxy\"\nenv_key = \"K\""),
        (url("http://proxy"), WireApi::Messages, key("K"))
    );
    assert_eq!(
        overridden("anthropic", "base_url = \"https://api.anthropic.com/v1/\"").2,
        key("ANTHROPIC_API_KEY")
    );
    // Second wires of a provider.
    assert_eq!(
        overridden("deepseek", "wire_api = \"messages\""),
        (url("https://api.deepseek.com/anthropic"), WireApi::Messages, key("DEEPSEEK_API_KEY"))
    );
    assert_eq!(
        overridden("groq", "wire_api = \"responses\""),
        (url("https://api.groq.com/openai/v1"), WireApi::Responses, key("GROQ_API_KEY"))
    );
    for id in ["ollama", "lmstudio"] {
        let (address, wire, key) = overridden(id, "wire_api = \"responses\"");
        assert!(address.starts_with("http://localhost:") && key.is_none(), "{id}: {address}");
        assert_eq!(wire, WireApi::Responses);
    }
    // A token of its own goes instead of the variable.
    let text = "[model_providers.groq.auth]\ncommand = \"vault\"";
    let provider = Machine::with(text).load().providers["groq"].clone();
    assert_eq!((provider.env_key, provider.auth.is_some()), (None, true));
    let error = Machine::with("[model_providers.groq]\nbase_url = \" \"").error();
    assert!(error.contains("model_providers.groq has no base_url"), "{error}");
    // A provider of the user's is called by its id where it has no name.
    let unnamed = Machine::with("[model_providers.p]\nbase_url = \"http://host/v1\"").load();
    assert_eq!(unnamed.providers["p"].name, "p");
}

#[test]
fn servers_of_this_machine_may_have_a_key() {
    let machine = Machine::new().variable("LLAMA_API_KEY", "l").variable("VLLM_API_KEY", "v");
    let config = machine.load();
    let token = |id: &str| config.providers[id].bearer_token.as_ref().map(SecretText::reveal);
    assert_eq!((token("llamacpp"), token("vllm"), token("ollama")), (Some("l"), Some("v"), None));
    // They do not choose the provider: the variable is not for it alone.
    assert_eq!(config.provider_reason, ProviderReason::Nothing);
    let elsewhere = "[model_providers.vllm]\nbase_url = \"http://elsewhere/v1\"";
    let machine = Machine::with(elsewhere).variable("VLLM_API_KEY", "v");
    assert_eq!(machine.load().providers["vllm"].bearer_token, None);
}

#[test]
fn the_built_in_providers() {
    let url = |config: &ResolvedConfig, id: &str| config.providers[id].base_url.clone().unwrap_or_default();
    let config = Machine::new().load();
    let ids = config.providers.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    assert_eq!(
        ids,
        "anthropic azure bedrock deepseek fireworks gemini groq llamacpp lmstudio mistral offline ollama openai openrouter together \
         vllm xai"
    );
    assert_eq!(url(&config, "openai"), "https://api.openai.com/v1");
    assert_eq!(url(&config, "ollama"), "http://localhost:11434/v1");
    assert_eq!(url(&config, "lmstudio"), "http://localhost:1234/v1");
    assert_eq!(url(&config, "offline"), "");
    assert!(config.provider.requires_openai_auth && config.provider.supports_websockets);
    assert_eq!(config.provider.kind, ProviderKind::OpenAi);
    assert_eq!(Machine::with("model_provider = \"offline\"").load().provider.kind, ProviderKind::Offline);

    let machine = Machine::new().variable("OPENAI_BASE_URL", "http://env/v1").variable("CODEX_OSS_PORT", "5");
    let config = machine.load();
    assert_eq!(
        (url(&config, "openai").as_str(), url(&config, "ollama").as_str()),
        ("http://env/v1", "http://localhost:5/v1")
    );
    assert!(machine.warnings()[0].contains("OPENAI_BASE_URL is deprecated"));
    let machine = machine.flag("openai_base_url=http://file/v1");
    assert_eq!(url(&machine.load(), "openai"), "http://file/v1");
    assert!(machine.warnings().is_empty());
    let machine = machine.variable("CODEX_OSS_BASE_URL", "http://oss/v1");
    assert_eq!(url(&machine.load(), "lmstudio"), "http://oss/v1");
}

#[test]
fn a_missing_key_names_its_variable() {
    for value in [None, Some(""), Some("  ")] {
        let machine = Machine::with(PROVIDER);
        let machine = value.into_iter().fold(machine, |machine, value| machine.variable("P_KEY", value));
        let error = machine.load().provider.resolve_key(&machine.env()).expect_err("an error");
        assert_eq!(
            error.to_string(),
            "environment variable `P_KEY` is not set; provider `p` needs it. Ask the team for one."
        );
    }
}

#[test]
fn credentials_have_an_order() {
    let stored = SecretText::new("stored");
    let own = PROVIDER.replace("env_key = \"P_KEY\"\n", "");
    let none = own.replace("experimental_bearer_token = \"file-token\"\n", "");
    let wants_login = format!("{none}\nrequires_openai_auth = true\n");
    let (codex, openai) = (("CODEX_API_KEY", "codex"), ("OPENAI_API_KEY", "openai"));
    let cases = [
        (PROVIDER, vec![("P_KEY", " key "), codex], true, CredentialCaller::Exec, Some("key")),
        (&own, vec![codex], true, CredentialCaller::Exec, Some("file-token")),
        // A login is not sent to a provider that it is not for.
        (&none, vec![codex, openai], true, CredentialCaller::Exec, None),
        (&wants_login, vec![codex, openai], true, CredentialCaller::Server, Some("stored")),
        (&wants_login, vec![codex, openai], false, CredentialCaller::Server, None),
        (&wants_login, vec![codex, openai], true, CredentialCaller::Exec, Some("codex")),
        (&wants_login, vec![openai], true, CredentialCaller::Exec, Some("stored")),
        (&wants_login, vec![openai], false, CredentialCaller::Exec, Some("openai")),
    ];
    for (text, variables, is_stored, caller, expected) in cases {
        let machine = Machine::with(text);
        let machine = variables.iter().fold(machine, |machine, (name, value)| machine.variable(name, value));
        let stored = is_stored.then_some(&stored);
        let key = machine.load().provider.credential(&machine.env(), stored, caller).expect("no error");
        assert_eq!(key.as_ref().map(SecretText::reveal), expected, "{variables:?} {caller:?}");
    }
}

#[test]
fn headers_come_from_the_file_and_the_environment() {
    let machine = Machine::with(PROVIDER).variable("P_HEADER", "2").variable("P_BLANK", " ");
    let headers = machine.load().provider.resolve_headers(&machine.env());
    let shown: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
    assert_eq!(shown, [("X-Env", "2"), ("X-One", "1")]);
    let machine = Machine::new().variable("OPENAI_PROJECT", "proj");
    let headers = machine.load().provider.resolve_headers(&machine.env());
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["OpenAI-Project", "version"]);
}

/// A mistyped key must not send prompts and keys to another server.
#[test]
fn a_misspelt_provider_goes_nowhere() {
    let table = |line: &str| {
        format!("model_provider = \"corp\"\n[model_providers.corp]\nname = \"Corp\"\nenv_key = \"K\"\n{line}")
    };
    let cases = [
        (
            Machine::with(&table("base_ur = \"http://corp/v1\"")),
            "config.toml:5:11: unknown key `base_ur`; did you mean `base_url`?",
        ),
        (Machine::with(&table("")), "model_providers.corp has no base_url"),
        (Machine::with(&table("base_url = \" \"")), "model_providers.corp has no base_url"),
        (
            Machine::with("model_providers = { corp = { name = \"c\", base_url = \"u\", envkey = \"K\" } }"),
            "unknown key `envkey`; did you mean `env_key`?",
        ),
        (
            Machine::with(&table("base_url = \"u\"")).flag("model_providers.corp.http_header={a=\"b\"}"),
            "unknown key `http_header`; did you mean `http_headers`?",
        ),
        (
            Machine::with(&table("base_url = \"u\""))
                .request("model_providers.corp.login", serde_json::json!({})),
            "unknown key `login`; known are `name`, `base_url`",
        ),
        (
            Machine::new()
                .request("model_providers", serde_json::json!({"p": {"name": "p", "baseUrl": "u"}})),
            "unknown key `baseUrl`; did you mean `base_url`?",
        ),
        // The default provider would be asked instead.
        (
            Machine::with("model_provder = \"ollama\""),
            "unknown key `model_provder`; did you mean `model_provider`?",
        ),
        (
            Machine::with("").flag("openai_baseurl=x"),
            "unknown key `openai_baseurl`; did you mean `openai_base_url`?",
        ),
        (
            Machine::with("[profiles.w]\nmodel_providr = \"ollama\"").profile("w"),
            "unknown key `profiles.w.model_providr`; did you mean `model_provider`?",
        ),
    ];
    for (machine, expected) in cases {
        let error = machine.error();
        assert!(error.contains(expected), "{error}");
    }
    let all = "name = \"p\"\nbase_url = \"u\"\nenv_key = \"K\"\nenv_key_instructions = \"x\"\nwire_api = \"responses\"\n\
               websocket_connect_timeout_ms = 1\nrequires_openai_auth = true\nsupports_websockets = true\n";
    assert!(Machine::with(&format!("[model_providers.p]\n{all}")).try_load().is_ok());
}

/// The provider in use and why, with these variables.
fn chosen(config: &str, variables: &[(&str, &str)]) -> (String, ProviderReason) {
    let mut machine = Machine::with(config);
    machine.variables.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let config = machine.load();
    (config.provider.id, config.provider_reason)
}

#[test]
fn the_environment_chooses_where_nothing_else_does() {
    let key = |name: &str| ProviderReason::Key(name.to_owned());
    let (anthropic, groq) = (("ANTHROPIC_API_KEY", "a"), ("GROQ_API_KEY", "g"));
    assert_eq!(chosen("", &[]), ("openai".to_owned(), ProviderReason::Nothing));
    assert_eq!(chosen("", &[groq]), ("groq".to_owned(), key("GROQ_API_KEY")));
    assert_eq!(chosen("", &[groq, anthropic]), ("anthropic".to_owned(), key("ANTHROPIC_API_KEY")));
    assert_eq!(
        chosen("", &[anthropic, ("OPENAI_API_KEY", "o")]),
        ("openai".to_owned(), key("OPENAI_API_KEY"))
    );
    assert_eq!(chosen("", &[("ANTHROPIC_API_KEY", " ")]), ("openai".to_owned(), ProviderReason::Nothing));
    assert_eq!(
        chosen("model_provider = \"groq\"", &[anthropic]),
        ("groq".to_owned(), ProviderReason::Configured)
    );
    let mut machine = Machine::new();
    machine.overrides.model_provider = Some("ollama".to_owned());
    let config = machine.load();
    assert_eq!((config.provider.id.as_str(), config.provider_reason), ("ollama", ProviderReason::Requested));
}

#[test]
fn azure_and_bedrock_have_addresses_of_their_owner() {
    let address = |provider: &str, variable: (&str, &str)| {
        let mut machine = Machine::with(&format!("model_provider = \"{provider}\""));
        machine.variables.insert(variable.0.to_owned(), variable.1.to_owned());
        machine.load().provider.base_url.unwrap_or_default()
    };
    let azure = "https://mine.openai.azure.com/openai/v1";
    assert_eq!(address("azure", ("AZURE_OPENAI_RESOURCE", "mine")), azure);
    assert_eq!(address("azure", ("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")), azure);
    assert_eq!(address("azure", ("AZURE_OPENAI_ENDPOINT", azure)), azure);
    assert_eq!(
        address("bedrock", ("AWS_REGION", "eu-central-1")),
        "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1"
    );
    let told = Machine::with("model_provider = \"azure\"").try_load().expect_err("no address").to_string();
    assert!(told.contains("set AZURE_OPENAI_ENDPOINT or AZURE_OPENAI_RESOURCE"), "{told}");
}

#[test]
fn prices_are_found_by_the_longest_name() {
    let config = Machine::with(
        "[prices.\"claude-\"]\ninput = 3\noutput = 15\n[prices.\"claude-opus-4\"]\ninput = 5.0\noutput = 25.0\ncached_input = 0.5",
    )
    .load();
    assert_eq!(config.prices.of("claude-sonnet-4-5").map(|price| price.input), Some(3.0));
    assert_eq!(config.prices.of("claude-opus-4-6").and_then(|price| price.cached_input), Some(0.5));
    assert_eq!(config.prices.of("gpt-5"), None);
    let told =
        Machine::with("[prices.m]\ninput = -1\noutput = 2").try_load().expect_err("below 0").to_string();
    assert!(told.contains("prices.\"m\": an amount must be a number from 0 up"), "{told}");
}

#[test]
fn a_command_may_print_the_token() {
    let table = |more: &str| {
        format!(
            "[model_providers.p]\nname = \"P\"\nbase_url = \"http://localhost:9/v1\"\n{more}\
             [model_providers.p.auth]\ncommand = \"vault\"\nargs = [\"read\", \"--token\", \"planted\"]\n"
        )
    };
    let auth = Machine::with(&table("")).load().providers["p"].auth.clone().expect("a command");
    assert_eq!(auth.argv, ["vault", "read", "--token", "planted"]);
    assert_eq!((auth.timeout.as_millis(), auth.refresh.map(|time| time.as_secs())), (5_000, Some(300)));
    let text = table("") + "timeout_ms = 9\nrefresh_interval_ms = 0\ncwd = \"/\"\n";
    let auth = Machine::with(&text).load().providers["p"].auth.clone().expect("a command");
    assert_eq!((auth.timeout.as_millis(), auth.refresh, auth.cwd), (9, None, Some("/".into())));
    for (wrong, expected) in [
        (table("env_key = \"K\"\n"), "model_providers.p has both `auth` and `env_key`; keep one of them"),
        (
            table("requires_openai_auth = true\n"),
            "model_providers.p has both `auth` and `requires_openai_auth`; keep one of them",
        ),
        (
            table("").replace("\"vault\"", "\" \""),
            "model_providers.p.auth.command is empty; name the program that prints the token",
        ),
    ] {
        let error = Machine::with(&wrong).try_load().expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_command_that_prints_tokens_is_not_looked_for_in_the_project() {
    let text = "model_provider = \"x\"\n[model_providers.x]\nname = \"x\"\nbase_url = \"http://x/v1\"\n\
                auth.command = \"printer\"";
    let mut machine = Machine::with(text).dir("w/.venv/bin").cwd("w");
    let path = machine.text("$/w/.venv/bin:/usr/bin:/bin");
    machine.variables.insert("PATH".to_owned(), path);
    let config = machine.load();
    for provider in [&config.provider, &config.providers["x"]] {
        let auth = provider.auth.as_ref().expect("a command");
        assert_eq!(auth.search.as_deref(), Some("/usr/bin:/bin"));
    }
}
