//! Which page a request is for. `hyper` reads and writes all of them on one thread; what a page does runs beside it, and may block.

use crate::answer::{Response, text, with_status};
use crate::call::{self, Call};
use crate::shared::Shared;
use crate::{access, compare, failure, form, history, job, live, metrics, page, runs};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kurabe_core::{Error, ErrorKind, Result};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// The largest form that is read, in bytes.
const LARGEST: usize = 1 << 20;
/// How long a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long nobody is accepted after an accept failed, as when all files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers: it may read files and compute.
type Handler = fn(&Call) -> Result<Response>;

/// What is found at a path: for reading, and for changing.
#[derive(Default)]
struct Route {
    get: Option<Handler>,
    post: Option<Handler>,
    name: String,
}

/// The pages. `None`: there is no such page.
fn route(path: &str) -> Option<Route> {
    let get = |get: Handler| Route { get: Some(get), ..Route::default() };
    let post = |post: Handler| Route { post: Some(post), ..Route::default() };
    let mut parts = path.strip_prefix('/')?.split('/');
    let (first, name, action) = (parts.next()?, parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    let route = match (first, name.is_some(), action) {
        ("", false, None) => get(runs::list),
        ("runs", true, None) => get(runs::one),
        ("runs", true, Some("report")) => get(runs::report),
        ("runs", true, Some("events")) => get(live::run),
        ("runs", true, Some("note")) => post(runs::note),
        ("runs", true, Some("stop")) => post(runs::stop),
        ("runs", true, Some("resume")) => post(runs::resume),
        ("jobs", true, None) => get(job::page),
        ("jobs", true, Some("events")) => get(live::job),
        ("jobs", true, Some("stop")) => post(job::stop),
        ("compare", false, None) => get(compare::page),
        ("history", false, None) => get(history::list),
        ("history", true, None) => get(history::page),
        ("new", false, None) => get(|call| Ok(form::list(call.language()))),
        ("new", true, None) => Route { get: Some(form::page), post: Some(form::start), ..Route::default() },
        ("metrics", false, None) => get(metrics::page),
        ("style.css", false, None) => get(|_| Ok(page::style())),
        ("script.js", false, None) => get(|_| Ok(page::script())),
        _ => return None,
    };
    let name = percent_encoding::percent_decode_str(name.unwrap_or_default()).decode_utf8().ok()?;
    Some(Route { name: name.into_owned(), ..route })
}

/// Answers requests, until it is dropped.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) -> Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, Arc::clone(&shared)))),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(request, shared).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    // What a client does wrong, or a connection that it closes, is its own affair.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Response {
    let (head, body) = request.into_parts();
    let language = call::language(&shared, &head.headers);
    let needs_field = match access::check(&shared.access, &head) {
        Ok(needs_field) => needs_field,
        Err(refused) => return *refused,
    };
    let Ok(body) = Limited::new(body, LARGEST).collect().await else {
        return access::too_large();
    };
    let body = body.to_bytes();
    if needs_field && let Err(refused) = access::check_form(&shared.access, head.uri.path(), &body) {
        return *refused;
    }
    let Some(route) = route(head.uri.path()) else {
        return failure::answer(&Error::new(ErrorKind::NotFound, "there is no such page"), language);
    };
    let handler = match head.method {
        Method::GET | Method::HEAD => route.get,
        Method::POST => route.post,
        _ => None,
    };
    let Some(handler) = handler else {
        let allowed = match (route.get, route.post) {
            (Some(_), Some(_)) => "GET, HEAD, POST",
            (_, None) => "GET, HEAD",
            (None, _) => "POST",
        };
        let mut answer = with_status(StatusCode::METHOD_NOT_ALLOWED, text(String::new()));
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return answer;
    };
    let query = head.uri.query().unwrap_or_default().to_owned();
    let call = Call { shared, name: route.name, query, headers: head.headers, body };
    let done = tokio::task::spawn_blocking(move || handler(&call)).await;
    let done =
        done.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the work for this page panicked")));
    done.unwrap_or_else(|error| failure::answer(&error, language))
}
