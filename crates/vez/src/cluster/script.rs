//! What may be said to a cluster, a line at a time, by hand or from a file.

use std::str::FromStr;
use std::time::Duration;

use vez_core::Time;

pub(super) const HELP: &str = "\
  kill 3 | stop 3 | cont 3 | start 3     SIGKILL, SIGSTOP, SIGCONT, the process again
  elect 3|all | suspect 1 3              3 starts an election; 1 takes 3 for dead
  acquire 3|all [HOLD] | release 3 | withdraw 3
  cut 1-2 | cut 1>2 | partition 1,2/3,4,5 | heal [1-2]
  delay 5ms|1ms..5ms [1-2] | loss 0.1 [1-2]
  wait COND [within 10s]                 ready [3] | leader [3] | leader among 3,4,5 |
                                         leads 3 | follows 1 3 |
                                         no-leader 3 | suspects 1 3 | entered 3 | left 3 | idle
  status | judge | count 3 | sleep 100ms | say WORDS | help | quit";

/// A line, understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deed {
    Kill(u64),
    Stop(u64),
    Continue(u64),
    Start(u64),
    /// Said to one process, or to all that run, as it is.
    Tell(Option<u64>, String),
    Cut(Direction),
    Heal(Option<Direction>),
    Partition(Vec<Vec<u64>>),
    Delay(Duration, Duration, Option<Direction>),
    Loss(f64, Option<Direction>),
    Wait(Condition, Duration),
    Sleep(Duration),
    Say(String),
    Status,
    Judge,
    Help,
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) both: bool,
}

/// What can be waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Ready(Option<u64>),
    /// Everyone up follows one who is up; this one, if it is said.
    Leader(Option<u64>),
    /// These follow one and the same of them.
    Among(Vec<u64>),
    Leads(u64),
    Follows(u64, u64),
    NoLeader(u64),
    Suspects(u64, u64),
    /// It has entered since it was last told to.
    Entered(u64),
    Left(u64),
    /// Nobody waits, and nobody is inside.
    Idle,
}

const WAIT_WITHIN: Duration = Duration::from_secs(30);

/// What a line means; nothing if it is empty or a remark.
pub(super) fn understand(line: &str) -> Result<Option<Deed>, String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let words: Vec<&str> = line.split_whitespace().collect();
    let told = |who: &str, what: String| {
        let who = if who == "all" { None } else { Some(uid(who)?) };
        Ok(Deed::Tell(who, what))
    };
    let way = |words: &[&str]| match words {
        [] => Ok(None),
        [way] => direction(way).map(Some),
        _ => Err("expected one link".to_owned()),
    };
    let deed: Result<Deed, String> = match words[..] {
        [] => return Ok(None),
        ["kill", who] => uid(who).map(Deed::Kill),
        ["stop", who] => uid(who).map(Deed::Stop),
        ["cont", who] => uid(who).map(Deed::Continue),
        ["start", who] => uid(who).map(Deed::Start),
        ["elect", who] => told(who, "start".to_owned()),
        ["suspect", who, of] => told(who, format!("suspect {}", uid(of)?)),
        ["acquire", who] => told(who, "acquire".to_owned()),
        ["acquire", who, hold] => told(who, format!("acquire {}", time(hold)?)),
        ["release", who] => told(who, "release".to_owned()),
        ["withdraw", who] => told(who, "withdraw".to_owned()),
        ["count", who] => told(who, "count".to_owned()),
        ["cut", way] => direction(way).map(Deed::Cut),
        ["heal", ref rest @ ..] => way(rest).map(Deed::Heal),
        ["partition", groups] => partition(groups).map(Deed::Partition),
        ["delay", span, ref rest @ ..] => {
            let (least, most) = span.split_once("..").unwrap_or((span, span));
            let (least, most) = (duration(time(least)?), duration(time(most)?));
            if most < least {
                return Err(format!("`{span}`: expected the shorter delay first"));
            }
            way(rest).map(|way| Deed::Delay(least, most, way))
        }
        ["loss", share, ref rest @ ..] => {
            let loss = share.parse().ok().filter(|loss| (0.0..=1.0).contains(loss));
            let loss = loss.ok_or_else(|| format!("`{share}`: expected a share, 0 to 1"))?;
            way(rest).map(|way| Deed::Loss(loss, way))
        }
        ["wait", ref condition @ .., "within", span] => {
            Ok(Deed::Wait(condition_of(condition)?, duration(time(span)?)))
        }
        ["wait", ref condition @ ..] => Ok(Deed::Wait(condition_of(condition)?, WAIT_WITHIN)),
        ["sleep", span] => Ok(Deed::Sleep(duration(time(span)?))),
        ["say", ..] => Ok(Deed::Say(line["say".len()..].trim().to_owned())),
        ["status"] => Ok(Deed::Status),
        ["judge"] => Ok(Deed::Judge),
        ["help"] => Ok(Deed::Help),
        ["quit"] => Ok(Deed::Quit),
        _ => Err(format!("`{line}` is no command; `help` lists them")),
    };
    deed.map(Some)
}

fn condition_of(words: &[&str]) -> Result<Condition, String> {
    Ok(match *words {
        ["ready"] => Condition::Ready(None),
        ["ready", who] => Condition::Ready(Some(uid(who)?)),
        ["leader"] => Condition::Leader(None),
        ["leader", who] => Condition::Leader(Some(uid(who)?)),
        ["leader", "among", whom] => {
            let whom: Result<Vec<u64>, String> = whom.split(',').map(uid).collect();
            Condition::Among(whom?)
        }
        ["leads", who] => Condition::Leads(uid(who)?),
        ["follows", who, whom] => Condition::Follows(uid(who)?, uid(whom)?),
        ["no-leader", who] => Condition::NoLeader(uid(who)?),
        ["suspects", who, whom] => Condition::Suspects(uid(who)?, uid(whom)?),
        ["entered", who] => Condition::Entered(uid(who)?),
        ["left", who] => Condition::Left(uid(who)?),
        ["idle"] => Condition::Idle,
        _ => {
            let found = words.join(" ");
            return Err(format!(
                "`wait {found}`: expected ready, leader, leads, follows, no-leader, suspects, entered, left or idle"
            ));
        }
    })
}

fn uid(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a uid"))
}

fn time(text: &str) -> Result<Time, String> {
    Time::from_str(text).map_err(|error| error.to_string())
}

fn duration(time: Time) -> Duration {
    Duration::from_micros(time.as_micros())
}

fn direction(text: &str) -> Result<Direction, String> {
    let split = text.split_once('>').map(|ends| (ends, false));
    let split = split.or_else(|| text.split_once('-').map(|ends| (ends, true)));
    let ((from, to), both) =
        split.ok_or_else(|| format!("`{text}` is no link; expected 1-2, or 1>2"))?;
    Ok(Direction { from: uid(from)?, to: uid(to)?, both })
}

fn partition(text: &str) -> Result<Vec<Vec<u64>>, String> {
    let group = |group: &str| group.split(',').map(uid).collect();
    text.split('/').map(group).collect()
}
