//! The routes of the HTTP interface: one table that makes the router, the classes of requests in metrics, and the OpenAPI
//! document.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::header::ALLOW;
use runwire_model::ErrorCode;
use utoipa::openapi::path::Operation;

use crate::facade::easyflow::{self, socket as easyflow_socket};
use crate::facade::{ag_ui, agio, loom, social_app, streaming_engine};
use crate::metrics::{RouteClass, show as metrics_text};
use crate::openapi::NamedSchema;
use crate::problem::Problem;
use crate::resources::{
    agents, interactions, messages, producers, readiness, runs, threads, transfer, webhooks,
};
use crate::{AppState, console, openapi, read, resources, write, ws};

/// A route: requests of a method to a path, and what handles them.
pub(crate) struct HttpRoute {
    /// The method.
    pub(crate) method: Method,
    /// The path; a segment in braces is a parameter.
    pub(crate) path: &'static str,
    /// The verb that its requests need; none where anybody may ask. No token is checked yet: the document says it.
    pub(crate) verb: Option<Verb>,
    /// The class of its requests in metrics.
    pub(crate) class: RouteClass,
    handler: Handler,
    /// Describes the operation.
    pub(crate) operation: fn() -> Operation,
    /// Adds the schemas that the operation refers to.
    pub(crate) schemas: fn(&mut Vec<NamedSchema>),
    /// Returns the methods and path that the handler says it has.
    #[cfg(test)]
    pub(crate) documented_at: fn() -> (Vec<utoipa::openapi::path::HttpMethod>, String),
}

/// What a request does to runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Reads what was written.
    Read,
    /// Writes frames.
    Write,
    /// Starts an agent.
    Start,
    /// Answers an interaction.
    Answer,
    /// Cancels a run.
    Cancel,
    /// Operates the server.
    Admin,
}

impl Verb {
    /// Returns the word on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Start => "start",
            Self::Answer => "answer",
            Self::Cancel => "cancel",
            Self::Admin => "admin",
        }
    }
}

/// What handles the requests of a route.
enum Handler {
    /// [`write::run`], called before axum's router: the most frequent request needs no boxed body.
    WriteRun,
    /// A handler behind axum's router.
    Axum(fn(MethodFilter) -> MethodRouter<Arc<AppState>>),
}

/// The path of a run's events.
pub(crate) const RUN_EVENTS: &str = "/v1/runs/{run}/events";
/// The path of a thread's events.
pub(crate) const THREAD_EVENTS: &str = "/v1/threads/{thread}/events";
/// The path of a thread's events in social-app's façade.
pub(crate) const SOCIAL_APP_EVENTS: &str = "/api/v1/agent/runs/{thread_id}/events";

/// Makes a row of the table: method and path, the verb that is needed, the class in metrics, the handler.
macro_rules! row {
    ($method:ident $path:expr, $verb:expr, $class:ident, $module:ident::$name:ident) => {
        row!(@ $method $path, $verb, $class, $module::$name, Handler::Axum(|method| on(method, $module::$name)))
    };
    ($method:ident $path:expr, $verb:expr, $class:ident, $module:ident::$name:ident before the router) => {
        row!(@ $method $path, $verb, $class, $module::$name, Handler::WriteRun)
    };
    (@ $method:ident $path:expr, $verb:expr, $class:ident, $module:ident::$name:ident, $handler:expr) => {
        pastey::paste! {
            HttpRoute {
                method: Method::$method,
                path: $path,
                verb: $verb,
                class: RouteClass::$class,
                handler: $handler,
                operation: documented::<$module::[<__path_ $name>]>,
                schemas: <$module::[<__path_ $name>] as utoipa::__dev::SchemaReferences>::schemas,
                #[cfg(test)]
                documented_at: || {
                    type Documented = $module::[<__path_ $name>];
                    (<Documented as utoipa::Path>::methods(), <Documented as utoipa::Path>::path())
                },
            }
        }
    };
}

/// Returns the operation that a handler documents.
///
/// `utoipa::OpenApi` collects operations from a list in an attribute; here they come from the table, so what its macro
/// uses is called directly: the traits of the hidden module `__dev`. Cargo.toml pins the version because of it.
fn documented<P: utoipa::Path + utoipa::__dev::Tags<'static>>() -> Operation {
    let mut operation = P::operation();
    operation.tags = Some(P::tags().into_iter().map(str::to_owned).collect());
    operation
}

const READ: Option<Verb> = Some(Verb::Read);
const WRITE: Option<Verb> = Some(Verb::Write);
const START: Option<Verb> = Some(Verb::Start);
const ANSWER: Option<Verb> = Some(Verb::Answer);
const CANCEL: Option<Verb> = Some(Verb::Cancel);
const ADMIN: Option<Verb> = Some(Verb::Admin);

/// Every route, those for frames first because they are looked up most often.
pub(crate) static ROUTES: &[HttpRoute] = &[
    row!(POST RUN_EVENTS, WRITE, Write, write::run before the router),
    row!(GET RUN_EVENTS, READ, Read, read::run),
    row!(GET THREAD_EVENTS, READ, Read, read::thread),
    row!(POST THREAD_EVENTS, WRITE, Write, write::thread),
    row!(POST "/v1/events", WRITE, Write, write::tenant),
    row!(GET "/v1/ws", READ, Socket, ws::upgrade),
    row!(GET "/v1/runs", READ, Resource, runs::list),
    row!(POST "/v1/runs", START, Resource, runs::create),
    row!(GET "/v1/runs/{run}", READ, Resource, runs::show),
    row!(GET "/v1/runs/{run}/message", READ, Resource, messages::of_run),
    row!(GET "/v1/runs/{run}/producers/{producer}", WRITE, Resource, producers::show),
    row!(POST "/v1/runs/{run}/heartbeat", WRITE, Resource, runs::heartbeat),
    row!(POST "/v1/runs/{run}/cancel", CANCEL, Resource, runs::cancel),
    row!(POST "/v1/runs/{run}/retry", START, Resource, agents::retry),
    row!(GET "/v1/runs/{run}/interactions/{interaction}", READ, Resource, interactions::show),
    row!(POST "/v1/runs/{run}/interactions/{interaction}", ANSWER, Resource, interactions::answer),
    row!(GET "/v1/interactions", READ, Resource, interactions::list),
    row!(GET "/v1/threads", READ, Resource, threads::list),
    row!(POST "/v1/threads", WRITE, Resource, threads::create),
    row!(GET "/v1/threads/{thread}", READ, Resource, threads::show),
    row!(DELETE "/v1/threads/{thread}", ADMIN, Resource, threads::remove),
    row!(GET "/v1/threads/{thread}/producers/{producer}", WRITE, Resource, producers::show_of_thread),
    row!(GET "/v1/threads/{thread}/messages", READ, Resource, messages::of_thread),
    row!(GET "/v1/threads/{thread}/records", READ, Resource, transfer::export),
    row!(POST "/v1/threads/{thread}/records", ADMIN, Resource, transfer::import),
    row!(GET "/v1/producers/{producer}", WRITE, Resource, producers::show_of_tenant),
    row!(GET "/v1/agents", READ, Resource, agents::list),
    row!(GET "/v1/webhooks", ADMIN, Resource, webhooks::list),
    row!(GET SOCIAL_APP_EVENTS, READ, Facade, social_app::events),
    row!(GET "/api/v1/agent/runs/{thread_id}/history", READ, Facade, social_app::history),
    row!(POST "/agent/stream", START, Facade, agio::stream),
    row!(POST "/api/agent/stream", START, Facade, agio::api_stream),
    row!(GET "/api/runs/{run_id}/events", READ, Facade, agio::events),
    row!(POST "/ag-ui/{agent}", START, Facade, ag_ui::run),
    row!(GET "/ag-ui/{agent}/{thread}", READ, Facade, ag_ui::attach),
    row!(POST "/api/chat", START, Facade, streaming_engine::chat),
    row!(POST "/api/v1/bot/chat", START, Facade, easyflow::chat),
    row!(POST "/api/v1/bot/form", ANSWER, Facade, easyflow::form),
    row!(GET "/api/v1/bot/ws", START, Socket, easyflow_socket::upgrade),
    row!(GET "/loom", START, Socket, loom::upgrade),
    row!(GET "/openapi.json", None, Server, openapi::show),
    row!(GET "/healthz", None, Server, resources::healthz),
    row!(GET "/readyz", None, Server, readiness::readyz),
    row!(GET "/metrics", None, Server, metrics_text::show),
];

/// Finds the route of a request.
pub(crate) fn find(method: &Method, path: &str) -> Option<&'static HttpRoute> {
    ROUTES.iter().find(|route| route.takes(method) && route.matches(path))
}

/// Lists the methods that a path answers.
fn methods_of(path: &str) -> Vec<&'static str> {
    let mut methods = Vec::new();
    for route in ROUTES.iter().filter(|route| route.matches(path)) {
        methods.push(route.method.as_str());
        if route.takes(&Method::HEAD) && route.method != Method::HEAD {
            methods.push(Method::HEAD.as_str());
        }
    }
    methods
}

impl HttpRoute {
    /// Returns true for the route of [`write::run`], which is called without axum's router.
    pub(crate) fn is_write_to_run(&self) -> bool {
        matches!(self.handler, Handler::WriteRun)
    }

    /// Returns the first parameter of a path that the route matches.
    pub(crate) fn parameter<'p>(&self, path: &'p str) -> &'p str {
        let mut segments = self.path.split('/').zip(path.split('/'));
        segments.find(|(name, _)| name.starts_with('{')).map_or("", |(_, value)| value)
    }

    /// Returns true if the route takes the method; `GET` answers `HEAD`, too.
    fn takes(&self, method: &Method) -> bool {
        self.method == method || (self.method == Method::GET && method == Method::HEAD)
    }

    /// Matches a path as axum's router does: a parameter may be empty, so that the handler refuses it, but not at the end.
    fn matches(&self, path: &str) -> bool {
        if path.ends_with('/') {
            return false;
        }
        let (mut names, mut segments) = (self.path.split('/'), path.split('/'));
        loop {
            match (names.next(), segments.next()) {
                (None, None) => return true,
                (Some(name), Some(segment)) if name == segment || name.starts_with('{') => {}
                _ => return false,
            }
        }
    }
}

/// Builds axum's router of all routes but that of [`write::run`].
pub(crate) fn router(state: Arc<AppState>) -> Router {
    let routed = ROUTES.iter().filter_map(|route| match route.handler {
        Handler::WriteRun => None,
        Handler::Axum(handler) => Some((route, handler)),
    });
    routed
        .fold(Router::new(), |router, (route, handler)| {
            // Every method of the table is one that axum knows.
            let method = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::GET);
            router.route(route.path, handler(method))
        })
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
}

/// Responds with a page of the console, or 404.
async fn unknown_route(
    State(state): State<Arc<AppState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let page = state.config.console.then(|| console::respond(&method, uri.path(), &headers)).flatten();
    page.unwrap_or_else(|| {
        Problem::new(ErrorCode::NotFound, format!("nothing answers {method} {}", uri.path())).into_response()
    })
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let path = uri.path();
    let allowed = methods_of(path);
    let problem = Problem::new(ErrorCode::MethodNotAllowed, format!("{path} does not answer {method}"));
    ([(ALLOW, allowed.join(","))], problem).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_by_its_method_and_path_and_no_other_is() {
        for route in ROUTES {
            let path = route.path.replace(['{', '}'], "");
            let found = find(&route.method, &path).unwrap();
            assert!(std::ptr::eq(found, route), "{} {path} is {}", route.method, found.path);
            assert!(MethodFilter::try_from(route.method.clone()).is_ok());
            assert!(
                find(&Method::PATCH, &path).is_none() && find(&route.method, &format!("{path}/")).is_none()
            );
        }
        for route in ROUTES {
            let methods = methods_of(&route.path.replace(['{', '}'], ""));
            assert!(methods.contains(&route.method.as_str()), "{}", route.path);
        }
        assert_eq!(methods_of("/v1/threads/t"), ["GET", "HEAD", "DELETE"]);
        assert_eq!(methods_of("/v1/nothing"), [""; 0]);
        let classes = [
            (Method::HEAD, "/v1/runs/r/events", RouteClass::Read),
            (Method::GET, "/loom", RouteClass::Socket),
            (Method::GET, "/api/v1/bot/ws", RouteClass::Socket),
        ];
        for (method, path, class) in classes {
            assert_eq!(find(&method, path).unwrap().class, class, "{method} {path}");
        }
        assert!(find(&Method::GET, "/").is_none());
    }

    #[test]
    fn only_a_write_to_a_run_is_handled_before_the_router() {
        let run = |method, uri: &'static str| {
            let uri = Uri::from_static(uri);
            let route = find(&method, uri.path()).filter(|route| route.is_write_to_run());
            route.map(|route| route.parameter(uri.path()).to_owned())
        };
        assert_eq!(run(Method::POST, "/v1/runs/a%2Fb/events?end=true").as_deref(), Some("a%2Fb"));
        assert_eq!(run(Method::GET, "/v1/runs/a/events"), None);
        assert_eq!(run(Method::POST, "/v1/runs//events").as_deref(), Some(""));
        assert_eq!(run(Method::POST, "/v1/runs/a/b/events"), None);
        assert_eq!(run(Method::POST, "/v1/threads/a/events"), None);
    }
}
