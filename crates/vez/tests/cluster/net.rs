//! A network namespace for each member, with one switch between them and the test.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Gone, with all that is in it, when it is dropped.
pub(crate) struct Net {
    /// What everything that belongs to it begins with.
    name: String,
    /// The first three parts of all addresses.
    prefix: String,
    /// In place of the good one.
    bad_switch: Mutex<Option<Child>>,
}

/// What becomes of what a member sends.
pub(crate) struct Badness {
    pub(crate) delay_ms: u32,
    /// By so much it varies.
    pub(crate) jitter_ms: u32,
    /// Such parts in a hundred never arrive, or at once and before earlier ones.
    pub(crate) loss_percent: u32,
    pub(crate) swift_percent: u32,
}

fn ip(args: &str) -> bool {
    let done = Command::new("ip").args(args.split_whitespace()).output();
    done.is_ok_and(|output| output.status.success())
}

impl Net {
    /// Nothing, where one may not make networks.
    pub(crate) fn make() -> Option<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) % 100;
        let [.., high, low] = std::process::id().to_be_bytes();
        let net = Self {
            name: format!("vz{high:x}{low:x}n{number}"),
            // Meant for tests, and so in nobody's way.
            prefix: format!("198.18.{}", (u32::from(low) + 7 * number) % 250),
            bad_switch: Mutex::default(),
        };
        if net.wire() {
            return Some(net);
        }
        eprintln!("left out: networks cannot be made here");
        None
    }

    fn wire(&self) -> bool {
        let Self { name, prefix, .. } = self;
        let own = format!("{name}t");
        let mut steps = vec![
            format!("netns add {name}s"),
            format!("-n {name}s link add bridge type bridge"),
            format!("-n {name}s link set bridge up"),
            format!("link add {own} type veth peer name test netns {name}s"),
            format!("-n {name}s link set test master bridge"),
            format!("-n {name}s link set test up"),
            format!("addr add {prefix}.100/24 dev {own}"),
            format!("link set {own} up"),
        ];
        for member in 0..3 {
            let space = self.space(member);
            steps.extend([
                format!("netns add {space}"),
                format!("-n {space} link set lo up"),
                format!("-n {space} link add end type veth peer name m{member} netns {name}s"),
                format!("-n {name}s link set m{member} master bridge"),
                format!("-n {name}s link set m{member} up"),
                format!("-n {space} addr add {}/24 dev end", self.host(member)),
                format!("-n {space} link set end up"),
            ]);
        }
        steps.iter().all(|step| ip(step))
    }

    fn space(&self, member: usize) -> String {
        format!("{}m{member}", self.name)
    }

    pub(crate) fn host(&self, member: usize) -> String {
        format!("{}.{}", self.prefix, 1 + member)
    }

    /// The same command, on a member's machine.
    pub(crate) fn inside(&self, member: usize, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.space(member)]);
        inside.arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside
    }

    /// Nothing that one member sends reaches the other any more.
    pub(crate) fn cut(&self, from: usize, to: usize) {
        let (space, host) = (self.space(from), self.host(to));
        assert!(ip(&format!("-n {space} route add blackhole {host}/32")), "it can be cut");
    }

    /// In both directions.
    pub(crate) fn part(&self, one: usize, other: usize) {
        self.cut(one, other);
        self.cut(other, one);
    }

    /// All is as it was.
    pub(crate) fn heal(&self) {
        for from in 0..3 {
            for to in 0..3 {
                // What was not cut cannot be mended.
                ip(&format!("-n {} route del blackhole {}/32", self.space(from), self.host(to)));
            }
        }
    }

    /// What every member sends is late, lost and out of order, to this extent: by the kernel, or
    /// by a switch of our own where the kernel cannot. Says whether that can be done here.
    pub(crate) fn worsen(&self, how: &Badness) -> bool {
        let is_done = self.worsen_with_netem(how) || self.worsen_with_a_switch(how);
        if !is_done {
            eprintln!("left out: networks cannot be made worse here, which takes netem or python3");
        }
        is_done
    }

    fn worsen_with_netem(&self, how: &Badness) -> bool {
        let Badness { delay_ms, jitter_ms, loss_percent, swift_percent } = how;
        let how = format!(
            "delay {delay_ms}ms {jitter_ms}ms loss {loss_percent}% reorder {swift_percent}%"
        );
        (0..3).all(|member| {
            let space = self.space(member);
            let mut command = Command::new("tc");
            command.args(["-n", &space, "qdisc", "replace", "dev", "end", "root", "netem"]);
            let done = command.args(how.split_whitespace()).output();
            done.is_ok_and(|output| output.status.success())
        })
    }

    /// Takes the cables out of the good switch and puts them into a bad one.
    fn worsen_with_a_switch(&self, how: &Badness) -> bool {
        let (room, share) = (format!("{}s", self.name), |percent| f64::from(percent) / 100.0);
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &room, "python3"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/bad_switch.py"))
            .args([how.delay_ms, how.jitter_ms].map(|time| time.to_string()))
            .args([how.loss_percent, how.swift_percent].map(|percent| share(percent).to_string()))
            .args(["test", "m0", "m1", "m2"])
            .stdout(Stdio::piped());
        let Ok(mut switch) = command.spawn() else { return false };
        let mut line = [0; "ready\n".len()];
        let is_ready =
            switch.stdout.as_mut().is_some_and(|says| says.read_exact(&mut line).is_ok());
        let is_ready = is_ready && ip(&format!("-n {room} link del bridge"));
        *self.bad_switch.lock().unwrap() = Some(switch);
        is_ready
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if let Some(switch) = self.bad_switch.get_mut().unwrap() {
            // Gone already, perhaps.
            switch.kill().ok();
            switch.wait().ok();
        }
        for member in 0..3 {
            ip(&format!("netns del {}", self.space(member)));
        }
        ip(&format!("link del {}t", self.name));
        ip(&format!("netns del {}s", self.name));
    }
}
