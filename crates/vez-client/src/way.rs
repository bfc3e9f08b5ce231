//! How a connection is made, plain or encrypted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use vez_tls::net::Net;
use vez_tls::{ClientFiles, Connector, Stream};

#[derive(Clone)]
pub(crate) struct Way {
    net: Arc<dyn Net>,
    tls: Option<Arc<Connector>>,
}

impl Way {
    pub(crate) fn new(net: Arc<dyn Net>, tls: Option<ClientFiles>) -> Result<Self, vez_tls::Error> {
        let connector = tls.map(|files| Connector::load(files, &["h2"])).transpose()?;
        Ok(Self { net, tls: connector.map(Arc::new) })
    }
}

impl Service<Uri> for Way {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { net, tls } = self.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let port = uri.port_u16().unwrap_or_default();
            let socket = net.connect(host.trim_matches(['[', ']']), port).await?;
            Ok(TokioIo::new(match tls {
                None => vez_tls::plain(socket),
                Some(connector) => connector.connect(host, socket).await?,
            }))
        })
    }
}
