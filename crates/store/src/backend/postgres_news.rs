//! Notifications of other hosts, by LISTEN and NOTIFY. Behind a pooler that keeps no sessions none arrive, and hosts poll.

use std::future::poll_fn;
use std::time::Duration;

use protocol::ThreadId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

use super::StoreNews;
use super::postgres::PostgresBackend;

pub(super) const NEWS_CHANNEL: &str = "oarlock";
/// News that wait for whoever looks. More become one that says to look at everything.
const WAITING_NEWS: usize = 256;
const CONNECT_AGAIN: Duration = Duration::from_secs(1);

/// Listens until the receiver is dropped, and connects again where that breaks.
pub(super) fn listen(backend: PostgresBackend) -> mpsc::Receiver<StoreNews> {
    let (sender, receiver) = mpsc::channel(WAITING_NEWS);
    tokio::spawn(async move {
        while !sender.is_closed() {
            if let Err(error) = follow(&backend, &sender).await {
                tracing::debug!(%error, "news from other hosts cannot be heard now");
            }
            tokio::select! {
                () = tokio::time::sleep(CONNECT_AGAIN) => {}
                () = sender.closed() => return,
            }
        }
    });
    receiver
}

async fn follow(
    backend: &PostgresBackend,
    sender: &mpsc::Sender<StoreNews>,
) -> Result<(), tokio_postgres::Error> {
    match backend.tls() {
        Some(tls) => {
            let (client, connection) = backend.config().connect(tls).await?;
            hear(client, connection, backend.mark(), sender).await
        }
        None => {
            let (client, connection) = backend.config().connect(NoTls).await?;
            hear(client, connection, backend.mark(), sender).await
        }
    }
}

async fn hear<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
    mark: &str,
    sender: &mpsc::Sender<StoreNews>,
) -> Result<(), tokio_postgres::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let listen = format!("LISTEN {NEWS_CHANNEL}");
    let mut listening = std::pin::pin!(client.batch_execute(&listen));
    let mut is_listening = false;
    loop {
        tokio::select! {
            done = &mut listening, if !is_listening => {
                done?;
                is_listening = true;
                // Whatever was told before is missed.
                let _ = sender.try_send(StoreNews::Unknown);
            }
            message = poll_fn(|context| connection.poll_message(context)) => match message {
                Some(Ok(AsyncMessage::Notification(told))) => {
                    let news = match told.payload().split_once(' ') {
                        Some((own, _)) if own == mark => continue,
                        Some((_, task)) if !task.is_empty() => StoreNews::Task(ThreadId::new(task)),
                        _ => StoreNews::Unknown,
                    };
                    if sender.try_send(news).is_err() && sender.is_closed() {
                        return Ok(());
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            () = sender.closed() => return Ok(()),
        }
    }
}
