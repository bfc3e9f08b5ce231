//! gRPC's words: what a call begins with and how it ends.

use std::time::Duration;

use tonic::Status;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use tonic::metadata::MetadataMap;
use vez_http2::Fields;

/// With which every answer begins.
pub(super) const CONTENT_TYPE: (&[u8], &[u8]) = (b"content-type", b"application/grpc");
/// How one ends that went well.
pub(super) const WELL: (&[u8], &[u8]) = (b"grpc-status", b"0");

/// What a call begins with.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) path: String,
    pub(super) timeout: Option<Duration>,
    fields: Fields,
}

impl Head {
    /// The status of HTTP with which it is refused, if it is no call at all.
    pub(super) fn read(fields: Fields) -> Result<Self, u16> {
        if fields.get(b":method") != Some(b"POST") {
            return Err(405);
        }
        if !fields.get(b"content-type").is_some_and(|kind| kind.starts_with(CONTENT_TYPE.1)) {
            return Err(415);
        }
        let path = fields.get(b":path").and_then(|path| str::from_utf8(path).ok()).ok_or(400u16)?;
        let path = path.to_owned();
        let timeout = fields.get(b"grpc-timeout").and_then(timeout);
        Ok(Self { path, timeout, fields })
    }

    /// What the caller says beside its request, without what is HTTP's or gRPC's own.
    pub(super) fn metadata(&self) -> MetadataMap {
        MetadataMap::from_headers(headers(self.fields.iter().filter(|(name, _)| {
            !matches!(*name, b"te" | b"content-type" | b"user-agent" | b"accept-encoding")
                && !name.starts_with(b"grpc-")
        })))
    }

    /// As tonic's own services are called.
    pub(super) fn request<B>(&self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        // What is no path is not found.
        *request.uri_mut() = self.path.parse().unwrap_or_default();
        *request.headers_mut() = headers(self.fields.iter());
        request
    }
}

/// Those that can be said at all; the ones with a colon are not headers.
fn headers<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.filter(|(name, _)| !name.starts_with(b":")) {
        if let Ok(name) = HeaderName::from_lowercase(name)
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            headers.append(name, value);
        }
    }
    headers
}

pub(super) fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
}

/// How a call ends that did not go well.
pub(super) fn headers_of(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if status.add_header(&mut headers).is_err() {
        // What cannot be said in a header; the code can.
        headers.insert("grpc-status", HeaderValue::from(status.code() as i32));
    }
    headers
}

/// At most eight digits and a unit.
fn timeout(said: &[u8]) -> Option<Duration> {
    let (unit, digits) = said.split_last()?;
    let digits = str::from_utf8(digits).ok().filter(|digits| digits.len() <= 8)?;
    let number: u64 = digits.parse().ok().filter(|_| !digits.starts_with('+'))?;
    match unit {
        b'H' => Some(Duration::from_hours(number)),
        b'M' => Some(Duration::from_mins(number)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_read_as_grpc_says_it() {
        for (said, is) in [
            ("2H", Some(Duration::from_hours(2))),
            ("3M", Some(Duration::from_mins(3))),
            ("5S", Some(Duration::from_secs(5))),
            ("99999999m", Some(Duration::from_millis(99_999_999))),
            ("7u", Some(Duration::from_micros(7))),
            ("0n", Some(Duration::ZERO)),
            ("100000000m", None),
            ("5", None),
            ("", None),
            ("+5S", None),
            ("-5S", None),
            ("5s", None),
        ] {
            assert_eq!(timeout(said.as_bytes()), is, "{said}");
        }
    }
}
