//! How a connection to a member is made.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use vez_tls::net::{Net, System};
use vez_tls::{Connector, Stream};

/// Encrypted at `https://` addresses.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    net: Arc<dyn Net>,
    tls: Option<Arc<Connector>>,
    urls: Vec<String>,
}

impl Default for Way {
    fn default() -> Self {
        Self::new(Arc::new(System), None)
    }
}

impl Way {
    pub(crate) fn new(net: Arc<dyn Net>, tls: Option<Connector>) -> Self {
        Self { net, tls: tls.map(Arc::new), urls: Vec::new() }
    }

    /// To a member that may be at any of these: the first that answers is taken.
    pub(super) fn among(&self, urls: Vec<String>) -> Self {
        Self { urls, ..self.clone() }
    }

    async fn connect(&self, url: &str) -> io::Result<Stream> {
        let uri: Uri = url.parse().map_err(io::Error::other)?;
        let host = uri.host().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(2380);
        let socket = self.net.connect(host.trim_matches(['[', ']']), port).await?;
        match (&self.tls, uri.scheme_str()) {
            (Some(tls), Some("https")) => tls.connect(host, socket).await,
            (None, Some("https")) => Err(io::Error::other(format!(
                "{url}: expected --peer-cert-file and --peer-trusted-ca-file for https://"
            ))),
            _ => Ok(vez_tls::plain(socket)),
        }
    }
}

impl Service<Uri> for Way {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let way = self.clone();
        Box::pin(async move {
            let mut outcome = Err(io::Error::other("it has no address"));
            for url in &way.urls {
                outcome = way.connect(url).await;
                if outcome.is_ok() {
                    break;
                }
            }
            outcome.map(TokioIo::new)
        })
    }
}
