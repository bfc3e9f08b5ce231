//! Members that show each other certificates.

use std::fs;
use std::path::PathBuf;

use vez_api::etcdserverpb::{PutRequest, kv_client::KvClient};

use crate::server::directory;
use crate::trio::Trio;

/// Somebody who vouches for members.
struct Authority {
    folder: PathBuf,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = directory();
        fs::create_dir_all(&folder).expect("a directory");
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut own = rcgen::CertificateParams::default();
        own.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = own.self_signed(&key).expect("a certificate").pem();
        fs::write(folder.join("ca"), certificate).expect("it is written");
        Self { folder, issuer: rcgen::Issuer::new(own, key) }
    }

    /// The flags of a member that is at this address.
    fn flags(&self, host: &str) -> Vec<String> {
        let key = rcgen::KeyPair::generate().expect("a key");
        let paper = rcgen::CertificateParams::new(vec![host.to_owned()]).expect("an address");
        let certificate = paper.signed_by(&key, &self.issuer).expect("a certificate").pem();
        fs::write(self.folder.join("pem"), certificate).expect("it is written");
        fs::write(self.folder.join("key"), key.serialize_pem()).expect("it is written");
        let names = ["--peer-cert-file", "--peer-key-file", "--peer-trusted-ca-file"];
        let files = ["pem", "key", "ca"].map(|name| self.folder.join(name));
        let flags = names.iter().zip(files).flat_map(|(name, file)| {
            [(*name).to_owned(), file.to_str().expect("in UTF-8").to_owned()]
        });
        flags.chain(["--peer-client-cert-auth".to_owned()]).collect()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[tokio::test]
async fn members_with_papers_of_one_authority_agree_and_others_are_not_let_in() {
    let (authority, other) = (Authority::new(), Authority::new());
    let trio = Trio::new();
    let flags = authority.flags(&trio.host);
    let mut trio = trio.encrypted(flags);
    trio.run(0);
    trio.run(1);
    trio.leader().await;
    let put = PutRequest { key: "k".into(), ..PutRequest::default() };
    KvClient::new(trio.channel(0)).put(put.clone()).await.expect("two are a majority");
    let cluster = trio.initial_cluster();
    let stranger = other.flags(&trio.host);
    let mut flags: Vec<_> = stranger.iter().map(String::as_str).collect();
    flags.extend(["--initial-cluster", &cluster]);
    let papers = trio.set_flags(Vec::new());
    trio.run_with(2, &flags);
    trio.says(0, "no TLS with").await;
    let refused = KvClient::new(trio.channel(2)).put(put.clone()).await.expect_err("it is alone");
    assert_eq!(refused.message(), "etcdserver: no leader");
    trio.kill(2);
    trio.set_flags(papers);
    trio.run(2);
    trio.leader().await;
    let put = async { while KvClient::new(trio.channel(2)).put(put.clone()).await.is_err() {} };
    tokio::time::timeout(std::time::Duration::from_mins(1), put).await.expect("it is let in");
}
