//! Model requests with a ChatGPT account: each with a valid token, renewed once when it is refused.

use parking_lot::Mutex;
use std::sync::Arc;

use config::SecretText;
use futures_util::StreamExt;
use futures_util::stream;
use model::{EventStream, FailureClass, ModelFailure, ModelTransport, PreparedRequest};

use crate::error::RuntimeError;
use crate::providers::logins::{CurrentLogin, Logins};

const UNAUTHORIZED: u16 = 401;

/// Creates the transport for a login.
pub(crate) type Connect =
    dyn Fn(&CurrentLogin) -> Result<Arc<dyn ModelTransport>, RuntimeError> + Send + Sync;

/// Sends requests with the account that is logged in at that time.
#[derive(Clone)]
pub(crate) struct AccountTransport {
    shared: Arc<AccountConnections>,
}

struct AccountConnections {
    logins: Arc<Logins>,
    connect: Box<Connect>,
    /// The last transport, with its token.
    made: Mutex<Option<(SecretText, Arc<dyn ModelTransport>)>>,
}

impl AccountTransport {
    pub(crate) fn new(logins: Arc<Logins>, connect: Box<Connect>) -> Self {
        Self { shared: Arc::new(AccountConnections { logins, connect, made: Mutex::default() }) }
    }
}

impl ModelTransport for AccountTransport {
    fn open(&self, request: PreparedRequest) -> EventStream {
        let shared = self.shared.clone();
        let opening = async move { shared.open(request).await };
        Box::pin(stream::once(opening).flatten())
    }
}

impl AccountConnections {
    /// A token refused before the response begins is renewed and retried; later failures end the attempt.
    async fn open(&self, request: PreparedRequest) -> EventStream {
        let login = match self.logins.fresh().await {
            Ok(Some(login)) => login,
            Ok(None) => return failed(&RuntimeError::Login("nobody is logged in; log in, then try again")),
            Err(error) => return failed(&error),
        };
        let mut events = match self.carry(&login, request.clone()) {
            Ok(events) => events,
            Err(error) => return failed(&error),
        };
        let first = events.next().await;
        let is_refused = matches!(&first, Some(Err(failure)) if failure.http_status == Some(UNAUTHORIZED));
        if !is_refused {
            return Box::pin(stream::iter(first).chain(events));
        }
        let renewed = match self.logins.renew(login.token()).await {
            Ok(renewed) => self.carry(&renewed, request),
            Err(error) => Err(error),
        };
        renewed.unwrap_or_else(|error| failed(&error))
    }

    fn carry(&self, login: &CurrentLogin, request: PreparedRequest) -> Result<EventStream, RuntimeError> {
        let known = self.made.lock().clone().filter(|(token, _)| token == login.token());
        let transport = match known {
            Some((_, transport)) => transport,
            None => {
                let transport = (self.connect)(login)?;
                *self.made.lock() = Some((login.token().clone(), transport.clone()));
                transport
            }
        };
        Ok(transport.open(request))
    }
}

fn failed(error: &RuntimeError) -> EventStream {
    let failure = ModelFailure::new(FailureClass::Unauthorized, error.to_string());
    Box::pin(stream::iter([Err(failure)]))
}

impl std::fmt::Debug for AccountTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountTransport").finish_non_exhaustive()
    }
}
