//! `oarlock models`: what can be asked for with `--model`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use runtime::config::{LoadRequest, Loader, ProviderKind, ProviderReason, ResolvedConfig};
use runtime::{Catalogue, ModelDirectory, SystemClock, WAYS_OUT};
use serde::Serialize;
use serde_json::json;
use tracing_subscriber::filter::LevelFilter;
use turn_view::{columns, cut};

use crate::flags::Flags;
use crate::local_servers::offered;
use crate::terminal::{clean_line, escaped_json};

#[derive(Debug, Args)]
pub(crate) struct ModelsOptions {
    /// Of this provider instead of the configured one.
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

/// One model, as much as is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct KnownModel {
    name: String,
    description: Option<String>,
    context_window: Option<i64>,
    is_default: bool,
}

pub(crate) fn run(options: ModelsOptions, root: Flags) -> Result<ExitCode> {
    service::init_logging(LevelFilter::ERROR);
    let loader = root.then(options.flags).loader()?;
    let mut request = LoadRequest { cwd: std::env::current_dir().ok(), ..LoadRequest::default() };
    request.overrides.model_provider = options.provider;
    let config = loader.load(&request)?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (provider, models) = tokio.block_on(known_models(&loader, &config))?;
    let text = match options.json {
        true => {
            let document = json!({ "provider": provider, "data": models });
            escaped_json(&format!("{document:#}\n")).into_owned()
        }
        false => {
            let width = if std::io::stdout().is_terminal() { columns() } else { usize::MAX };
            lines(&provider, &models, width)
        }
    };
    std::io::stdout().write_all(text.as_bytes()).context("the list cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

/// Of a server that can tell, as it says itself; else those of the catalogue.
async fn known_models(loader: &Loader, config: &ResolvedConfig) -> Result<(String, Vec<KnownModel>)> {
    let directory = ModelDirectory::new(loader.clone(), Arc::new(SystemClock));
    let mut provider = &config.provider;
    let mut told = None;
    if config.provider_reason == ProviderReason::Nothing {
        let found = directory.local_server(|id| offered(&config.providers, id)).await;
        let Some((found, models)) = found else { bail!("{WAYS_OUT}") };
        (provider, told) = (found, Some(models));
    } else if ModelDirectory::can_tell(provider) {
        let models = directory.models(provider).await;
        told = Some(models.map_err(|problem| anyhow::anyhow!("{}: {problem}", provider.id))?);
    }
    let chosen = config.model.name.as_deref().or(provider.default_model.as_deref());
    let models = match told {
        Some(told) => told
            .iter()
            .enumerate()
            .map(|(at, model)| KnownModel {
                name: model.id.clone(),
                description: model.display_name.clone(),
                context_window: model.context_window,
                is_default: chosen.map_or(at == 0, |chosen| chosen == model.id),
            })
            .collect(),
        None => of_catalogue(config, chosen)?,
    };
    Ok((provider.id.clone(), models))
}

fn of_catalogue(config: &ResolvedConfig, chosen: Option<&str>) -> Result<Vec<KnownModel>> {
    let catalogue = match &config.model.catalog_json {
        Some(path) => Catalogue::from_file(path)?,
        None => Catalogue::bundled(),
    };
    if config.provider.kind == ProviderKind::Offline {
        let name = "offline".to_owned();
        let description = Some("the test model inside this program".to_owned());
        return Ok(vec![KnownModel { name, description, context_window: None, is_default: true }]);
    }
    let default = chosen.unwrap_or(catalogue.default_model());
    let page = catalogue.page(None, None, false)?;
    let known = page.data.into_iter().map(|model| KnownModel {
        is_default: model.model == default,
        context_window: catalogue.lookup(&model.model).context_window,
        description: Some(model.description),
        name: model.model,
    });
    Ok(known.collect())
}

fn lines(provider: &str, models: &[KnownModel], width: usize) -> String {
    if models.is_empty() {
        return format!("{} answers, and has no models.\n", clean_line(provider));
    }
    let names = models.iter().map(|model| model.name.chars().count()).max().unwrap_or_default();
    let mut text = format!("Models of {}; * is what is asked without --model.\n", clean_line(provider));
    for model in models {
        let mark = if model.is_default { '*' } else { ' ' };
        let window = model.context_window.map(|tokens| format!("{} K", tokens / 1_000)).unwrap_or_default();
        let about = model.description.as_deref().unwrap_or_default();
        let line = format!("{mark} {:names$}  {window:>7}  {about}", clean_line(&model.name));
        text.push_str(cut(clean_line(&line).trim_end(), width).trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_aligned_and_the_default_is_marked() {
        let model = |name: &str, about: Option<&str>, context_window, is_default| KnownModel {
            name: name.to_owned(),
            description: about.map(str::to_owned),
            context_window,
            is_default,
        };
        let models = [
            model("big", Some("knows most, and takes its time over it"), Some(272_000), true),
            model("small-fast", None, None, false),
        ];
        let text = lines("openai", &models, 40);
        assert_eq!(
            text,
            "Models of openai; * is what is asked without --model.\n\
             * big           272 K  knows most, and…\n  small-fast\n"
        );
        assert_eq!(lines("x", &[], 80), "x answers, and has no models.\n");
    }
}
