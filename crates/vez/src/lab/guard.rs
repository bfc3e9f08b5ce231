//! What every request must show, and every answer carries.
//!
//! The lab runs on the machine of whoever looks at it. Another page in the same browser must not
//! be able to use it: neither by sending forms here, nor by giving this address a name of its own.

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Refusal;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-cache"),
];

/// Goes with every request that came encrypted.
#[derive(Clone, Copy)]
pub(crate) struct Encrypted;

pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let encrypted = request.extensions().get::<Encrypted>().copied();
    let mut response = match objection(request.method(), request.headers(), encrypted) {
        None => next.run(request).await,
        Some(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn objection(
    method: &Method,
    headers: &HeaderMap,
    encrypted: Option<Encrypted>,
) -> Option<Refusal> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let forbidden = |why: String| Some(Refusal(StatusCode::FORBIDDEN, why));
    let host = text(HOST).unwrap_or_default();
    // Where there is a certificate, a name that points here without being ours is not believed.
    if encrypted.is_none() && !is_address(host) {
        return forbidden(format!("this page answers to its address, not to the name `{host}`"));
    }
    let scheme = if encrypted.is_some() { "https://" } else { "http://" };
    if let Some(origin) = text(ORIGIN)
        && origin.strip_prefix(scheme) != Some(host)
    {
        return forbidden(format!("this server answers its own page, not {origin}"));
    }
    let is_json =
        text(CONTENT_TYPE).is_some_and(|kind| kind.split(';').next() == Some("application/json"));
    if *method == Method::POST && !is_json {
        let why = "expected Content-Type: application/json".to_owned();
        return Some(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    None
}

/// Whether a host is `localhost` or a plain IP address: names can be made to point anywhere.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok()
}
