//! The scenario reader: whatever it is given, it answers with a scenario or one line.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use vez::scenario::{Arming, Flight, Place, Placed, Scenario, read, resolve};
use vez_core::Time;

/// Reads and resolves, and holds every complaint to one line that says something.
fn digest(text: &str) {
    let complaint = match read(text) {
        Err(fault) => fault.in_file("story.toml").to_string(),
        Ok(scenario) => match resolve(&scenario) {
            Err(fault) => fault.in_file("story.toml").to_string(),
            Ok(_) => return,
        },
    };
    assert!(!complaint.contains('\n'), "{complaint}");
    assert!(complaint.starts_with("story.toml:"), "{complaint}");
    assert!(complaint.len() > "story.toml: ".len() + 10, "{complaint}");
}

const WORDS: &[&str] = &[
    "algorithm",
    "seed",
    "ids",
    "nodes",
    "until",
    "network",
    "delay",
    "loss",
    "duplicate",
    "fifo",
    "config",
    "lease",
    "link",
    "from",
    "to",
    "at",
    "time",
    "acquire",
    "node",
    "hold",
    "restart",
    "crash",
    "pause",
    "for",
    "start",
    "suspect",
    "of",
    "partition",
    "cut",
    "heal",
    "topology",
    "edges",
    "merit",
    "weight",
    "clock",
    "drift",
    "amnesia",
    "message",
    "timer",
    "number",
    "arrives",
    "after",
    "choices",
    "expect",
    "leader",
    "by_kind",
    "title",
    "en",
    "pt",
    "\"bully\"",
    "\"coordinator\"",
    "\"chang-roberts\"",
    "\"all\"",
    "\"1ms\"",
    "\"1ms..5ms\"",
    "\"exp:2ms\"",
    "\"ring\"",
    "\"random:0.5\"",
    "\"1>2\"",
    "= ",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ",",
    "\n",
    ".",
    "1",
    "0",
    "-1",
    "3.5",
    "nan",
    "1e400",
    "18446744073709551616",
    "true",
    "\"\"",
    "'",
    "\"",
    "#",
    "1979-05-27",
    "é",
    "\u{0}",
];

const STORY: &str = r#"
algorithm = "coordinator"
seed = 7
ids = [0, 1, 2, 3]
until = "1s"
topology = "star"
merit = { 1 = 4 }
weight = { 2 = 3 }
clock = { 2 = 1.5 }
drift = 0.01
amnesia = true
choices = [0, 1]
[network]
delay = "1ms..5ms"
loss = 0.1
duplicate = 0.1
fifo = false
[config]
acknowledge = true
lease = "8ms"
[[link]]
from = 1
to = 0
delay = "3ms"
[[at]]
time = "0ms"
acquire = [{ node = 1, hold = "2ms" }, { node = "all" }]
[[at]]
time = "1ms"
crash = [{ node = 2, unsent = true }]
pause = [{ node = 3, for = "2ms" }]
partition = [[0, 1], [2, 3]]
cut = [[0, 1], "1>3"]
[[at]]
time = "9ms"
restart = [2, { node = 3, amnesia = true }]
heal = true
[[message]]
number = 4
arrives = ["3ms", "5ms"]
[[message]]
number = 1
arrives = []
[[timer]]
number = 2
after = "5ms"
[expect]
entered = [1, 2, 3]
by_kind = { Request = 3 }
broken = ["mutual-exclusion"]
"#;

#[test]
fn the_story_with_everything_in_it_is_fine() {
    let story = read(STORY).unwrap();
    resolve(&story).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(read(&story.to_string()).unwrap(), story);
}

#[test]
fn single_messages_timers_and_choices_do_as_they_are_told() {
    let report = |fates: &str| {
        let text = format!(
            "algorithm = \"bully\"\nnodes = 3\n[[at]]\ntime = \"0ms\"\nstart = [1]\n{fates}"
        );
        let resolved = resolve(&read(&text).unwrap()).unwrap();
        (resolved.entry.simulate)(&resolved.topology, &resolved.config, &resolved.plan)
    };
    assert!(report("").all_kept());
    let lost = report("[[message]]\nnumber = 2\narrives = []");
    assert_eq!(lost.messages.lost, 1);
    let twice = report("[[message]]\nnumber = 1\narrives = [\"1ms\", \"2ms\"]");
    assert_eq!(twice.messages.duplicated, 1);
    let hasty = report("[[timer]]\nnumber = 1\nafter = \"1us\"");
    assert!(!hasty.all_kept(), "P1 stops waiting before anyone can have answered");
    let coins = |choices: &str| {
        let text = format!(
            "algorithm = \"itai-rodeh\"\nnodes = 3\n{choices}\n[[at]]\ntime = \"0ms\"\nstart = \"all\""
        );
        let resolved = resolve(&read(&text).unwrap()).unwrap();
        (resolved.entry.simulate)(&resolved.topology, &resolved.config, &resolved.plan).rounds
    };
    assert!(coins("choices = [0, 1, 0]") < coins("choices = [0, 0, 0, 1, 1, 1, 0, 1, 0]"));
}

fn spans() -> impl Strategy<Value = Time> {
    (1..10_000_000_u64).prop_map(Time::from_micros)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2_000)
    })]

    #[test]
    fn whatever_is_said_of_messages_timers_and_choices_reads_back(
        messages in btree_map(1..99_u64, vec(spans(), 0..4), 0..6),
        timers in btree_map(1..99_u64, spans(), 0..6),
        choices in vec(any::<u32>(), 0..9),
    ) {
        let messages = messages.into_iter().map(|(number, arrives)| Flight { number, arrives });
        let timers = timers.into_iter().map(|(number, after)| Arming { number, after });
        let story = Scenario {
            messages: messages.map(|flight| Placed::new(flight, Place::Whole)).collect(),
            timers: timers.map(|arming| Placed::new(arming, Place::Whole)).collect(),
            choices,
            ..read(STORY).unwrap()
        };
        let again = read(&story.to_string()).unwrap();
        prop_assert_eq!(&again, &story);
        let plan = resolve(&again).unwrap().plan;
        prop_assert_eq!(plan.messages.len(), story.messages.len());
        prop_assert_eq!(plan.choices, story.choices);
    }

    #[test]
    fn no_text_panics_the_reader(text in "\\PC{0,200}") {
        digest(&text);
    }

    #[test]
    fn no_heap_of_words_panics_the_reader(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..60),
    ) {
        digest(&words.join(" "));
        digest(&words.concat());
    }

    #[test]
    fn no_damage_to_a_story_panics_the_reader(
        at in 0..STORY.len(),
        length in 0..40_usize,
        patch in prop::sample::select(WORDS),
    ) {
        let end = (at + length).min(STORY.len());
        digest(&format!("{}{patch}{}", &STORY[..at], &STORY[end..]));
    }
}

/// What is wrong, and the complaint it must bring.
#[test]
fn complaints_say_where_and_what_was_expected() {
    let cases = [
        ("algorithm = \"buly\"", "s.toml:1: no algorithm is called `buly`, did you mean `bully`?"),
        ("seed = 1", "s.toml: `algorithm` is missing from the scenario"),
        (
            "algorithm = \"bully\"\nnods = 3",
            "s.toml:2: `nods` is unknown in the scenario, did you mean `nodes`?",
        ),
        (
            "algorithm = \"bully\"\n[network]\ndelya = \"1ms\"",
            "s.toml:3: `delya` is unknown in `network`, did you mean `delay`?",
        ),
        ("algorithm = \"bully\"\nnodes = 0", "s.toml:2: 0 processes; expected 1 to 4000000"),
        ("algorithm = \"bully\"\nids = [1, 2, 1]", "s.toml:2: the id 1 is listed twice"),
        ("algorithm = \"bully\"\nids = []", "s.toml:2: 0 ids; expected 1 to 4000000"),
        (
            "algorithm = \"bully\"\n[[at]]\ntime = \"0ms\"\nstart = [9]",
            "s.toml:4: no process has the uid 9; expected 1 to 5",
        ),
        (
            "algorithm = \"bully\"\n[[at]]\ntime = \"0ms\"\nacquire = [1]",
            "s.toml:4: `acquire` makes no sense for bully, an election; expected start or suspect",
        ),
        (
            "algorithm = \"bully\"\n[[at]]\ntime = 5\nstart = [1]",
            "s.toml:3: `time` is 5; expected a time like \"250ms\" or \"2s\"",
        ),
        ("algorithm = \"bully\"\n[[at]]\nstart = [1]", "s.toml:2: `time` is missing from `at`"),
        (
            "algorithm = \"bully\"\n[[at]]\ntime = \"0ms\"\ncrash = [1]\n[[at]]\ntime = \"5ms\"\ncrash = [1]",
            "s.toml:7: 1 is down at 5ms; expected one that is up to crash",
        ),
        (
            "algorithm = \"bully\"\n[[at]]\ntime = \"0ms\"\npause = [{ node = 1, for = \"9ms\" }]\n[[at]]\ntime = \"5ms\"\npause = [{ node = 1, for = \"9ms\" }]",
            "s.toml:7: 1 is paused until 9ms already",
        ),
        (
            "algorithm = \"chang-roberts\"\ntopology = \"star\"",
            "s.toml:2: chang-roberts cannot run on this topology: it needs a ring",
        ),
        ("algorithm = \"bully\"\n[network]\nloss = 2.0", "s.toml:3: `loss` is 2; expected 0 to 1"),
        (
            "algorithm = \"coordinator\"\n[config]\nlesae = \"1ms\"",
            "s.toml:3: setting `lesae` of coordinator: unknown field `lesae`, expected one of `acknowledge`, `lease`, `stop_before`",
        ),
        (
            "algorithm = \"coordinator\"\n[config]\nlease = \"1ms\"\nstop_before = \"2ms\"",
            "s.toml:4: settings of coordinator: stop_before: expected less than the lease of 1ms, found 2ms",
        ),
        ("algorithm = ", "s.toml:1: string values must be quoted, expected literal string"),
    ];
    hold_to(&cases);
}

#[test]
fn complaints_about_single_events_say_where_and_what_was_expected() {
    let cases = [
        (
            "algorithm = \"bully\"\n[[message]]\nnumber = 0\narrives = []",
            "s.toml:3: message 0; expected 1 or more, 1 being the first",
        ),
        (
            "algorithm = \"bully\"\n[[timer]]\nnumber = 2\nafter = \"1ms\"\n[[timer]]\nnumber = 2\nafter = \"1ms\"",
            "s.toml:6: the timer 2 is told of twice",
        ),
        (
            "algorithm = \"bully\"\n[[message]]\nnumber = 1\narrives = \"1ms\"",
            "s.toml:4: `arrives` is \"1ms\"; expected a list of times, [] for lost",
        ),
        (
            "algorithm = \"bully\"\n[[message]]\nnumber = 1\narrives = [\"0ms\"]",
            "s.toml:4: `arrives` is \"0ms\"; expected at least \"1us\": no message is instant",
        ),
        (
            "algorithm = \"bully\"\n[[message]]\narrives = []",
            "s.toml:2: `number` is missing from `message`",
        ),
        (
            "algorithm = \"bully\"\n[[message]]\nnumber = 1\narives = []",
            "s.toml:2: `arrives` is missing from `message`",
        ),
        (
            "algorithm = \"bully\"\nchoices = [0, -1]",
            "s.toml:2: `choices` is -1; expected a whole number, 0 or more",
        ),
        (
            "algorithm = \"bully\"\nmessage = 4",
            "s.toml:2: `message` is 4; expected tables headed [[message]]",
        ),
    ];
    hold_to(&cases);
}

#[track_caller]
fn hold_to(cases: &[(&str, &str)]) {
    for &(text, expected) in cases {
        let fault = match read(text) {
            Err(fault) => fault,
            Ok(scenario) => match resolve(&scenario) {
                Err(fault) => fault,
                Ok(_) => panic!("nothing is wrong with {text:?}"),
            },
        };
        assert_eq!(fault.in_file("s.toml").to_string(), expected, "{text:?}");
    }
}
