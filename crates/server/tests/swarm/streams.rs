//! Guaranteed streams beside everything else: whatever they have in memory, nobody finds what was written over.

use headtime_client::wire::{Attach, Places, StreamMode, StreamNotice, StreamUpdate, Terms};
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::volume::streams::{StreamEvents, StreamRequest};
use tokio::sync::mpsc::Receiver;

use crate::films::tell_position;
use crate::plan::Dice;
use crate::promised::{PAGE_BYTES as PAGE, two_pieces};
use crate::run::BLOCK;
use crate::status::Seen;

/// Two pieces of a file, in pages from the begin of the volume on.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    first: u64,
    second: u64,
    pages: u64,
}

/// What happens to streams.
#[derive(Clone, Copy, Debug)]
pub enum StreamStep {
    Attach {
        mode: StreamMode,
        layout: Layout,
        memory_pages: u64,
    },
    /// One of them moves to a page.
    Position(u64, u64),
    /// A client writes the next page of one of them.
    Record(u64),
    Close(u64),
}

impl StreamStep {
    pub fn draw(dice: &mut Dice) -> StreamStep {
        let who = dice.below(4);
        match dice.below(12) {
            0..3 => StreamStep::Attach {
                mode: match dice.below(3) {
                    0 => StreamMode::Play,
                    1 => StreamMode::Record,
                    _ => StreamMode::RecordSync,
                },
                layout: Layout::draw(dice),
                memory_pages: 8 + dice.below(20),
            },
            3..6 => StreamStep::Position(who, dice.below(16)),
            6..11 => StreamStep::Record(who),
            _ => StreamStep::Close(who),
        }
    }
}

impl Layout {
    pub fn draw(dice: &mut Dice) -> Layout {
        Layout {
            first: dice.below(4) * 2,
            second: 10 + dice.below(4) * 2,
            pages: 1 + dice.below(4),
        }
    }

    fn scaled(self, scale: u64) -> Layout {
        Layout {
            first: self.first * scale,
            second: self.second * scale,
            pages: self.pages * scale,
        }
    }

    fn places(self) -> Places {
        let places = [self.first, self.second].map(|page| page * PAGE);
        two_pieces(places, self.pages * PAGE)
    }

    /// The pages of the file, in a run with streams of this pace.
    pub fn pages(self, pace: Pace) -> u64 {
        2 * self.scaled(pace.scale).pages
    }

    /// The blocks of a page of the file, in a run with streams of this pace.
    pub fn blocks_of(self, page: u64, pace: Pace) -> (u64, u64) {
        let page = self.scaled(pace.scale).page(page);
        (page * PAGE / BLOCK, PAGE / BLOCK)
    }

    /// The page of the volume that has a page of the file.
    fn page(self, page: u64) -> u64 {
        match page.checked_sub(self.pages) {
            None => self.first + page,
            Some(page) => self.second + page,
        }
    }
}

/// How fast the streams of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes in a second.
    pub rate: u64,
    /// Pages for each page of a layout.
    pub scale: u64,
    /// Pages of memory for each one that is drawn.
    pub memory: u64,
}

impl Pace {
    /// Hardly a load for any drive.
    pub const SLOW: Pace = Pace {
        rate: 40_000,
        scale: 1,
        memory: 1,
    };

    /// As many as a drive has head time for. With this scale the longest layout fits the volume, and most files do
    /// not fit the memory.
    pub fn fast(dice: &mut Dice) -> Pace {
        Pace {
            rate: 100_000 << dice.below(5),
            scale: 12,
            memory: 2,
        }
    }

    /// Whether clients read at the rate.
    fn is_fast(self) -> bool {
        self != Pace::SLOW
    }

    /// The time of a page, in nanoseconds.
    fn page_ns(self) -> u64 {
        PAGE * 1_000_000_000 / self.rate
    }
}

/// The streams that were asked for and not closed. Some were refused.
pub struct Streams {
    pace: Pace,
    open: Vec<OpenStream>,
    /// What the service says of each that was asked for.
    notices: Vec<Receiver<StreamNotice>>,
    /// The longest time by which a batch was late, in microseconds.
    late: Option<u64>,
    seen: Seen,
}

struct OpenStream {
    number: u64,
    layout: Layout,
    /// The next page of a recording, or of a reader.
    next: u64,
    /// When the reader reads it, once the guarantee holds.
    reads: Option<u64>,
    mode: StreamMode,
}

impl Streams {
    pub fn new(pace: Pace, seen: Seen) -> Streams {
        Streams {
            pace,
            open: Vec::new(),
            notices: Vec::new(),
            late: None,
            seen,
        }
    }

    /// Does a step. The answer is which blocks a client writes for it.
    pub fn act(&mut self, step: StreamStep, number: u64, mailbox: &Mailbox) -> Option<(u64, u64)> {
        let count = self.open.len() as u64;
        let place = |who: u64| (who % count.max(1)) as usize;
        match step {
            StreamStep::Attach {
                mode,
                layout,
                memory_pages,
            } => {
                let layout = layout.scaled(self.pace.scale);
                if count < 4 {
                    let memory = memory_pages * PAGE * self.pace.memory;
                    let terms = (mode, self.pace.rate, memory);
                    let notices = attach(number, terms, layout, (mailbox, &self.seen));
                    self.notices.push(notices);
                    self.open.push(OpenStream {
                        number,
                        layout,
                        next: 0,
                        reads: None,
                        mode,
                    });
                }
                None
            }
            StreamStep::Position(who, page) => {
                let open = self.open.get_mut(place(who))?;
                // A recording goes on there.
                open.next = page % (2 * open.layout.pages);
                tell_position(open.number, page * PAGE, mailbox);
                None
            }
            StreamStep::Record(who) => {
                let open = self.open.get_mut(place(who))?;
                let page = open.layout.page(open.next);
                open.next = (open.next + 1) % (2 * open.layout.pages);
                Some((page * PAGE / BLOCK, PAGE / BLOCK))
            }
            StreamStep::Close(who) => {
                if count > 0 {
                    let number = self.open.remove(place(who)).number;
                    tell(mailbox, move |event_loop| {
                        event_loop.streams().close(number)
                    });
                }
                None
            }
        }
    }

    /// By how many microseconds the service was late, if it broke a promise since the last call. Readers of streams whose
    /// guarantee holds begin.
    pub fn listen(&mut self, now: u64) -> Option<u64> {
        let notices = self.notices.iter_mut();
        let notices = notices.flat_map(|notices| std::iter::from_fn(|| notices.try_recv().ok()));
        for StreamNotice { stream, event } in notices {
            self.seen.told(&event);
            match event {
                StreamUpdate::Late { us, held_up_us } if us > held_up_us => {
                    self.late = self.late.max(Some(us));
                }
                StreamUpdate::Serving if self.pace.is_fast() => {
                    let mut open = self.open.iter_mut();
                    let open = open.find(|open| open.number == stream);
                    if let Some(open) = open.filter(|open| open.mode == StreamMode::Play) {
                        open.reads.get_or_insert(now);
                    }
                }
                _ => (),
            }
        }
        self.late.take()
    }

    /// When a reader reads next.
    pub fn next_time(&self) -> Option<u64> {
        self.open.iter().filter_map(|open| open.reads).min()
    }

    /// The blocks that a reader reads now, once it has told its position.
    pub fn read(&mut self, now: u64, mailbox: &Mailbox) -> Option<(u64, u64)> {
        let takes = self.pace.page_ns();
        let mut open = self.open.iter_mut();
        let open = open.find(|open| open.reads.is_some_and(|at| at <= now))?;
        let page = open.layout.page(open.next);
        tell_position(open.number, open.next * PAGE, mailbox);
        open.next += 1;
        open.reads = match open.next < 2 * open.layout.pages {
            true => open.reads.map(|at| at + takes),
            false => None,
        };
        Some((page * PAGE / BLOCK, PAGE / BLOCK))
    }

    /// Closes all of them.
    pub fn end(&mut self, mailbox: &Mailbox) {
        for open in self.open.drain(..) {
            tell(mailbox, move |event_loop| {
                event_loop.streams().close(open.number);
            });
        }
    }
}

fn tell(mailbox: &Mailbox, call: impl FnOnce(&mut EventLoop) + Send + 'static) {
    mailbox.call(call).expect("it runs");
}

fn attach(
    number: u64,
    (mode, rate, memory): (StreamMode, u64, u64),
    layout: Layout,
    (mailbox, seen): (&Mailbox, &Seen),
) -> Receiver<StreamNotice> {
    let seen = seen.clone();
    let (events, notices) = StreamEvents::new();
    let request = StreamRequest {
        stream: number,
        user: 0,
        attach: Attach {
            terms: Terms {
                mode,
                memory: Some(memory),
                // The second page is needed within a second or two.
                ..Terms::play(rate, PAGE)
            },
            places: layout.places(),
        },
        events,
    };
    tell(mailbox, move |event_loop| {
        let exports = event_loop.exports();
        let mut named = exports.iter().filter(|other| other.name == exports[0].name);
        let is_moved = named.any(|other| other.offset != exports[0].offset);
        let attached = event_loop.streams().attach(request);
        seen.attached(attached.is_ok());
        let Err(refused) = attached else {
            assert!(!is_moved, "a stream by a name that two volumes have had");
            return;
        };
        let is_fair = match is_moved {
            true => refused.reason.contains("was another volume's"),
            false => is_fair(&refused.reason),
        };
        assert!(is_fair, "{}", refused.reason);
    });
    notices
}

/// Whether a stream may be refused so: there are two recordings of the same blocks, or too many streams, or the head has no
/// time left, or the memory is too small.
pub fn is_fair(reason: &str) -> bool {
    let reasons = [
        "records there",
        "would last",
        "memory",
        "are left",
        "places within",
        "may be held at once",
    ];
    reasons.iter().any(|fair| reason.contains(fair))
}
