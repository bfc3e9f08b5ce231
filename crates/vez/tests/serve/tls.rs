//! Certificates: who is let in with them, and who is not.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use vez_tls::net::tcp;
use vez_tls::{ClientFiles, Connector};

use crate::server::{Server, directory, is_there, serve_at};

/// Somebody who vouches for others.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Paper {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

fn named(name: &str) -> rcgen::CertificateParams {
    let mut paper =
        rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    paper.distinguished_name = rcgen::DistinguishedName::new();
    paper.distinguished_name.push(rcgen::DnType::CommonName, name);
    paper
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = directory();
        fs::create_dir_all(&folder).expect("a directory");
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut own = named("authority");
        own.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        fs::write(folder.join("ca"), own.self_signed(&key).expect("a certificate").pem())
            .expect("it is written");
        Self { folder, issuer: rcgen::Issuer::new(own, key) }
    }

    pub(crate) fn ca(&self) -> String {
        path(&self.folder.join("ca"))
    }

    fn vouch(&self, name: &str, paper: &rcgen::CertificateParams) -> Paper {
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = paper.signed_by(&key, &self.issuer).expect("a certificate");
        let file = |kind: &str, text: String| {
            let file = self.folder.join(format!("{name}.{kind}"));
            fs::write(&file, text).expect("it is written");
            path(&file)
        };
        Paper { certificate: file("pem", certificate.pem()), key: file("key", key.serialize_pem()) }
    }

    pub(crate) fn server(&self) -> Paper {
        self.vouch("server", &named("server"))
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn path(path: &Path) -> String {
    path.to_str().expect("in UTF-8").to_owned()
}

fn encrypted(paper: &Paper, flags: &[&str]) -> Server {
    let mut all = vec!["--cert-file", &paper.certificate, "--key-file", &paper.key];
    all.extend(flags);
    Server::vez_at_url(&directory(), "https://127.0.0.1:0", &all)
}

/// A client that is told to give up soon.
fn etcdctl(server: &Server, flags: &[&str], what: &[&str]) -> Output {
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["--endpoints", &server.endpoint()]);
    command.args(["--command-timeout", "2s", "--dial-timeout", "2s"]).args(flags).args(what);
    command.output().expect("it runs")
}

fn vez(server: &Server, flags: &[&str], what: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.arg(what[0]).args(["--endpoints", &server.endpoint()]).args(flags).args(&what[1..]);
    command.output().expect("it runs")
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[track_caller]
fn works(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

#[test]
fn whoever_knows_the_authority_gets_in_and_nobody_else() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = encrypted(&authority.server(), &[]);
    let (ca, wrong) = (authority.ca(), other.ca());
    works(&vez(&server, &["--cacert", &ca], &["lock", "door", "--", "true"]));
    works(&vez(&server, &["--cacert", &ca], &["status"]));
    let refused = vez(&server, &["--cacert", &wrong], &["status"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("invalid peer certificate"), "{}", said(&refused));
    let refused = vez(&server, &[], &["status"]);
    assert!(said(&refused).contains("--cacert"), "{}", said(&refused));
    if is_there("etcdctl") {
        works(&etcdctl(&server, &["--cacert", &ca], &["put", "a", "b"]));
        works(&etcdctl(&server, &["--cacert", &ca], &["lock", "door", "true"]));
        assert!(!etcdctl(&server, &["--cacert", &wrong], &["get", "a"]).status.success());
    }
}

/// What an encrypted page answers to whoever trusts this authority.
async fn page(server: &Server, ca: &str, head: &str) -> io::Result<String> {
    let files = ClientFiles { servers: ca.into(), identity: None };
    let connector = Connector::load(files, &["http/1.1"]).expect("certificates");
    let stream = tokio::net::TcpStream::connect(&server.pages).await?;
    let mut stream = connector.connect("127.0.0.1", tcp(stream)).await?;
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn the_pages_are_encrypted_where_that_is_asked_for() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (ca, wrong) = (authority.ca(), other.ca());
    let server = encrypted(&authority.server(), &["--listen-metrics-urls", "https://127.0.0.1:0"]);
    let healthy = "GET /healthz HTTP/1.1\r\nHost: vez.example";
    let answer = page(&server, &ca, healthy).await.expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
    let refused = page(&server, &wrong, healthy).await.expect_err("nobody vouches for it");
    assert!(refused.to_string().contains("invalid peer certificate"), "{refused}");
    assert!(!server.page("/healthz").contains("HTTP"), "nothing is said in the open");
    // The certificate says whose name it is; who else sends a browser here is still refused.
    let from = |origin: &str| format!("GET / HTTP/1.1\r\nHost: vez.example\r\nOrigin: {origin}");
    let own = page(&server, &ca, &from("https://vez.example")).await.expect("it answers");
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    for origin in ["http://vez.example", "https://evil.example"] {
        let foreign = page(&server, &ca, &from(origin)).await.expect("it answers");
        assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    }
}

#[test]
fn where_clients_must_show_a_certificate_none_gets_in_without() {
    let (authority, other) = (Authority::new(), Authority::new());
    let ca = authority.ca();
    let asks = ["--trusted-ca-file", &ca, "--client-cert-auth"];
    let server = encrypted(&authority.server(), &asks);
    let good = authority.vouch("client", &named("client"));
    let foreign = other.vouch("client", &named("client"));
    let mut late = named("late");
    late.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let late = authority.vouch("late", &late);
    let with = |paper: &Paper| {
        let [cert, key] = [&paper.certificate, &paper.key].map(Clone::clone);
        ["--cacert".to_owned(), ca.clone(), "--cert".to_owned(), cert, "--key".to_owned(), key]
    };
    let ways = [(with(&good), true), (with(&foreign), false), (with(&late), false)];
    for (flags, gets_in) in ways {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let output = vez(&server, &flags, &["lock", "door", "--", "true"]);
        assert_eq!(output.status.success(), gets_in, "{flags:?}: {}", said(&output));
        if is_there("etcdctl") {
            let output = etcdctl(&server, &flags, &["put", "a", "b"]);
            assert_eq!(output.status.success(), gets_in, "{flags:?}: {}", said(&output));
        }
    }
    let output = vez(&server, &["--cacert", &ca], &["status"]);
    assert!(!output.status.success(), "{}", said(&output));
    if is_there("etcdctl") {
        assert!(!etcdctl(&server, &["--cacert", &ca], &["put", "a", "b"]).status.success());
    }
}

#[test]
fn a_server_whose_certificate_is_over_is_not_believed_until_it_is_renewed() {
    let authority = Authority::new();
    let mut late = named("server");
    late.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let paper = authority.vouch("server", &late);
    let server = encrypted(&paper, &[]);
    let ca = authority.ca();
    let refused = vez(&server, &["--cacert", &ca], &["status"]);
    assert!(said(&refused).contains("xpired"), "{}", said(&refused));
    // Under the same names, one after the other: in between they do not fit together.
    let renewed = authority.vouch("renewed", &named("server"));
    fs::copy(&renewed.certificate, &paper.certificate).expect("it is written");
    assert!(!vez(&server, &["--cacert", &ca], &["status"]).status.success());
    fs::copy(&renewed.key, &paper.key).expect("it is written");
    works(&vez(&server, &["--cacert", &ca], &["status"]));
}

#[test]
fn whoever_does_not_shake_hands_bothers_nobody_and_is_told_of_once() {
    let authority = Authority::new();
    let paper = authority.server();
    let place = directory();
    let mut process = serve_at(&place, "https://127.0.0.1:0")
        .args(["--cert-file", &paper.certificate, "--key-file", &paper.key])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stderr = process.stderr.take().expect("it is piped");
    let server = Server::started(process, &place);
    // Who says nothing, and who speaks plainly, many times.
    let _silent = TcpStream::connect(&server.address).expect("it listens");
    for _ in 0..50 {
        let mut plain = TcpStream::connect(&server.address).expect("it listens");
        plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("it is heard");
        plain.set_read_timeout(Some(Duration::from_secs(30))).expect("it may be set");
        // It is shown the door, not left waiting; an alert may come first.
        let mut answer = Vec::new();
        plain.read_to_end(&mut answer).ok();
        assert!(answer.len() < 100, "{answer:?}");
    }
    let plain = server.endpoint().replace("https", "http");
    let output = Command::new(env!("CARGO_BIN_EXE_vez"))
        .args(["status", "--endpoints", &plain])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    works(&vez(&server, &["--cacert", &authority.ca()], &["status"]));
    drop(server);
    let told = BufReader::new(stderr).lines().map_while(Result::ok);
    let told: Vec<_> = told.filter(|line| line.contains("no TLS with 127.0.0.1")).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
}

#[test]
fn flags_that_do_not_go_together_are_refused_in_one_line_each() {
    let authority = Authority::new();
    let Paper { certificate, key } = authority.server();
    let ca = authority.ca();
    let other = authority.vouch("other", &named("other")).key;
    let url = "--listen-client-urls";
    let cases: [(&[&str], &str); 8] = [
        (&[url, "https://127.0.0.1:0"], "--cert-file"),
        (&["--cert-file", &certificate, "--key-file", &key], "https://"),
        (&[url, "https://127.0.0.1:0", "--cert-file", &certificate], "come together"),
        (&["--trusted-ca-file", &ca], "--cert-file"),
        (&["--client-cert-auth"], "--trusted-ca-file"),
        (&[url, "http://0.0.0.0:0"], "--insecure"),
        (
            &[url, "https://127.0.0.1:0", "--cert-file", "nowhere.pem", "--key-file", &key],
            "nowhere.pem",
        ),
        (
            &[url, "https://127.0.0.1:0", "--cert-file", &certificate, "--key-file", &other],
            "server.pem",
        ),
    ];
    for (flags, expected) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
        let output = command.args(["serve", "--data-dir", "nowhere"]).args(flags).output();
        let output = output.expect("it runs");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.lines().count() == 1 && said.contains(expected), "{flags:?}: {said}");
    }
}

#[test]
fn beyond_so_many_connections_nobody_is_let_in_until_one_goes() {
    let server = Server::vez_in(&directory(), &["--max-connections", "2"]);
    let connect = || TcpStream::connect(&server.address).expect("it listens");
    let is_let_in = |mut stream: &TcpStream| {
        // A server of HTTP/2 speaks first: its settings.
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").ok();
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it may be set");
        matches!(stream.read(&mut [0; 9]), Ok(1..))
    };
    let (first, second) = (connect(), connect());
    assert!(is_let_in(&first) && is_let_in(&second));
    assert!(!is_let_in(&connect()));
    drop(first);
    let again = (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_let_in(&connect())
    });
    assert!(again, "there is room again");
}
