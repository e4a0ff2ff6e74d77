//! Who is logged in at the model provider.

use std::sync::Arc;

use protocol::{
    AccountLoginCompletedNotification, CancelLoginAccount, CancelLoginAccountParams,
    CancelLoginAccountStatus, GetAccountParams, GetAccountRateLimitsResponse, GetAccountResponse,
    GetAuthStatusParams, GetAuthStatusResponse, LoginAccount, LoginAccountParams, LoginAccountResponse,
    LogoutAccount, LogoutAccountResponse, NoParams, ServerNotification,
};
use runtime::{LoginDone, RuntimeError};

use crate::app::App;
use crate::hub::Requester;
use crate::reply::MethodReply;

pub(crate) async fn read(
    app: Arc<App>,
    _: Requester,
    params: GetAccountParams,
) -> Result<GetAccountResponse, RuntimeError> {
    app.runtime.account(&params).await
}

pub(crate) async fn auth_status(
    app: Arc<App>,
    _: Requester,
    _: GetAuthStatusParams,
) -> Result<GetAuthStatusResponse, RuntimeError> {
    app.runtime.auth_status()
}

pub(crate) async fn rate_limits(
    app: Arc<App>,
    _: Requester,
    _: NoParams,
) -> Result<GetAccountRateLimitsResponse, RuntimeError> {
    app.runtime.account_rate_limits().await
}

pub(crate) async fn cancel_login(
    app: Arc<App>,
    _: Requester,
    params: CancelLoginAccountParams,
    reply: MethodReply<CancelLoginAccount>,
) {
    let login_id = params.login_id.clone();
    let canceled = app.runtime.cancel_login(params);
    let is_canceled =
        matches!(&canceled, Ok(response) if response.status == CancelLoginAccountStatus::Canceled);
    reply.send(canceled.map_err(Into::into));
    if is_canceled {
        tell_end(&app, Some(login_id), Some("Login was not completed".to_owned())).await;
    }
}

/// A login that waits for the user ends later; both notifications come then.
pub(crate) async fn login(
    app: Arc<App>,
    requester: Requester,
    params: LoginAccountParams,
    reply: MethodReply<LoginAccount>,
) {
    let later = app.clone();
    let done = move |login_id: String| -> LoginDone {
        Box::new(move |ended: Result<(), String>| {
            Box::pin(async move {
                let is_in = ended.is_ok();
                tell_end(&later, Some(login_id), ended.err()).await;
                if is_in {
                    tell_update(&later).await;
                }
            })
        })
    };
    let started = app.runtime.log_in(params, requester.client_name(), done).await;
    let is_over = match &started {
        Ok(LoginAccountResponse::ApiKey | LoginAccountResponse::ChatgptAuthTokens) => true,
        Ok(LoginAccountResponse::Chatgpt { .. } | LoginAccountResponse::ChatgptDeviceCode { .. })
        | Err(_) => false,
    };
    reply.send(started.map_err(Into::into));
    if is_over {
        tell_end(&app, None, None).await;
        tell_update(&app).await;
    }
}

pub(crate) async fn logout(app: Arc<App>, _: Requester, _: NoParams, reply: MethodReply<LogoutAccount>) {
    if let Err(error) = app.runtime.log_out() {
        return reply.send(Err(error.into()));
    }
    reply.send(Ok(LogoutAccountResponse {}));
    tell_update(&app).await;
}

async fn tell_end(app: &App, login_id: Option<String>, error: Option<String>) {
    let completed = AccountLoginCompletedNotification { login_id, success: error.is_none(), error };
    app.hub.broadcast(ServerNotification::AccountLoginCompleted(completed)).await;
}

async fn tell_update(app: &App) {
    app.hub.broadcast(ServerNotification::AccountUpdated(app.runtime.account_update())).await;
}
