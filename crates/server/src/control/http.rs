//! The same over HTTP: the page, JSON, events, metrics.
//!
//! | way | what |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /api/status` | [`crate::status::Status`] |
//! | `GET /api/tasks` | tasks by drive |
//! | `GET /api/findings` | what is wrong or notable, as `headtime doctor` says it |
//! | `GET /api/history` | latency, impact and rate of tasks in the last ten minutes, every five seconds |
//! | `GET /api/events` | a status four times a second, as server-sent events |
//! | `GET /metrics` | for Prometheus |
//! | `POST /api` | a request of the control socket's, without its version |
//!
//! Web pages of others must not reach it through their visitor's browser: whoever names another host
//! (a name that resolves to this machine: DNS rebinding) or comes from another origin is refused, and
//! a POST has to be JSON, which browsers send nowhere else without asking. Other users of this
//! machine reach it, too: what changes something is refused unless the configuration allows it, and
//! programs of scans are only taken from the control socket.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, Stream};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::desk::{BREATH, Desk};
use super::history::History;
use super::protocol::{Answer, Ask, LONGEST_LINE};
use super::rights::reaches_files;
use super::{metrics, page};
use crate::config::Actions;
use crate::diagnosis::of_status;

/// Serves until the plane ends, then finishes the answers that are under way.
pub(super) async fn serve(listener: TcpListener, desk: Desk) {
    let Ok(address) = listener.local_addr() else {
        return;
    };
    let places = Arc::new(Semaphore::new(desk.bounds.connections));
    let patience = desk.bounds.patience;
    let mut ended = desk.ended.clone();
    let history = History::default();
    let mut clients = tokio::task::JoinSet::new();
    clients.spawn(history.clone().follow(desk.clone()));
    let shared = Shared {
        desk,
        address,
        history,
    };
    let router = router(shared);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = clients.join_next() => continue,
            _ = ended.changed() => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // As the queue of the kernel would, were it full.
            drop(stream);
            continue;
        };
        let router = TowerToHyperService::new(router.clone());
        let mut ended = ended.clone();
        clients.spawn(async move {
            let mut connection = hyper::server::conn::http1::Builder::new();
            connection.timer(TokioTimer::new());
            connection.header_read_timeout(patience);
            connection.max_buf_size(LONGEST_LINE);
            let mut served = pin!(connection.serve_connection(TokioIo::new(stream), router));
            // An error of one connection concerns its client only.
            tokio::select! {
                _ = tokio::time::timeout(LIFETIME, served.as_mut()) => (),
                _ = ended.changed() => {
                    served.as_mut().graceful_shutdown();
                    let _ = served.await;
                }
            }
            drop(place);
        });
    }
    drop(listener);
    while clients.join_next().await.is_some() {}
}

/// The longest that a connection lasts, whatever it does: who never takes what it asked for keeps no
/// place for ever, and the page connects again by itself. A choice.
const LIFETIME: Duration = Duration::from_secs(600);

#[derive(Clone)]
struct Shared {
    desk: Desk,
    address: SocketAddr,
    history: History,
}

fn router(shared: Shared) -> Router {
    let mut router = Router::new();
    for file in page::FILES {
        router = router.route(file.path, get(move || async move { file.into_response() }));
    }
    router
        .route("/api/status", get(status))
        .route("/api/tasks", get(tasks))
        .route("/api/findings", get(findings))
        .route("/api/history", get(history))
        .route("/api/events", get(events))
        .route("/api", post(ask))
        .route("/metrics", get(prometheus))
        .layer(DefaultBodyLimit::max(LONGEST_LINE))
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Refuses other hosts and other origins, and forbids that others make a frame of the page.
async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = text(headers, header::HOST);
    if !host.is_some_and(|host| is_ours(host, shared.address)) {
        return refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "expected this machine's own name as Host",
        );
    }
    let origin = text(headers, header::ORIGIN);
    let same = |origin: &str| origin.strip_prefix("http://") == host;
    if headers.contains_key(header::ORIGIN) && !origin.is_some_and(same) {
        return refuse(StatusCode::FORBIDDEN, "expected a request of our own page");
    }
    let mut response = next.run(request).await;
    for (name, value) in FOR_BROWSERS {
        let value = header::HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

const FOR_BROWSERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a Host header names the address that is listened on: by number, or as localhost. Where
/// the configuration opened it to the network, any number and no other name.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
        _ => (host, Some(80)),
    };
    let number = name.trim_start_matches('[').trim_end_matches(']');
    let named = match number.parse::<IpAddr>() {
        Ok(number) => number == address.ip() || address.ip().is_unspecified(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    };
    named && port == Some(address.port())
}

fn refuse(code: StatusCode, problem: &str) -> Response {
    json(code, &Answer::refusal(problem))
}

fn json(code: StatusCode, answer: &Answer) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (code, kind, answer.line()).into_response()
}

/// What was asked for, alone; a refusal with its reason.
fn respond(answer: &Answer) -> Response {
    match &answer.ok {
        Some(outcome) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (kind, format!("{outcome}\n")).into_response()
        }
        None => json(StatusCode::UNPROCESSABLE_ENTITY, answer),
    }
}

async fn status(State(shared): State<Shared>) -> Response {
    respond(&shared.desk.answer(Ask::Status).await)
}

async fn tasks(State(shared): State<Shared>) -> Response {
    respond(&shared.desk.answer(Ask::Tasks).await)
}

async fn findings(State(shared): State<Shared>) -> Response {
    let status = shared.desk.status().await;
    let text = status.map(|status| serde_json::to_string(&of_status(&status)));
    written(text.and_then(Result::ok))
}

async fn history(State(shared): State<Shared>) -> Response {
    written(shared.history.text(Instant::now()).ok())
}

/// JSON that was written, if it could be.
fn written(text: Option<String>) -> Response {
    match text {
        Some(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        None => unanswered(),
    }
}

async fn prometheus(State(shared): State<Shared>) -> Response {
    let text = shared.desk.status().await.as_ref().and_then(metrics::text);
    match text {
        Some(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        None => unanswered(),
    }
}

fn unanswered() -> Response {
    refuse(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the service could not answer",
    )
}

/// What changes something.
async fn ask(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let kind = text(&headers, header::CONTENT_TYPE).unwrap_or_default();
    if kind.split(';').next() != Some("application/json") {
        let problem = "expected Content-Type: application/json";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem);
    }
    let ask: Ask = match serde_json::from_slice(&body) {
        Ok(ask) => ask,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    if !ask.only_looks() && shared.desk.bounds.http_actions == Actions::Refused {
        let problem = "http_actions is false in [control]: expected true, or `headtime ctl`";
        return refuse(StatusCode::FORBIDDEN, problem);
    }
    if reaches_files(&ask) {
        let problem = "programs are only run, and files written, for the control socket: expected \
                       `headtime scan`";
        return refuse(StatusCode::FORBIDDEN, problem);
    }
    respond(&shared.desk.answer(ask).await)
}

/// How often the page is told. A choice: often enough to look alive.
const EVERY: Duration = Duration::from_millis(250);

async fn events(
    State(shared): State<Shared>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let ticks = tokio::time::interval(EVERY);
    let events = stream::unfold((shared, ticks), |(mut shared, mut ticks)| async move {
        tokio::select! {
            _ = ticks.tick() => (),
            _ = shared.desk.ended.changed() => return None,
        }
        let answer = shared.desk.answer(Ask::Status).await;
        let event = match answer.ok {
            Some(status) => Event::default().event("status").data(status.to_string()),
            None => Event::default().comment("the service could not answer"),
        };
        Some((Ok(event), (shared, ticks)))
    });
    Sse::new(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_this_machine_and_localhost_are_ours() {
        let local = "127.0.0.1:8384".parse().unwrap();
        for host in ["127.0.0.1:8384", "localhost:8384", "LOCALHOST:8384"] {
            assert!(is_ours(host, local), "{host}");
        }
        for host in [
            "evil.example:8384",
            "127.0.0.1",
            "localhost:80",
            "10.0.0.1:8384",
            "",
            ":",
        ] {
            assert!(!is_ours(host, local), "{host}");
        }
        let six = "[::1]:8384".parse().unwrap();
        assert!(is_ours("[::1]:8384", six) && !is_ours("[::1]", six));
        let all = "0.0.0.0:80".parse().unwrap();
        assert!(is_ours("10.0.0.1", all) && !is_ours("evil.example", all));
    }
}
