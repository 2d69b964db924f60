//! A disk that keeps every deadline, or does not, as its test wants; and time.

use block::{Class, Duration, Extent, Instant, Lba, Sectors, Status, StreamMode, Terms};
use stream::LocationMap;
use stream::admission::Refusal;
use stream::location::Piece;
use stream::playout::{AccessId, Served, Standing};
use stream::quota::Quotas;
use stream::streams::{
    Answer, Attach, Attached, Notice, Order, Settings, StreamId, Streams, Transfer, TransferId,
};

use crate::disk::{BLOCK, Flat, rules, times, zone};

pub fn piece(offset: u64, start: u64, blocks: u64) -> Piece {
    let extent = Extent::new(Lba(start), Sectors(blocks)).expect("a valid extent");
    Piece { offset, extent }
}

/// A file of so many blocks in one piece.
pub fn file(start: u64, blocks: u64) -> LocationMap {
    LocationMap::new(vec![piece(0, start, blocks)], BLOCK, blocks * BLOCK).expect("a valid map")
}

pub fn attach(mode: StreamMode, rate: u64, buffer: u64, map: LocationMap) -> Attach {
    Attach {
        user: 0,
        terms: Terms {
            name: "test".to_owned(),
            mode,
            memory: Some(buffer + 4 * rate.max(1 << 20)),
            ..Terms::play(rate, buffer)
        },
        map,
    }
}

/// The same request with other memory.
pub fn with_memory(memory: u64, attach: Attach) -> Attach {
    Attach {
        terms: Terms {
            memory: Some(memory),
            ..attach.terms
        },
        ..attach
    }
}

/// When a transfer ends, and how, in a world.
pub type Fate = Box<dyn FnMut(Instant, &Transfer) -> (Instant, Status)>;

/// Time, streams, and what the disk has to do.
pub struct World {
    pub streams: Streams<Flat>,
    pub now: Instant,
    pub answers: Vec<Answer>,
    pub raised: Vec<(TransferId, Class)>,
    pub ordered: Vec<(Instant, Transfer)>,
    under: Vec<(Instant, TransferId, Status)>,
    fate: Fate,
    /// Accesses so far; the last one's name.
    pub accesses: u64,
}

impl World {
    pub fn new(fate: Fate) -> Self {
        Self::with_quotas(fate, Quotas::open())
    }

    /// Asks for a stream now, in the only zone of the disk.
    pub fn attach(&mut self, attach: Attach) -> Result<Attached, Refusal> {
        self.streams.attach(self.now, attach, zone())
    }

    pub fn with_quotas(fate: Fate, quotas: Quotas) -> Self {
        let settings = Settings {
            page: BLOCK,
            fill: 32 * BLOCK,
            priority: 3,
        };
        World {
            streams: Streams::new(times(), rules(), quotas, settings, Flat),
            now: Instant::ZERO,
            answers: Vec::new(),
            raised: Vec::new(),
            ordered: Vec::new(),
            under: Vec::new(),
            fate,
            accesses: 0,
        }
    }

    /// Lets everything happen that happens by `until`; then it is `until`.
    pub fn run(&mut self, until: Instant) {
        loop {
            self.drain();
            let ends = self.under.iter().map(|under| under.0).min();
            let next = [ends, self.streams.next_wakeup()]
                .into_iter()
                .flatten()
                .min();
            let Some(next) = next.filter(|&next| next <= until) else {
                break;
            };
            assert!(
                next > self.now || ends == Some(next),
                "a wakeup in the past"
            );
            self.now = self.now.max(next);
            while let Some(index) = self.under.iter().position(|under| under.0 <= self.now) {
                let (_, id, status) = self.under.remove(index);
                self.streams.complete(self.now, id, status, Duration::ZERO);
            }
        }
        self.now = until;
        self.drain();
    }

    pub fn run_for(&mut self, length: Duration) {
        self.run(self.now + length);
    }

    fn drain(&mut self) {
        while let Some(order) = self.streams.poll(self.now) {
            match order {
                Order::Transfer(transfer) => {
                    let (at, status) = (self.fate)(self.now, &transfer);
                    self.ordered.push((self.now, transfer));
                    self.under.push((at.max(self.now), transfer.id, status));
                    self.streams.started(transfer.id);
                }
                Order::Raise { id, class } => {
                    self.raised.push((id, class));
                    if let Class::RealTime { deadline } = class {
                        let under = self.under.iter_mut().find(|under| under.1 == id);
                        // It may have ended in the same moment.
                        if let Some(under) = under {
                            under.0 = under.0.min(deadline);
                        }
                    }
                }
            }
        }
        while let Some(answer) = self.streams.poll_answer() {
            self.answers.push(answer);
        }
        if let Some(wakeup) = self.streams.next_wakeup() {
            assert!(wakeup > self.now, "a wakeup in the past");
        }
    }

    /// Runs until the stream is served.
    pub fn until_serving(&mut self, stream: StreamId) {
        for _ in 0..10_000 {
            if self.streams.standing(stream) == Some(Standing::Serving) {
                return;
            }
            self.run_for(Duration::from_millis(5));
        }
        panic!("not served after {} s", self.now.as_secs_f64());
    }

    /// Reads, and says what becomes of it at once.
    pub fn read(&mut self, stream: StreamId, from: u64, length: u64) -> Option<Served> {
        self.accesses += 1;
        let access = AccessId(self.accesses);
        let read = self.streams.read(self.now, stream, access, (from, length));
        read.expect("it is taken");
        self.drain();
        self.served(access)
    }

    /// Writes, and says what becomes of it at once.
    pub fn write(&mut self, stream: StreamId, from: u64, length: u64) -> Option<Served> {
        self.accesses += 1;
        let access = AccessId(self.accesses);
        let write = self.streams.write(self.now, stream, access, (from, length));
        write.expect("it is taken");
        self.drain();
        self.served(access)
    }

    /// What became of an access; none if it still waits.
    pub fn served(&self, of: AccessId) -> Option<Served> {
        self.answers.iter().find_map(|answer| match answer {
            Answer::Access { access, served, .. } if *access == of => Some(*served),
            _ => None,
        })
    }

    /// Whether a stream was told this.
    pub fn was_told(&self, of: StreamId, expected: &Notice) -> bool {
        self.answers.iter().any(|answer| match answer {
            Answer::Notice { stream, notice } => *stream == of && notice == expected,
            Answer::Access { .. } => false,
        })
    }

    pub fn position(&mut self, stream: StreamId, point: u64) {
        let moved = self.streams.position(self.now, stream, point);
        moved.expect("an open stream");
        self.drain();
    }
}
