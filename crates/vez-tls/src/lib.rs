//! Connections, plain or encrypted, and the one way in which certificates are read.
//!
//! **Invariant:** certificates that are replaced on the disk are used from the next connection on,
//! whole or not at all: while the files do not fit together, the former ones go on.

pub mod net;
mod pem;
mod renewed;

pub use pem::Error;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tokio_util::either::Either;

use self::net::Socket;
use self::renewed::Renewed;

/// A connection to be read from and written to, plain or encrypted.
pub type Stream = Either<Socket, Box<TlsStream<Socket>>>;

pub fn plain(socket: Socket) -> Stream {
    Either::Left(socket)
}

/// What a side that is connected to shows, and asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Who vouches for clients; without it nobody is asked for a certificate.
    pub clients: Option<PathBuf>,
}

/// What a side that connects trusts, and shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// Who vouches for servers.
    pub servers: PathBuf,
    pub identity: Option<Identity>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug)]
pub struct Acceptor(Renewed<ServerConfig>);

#[derive(Debug)]
pub struct Connector(Renewed<ClientConfig>);

impl Acceptor {
    /// What is spoken inside, as "h2", is told to whoever asks.
    pub fn load(files: ServerFiles, protocols: &[&str]) -> Result<Self, Error> {
        let protocols: Vec<_> = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let paths = [&files.certificate, &files.key].into_iter().chain(&files.clients).cloned();
        Renewed::load(paths.collect(), move || {
            let builder = match &files.clients {
                None => ServerConfig::builder().with_no_client_auth(),
                Some(clients) => {
                    let roots = Arc::new(pem::roots(clients)?);
                    let verifier = WebPkiClientVerifier::builder(roots).build();
                    let verifier = verifier.map_err(|error| Error::wrong(clients, &error))?;
                    ServerConfig::builder().with_client_cert_verifier(verifier)
                }
            };
            let chain = pem::certificates(&files.certificate)?;
            let mut config = builder
                .with_single_cert(chain, pem::key(&files.key)?)
                .map_err(|error| Error::wrong(&files.certificate, &error))?;
            config.alpn_protocols.clone_from(&protocols);
            Ok(config)
        })
        .map(Self)
    }

    pub async fn accept(&self, stream: Socket) -> io::Result<Stream> {
        let accepted = TlsAcceptor::from(self.0.now()).accept(stream).await?;
        Ok(Either::Right(Box::new(accepted.into())))
    }
}

impl Connector {
    pub fn load(files: ClientFiles, protocols: &[&str]) -> Result<Self, Error> {
        let protocols: Vec<_> = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let identity = files.identity.iter().flat_map(|own| [&own.certificate, &own.key]);
        let paths = std::iter::once(&files.servers).chain(identity).cloned().collect();
        Renewed::load(paths, move || {
            let builder =
                ClientConfig::builder().with_root_certificates(pem::roots(&files.servers)?);
            let mut config = match &files.identity {
                None => builder.with_no_client_auth(),
                Some(Identity { certificate, key }) => builder
                    .with_client_auth_cert(pem::certificates(certificate)?, pem::key(key)?)
                    .map_err(|error| Error::wrong(certificate, &error))?,
            };
            config.alpn_protocols.clone_from(&protocols);
            Ok(config)
        })
        .map(Self)
    }

    /// The certificate must be for this host: a name, or an address.
    pub async fn connect(&self, host: &str, stream: Socket) -> io::Result<Stream> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        let connected = TlsConnector::from(self.0.now()).connect(name, stream).await?;
        Ok(Either::Right(Box::new(connected.into())))
    }
}
