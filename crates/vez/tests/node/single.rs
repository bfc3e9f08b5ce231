//! Single processes: their console, their hooks, and what strangers do to them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{Node, PATIENCE, free_port, members, scratch, write_group};

#[test]
fn its_user_asks_by_the_console_and_by_the_socket() {
    let folder = scratch("console");
    let cluster = write_group(&folder, &members(&[free_port(), free_port()]));
    let socket = folder.join("control");
    let _one = Node::up("coordinator", 1, &cluster, &[]);
    let mut two = Node::up("coordinator", 2, &cluster, &["--control", socket.to_str().unwrap()]);
    two.say("acquire");
    assert_eq!(two.next("notice")["notice"]["Entered"]["fence"], 1);
    two.say("release");
    assert_eq!(two.next("asked")["wish"], "release");
    for (line, expected) in
        [("release", "not now"), ("dance", "`dance` is no"), ("start", "this algorithm cannot")]
    {
        two.say(line);
        let refused = two.next("refused");
        assert!(refused["why"].as_str().unwrap().starts_with(expected), "{refused}");
    }
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"acquire 1ms\n").unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let entered = lines.into_iter().find(|line| line.contains("Entered"));
    assert!(entered.unwrap().contains("\"fence\":2"));
    two.say("quit");
    two.next("ended");
    assert_eq!(two.end().0, Some(0));
    assert!(!socket.exists());
}

#[test]
fn hooks_run_inside_and_while_leading() {
    let folder = scratch("hooks");
    let cluster = write_group(&folder, &members(&[free_port(), free_port()]));
    let inside = folder.join("inside");
    let enter = format!("echo $VEZ_NODE $VEZ_FENCE > {}", inside.display());
    let _one = Node::up("coordinator", 1, &cluster, &[]);
    let mut two = Node::up("coordinator", 2, &cluster, &["--on-enter", &enter]);
    two.say("acquire");
    assert_eq!(two.next("asked")["wish"], "acquire");
    // It leaves when the command is over.
    assert_eq!(two.next("asked")["wish"], "release");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "2 1\n");
    let folder = scratch("leads");
    let cluster = write_group(&folder, &members(&[free_port(), free_port()]));
    let over = folder.join("over");
    let leader = format!(
        "trap 'echo $VEZ_LEADER > {}; exit' TERM; while :; do sleep 0.05; done",
        over.display()
    );
    let mut two = Node::up("bully", 1, &cluster, &["--on-leader", &leader]);
    two.say("start");
    assert_eq!(two.next("notice")["notice"]["Leader"]["id"], 1);
    let mut larger = Node::up("bully", 2, &cluster, &[]);
    larger.say("start");
    while two.next("notice")["notice"]["Leader"]["id"] != 2 {}
    // It says so in its last moment.
    let deadline = Duration::from_millis(20);
    let seen = (0..500).any(|_| {
        std::thread::sleep(deadline);
        fs::read_to_string(&over).is_ok_and(|text| text == "1\n")
    });
    assert!(seen, "the command was not asked to end");
}

#[test]
fn what_is_wrong_with_the_file_is_said_in_one_line() {
    let folder = scratch("wrong");
    let group = members(&[free_port(), free_port()]);
    for (text, expected) in [
        (format!("{group}[config]\nanswer_witin = \"1ms\"\n"), "cluster.toml, line 8: config: "),
        (format!("{group}adress = 4\n"), "cluster.toml, line 7: unknown field `adress`"),
        (String::new(), "cluster.toml, line 1: missing field `node`"),
    ] {
        let cluster = write_group(&folder, &text);
        let (code, told) = Node::start("bully", 1, &cluster, &[]).end();
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(expected) && told.lines().count() == 1, "{told}");
    }
    let cluster = write_group(&folder, &group);
    let (code, told) = Node::start("bully", 7, &cluster, &[]).end();
    assert!(code == Some(2) && told.contains("no node has the id 7"), "{told}");
    let everywhere = write_group(&folder, &group.replace("127.0.0.1", "0.0.0.0"));
    let (code, told) = Node::start("bully", 1, &everywhere, &[]).end();
    assert!(code == Some(2) && told.contains("--insecure"), "{told}");
}

#[test]
fn strangers_are_counted_spoken_of_once_and_do_no_harm() {
    let folder = scratch("strangers");
    let port = free_port();
    let cluster = write_group(&folder, &members(&[port, free_port()]));
    let mut one = Node::up("bully", 1, &cluster, &[]);
    let throw = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // It hangs up on us, kindly or not.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    // A frame that says it is four gigabytes long; what is no frame; greetings of another
    // version, of another group, and of nobody.
    throw(&[0xff; 64]);
    throw(&[3, 0, 0, 0, 0xff, 0xff, 0xff]);
    throw(b"GET / HTTP/1.1\r\n\r\n");
    let greeting = |version: u8| [5, 0, 0, 0, 0, version, 7, 2, 1];
    assert!(throw(&greeting(99)).contains("speaks version 99"));
    assert!(throw(&greeting(2)).contains("is of another group"));
    let counts = one.counts();
    // What there is to say is said at the latest after a count.
    one.counts();
    assert_eq!(counts["garbage"], 3, "{counts}");
    assert_eq!(counts["strangers"], 2, "{counts}");
    let warned = one.seen.iter().filter(|event| event["event"] == "warning").count();
    assert_eq!(warned, 2, "{:?}", one.seen);
    let mut two = Node::up("bully", 2, &cluster, &[]);
    two.say("start");
    assert_eq!(one.next("notice")["notice"]["Leader"]["id"], 2);
}

#[test]
fn a_second_process_of_one_id_ends_and_says_why() {
    let folder = scratch("twice");
    let ports = [free_port(), free_port()];
    let cluster = write_group(&folder, &members(&ports));
    let mut one = Node::up("bully", 1, &cluster, &[]);
    let mut two = Node::up("bully", 2, &cluster, &[]);
    two.say("start");
    one.next("notice");
    let elsewhere = folder.join("elsewhere.toml");
    fs::write(&elsewhere, members(&[ports[0], free_port()])).unwrap();
    let mut second = Node::start("bully", 2, &elsewhere, &[]);
    second.next("ready");
    let status = second.child.wait().unwrap();
    let told = second.end().1;
    assert_eq!(status.code(), Some(2), "{told}");
    assert!(told.contains("id 2: the id is taken by a process that is alive, says 1"), "{told}");
    // The first goes on.
    two.say("start");
    two.next("notice");
}

#[test]
fn a_killed_process_finds_what_it_saved_and_nobody_else_may() {
    let folder = scratch("killed");
    let cluster = write_group(&folder, &members(&[free_port()]));
    let data = folder.join("data");
    let with_data = ["--data", data.to_str().unwrap()];
    let mut one = Node::start("weighted-majority", 1, &cluster, &with_data);
    assert_eq!(one.next("ready")["again"], false);
    one.say("start");
    let term = one.next("notice")["notice"]["Leader"]["term"].as_u64().unwrap();
    let (code, told) = Node::start("weighted-majority", 1, &cluster, &with_data).end();
    assert!(code == Some(2) && told.contains("another process uses it"), "{told}");
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    let mut one = Node::start("weighted-majority", 1, &cluster, &with_data);
    assert_eq!(one.next("ready")["again"], true);
    one.say("start");
    let later = one.next("notice")["notice"]["Leader"]["term"].as_u64().unwrap();
    assert!(term < later, "{term} {later}");
}

#[test]
fn a_new_member_comes_in_by_a_reload_with_a_larger_epoch() {
    let folder = scratch("reload");
    let ports = [free_port(), free_port(), free_port()];
    let cluster = write_group(&folder, &members(&ports[..2]));
    let mut one = Node::up("bully", 1, &cluster, &[]);
    let mut two = Node::up("bully", 2, &cluster, &[]);
    write_group(&folder, &members(&ports));
    one.say("reload");
    let why = one.next("refused")["why"].as_str().unwrap().to_owned();
    assert!(why.contains("expected more than 0"), "{why}");
    write_group(&folder, &format!("epoch = 1\n{}", members(&ports)));
    one.say("reload");
    assert_eq!(one.next("reloaded")["epoch"], 1);
    assert_eq!(one.next("ready")["epoch"], 1);
    let pid = two.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    assert_eq!(two.next("ready")["epoch"], 1);
    let mut three = Node::up("bully", 3, &cluster, &[]);
    three.say("start");
    for node in [&mut one, &mut two] {
        while node.next("notice")["notice"]["Leader"]["id"] != 3 {}
    }
}

/// Certificates for this machine, as flags.
fn certificates(folder: &Path) -> Vec<String> {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = authority.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(authority, key);
    let own = rcgen::KeyPair::generate().unwrap();
    let names = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = names.signed_by(&own, &issuer).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ca, cert) = (file("ca", root.pem()), file("cert", certificate.pem()));
    let key = file("key", own.serialize_pem());
    let flags = ["--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key];
    flags.map(str::to_owned).to_vec()
}

#[test]
fn with_certificates_on_both_sides_they_talk_and_nobody_else_does() {
    let folder = scratch("tls");
    let flags = certificates(&folder);
    let tls: Vec<&str> = flags.iter().map(String::as_str).collect();
    let port = free_port();
    let slow = "[config]\nanswer_within = \"1s\"\nvictory_within = \"3s\"\n";
    let cluster = write_group(&folder, &(members(&[port, free_port()]) + slow));
    let mut one = Node::up("bully", 1, &cluster, &tls);
    let mut two = Node::up("bully", 2, &cluster, &tls);
    one.say("start");
    assert_eq!(one.next("notice")["notice"]["Leader"]["id"], 2);
    assert_eq!(two.next("notice")["notice"]["Leader"]["id"], 2);
    // One without a certificate.
    two.say("quit");
    two.next("ended");
    let mut plain = Node::up("bully", 2, &cluster, &[]);
    plain.say("start");
    one.next("warning");
    assert!(1 <= one.counts()["handshakes"].as_u64().unwrap());
    let (code, told) = Node::start("bully", 1, &cluster, &tls[..2]).end();
    assert!(code == Some(2) && told.contains("--tls-cert"), "{told}");
}

#[test]
fn what_may_be_lost_may_not_be_read_by_others_either() {
    let folder = scratch("tls-lossy");
    let flags = certificates(&folder);
    let tls: Vec<&str> = flags.iter().map(String::as_str).collect();
    let ports = [free_port(), free_port(), free_port()];
    let cluster = write_group(&folder, &members(&ports));
    let mut nodes = [1, 2, 3].map(|id| Node::up("weighted-majority", id, &cluster, &tls));
    let leader_of = |node: &mut Node| loop {
        if let Some(leader) = node.next("notice")["notice"]["Leader"]["id"].as_u64() {
            return leader;
        }
    };
    let [first, ..] = nodes.each_mut().map(leader_of);
    // Nobody listens for datagrams there: the port is free.
    assert!(std::net::UdpSocket::bind(("127.0.0.1", ports[0])).is_ok());
    nodes[first as usize - 1].child.kill().unwrap();
    let other = 1 + first as usize % 3;
    let next = loop {
        let leader = leader_of(&mut nodes[other - 1]);
        if leader != first {
            break leader;
        }
    };
    // What it says to the one that is gone is lost, not kept.
    let leader = &mut nodes[next as usize - 1];
    let lost = (0..3_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        0 < leader.counts()["unsent"].as_u64().unwrap()
    });
    assert!(lost, "{}", leader.counts());
}

#[test]
fn a_file_in_the_way_of_the_control_socket_stays() {
    let folder = scratch("in-the-way");
    let cluster = write_group(&folder, &members(&[free_port()]));
    let file = folder.join("precious");
    fs::write(&file, "kept").unwrap();
    let (code, told) =
        Node::start("bully", 1, &cluster, &["--control", file.to_str().unwrap()]).end();
    assert!(code == Some(2) && told.contains("cannot listen on"), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}
