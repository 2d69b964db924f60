//! Random operations beside streams: nobody ever reads what was written over, and a flush makes recorded bytes
//! durable.

use std::sync::Arc;

use block::{Duration, StreamMode, Terms};
use headtime_client::wire::{Attach, FilePiece, Places, Position};

use super::*;
use crate::volume::streams::tests::promising;
use crate::volume::streams::{Settings, StreamEvents, StreamRequest};

/// Pages of the file of a stream.
const FILE: u64 = 8;

#[derive(Clone, Debug)]
enum Event {
    Operation(Step),
    Attach {
        mode: StreamMode,
        /// The page of the volume where the file begins.
        page: u64,
        memory: u64,
    },
    Position(usize, u64),
    Close(usize),
    /// The next page of a recording is written.
    Record(usize),
}

/// A stream that is open.
struct Open {
    number: u64,
    mode: StreamMode,
    page: u64,
    /// Of a recording, the next page.
    next: u64,
}

fn event() -> impl Strategy<Value = Event> {
    let mode = prop_oneof![
        Just(StreamMode::Play),
        Just(StreamMode::Record),
        Just(StreamMode::RecordSync)
    ];
    let who = || 0..3usize;
    prop_oneof![
        14 => step(false).prop_map(Event::Operation),
        2 => (0..500u64).prop_map(|ms| Event::Operation(Step::Pass(ms))),
        2 => (mode, 0..16 - FILE, 12..32u64)
            .prop_map(|(mode, page, memory)| Event::Attach { mode, page, memory }),
        2 => (who(), 0..FILE).prop_map(|(who, page)| Event::Position(who, page)),
        1 => who().prop_map(Event::Close),
        5 => who().prop_map(Event::Record),
    ]
}

struct Beside {
    run: Run,
    open: Vec<Open>,
    opened: u64,
}

impl Beside {
    fn new() -> Self {
        let world = World {
            trims: true,
            zeroes_fast: true,
            requests: 64,
            cache: None,
        };
        let mut setup = setup(&world);
        let entry = drive::catalog::find("dec-rz26").expect("it is shipped");
        setup.profile = Some(Arc::new(entry.profile().expect("a profile")));
        setup.adapt = promising;
        let mut run = Run::over(setup, world);
        run.by_hand.volumes().streams.set(Settings {
            memory: 1 << 20,
            ..Settings::default()
        });
        Beside {
            run,
            open: Vec::new(),
            opened: 0,
        }
    }

    fn meet(&mut self, event: &Event) {
        match *event {
            Event::Operation(ref step) => self.run.take_step(step),
            Event::Attach { mode, page, memory } => self.attach(mode, page, memory),
            Event::Position(who, page) => {
                if let Some(open) = self.open.get_mut(who) {
                    open.next = page;
                    let position = Position {
                        stream: open.number,
                        offset: page * PAGE,
                    };
                    let (volumes, disk) = self.run.by_hand.parts();
                    volumes.streams.position(disk, &position);
                    volumes.poll_streams(disk);
                }
            }
            Event::Close(who) if who < self.open.len() => {
                let number = self.open.remove(who).number;
                let (volumes, disk) = self.run.by_hand.parts();
                volumes.streams.close(disk, number);
                volumes.poll_streams(disk);
            }
            Event::Close(_) => (),
            Event::Record(who) => {
                if let Some(open) = self.open.get_mut(who)
                    && open.mode != StreamMode::Play
                    && open.next < FILE
                {
                    open.next += 1;
                    let page = open.page + open.next - 1;
                    let ask = Ask::Write {
                        durability: Durability::Volatile,
                    };
                    self.run.submit(0, ask, page * PAGE / UNIT, PAGE / UNIT);
                }
            }
        }
        self.run.by_hand.work();
        self.run.take_answers();
    }

    fn attach(&mut self, mode: StreamMode, page: u64, memory: u64) {
        self.opened += 1;
        let number = self.opened;
        let (events, _) = StreamEvents::new();
        let attach = Attach {
            terms: Terms {
                mode,
                memory: Some(memory * PAGE),
                export: Some("v0".to_owned()),
                ..Terms::play(8 * PAGE, PAGE)
            },
            places: Places {
                length: FILE * PAGE,
                pieces: vec![FilePiece(0, page * PAGE, FILE * PAGE)],
            },
        };
        let request = StreamRequest {
            stream: number,
            user: 0,
            attach,
            events,
        };
        let (volumes, disk) = self.run.by_hand.parts();
        // Refused if it is one too many, or somebody records there.
        if volumes.attach(disk, request).is_ok() {
            self.open.push(Open {
                number,
                mode,
                page,
                next: 0,
            });
        }
    }

    fn finish(mut self) {
        for open in std::mem::take(&mut self.open) {
            let (volumes, disk) = self.run.by_hand.parts();
            volumes.streams.close(disk, open.number);
            volumes.poll_streams(disk);
        }
        let until = self.run.by_hand.disk().now + Duration::from_secs(60);
        self.run.by_hand.run();
        while self.run.by_hand.disk().now < until && !self.run.by_hand.volumes().is_idle() {
            self.run.by_hand.pass(until);
            self.run.by_hand.run();
        }
        self.run.finish();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn streams_and_operations_find_what_some_order_gives(
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut beside = Beside::new();
        events.iter().for_each(|event| beside.meet(event));
        beside.finish();
    }
}
