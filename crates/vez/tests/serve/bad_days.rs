//! What goes wrong around a server: it says so in one line, and loses nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use crate::server::{Server, directory, serve};

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().last().unwrap_or_default().to_owned();
    assert!(!said.contains("panicked"), "{said}");
    last
}

#[test]
fn a_second_server_on_one_directory_is_refused() {
    let server = Server::vez();
    let second = serve(&server.directory, "127.0.0.1:0").output().expect("it runs");
    let why = refused(&second);
    assert!(why.contains("another") && why.contains("serve-"), "{why}");
}

#[test]
fn a_port_in_use_is_named() {
    let server = Server::vez();
    let second = serve(&directory(), &server.address).output().expect("it runs");
    let why = refused(&second);
    assert!(why.contains(&server.address), "{why}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    if rustix::process::geteuid().is_root() {
        // Root may write everywhere but where there is nothing to write to.
        let why = refused(&serve("/proc/vez".as_ref(), "127.0.0.1:0").output().expect("it runs"));
        assert!(why.contains("/proc/vez"), "{why}");
        return;
    }
    let place = directory();
    fs::create_dir_all(&place).expect("a directory");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o500)).expect("it is ours");
    let why = refused(&serve(&place, "127.0.0.1:0").output().expect("it runs"));
    assert!(why.contains("serve-"), "{why}");
}

#[test]
fn an_address_beyond_this_machine_needs_a_word() {
    let output = serve(&directory(), "0.0.0.0:0").output().expect("it runs");
    let why = refused(&output);
    assert!(why.contains("0.0.0.0") && why.contains("--insecure"), "{why}");
}

#[test]
fn it_stops_in_good_order_when_asked() {
    let mut server = Server::vez();
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}
