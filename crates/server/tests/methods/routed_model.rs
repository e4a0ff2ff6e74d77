//! A model for several conversations at once: each request waits until the test takes it up, by who asks.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::paced_model::{Asked, PacedModel};

/// A test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct RoutedModel {
    port: u16,
    requests: mpsc::UnboundedReceiver<Asked>,
    serving: JoinHandle<()>,
    waiting: Vec<Asked>,
}

impl RoutedModel {
    pub(crate) async fn new() -> Self {
        let paced = PacedModel::new().await;
        let (port, (tell, requests)) = (paced.port, mpsc::unbounded_channel());
        let serving = tokio::spawn(async move { while tell.send(paced.next().await).is_ok() {} });
        Self { port, requests, serving, waiting: Vec::new() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The oldest request that fits.
    pub(crate) async fn take(&mut self, fits: impl Fn(&Asked) -> bool) -> Asked {
        loop {
            if let Some(at) = self.waiting.iter().position(&fits) {
                return self.waiting.remove(at);
            }
            match tokio::time::timeout(PATIENCE, self.requests.recv()).await {
                Ok(next) => self.waiting.push(next.expect("a request")),
                Err(_) => panic!("no such request in time; others wait: {:?}", self.waiting()),
            }
        }
    }

    /// The next request of a thread.
    pub(crate) async fn of(&mut self, thread: &str) -> Asked {
        self.take(|asked| asked.thread() == thread).await
    }

    /// Whose requests wait. Only what the test knows to be there is sure to be.
    pub(crate) fn waiting(&self) -> Vec<&str> {
        self.waiting.iter().map(Asked::thread).collect()
    }
}

impl Drop for RoutedModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Asked {
    /// Which thread asks.
    pub(crate) fn thread(&self) -> &str {
        self.body["prompt_cache_key"].as_str().expect("a thread")
    }

    /// A header, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The texts of the input, one per part, with the role in front.
    pub(crate) fn texts(&self) -> Vec<String> {
        let items = self.body["input"].as_array().expect("input").iter();
        let parts = items.flat_map(|item| {
            let role = item["role"].as_str().unwrap_or("-").to_owned();
            let parts = item["content"].as_array().into_iter().flatten();
            parts.filter_map(move |part| Some(format!("{role}: {}", part["text"].as_str()?)))
        });
        parts.collect()
    }

    /// How often the model is told that an agent is at an end.
    pub(crate) fn news_of(&self, agent: &str) -> usize {
        let is_news = |text: &&String| text.contains("<subagent_notification>") && text.contains(agent);
        self.texts().iter().filter(is_news).count()
    }
}
