//! A network namespace for each member, with one switch between them and the test.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Gone, with all that is in it, when it is dropped.
pub(crate) struct Net {
    /// What everything that belongs to it begins with.
    name: String,
    /// The first three parts of all addresses.
    prefix: String,
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
        };
        if net.wire() {
            return Some(net);
        }
        eprintln!("left out: networks cannot be made here");
        None
    }

    fn wire(&self) -> bool {
        let Self { name, prefix } = self;
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

    /// What every member sends is late, lost and out of order, to this extent; says whether that
    /// can be done here.
    pub(crate) fn worsen(&self, how: &str) -> bool {
        let is_done = (0..3).all(|member| {
            let space = self.space(member);
            let mut command = Command::new("tc");
            command.args(["-n", &space, "qdisc", "replace", "dev", "end", "root", "netem"]);
            let done = command.args(how.split_whitespace()).output();
            done.is_ok_and(|output| output.status.success())
        });
        if !is_done {
            eprintln!("left out: networks cannot be made worse here");
        }
        is_done
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for member in 0..3 {
            ip(&format!("netns del {}", self.space(member)));
        }
        ip(&format!("link del {}t", self.name));
        ip(&format!("netns del {}s", self.name));
    }
}
