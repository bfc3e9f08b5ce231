//! What the network does to a message: how long it takes, whether it arrives, how often.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use vez_core::{NodeId, ParseTimeError, Seeded, Time};

/// The network of a scenario, before anything is cut. The default is the reference schedule:
/// every message takes exactly one millisecond and arrives, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub delay: Delay,
    /// The share of messages that are lost, and that arrive twice.
    pub loss: f64,
    pub duplicate: f64,
    /// Whether messages of one sender to one receiver arrive in the order sent.
    pub fifo: bool,
    /// Rules for one direction of one link, in place of the general ones.
    pub links: BTreeMap<(NodeId, NodeId), LinkRule>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRule {
    pub delay: Option<Delay>,
    pub loss: Option<f64>,
    pub duplicate: Option<f64>,
}

impl Default for Network {
    fn default() -> Self {
        let delay = Delay::Fixed(Time::from_millis(1));
        Self { delay, loss: 0.0, duplicate: 0.0, fifo: true, links: BTreeMap::new() }
    }
}

/// How long a message takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    Fixed(Time),
    /// Any time between these two, all equally likely.
    Uniform(Time, Time),
    /// With this mean.
    Exponential(Time),
    /// With this median, and this standard deviation of the logarithm.
    LogNormal(Time, f64),
}

/// No message is instant: cause comes before effect.
const SHORTEST: Time = Time::from_micros(1);

impl Delay {
    /// Whether messages can overtake each other on a link with this delay.
    pub fn varies(self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// The mathematics is libm's, written in Rust: the same on every machine.
    fn draw(self, chance: &mut Seeded) -> Time {
        let drawn = match self {
            Self::Fixed(time) => time,
            Self::Uniform(low, high) => {
                let width = high.as_micros() - low.as_micros();
                low + Time::from_micros(chance.below_u64(width + 1))
            }
            Self::Exponential(mean) => scale(mean, -libm::log(1.0 - chance.unit())),
            Self::LogNormal(median, sigma) => {
                // Box–Muller; the second of the pair is not kept, so that no draw has a memory.
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - chance.unit()));
                let angle = 2.0 * std::f64::consts::PI * chance.unit();
                scale(median, libm::exp(sigma * radius * libm::cos(angle)))
            }
        };
        drawn.max(SHORTEST)
    }
}

/// `time` stretched by `factor`, to the nearest microsecond.
#[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "factors are positive")]
pub(crate) fn scale(time: Time, factor: f64) -> Time {
    Time::from_micros(libm::round(time.as_micros() as f64 * factor) as u64)
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => write!(f, "{time}"),
            Self::Uniform(low, high) => write!(f, "{low}..{high}"),
            Self::Exponential(mean) => write!(f, "exp:{mean}"),
            Self::LogNormal(median, sigma) => write!(f, "lognormal:{median}:{sigma}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseDelayError(String);

impl fmt::Display for ParseDelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseDelayError {}

impl From<ParseTimeError> for ParseDelayError {
    fn from(error: ParseTimeError) -> Self {
        Self(error.to_string())
    }
}

impl FromStr for Delay {
    type Err = ParseDelayError;

    /// Reads `1ms`, `1ms..5ms`, `exp:2ms` (its mean) and `lognormal:2ms:0.5` (median and sigma).
    fn from_str(text: &str) -> Result<Self, ParseDelayError> {
        let positive = |time: Time| match time {
            Time::ZERO => Err(ParseDelayError("a message takes at least 1us, not 0".to_owned())),
            time => Ok(time),
        };
        if let Some(mean) = text.strip_prefix("exp:") {
            return Ok(Self::Exponential(positive(mean.parse()?)?));
        }
        if let Some(rest) = text.strip_prefix("lognormal:") {
            let bad = || ParseDelayError(format!("`{text}`: expected lognormal:MEDIAN:SIGMA"));
            let (median, sigma) = rest.split_once(':').ok_or_else(bad)?;
            let sigma: f64 = sigma.parse().map_err(|_| bad())?;
            if !(0.0..=5.0).contains(&sigma) {
                let why = format!("`{text}`: sigma {sigma}; expected 0 to 5");
                return Err(ParseDelayError(why));
            }
            return Ok(Self::LogNormal(positive(median.parse()?)?, sigma));
        }
        let Some((low, high)) = text.split_once("..") else {
            return Ok(Self::Fixed(positive(text.parse()?)?));
        };
        let (low, high) = (positive(low.parse()?)?, positive(high.parse()?)?);
        if high < low {
            return Err(ParseDelayError(format!("`{text}`: the range ends before it begins")));
        }
        Ok(if low == high { Self::Fixed(low) } else { Self::Uniform(low, high) })
    }
}

/// The network as it is at a moment of the run.
#[derive(Debug)]
pub(crate) struct Wires<'a> {
    network: &'a Network,
    /// How long every message takes, where all arrive, once, and take as long.
    steady: Option<Time>,
    chance: Seeded,
    /// Whether nothing is cut.
    whole: bool,
    cut: BTreeSet<(NodeId, NodeId)>,
    /// The side of a partition each process is on; empty while whole.
    side: Vec<u32>,
    /// Where messages could overtake: when the last one sent arrives.
    last_arrival: Option<Vec<Arrivals>>,
}

/// When the last message of one sender arrives at each receiver. The first receiver has its place
/// here, since on a ring there is no other; the rest are sorted.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    first: Option<(NodeId, Time)>,
    others: Vec<(NodeId, Time)>,
}

/// What becomes of a message.
pub(crate) enum Fate {
    Lost,
    Arrives(Time),
    ArrivesTwice(Time, Time),
}

impl<'a> Wires<'a> {
    pub(crate) fn new(network: &'a Network, n: u32, seed: u64) -> Self {
        let rules = network.links.values().filter_map(|rule| rule.delay);
        let varies = network.delay.varies() || rules.into_iter().any(Delay::varies);
        let ordered = network.fifo && (varies || network.duplicate > 0.0);
        let faulty = network.loss > 0.0 || network.duplicate > 0.0 || !network.links.is_empty();
        let steady = match network.delay {
            Delay::Fixed(time) if !faulty => Some(time.max(SHORTEST)),
            _ => None,
        };
        Self {
            network,
            steady,
            chance: Seeded::stream(seed, 1),
            whole: true,
            cut: BTreeSet::new(),
            side: Vec::new(),
            last_arrival: ordered.then(|| vec![Arrivals::default(); n as usize]),
        }
    }

    #[inline]
    pub(crate) fn is_up(&self, from: NodeId, to: NodeId) -> bool {
        self.whole || self.is_spared(from, to)
    }

    /// Whether nothing that was cut concerns this link.
    fn is_spared(&self, from: NodeId, to: NodeId) -> bool {
        !self.cut.contains(&(from, to))
            && (self.side.is_empty() || self.side[from.index()] == self.side[to.index()])
    }

    /// Draws what becomes of a message sent now.
    #[inline]
    pub(crate) fn fate(&mut self, now: Time, from: NodeId, to: NodeId) -> Fate {
        match self.steady {
            Some(delay) => Fate::Arrives(now + delay),
            None => self.draw_fate(now, from, to),
        }
    }

    fn draw_fate(&mut self, now: Time, from: NodeId, to: NodeId) -> Fate {
        let network = self.network;
        let (mut delay, mut loss, mut twice) = (network.delay, network.loss, network.duplicate);
        if !network.links.is_empty()
            && let Some(rule) = network.links.get(&(from, to))
        {
            delay = rule.delay.unwrap_or(delay);
            loss = rule.loss.unwrap_or(loss);
            twice = rule.duplicate.unwrap_or(twice);
        }
        if loss > 0.0 && self.chance.unit() < loss {
            return Fate::Lost;
        }
        let drawn = now + delay.draw(&mut self.chance);
        let first = self.arrival(drawn, from, to);
        if twice > 0.0 && self.chance.unit() < twice {
            let drawn = now + delay.draw(&mut self.chance);
            let again = self.arrival(drawn, from, to);
            return Fate::ArrivesTwice(first, again);
        }
        Fate::Arrives(first)
    }

    /// On an ordered channel nothing arrives before what was sent earlier.
    #[inline]
    fn arrival(&mut self, drawn: Time, from: NodeId, to: NodeId) -> Time {
        let Some(last_arrival) = &mut self.last_arrival else { return drawn };
        let last = last_arrival[from.index()].last_at(to);
        *last = drawn.max(*last);
        *last
    }

    pub(crate) fn cut(&mut self, from: NodeId, to: NodeId) {
        self.cut.insert((from, to));
        self.whole = false;
    }

    pub(crate) fn heal(&mut self, from: NodeId, to: NodeId) {
        self.cut.remove(&(from, to));
        self.whole = self.cut.is_empty() && self.side.is_empty();
    }

    /// Splits the processes into these groups; who is in none of them is on a side of its own
    /// with the others that are not.
    pub(crate) fn partition(&mut self, groups: &[Vec<NodeId>], n: u32) {
        self.side = vec![0; n as usize];
        self.whole = false;
        for (group, side) in groups.iter().zip(1..) {
            for node in group {
                self.side[node.index()] = side;
            }
        }
    }

    pub(crate) fn heal_all(&mut self) {
        self.cut.clear();
        self.side.clear();
        self.whole = true;
    }
}

impl Arrivals {
    fn last_at(&mut self, to: NodeId) -> &mut Time {
        let (first, last) = self.first.get_or_insert((to, Time::ZERO));
        if *first == to {
            return last;
        }
        let place = self.others.binary_search_by_key(&to, |&(to, _)| to);
        let place = place.unwrap_or_else(|place| {
            self.others.insert(place, (to, Time::ZERO));
            place
        });
        &mut self.others[place].1
    }
}

#[cfg(test)]
mod tests {
    use vez_core::{NodeId, Seeded, Time};

    use super::{Delay, Fate, Network, Wires};

    #[test]
    fn delays_read_back_as_written() {
        for text in ["1ms", "1ms..5ms", "exp:2ms", "lognormal:2ms:0.5"] {
            assert_eq!(text.parse::<Delay>().unwrap().to_string(), text);
        }
        for bad in ["", "0ms", "5ms..1ms", "exp:", "lognormal:2ms", "lognormal:2ms:NaN", "1..2"] {
            assert!(bad.parse::<Delay>().is_err(), "{bad}");
        }
    }

    #[test]
    fn drawn_delays_have_the_mean_they_should() {
        let mean_of = |delay: Delay| {
            let mut chance = Seeded(5);
            let total: Time = (0..20_000).map(|_| delay.draw(&mut chance)).sum();
            total.as_millis_f64() / 20_000.0
        };
        let near = |found: f64, expected: f64| (found - expected).abs() < 0.03 * expected;
        let ms = Time::from_millis;
        assert!(near(mean_of(Delay::Uniform(ms(1), ms(5))), 3.0));
        assert!(near(mean_of(Delay::Exponential(ms(2))), 2.0));
        assert!(near(mean_of(Delay::LogNormal(ms(2), 0.5)), 2.0 * (0.125_f64).exp()));
        assert_eq!(Delay::Exponential(ms(2)).draw(&mut Seeded(1)), Time::from_micros(1_672));
    }

    #[test]
    fn ordered_links_never_overtake_and_unordered_ones_do() {
        let overtakes = |fifo| {
            let delay = "1ms..9ms".parse().unwrap();
            let network = Network { delay, fifo, ..Network::default() };
            let mut wires = Wires::new(&network, 4, 3);
            let mut arrivals = [const { Vec::new() }; 3];
            for i in 0..300 {
                // Three links in turn, the last address first.
                let to = 3 - i as u32 % 3;
                match wires.fate(Time::from_millis(i), NodeId(0), NodeId(to)) {
                    Fate::Arrives(at) => arrivals[to as usize - 1].push(at),
                    Fate::Lost | Fate::ArrivesTwice(..) => unreachable!(),
                }
            }
            arrivals.iter().any(|link| !link.is_sorted())
        };
        assert!(overtakes(false));
        assert!(!overtakes(true));
    }
}
