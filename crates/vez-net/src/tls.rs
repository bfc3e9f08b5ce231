//! Connections, plain or with certificates on both sides.

use std::io;
use std::path::PathBuf;

use tokio::net::TcpStream;
use vez_tls::net::tcp;
use vez_tls::{Acceptor, ClientFiles, Connector, Identity, ServerFiles};

pub use vez_tls::Error as TlsError;
pub(crate) use vez_tls::Stream;

/// Where the certificates are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Who vouches for the others.
    pub authority: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub struct Tls {
    acceptor: Acceptor,
    connector: Connector,
}

impl Tls {
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { authority, certificate, key } = files.clone();
        let clients = Some(authority.clone());
        let server = ServerFiles { certificate: certificate.clone(), key: key.clone(), clients };
        let identity = Some(Identity { certificate, key });
        let client = ClientFiles { servers: authority, identity };
        Ok(Self {
            acceptor: Acceptor::load(server, &[])?,
            connector: Connector::load(client, &[])?,
        })
    }
}

pub(crate) async fn connect(address: &str, tls: Option<&Tls>) -> io::Result<Stream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(vez_tls::plain(tcp(stream))) };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    tls.connector.connect(host, tcp(stream)).await
}

pub(crate) async fn accept(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(vez_tls::plain(tcp(stream))) };
    tls.acceptor.accept(tcp(stream)).await
}
