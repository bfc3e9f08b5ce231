//! The lab's server: a page, and the few questions it asks.
//!
//! The page holds a scenario and nothing else. It sends the scenario, gets back the run, and shows
//! it; so there is no session here to lose, and every answer can be had again.
//!
//! **Invariant:** each answer is bounded work: so many processes, steps, events and bytes, and so
//! many at once; beyond that a clear refusal.

mod catalogue;
mod guard;
mod live;
mod pages;
mod runs;
mod search;

use std::future::{Future, IntoFuture as _};
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub(crate) use guard::{Encrypted, guard};
pub use live::{Live, Order};
pub(crate) use pages::file;

/// The most that is done for one question.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    pub nodes: u32,
    pub events: usize,
    pub steps: u64,
    pub body_bytes: usize,
    /// How many runs at once; others wait.
    pub runs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes: 500, events: 200_000, steps: 2_000_000, body_bytes: 1 << 20, runs: 2 }
    }
}

struct Lab {
    limits: Limits,
    turns: Semaphore,
    searches: search::Searches,
    /// The cluster that is watched, if one is.
    live: Option<Arc<Live>>,
}

type Shared = Arc<Lab>;

/// Answers until `until` is over.
pub async fn serve(
    listener: TcpListener,
    limits: Limits,
    until: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router(limits, None)).with_graceful_shutdown(until).await
}

/// Answers, and shows a cluster that runs, for as long as this is awaited.
pub async fn show(listener: TcpListener, limits: Limits, live: Arc<Live>) -> std::io::Result<()> {
    let answering = axum::serve(listener, router(limits, Some(Arc::clone(&live))));
    tokio::select! {
        ended = answering.into_future() => ended,
        () = live.follow() => Ok(()),
    }
}

/// The page and its questions, to be served alone or beside something else.
pub fn router(limits: Limits, live: Option<Arc<Live>>) -> Router {
    let lab = Arc::new(Lab {
        limits,
        turns: Semaphore::new(limits.runs),
        searches: search::Searches::default(),
        live,
    });
    Router::new()
        .route("/api/catalogue", get(catalogue::catalogue))
        .route("/api/run", post(runs::run))
        .route("/api/export", post(runs::export))
        .route("/api/live", get(live::stretch).post(live::say))
        .route("/api/check", post(search::begin))
        .route("/api/check/{id}", get(search::standing).delete(search::cancel))
        .fallback(pages::page)
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(middleware::from_fn(guard::guard))
        .with_state(lab)
}

/// Why a question has no answer: one line for people.
pub(crate) struct Refusal(pub(crate) StatusCode, pub(crate) String);

impl Refusal {
    pub(crate) fn bad(why: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, why.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status, error) = self;
        (status, Json(serde_json::json!({ "error": error }))).into_response()
    }
}
