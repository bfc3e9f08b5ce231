//! The page's files, part of the binary.

use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

use super::Refusal;

/// Read from the source tree in a debug build, so that a page can be edited while it is open.
#[derive(RustEmbed)]
#[folder = "lab/"]
struct Files;

pub(super) async fn page(method: Method, uri: Uri) -> Response {
    let path = match uri.path() {
        // Beside the service, the lab is below its own name.
        "/" | "/lab" | "/lab/" => "index.html",
        path => path.strip_prefix("/lab/").unwrap_or(""),
    };
    let is_asked = matches!(method, Method::GET | Method::HEAD);
    is_asked.then(|| file(path)).flatten().unwrap_or_else(|| {
        let why = format!("there is no {method} {}", uri.path());
        Refusal(StatusCode::NOT_FOUND, why).into_response()
    })
}

/// One of the files, if it is there.
pub(crate) fn file(path: &str) -> Option<Response> {
    let kind = match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => Some("text/html; charset=utf-8"),
        Some("css") => Some("text/css; charset=utf-8"),
        Some("js") => Some("text/javascript; charset=utf-8"),
        Some("svg") => Some("image/svg+xml"),
        _ => None,
    };
    let (kind, file) = kind.zip(Files::get(path))?;
    Some(([(CONTENT_TYPE, kind)], file.data).into_response())
}
