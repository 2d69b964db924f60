//! Streams among the random operations: whatever they have in memory, nobody ever finds what was
//! written over.

use std::sync::Arc;

use drive::Profile;
use headtime_client::wire::{self, Attach, Places, Position, Refresh, StreamMode, Terms};
use proptest::prelude::*;
use server::volume::streams::StreamEvents;
use server::volume::streams::StreamRequest;

use crate::promised::{PAGE_BYTES, two_pieces};
use crate::station::{BLOCK, Served};

/// What happens to streams.
#[derive(Clone, Debug)]
pub enum Step {
    Attach {
        mode: StreamMode,
        layout: Layout,
        /// Blocks of memory.
        memory: u64,
    },
    /// One of them.
    Position(usize, u64),
    Refresh(usize, Layout),
    Close(usize),
}

/// Where a file is: two pieces, in this order or the other.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    first: u64,
    second: u64,
    pages: u64,
}

/// How many times as slow as the drive it is: rounds of a second of the drive's take this machine some
/// milliseconds, so that there is time for others, too.
pub const SCALE: f64 = 0.05;

/// Blocks of a page.
const PAGE: u64 = PAGE_BYTES / BLOCK;

pub fn step() -> impl Strategy<Value = Step> {
    let who = 0..4usize;
    prop_oneof![
        3 => (mode(), layout(), 4..24u64).prop_map(|(mode, layout, pages)| Step::Attach {
            mode, layout, memory: pages * PAGE
        }),
        6 => (who.clone(), 0..128u64).prop_map(|(who, block)| Step::Position(who, block)),
        1 => (who.clone(), layout()).prop_map(|(who, layout)| Step::Refresh(who, layout)),
        1 => who.prop_map(Step::Close),
    ]
}

fn mode() -> impl Strategy<Value = StreamMode> {
    prop_oneof![
        Just(StreamMode::Play),
        Just(StreamMode::Record),
        Just(StreamMode::RecordSync)
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    (0..4u64, 0..4u64, 1..5u64).prop_map(|(first, second, pages)| Layout {
        first: first * 4 * PAGE,
        second: (20 + second * 4) * PAGE,
        pages,
    })
}

impl Step {
    /// A stream of the first pages of the volume.
    pub fn at_the_beginning(mode: StreamMode) -> Self {
        let (first, second, pages) = (0, 20 * PAGE, 2);
        let layout = Layout {
            first,
            second,
            pages,
        };
        Step::Attach {
            mode,
            layout,
            memory: 8 * PAGE,
        }
    }
}

impl Layout {
    fn places(self) -> Places {
        let places = [self.first, self.second].map(|block| block * BLOCK);
        two_pieces(places, self.pages * PAGE_BYTES)
    }

    /// The blocks of the volume from a page of the file on, as far as they are one page.
    fn page(self, page: u64) -> u64 {
        match page.checked_sub(self.pages) {
            None => self.first + page * PAGE,
            Some(page) => self.second + page * PAGE,
        }
    }
}

/// The streams of a run.
#[derive(Default)]
pub struct Streams {
    named: u64,
    open: Vec<Open>,
}

struct Open {
    number: u64,
    mode: StreamMode,
    layout: Layout,
    /// Of a recording, the next page.
    next: u64,
}

impl Streams {
    pub fn meet(&mut self, served: &Served, step: &Step) {
        match *step {
            Step::Attach {
                mode,
                layout,
                memory,
            } if self.open.len() < 4 => self.attach(served, (mode, layout, memory)),
            Step::Attach { .. } => (),
            Step::Position(who, block) => {
                if let Some(open) = self.open.get_mut(who) {
                    // A recording goes on there.
                    open.next = block / PAGE % (2 * open.layout.pages);
                    let position = Position {
                        stream: open.number,
                        offset: block * BLOCK,
                    };
                    served.ask(move |event_loop| event_loop.streams().position(&position));
                }
            }
            Step::Refresh(who, layout) => {
                // A file that is being recorded is not moved: see `records_nowhere_else`.
                let open = self.open.get_mut(who);
                if let Some(open) = open.filter(|open| open.mode == StreamMode::Play) {
                    let refresh = Refresh {
                        stream: open.number,
                        places: layout.places(),
                    };
                    let done = served.ask(move |event_loop| event_loop.streams().refresh(&refresh));
                    done.expect("it is open");
                }
            }
            Step::Close(who) if who < self.open.len() => {
                let number = self.open.remove(who).number;
                served.ask(move |event_loop| event_loop.streams().close(number));
            }
            Step::Close(_) => (),
        }
    }

    fn attach(&mut self, served: &Served, (mode, layout, memory): (StreamMode, Layout, u64)) {
        self.named += 1;
        let number = self.named;
        let attach = Attach {
            terms: Terms {
                mode,
                memory: Some(memory * BLOCK + 4 * 4096),
                // 20 kB in a second of the drive's.
                ..Terms::play(400_000, 4096)
            },
            places: layout.places(),
        };
        match ask_for(served, number, attach) {
            Ok(_) => self.open.push(Open {
                number,
                mode,
                layout,
                next: 0,
            }),
            // Two recordings of the same blocks, one that was closed may still be there; or the head
            // has no time left.
            Err(wire::StreamRefused { reason, .. }) => {
                let is_fair = reason.contains("records there") || reason.contains("would last");
                assert!(is_fair, "{reason}");
            }
        }
    }

    /// Where the next page of a recording is written, in blocks of the volume.
    pub fn next_page(&mut self, who: usize) -> Option<(u64, u64)> {
        let open = self.open.get_mut(who)?;
        if open.mode == StreamMode::Play || open.next >= 2 * open.layout.pages {
            return None;
        }
        open.next += 1;
        Some((open.layout.page(open.next - 1), PAGE))
    }

    /// Closes all of them, and waits until what they recorded is written.
    pub fn end(&mut self, served: &Served) {
        for open in self.open.drain(..) {
            served.ask(move |event_loop| event_loop.streams().close(open.number));
        }
        while served.ask(|event_loop| !event_loop.streams().list().is_empty()) {
            std::thread::yield_now();
        }
    }
}

/// Asks for a stream.
pub fn ask_for(
    served: &Served,
    number: u64,
    attach: Attach,
) -> Result<wire::Granted, wire::StreamRefused> {
    let (events, _) = StreamEvents::new();
    let request = StreamRequest {
        stream: number,
        user: 0,
        attach,
        events,
    };
    served.ask(move |event_loop| event_loop.streams().attach(request))
}

/// A drive on which streams of a few pages fit.
pub fn drive() -> Arc<Profile> {
    let entry = drive::catalog::find("dec-rz26").expect("it is shipped");
    Arc::new(entry.profile().expect("a profile"))
}
