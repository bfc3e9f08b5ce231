//! The flags from a file, what is wrong with them, and the examples in the docs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::server::directory;
use crate::tls::Authority;

fn check(file: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.args(["serve", "--check-config", "--config-file"]).arg(file).args(flags);
    command.output().expect("it runs")
}

fn written(text: &str) -> PathBuf {
    let folder = directory();
    fs::create_dir_all(&folder).expect("a directory");
    let file = folder.join("vez.toml");
    fs::write(&file, text).expect("it is written");
    file
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

#[test]
fn a_file_says_what_flags_say_and_flags_count_more() {
    let file = written(
        "name = \"alpha\"\ndata-dir = \"nowhere\"\nhistory = 5\ninsecure = true\n\
         listen-client-urls = [\"http://127.0.0.1:7001\", \"http://0.0.0.0:7002\"]\n",
    );
    let output = check(&file, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected =
        "OK: alpha, data in nowhere, clients at http://127.0.0.1:7001,http://0.0.0.0:7002";
    assert_eq!(lines(&output.stdout), [expected]);
    let output = check(&file, &["--name", "beta", "--listen-client-urls", "http://127.0.0.1:7003"]);
    let expected = "OK: beta, data in nowhere, clients at http://127.0.0.1:7003";
    assert_eq!(lines(&output.stdout), [expected]);
    // Nothing was opened or made.
    assert!(!Path::new("nowhere").exists() && !Path::new("beta.vez").exists());
    let from_environment = Command::new(env!("CARGO_BIN_EXE_vez"))
        .args(["serve", "--check-config"])
        .env("ETCD_CONFIG_FILE", &file)
        .env("ETCD_NAME", "gamma")
        .output()
        .expect("it runs");
    assert!(lines(&from_environment.stdout)[0].starts_with("OK: gamma, data in nowhere"));
    fs::remove_dir_all(file.parent().expect("a folder")).ok();
}

#[test]
fn every_mistake_of_a_file_has_its_line() {
    let file = written(
        "name = \"alpha\"\nhistroy = 5\nmax-leases = \"many\"\ninsecure = 1\n\n\
         name-of-it = \"x\"\nlog-level = [1]\ncheck-config = true\n",
    );
    let output = check(&file, &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = lines(&output.stderr);
    let expected = [
        (2, "did you mean `history`?"),
        (3, "`max-leases`: invalid value 'many'"),
        (4, "`insecure`: expected true or false"),
        (6, "there is no `name-of-it`"),
        (7, "`log-level`: expected a text"),
        (8, "there is no `check-config`"),
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (line, (number, part)) in said.iter().zip(expected) {
        let place = format!("vez.toml:{number}: ");
        assert!(line.contains(&place) && line.contains(part), "{line}\nexpected {place}{part}");
    }
    fs::write(&file, "name = \"alpha\"\nhistory = \n").expect("it is written");
    let said = lines(&check(&file, &[]).stderr);
    assert!(said.len() == 1 && said[0].contains("vez.toml:2: "), "{said:#?}");
    // What is wrong only together is told together.
    fs::write(&file, "history = 0\nclient-cert-auth = true\n").expect("it is written");
    let said = lines(&check(&file, &["--listen-client-urls", "https://127.0.0.1:0"]).stderr);
    let parts = ["https://", "--client-cert-auth", "--history"];
    assert_eq!(said.len(), parts.len(), "{said:#?}");
    assert!(said.iter().zip(parts).all(|(line, part)| line.contains(part)), "{said:#?}");
    let missing = check(Path::new("not/there.toml"), &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(lines(&missing.stderr)[0].contains("not/there.toml"), "{missing:?}");
    fs::remove_dir_all(file.parent().expect("a folder")).ok();
}

#[test]
fn the_example_in_the_docs_is_right_and_the_unit_uses_it() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/systemd");
    let unit = fs::read_to_string(docs.join("vez.service")).expect("it is there");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let words: Vec<_> = start.expect("it starts something").split_whitespace().collect();
    assert_eq!(words[1..], ["serve", "--config-file", "/etc/vez/vez.toml"]);
    assert!(unit.contains("\nType=notify\n"), "{unit}");
    let output = check(&docs.join("vez.toml"), &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // What is commented out is right, too, in place of what it says otherwise.
    let text = fs::read_to_string(docs.join("vez.toml")).expect("it is there");
    let instead: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("#: ")).collect();
    let key = |line: &str| line.split(" = ").next().unwrap_or_default().to_owned();
    let stays = |line: &&str| !instead.iter().any(|other| key(other) == key(line));
    let all: Vec<_> = text.lines().filter(stays).chain(instead.iter().copied()).collect();
    let authority = Authority::new();
    let paper = authority.server();
    let all = all.join("\n").replace("/etc/vez/server.pem", &paper.certificate);
    let all = all.replace("/etc/vez/server.key", &paper.key);
    let file = written(&all.replace("/etc/vez/clients-ca.pem", &authority.ca()));
    let output = check(&file, &[]);
    let expected = "clients at https://0.0.0.0:2379, with certificates only";
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("OK: alpha") && said.contains(expected), "{output:?}");
    fs::remove_dir_all(file.parent().expect("a folder")).ok();
}
