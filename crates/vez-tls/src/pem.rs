//! Certificates and keys, from files.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {0}: {1}")]
    File(PathBuf, String),
    /// Read, but of no use.
    #[error("{0}: {1}")]
    Certificates(PathBuf, String),
}

impl Error {
    pub(crate) fn wrong(path: &Path, error: &impl std::fmt::Display) -> Self {
        Self::Certificates(path.to_owned(), error.to_string())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| Error::File(path.to_owned(), error.to_string()))
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(Error::File(path.to_owned(), "no certificate in it".to_owned())),
        Err(error) => Err(Error::File(path.to_owned(), error.to_string())),
    }
}

pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| {
        let why = match error {
            rustls::pki_types::pem::Error::NoItemsFound => "no private key in it".to_owned(),
            error => error.to_string(),
        };
        Error::File(path.to_owned(), why)
    })
}

pub(crate) fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| Error::wrong(path, &error))?;
    }
    Ok(roots)
}
