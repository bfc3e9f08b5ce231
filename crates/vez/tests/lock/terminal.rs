//! The command reads what is typed, from a pipe and from a terminal.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::run::vez;
use crate::server::with_each;

#[test]
fn a_command_reads_standard_input() {
    with_each("cli-stdin", |server| {
        let mut command = vez(server, &["lock", "job", "--", "cat"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "typed\n");
    });
}

#[test]
fn a_command_has_the_terminal_and_gives_it_back() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("LEFT OUT: a terminal: `script` is not installed here");
        return;
    }
    with_each("cli-terminal", |server| {
        // What follows on the same terminal can read from it only if it was given back.
        let inner = format!(
            "'{}' lock job --endpoints {} -- sh -c 'read word; echo got $word; test -t 0'; \
             echo code $?; read word; echo then $word",
            env!("CARGO_BIN_EXE_vez"),
            server.endpoint()
        );
        // A command without the terminal would wait for ever.
        let mut command = Command::new("timeout");
        command.args(["60", "script", "-q", "-e", "-c", &inner, "/dev/null"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"one\ntwo\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        for expected in ["got one\n", "code 0\n", "then two\n"] {
            assert!(text.contains(expected), "{text}");
        }
        drop(stdin);
    });
}
