//! The service's pages: the dashboard, what machines ask (`/metrics`, `/healthz`, `/readyz`), and
//! the lab beside them.
//!
//! **Invariant:** everybody who reaches the pages may look; only who has the token, on the page
//! itself, may take a lock away.

mod standing;
mod token;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::Deserialize;
use serde_json::{Value, json};
use vez_server::seen::{self, Release, View};

use crate::lab::{self, Refusal};
pub use token::Token;

/// A release is a short sentence.
const BODY_BYTES: usize = 8 * 1024;
const TOKEN: &str = "x-vez-token";

struct Dashboard {
    view: View,
    token: Option<Token>,
}

type Shared = Arc<Dashboard>;

/// All pages. Without a token nothing can be done on them.
pub fn router(view: View, token: Option<Token>) -> Router {
    let shared = Arc::new(Dashboard { view, token });
    let pages = Router::new()
        .route("/", get(page))
        .route("/api/service", get(look))
        .route("/api/service/release", post(release))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(middleware::from_fn(lab::guard))
        .with_state(Arc::clone(&shared));
    // Machines come by whatever name they know, and learn nothing but numbers.
    let machines = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/health", get(health))
        .with_state(shared);
    lab::router(lab::Limits::default(), None).merge(pages).merge(machines)
}

async fn page() -> Response {
    lab::file("dashboard/index.html").unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}

async fn metrics(State(dashboard): State<Shared>) -> impl IntoResponse {
    ([(CONTENT_TYPE, seen::CONTENT_TYPE)], dashboard.view.metrics())
}

async fn ready(State(dashboard): State<Shared>) -> Response {
    match dashboard.view.trouble() {
        None => "ok\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

/// In etcd's form.
async fn health(State(dashboard): State<Shared>) -> Response {
    match dashboard.view.trouble() {
        None => Json(json!({ "health": "true", "reason": "" })).into_response(),
        Some(reason) => {
            let said = Json(json!({ "health": "false", "reason": reason }));
            (StatusCode::SERVICE_UNAVAILABLE, said).into_response()
        }
    }
}

/// Everything the page shows, in one answer.
async fn look(
    State(dashboard): State<Shared>,
    headers: HeaderMap,
    Query(question): Query<standing::Question>,
) -> Json<Value> {
    let may_release = dashboard.may_act(&headers);
    Json(standing::all(&dashboard.view, &question, may_release).await)
}

/// Whom to release: the key in hex, and its fence.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whom {
    id: String,
    fence: i64,
}

async fn release(
    State(dashboard): State<Shared>,
    headers: HeaderMap,
    Json(Whom { id, fence }): Json<Whom>,
) -> Result<Json<Value>, Refusal> {
    let forbidden = |why: &str| Refusal(StatusCode::FORBIDDEN, why.to_owned());
    // Every browser says where a request comes from; whose it is has been looked at already.
    if !headers.contains_key(ORIGIN) {
        return Err(forbidden("only the dashboard's own page may release a lock"));
    }
    if !dashboard.may_act(&headers) {
        return Err(forbidden(
            "releasing needs the token that the server printed when it was started; it is also \
             in the file dashboard-token in its data directory",
        ));
    }
    let key = standing::from_hex(&id).ok_or_else(|| Refusal::bad("id: expected a key in hex"))?;
    match dashboard.view.release(key.into(), fence).await {
        Ok(Release::Done) => Ok(Json(json!({ "released": true }))),
        Ok(Release::Gone) => {
            let why = "it was given up before, so that nothing was released";
            Err(Refusal(StatusCode::CONFLICT, why.to_owned()))
        }
        Err(why) => Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}

impl Dashboard {
    fn may_act(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(TOKEN).map(HeaderValue::as_bytes);
        self.token.as_ref().zip(given).is_some_and(|(token, given)| token.is(given))
    }
}
