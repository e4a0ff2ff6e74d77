//! The table of handlers: from a method and its text to a typed call.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use protocol::{
    AuditList, CLIENT_NOTIFICATIONS, CLIENT_REQUESTS, ExperimentalGate, Method, NoParams, NotificationMethod,
    OperationDecide, OperationList, PlacementAbandon, PlacementDelete, PlacementGc, PlacementList,
    PlacementRead, PlacementSnapshot, PlacementSuspend, ReplicaList, RequestMethod, TaskDelete, TaskList,
    TaskRead, TaskResume, TaskSuspend, ThreadSuspend, UsageList, decode,
};
use runtime::BoxFuture;
use serde_json::value::RawValue;

use crate::hub::Requester;
use crate::reply::{MethodReply, ReplyTo};
use crate::wire_error::WireError;

/// The methods that only a host has.
pub(crate) const HOST_ONLY: &[&str] = &[
    PlacementList::METHOD,
    PlacementRead::METHOD,
    PlacementSnapshot::METHOD,
    PlacementSuspend::METHOD,
    PlacementAbandon::METHOD,
    PlacementDelete::METHOD,
    PlacementGc::METHOD,
    TaskList::METHOD,
    TaskRead::METHOD,
    TaskSuspend::METHOD,
    TaskResume::METHOD,
    TaskDelete::METHOD,
    OperationList::METHOD,
    OperationDecide::METHOD,
    ThreadSuspend::METHOD,
    UsageList::METHOD,
    AuditList::METHOD,
    ReplicaList::METHOD,
];

/// A request that was understood and may run.
pub(crate) struct RoutedCall<A> {
    /// Calls with the same key run one after the other.
    pub(crate) order_key: Option<String>,
    /// Calls of one connection without a key run one after the other with those of the same family.
    pub(crate) family: &'static str,
    pub(crate) run: Run<A>,
}

pub(crate) type Run<A> = Box<dyn FnOnce(Arc<A>, Requester, ReplyTo) -> BoxFuture<'static, ()> + Send>;
type NotificationTask<A> = Box<dyn FnOnce(Arc<A>, Requester) -> BoxFuture<'static, ()> + Send>;
type Params<'a> = Option<&'a RawValue>;
type Wrap<A> = fn(&'static str, Option<&str>, &RawValue, Run<A>) -> Run<A>;
type RouteFn<A> = Box<dyn Fn(Params<'_>, bool) -> Result<RoutedCall<A>, WireError> + Send + Sync>;
type Ear<A> = Box<dyn Fn(Params<'_>, bool) -> Result<Hearing<A>, WireError> + Send + Sync>;

/// A notification that was understood.
pub(crate) struct Hearing<A> {
    pub(crate) order_key: Option<String>,
    pub(crate) run: NotificationTask<A>,
}

/// Which handler carries out which method. `A` is what handlers share.
pub struct Router<A> {
    routes: BTreeMap<&'static str, RouteFn<A>>,
    ears: BTreeMap<&'static str, Ear<A>>,
}

impl<A> Default for Router<A> {
    fn default() -> Self {
        Self { routes: BTreeMap::new(), ears: BTreeMap::new() }
    }
}

impl<A> fmt::Debug for Router<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("routes", &self.names()).finish_non_exhaustive()
    }
}

impl<A: Send + Sync + 'static> Router<A> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers with what the handler returns.
    #[must_use]
    pub fn on<M, F, T, E>(self, marker: M, handler: F) -> Self
    where
        M: RequestMethod,
        F: Fn(Arc<A>, Requester, M::Params) -> T + Send + Sync + 'static,
        T: Future<Output = Result<M::Response, E>> + Send + 'static,
        E: Into<WireError>,
    {
        self.deferred(marker, move |app, caller, params, reply| {
            let answer = handler(app, caller, params);
            async move { reply.send(answer.await.map_err(Into::into)) }
        })
    }

    /// As [`Self::on`], for answers that may be large: none is made before earlier ones of the connection were read.
    #[must_use]
    pub fn large<M, F, T, E>(self, marker: M, handler: F) -> Self
    where
        M: RequestMethod,
        F: Fn(Arc<A>, M::Params) -> T + Send + Sync + 'static,
        T: Future<Output = Result<M::Response, E>> + Send + 'static,
        E: Into<WireError>,
    {
        let handler = Arc::new(handler);
        self.deferred(marker, move |app, _, params, reply| {
            let handler = Arc::clone(&handler);
            async move {
                reply.room().await;
                reply.send(handler(app, params).await.map_err(Into::into));
            }
        })
    }

    /// The handler answers itself, when it is time: before the events that its request causes. Requests about the same
    /// thread wait until its future ends, not only until the answer.
    #[must_use]
    pub fn deferred<M, F, T>(mut self, _marker: M, handler: F) -> Self
    where
        M: RequestMethod,
        F: Fn(Arc<A>, Requester, M::Params, MethodReply<M>) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let route: RouteFn<A> = Box::new(move |params, is_experimental| {
            let params: M::Params = read_params(params, is_experimental)?;
            let handler = Arc::clone(&handler);
            Ok(RoutedCall {
                order_key: M::order_key(&params).map(str::to_owned),
                family: family(M::METHOD),
                run: Box::new(move |app, caller, to| {
                    // Called inside the future: a handler that panics before its first await is caught all the same.
                    Box::pin(async move { handler(app, caller, params, MethodReply::new(to)).await })
                }),
            })
        });
        self.routes.insert(M::METHOD, route);
        self
    }

    /// Takes a notification of the client, in order with the requests of the same key.
    #[must_use]
    pub fn hear<N, F, T>(mut self, _marker: N, order: fn(&N::Params) -> Option<&str>, handler: F) -> Self
    where
        N: NotificationMethod,
        F: Fn(Arc<A>, Requester, N::Params) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let ear: Ear<A> = Box::new(move |params, is_experimental| {
            let params: N::Params = read_params(params, is_experimental)?;
            let handler = Arc::clone(&handler);
            Ok(Hearing {
                order_key: order(&params).map(str::to_owned),
                run: Box::new(move |app, caller| Box::pin(async move { handler(app, caller, params).await })),
            })
        });
        self.ears.insert(N::METHOD, ear);
        self
    }
}

impl<A: Send + Sync + 'static> Router<A> {
    /// These methods alone, for an application that has this one inside it.
    #[must_use]
    pub(crate) fn inside<B: Send + Sync + 'static>(
        self,
        methods: &'static [&'static str],
        pick: fn(&B) -> &Arc<A>,
    ) -> Router<B> {
        let mut outer = Router::new();
        for (name, route) in self.routes {
            if !methods.contains(&name) {
                continue;
            }
            let lifted: RouteFn<B> = Box::new(move |params, is_experimental| {
                let RoutedCall { order_key, family, run } = route(params, is_experimental)?;
                let run: Run<B> =
                    Box::new(move |app: Arc<B>, caller, to| run(Arc::clone(pick(&app)), caller, to));
                Ok(RoutedCall { order_key, family, run })
            });
            outer.routes.insert(name, lifted);
        }
        outer
    }
}

impl<A: Send + Sync + 'static> Router<A> {
    /// Lets `wrap` decide about requests of these methods. It gets the method, the thread if there is one, the request as it
    /// came, and the call that carries it out here.
    #[must_use]
    pub(crate) fn wrapped(mut self, methods: &'static [&'static str], wrap: Wrap<A>) -> Self {
        for (name, route) in std::mem::take(&mut self.routes) {
            if !methods.contains(&name) {
                self.routes.insert(name, route);
                continue;
            }
            let wrapped: RouteFn<A> = Box::new(move |params, is_experimental| {
                let RoutedCall { order_key, family, run } = route(params, is_experimental)?;
                let run = match params {
                    Some(params) => wrap(name, order_key.as_deref(), params, run),
                    None => run,
                };
                Ok(RoutedCall { order_key, family, run })
            });
            self.routes.insert(name, wrapped);
        }
        self
    }
}

impl<A> Router<A> {
    /// The methods that have a handler, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        self.routes.keys().copied().collect()
    }

    /// Reads a request of a connection that is initialized.
    pub(crate) fn call(
        &self,
        row: &'static Method,
        params: Params<'_>,
        is_experimental: bool,
    ) -> Result<RoutedCall<A>, WireError> {
        may_use(row, is_experimental)?;
        let route = self.routes.get(row.name).ok_or_else(|| self.refusal(row.name))?;
        route(params, is_experimental)
    }

    /// Why there is no such route.
    pub(crate) fn refusal(&self, name: &'static str) -> WireError {
        if HOST_ONLY.contains(&name) {
            return WireError::only_for_hosts(name);
        }
        match HOST_ONLY.iter().any(|host_only| self.routes.contains_key(host_only)) {
            true => WireError::not_at_a_host(name),
            false => WireError::not_supported(name),
        }
    }

    /// Reads a notification of a connection that is initialized. `None` when nobody listens for it.
    pub(crate) fn hearing(
        &self,
        method: &str,
        params: Params<'_>,
        is_experimental: bool,
    ) -> Option<Result<Hearing<A>, WireError>> {
        let ear = self.ears.get(method)?;
        let row = CLIENT_NOTIFICATIONS.iter().find(|row| row.name == method)?;
        Some(may_use(row, is_experimental).and_then(|()| ear(params, is_experimental)))
    }
}

/// Methods that wait for disks, for programs or for other machines keep an order of their own: nothing else of the
/// connection waits for a large copy, or for a repository whose server does not answer.
fn family(method: &str) -> &'static str {
    match method.split('/').next() {
        Some("fs") => "file requests",
        Some("gitDiffToRemote") => "git requests",
        Some("externalAgentConfig") => "imports",
        Some("plugin") => "plugin requests",
        Some("fuzzyFileSearch") => "searches",
        Some("mcpServer" | "mcpServerStatus") => "MCP requests",
        Some("account") => "account requests",
        _ => "requests",
    }
}

/// The row of a request, if the protocol has such a method.
pub(crate) fn request_row(method: &str) -> Option<&'static Method> {
    CLIENT_REQUESTS.iter().find(|row| row.name == method)
}

fn may_use(row: &Method, is_experimental: bool) -> Result<(), WireError> {
    match row.experimental_descriptor() {
        Some(reason) if !is_experimental => Err(WireError::experimental(reason)),
        _ => Ok(()),
    }
}

/// Decodes params and checks that nothing experimental is used without the capability.
pub(crate) fn read_params<P: protocol::Payload>(
    params: Params<'_>,
    is_experimental: bool,
) -> Result<P, WireError> {
    let params: P = decode(object::<P>(params)?)?;
    gate(&params, is_experimental)?;
    Ok(params)
}

pub(crate) fn gate(params: &impl ExperimentalGate, is_experimental: bool) -> Result<(), WireError> {
    gate_use(params.experimental_use(), is_experimental)
}

fn gate_use(reason: Option<&'static str>, is_experimental: bool) -> Result<(), WireError> {
    match reason {
        Some(reason) if !is_experimental => Err(WireError::experimental(reason)),
        _ => Ok(()),
    }
}

/// The text of an object: decoding would take an array for a struct.
pub(crate) fn object<P: 'static>(params: Params<'_>) -> Result<&str, WireError> {
    object_or(params, TypeId::of::<P>() == TypeId::of::<NoParams>())
}

fn object_or(params: Params<'_>, may_be_absent: bool) -> Result<&str, WireError> {
    match params.map(RawValue::get) {
        Some(text) if text.starts_with('{') => Ok(text),
        Some(_) => Err(WireError::params_are_no_object()),
        None if may_be_absent => Ok("{}"),
        None => Err(WireError::no_params()),
    }
}
