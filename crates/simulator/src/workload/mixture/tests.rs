//! Mixtures: what they hand out is what their parts hand out, and what is refused.

use block::{Class, Duration, Owner, Request, RequestId, Status};

use super::*;
use crate::workload::Generator;

const BLOCKS: u64 = 17_783_240;

/// An open part and two closed ones, one of which is the first one's equal but for its name.
const TEXT: &str = "\
name = \"three\"
seed = 7
[[part]]
name = \"urgent\"
class = \"foreground\"
[part.arrivals]
model = \"open\"
per_second = 100
[part.size]
kind = \"fixed\"
kib = 4
[part.placement]
kind = \"uniform\"
[[part]]
name = \"bulk\"
class = \"background\"
[part.arrivals]
model = \"closed\"
tasks = 2
[part.size]
kind = \"fixed\"
kib = 1024
[part.placement]
kind = \"sequential\"
mean_run = 8
[[part]]
name = \"more\"
[part.arrivals]
model = \"open\"
per_second = 250
[part.size]
kind = \"fixed\"
kib = 4
[part.placement]
kind = \"uniform\"
";

fn mixture() -> Mixture {
    Mixture::parse("three.toml", TEXT).expect("a good file")
}

fn mixed() -> MixedLoad {
    MixedLoad::new(&mixture(), 512, BLOCKS).expect("it fits")
}

fn finished(arrival: &Arrival, at: Instant) -> Finished {
    Finished {
        request: Request {
            id: RequestId(0),
            direction: arrival.demand.direction,
            extent: arrival.demand.extent,
            class: arrival.demand.class,
            durability: block::Durability::Volatile,
            owner: arrival.demand.owner,
        },
        submitted: arrival.at,
        at,
        status: Status::Good,
        waited: Duration::ZERO,
        waited_order: Duration::ZERO,
        account: None,
    }
}

#[test]
fn built_in_mixtures_parse_fit_and_bear_the_name_of_their_file() {
    for built_in in MIXTURES {
        let Ok(LoadDescription::Mixture(mixture)) = built_in.described() else {
            panic!("{} is no mixture", built_in.name);
        };
        assert_eq!(mixture.name, built_in.name);
        assert!(!mixture.summary.is_empty(), "{}", built_in.name);
        MixedLoad::new(&mixture, 4096, BLOCKS).expect("a built-in mixture fits");
    }
}

#[test]
fn a_mixture_hands_out_what_its_parts_do_in_the_order_of_time() {
    let mut load = mixed();
    assert_eq!(load.parts(), ["urgent", "bulk", "more"]);
    let mixture = mixture();
    let mut alone: Vec<Synthetic> = mixture
        .parts
        .iter()
        .map(|part| Synthetic::new(part, 512, BLOCKS).expect("it fits"))
        .collect();
    let mut last = Instant::ZERO;
    let mut counts = [0u32; 3];
    for _ in 0..702 {
        let arrival = load.next_arrival().expect("no file").expect("never ends");
        assert!(arrival.at >= last, "in the order of time");
        last = arrival.at;
        let part = usize::from(arrival.demand.part.0);
        let expected = alone[part].next_arrival().expect("no file");
        // Owners of tasks are those of the whole mixture.
        let expected = of(arrival.demand.part, expected).map(|mut expected| {
            expected.demand.owner = arrival.demand.owner;
            expected
        });
        assert_eq!(expected, Some(arrival));
        counts[part] += 1;
    }
    // Two seconds, 100 and 250 a second, and the two tasks that begin.
    assert_eq!(counts, [200, 2, 500]);
    assert_eq!(last, Instant::from_nanos(2_000_000_000));
}

#[test]
fn an_end_is_answered_by_the_part_that_asked() {
    let mut load = mixed();
    let first: Vec<Arrival> = std::iter::from_fn(|| load.next_arrival().expect("no file"))
        .take(4)
        .collect();
    let classes: Vec<Class> = first.iter().map(|one| one.demand.class).collect();
    let more = Class::BestEffort(3);
    assert_eq!(classes, [Class::Background, Class::Background, more, more]);
    let now = Instant::from_nanos(5);
    for arrival in &first {
        let part = arrival.demand.part;
        let next = load.on_finished(now, part, &finished(arrival, now));
        let next = next.expect("no file").map(|next| next.demand);
        let told = next.map(|next| (next.part, next.class, next.extent.length().0));
        // Bulk goes on; an open part has nothing more to say.
        let expected = (part == LoadPart(1)).then_some((part, Class::Background, 2048));
        assert_eq!(told, expected);
    }
}

#[test]
fn tasks_of_two_parts_are_two_owners_and_an_open_part_has_none() {
    let text = TEXT.replace(
        "model = \"open\"\nper_second = 250",
        "model = \"closed\"\ntasks = 3",
    );
    let mixture = Mixture::parse("three.toml", &text).expect("a good file");
    let mut load = MixedLoad::new(&mixture, 512, BLOCKS).expect("it fits");
    let mut owners = [const { BTreeSet::new() }; 3];
    for _ in 0..10 {
        let arrival = load.next_arrival().expect("no file").expect("never ends");
        let demand = arrival.demand;
        owners[usize::from(demand.part.0)].insert(demand.owner);
        let next = load.on_finished(arrival.at, demand.part, &finished(&arrival, arrival.at));
        if let Some(next) = next.expect("no file") {
            assert_eq!(next.demand.owner, demand.owner);
        }
    }
    let [urgent, bulk, more] = owners;
    assert_eq!(urgent, BTreeSet::from([Owner::NOBODY]));
    assert_eq!((bulk.len(), more.len()), (2, 3));
    assert!(bulk.is_disjoint(&more));
}

#[test]
fn parts_have_chances_of_their_own_that_hang_on_the_mixture_s_seed() {
    let first = |mixture: &Mixture, part: usize| {
        let generator = Generator::new(&mixture.parts[part], 512, BLOCKS);
        generator.expect("it fits").request().1
    };
    let flags = Overrides {
        seed: Some(8),
        ..Overrides::default()
    };
    let other = mixture().with(&flags).expect("a seed");
    assert_ne!(first(&mixture(), 0), first(&mixture(), 2));
    assert_ne!(first(&mixture(), 0), first(&other, 0));
    assert_eq!(mixture().with(&Overrides::default()), Ok(mixture()));
}

#[test]
fn a_file_without_parts_describes_one_load() {
    let text = BuiltInWorkload::find("oltp").expect("built in").text;
    let described = LoadDescription::parse("oltp.toml", text).expect("a good file");
    assert!(matches!(described, LoadDescription::Alone(load) if load.class == Class::default()));
    let described = LoadDescription::parse("three.toml", TEXT).expect("a good file");
    assert_eq!(described, LoadDescription::Mixture(mixture()));
}

#[test]
fn what_makes_no_sense_is_refused_with_file_line_key_and_expectation() {
    for (old, new, complaint) in REFUSED {
        let text = TEXT.replacen(old, new, 1);
        assert_ne!(text, TEXT, "{old} is not in the file");
        let error = LoadDescription::parse("load.toml", &text).expect_err(new);
        assert_eq!(error.to_string(), *complaint);
    }
    let many = "[[part]]\nname = \"x\"\n".repeat(MOST_PARTS + 1);
    let error = LoadDescription::parse("load.toml", &format!("name = \"many\"\n{many}"));
    let error = error.expect_err("too many parts");
    assert!(error.to_string().contains("65 parts: expected at most 64"));
}

#[test]
fn a_flag_that_is_about_one_load_is_refused_with_its_name() {
    let flags = Overrides {
        seed: Some(3),
        think_ms: Some(3.0),
        ..Overrides::default()
    };
    assert_eq!(
        mixture()
            .with(&flags)
            .expect_err("of which part?")
            .to_string(),
        "command line: --think-ms: three has several parts, and which of them is meant? Expected the \
         values of parts in a file"
    );
}

const REFUSED: &[(&str, &str, &str)] = &[
    (
        "class = \"foreground\"",
        "class = \"real-time\"",
        "load.toml:5: part[0].class: \"real-time\": expected \"foreground\", \"best-effort-1\" to \
         \"best-effort-6\", or \"background\"",
    ),
    (
        "name = \"bulk\"",
        "name = \"urgent\"",
        "load.toml:15: part[1].name: \"urgent\" is there twice: expected each once",
    ),
    (
        "name = \"bulk\"\n",
        "",
        "load.toml:14: part[1].name: missing key: expected a name that no other part has",
    ),
    (
        "per_second = 250",
        "per_second = 0",
        "load.toml:30: arrivals.per_second: 0: expected a number from 0.000001 to 1000000",
    ),
    (
        "tasks = 2",
        "tusks = 2",
        "load.toml:19: part[1].arrivals.tusks: unknown key: did you mean `tasks`?",
    ),
    (
        "class = \"background\"",
        "seed = 3",
        "load.toml:16: part[1].seed: unknown key: expected one of name, class, read_fraction, arrivals, size, \
         placement",
    ),
    (
        "[part.placement]\nkind = \"sequential\"\nmean_run = 8\n",
        "",
        "load.toml:14: part[1].placement: missing key: expected a table [placement]",
    ),
    (
        "seed = 7",
        "seed = 7\n[arrivals]\nmodel = \"open\"",
        "load.toml:3: arrivals: unknown key: expected one of name, summary, seed, part",
    ),
];
