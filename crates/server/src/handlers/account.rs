//! Who is logged in at the model provider.

use std::sync::Arc;

use protocol::{
    AccountLoginCompletedNotification, AccountUpdatedNotification, AuthMode, CancelLoginAccountParams,
    CancelLoginAccountResponse, GetAccountParams, GetAccountRateLimitsResponse, GetAccountResponse,
    GetAuthStatusParams, GetAuthStatusResponse, LoginAccount, LoginAccountParams, LoginAccountResponse,
    LogoutAccount, LogoutAccountResponse, NoParams, ServerNotification,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Caller;
use crate::reply::Reply;

pub(crate) async fn read(
    app: Arc<App>,
    _: Caller,
    _: GetAccountParams,
) -> Result<GetAccountResponse, RuntimeError> {
    app.runtime.account()
}

pub(crate) async fn auth_status(
    app: Arc<App>,
    _: Caller,
    _: GetAuthStatusParams,
) -> Result<GetAuthStatusResponse, RuntimeError> {
    app.runtime.auth_status()
}

pub(crate) async fn rate_limits(
    app: Arc<App>,
    _: Caller,
    _: NoParams,
) -> Result<GetAccountRateLimitsResponse, RuntimeError> {
    app.runtime.account_rate_limits()
}

pub(crate) async fn cancel_login(
    app: Arc<App>,
    _: Caller,
    params: CancelLoginAccountParams,
) -> Result<CancelLoginAccountResponse, RuntimeError> {
    app.runtime.cancel_login(params)
}

pub(crate) async fn login(app: Arc<App>, _: Caller, params: LoginAccountParams, reply: Reply<LoginAccount>) {
    if let Err(error) = app.runtime.log_in(&params) {
        return reply.send(Err(error.into()));
    }
    reply.send(Ok(LoginAccountResponse::ApiKey));
    let completed = AccountLoginCompletedNotification { login_id: None, success: true, error: None };
    app.hub.broadcast(ServerNotification::AccountLoginCompleted(completed)).await;
    tell_mode(&app, Some(AuthMode::Apikey)).await;
}

pub(crate) async fn logout(app: Arc<App>, _: Caller, _: NoParams, reply: Reply<LogoutAccount>) {
    if let Err(error) = app.runtime.log_out() {
        return reply.send(Err(error.into()));
    }
    reply.send(Ok(LogoutAccountResponse {}));
    tell_mode(&app, None).await;
}

async fn tell_mode(app: &App, auth_mode: Option<AuthMode>) {
    let updated = AccountUpdatedNotification { auth_mode, plan_type: None };
    app.hub.broadcast(ServerNotification::AccountUpdated(updated)).await;
}
