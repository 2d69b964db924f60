//! Films: streams that ask for all head time that may be promised. They play from a volume of their own, which has only
//! zeroes, while clients use the other volume of the drive.
//!
//! ```text
//!   attach at any rate --refused--> the largest rate that would be granted --some of it--> granted
//!   serving --> a player reads a piece in each of its times --> no batch is late
//! ```

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use block::operation::{Ask, OperationError};
use block::{Class, Owner};
use engine::guarantees::FOREGROUND_BYTES;
use headtime_client::wire::{
    Attach, FilePiece, Places, Position, StreamNotice, StreamUpdate, Terms,
};
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::volume::Export;
use server::volume::posted::{Contents, Posted};
use server::volume::streams::{StreamEvents, StreamRequest};
use tokio::sync::mpsc;

use crate::plan::Dice;
use crate::promised::PAGE_BYTES as PAGE;
use crate::status::Seen;
use crate::streams::is_fair;
use crate::world::{Tell, Told, tell};

/// The name of the volume of films, and its place among the exports.
const NAME: &str = "films";
const EXPORT: usize = 1;

/// The first byte of the volume on its drive: far behind the other one.
const OFFSET: u64 = 64 << 20;

/// Bytes that a player reads at once.
const PIECE: u64 = 64 << 10;

/// The longest read of others, in pages: as long as their longest command.
const LONGEST: u64 = FOREGROUND_BYTES / PAGE;

/// A player reads for so long at most, in nanoseconds. A choice: hundreds of rounds.
const LONGEST_NS: u64 = 120_000_000_000;

/// No drive has this rate, in bytes a second.
const TOO_FAST: u64 = 1 << 40;

/// What happens to films.
#[derive(Clone, Copy, Debug)]
pub enum FilmStep {
    Begin(Film),
    Stop(u64),
    /// From now on so many others read anywhere in the volume, all the time that a film is played.
    Crowd {
        readers: u64,
        seed: u64,
    },
}

/// A film, and what is asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Film {
    /// Its place in the volume, in millionths, and in bytes behind that.
    millionths: u64,
    behind: u64,
    bytes: u64,
    /// What is asked of the largest rate that would be granted, in percent.
    share: u64,
    memory: u64,
}

impl FilmStep {
    /// Films are anywhere, or close together in some part of the drive.
    pub fn draw(part: Option<u64>, dice: &mut Dice) -> FilmStep {
        if dice.percent(15) {
            return FilmStep::Stop(dice.below(8));
        }
        let most = dice.one(&[600, 4000]);
        FilmStep::Begin(Film {
            millionths: part.unwrap_or_else(|| dice.below(900_000)),
            behind: dice.below(1 << 12) * PIECE,
            bytes: (1 + dice.below(48)) << 20,
            share: dice.one(&[10, 20, 40, 100]),
            // Batches of a track or two, which cost the most of what they bring, or of many.
            memory: (64 + dice.below(most)) * PAGE,
        })
    }

    /// One of the films that share what may be promised, so many of which are left. Its memory is about so many pages.
    pub fn of_house(left: u64, pages: u64, dice: &mut Dice) -> FilmStep {
        let memory = (64 + pages + dice.below(pages)) * PAGE;
        FilmStep::Begin(Film {
            millionths: dice.below(900_000),
            behind: dice.below(1 << 12) * PIECE,
            // Most of it does not fit the memory.
            bytes: (memory * (2 + dice.below(5))).next_multiple_of(PIECE),
            share: 100 / left,
            memory,
        })
    }
}

/// The volume of films of a drive with so many bytes.
pub fn export(drive: u64) -> Export {
    Export {
        name: NAME.to_owned(),
        offset: OFFSET,
        length: (drive - OFFSET) / PIECE * PIECE,
        class: Class::default(),
    }
}

/// The films that are played.
#[derive(Default)]
pub struct Films {
    seen: Seen,
    playing: Vec<Playing>,
    notices: Vec<mpsc::Receiver<StreamNotice>>,
    /// Reads that were not answered.
    reads: u64,
    /// Who reads beside the films.
    crowd: Option<Crowd>,
}

/// Whose read it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Player,
    /// One of those beside the films.
    Crowd,
}

/// Readers that want as much as they can get.
struct Crowd {
    readers: u64,
    dice: Dice,
    /// Their reads that were not answered.
    reads: u64,
    /// When one of them last read.
    until: u64,
}

struct Playing {
    number: u64,
    film: Film,
    granted: Receiver<Granted>,
    player: Option<Player>,
}

/// Who reads a film whose guarantee holds.
struct Player {
    granted: Granted,
    next: u64,
    at: u64,
    until: u64,
}

/// What was granted: bytes a second, from a byte of a volume of that length on.
#[derive(Clone, Copy)]
struct Granted {
    rate: u64,
    first: u64,
    length: u64,
}

impl Films {
    pub fn new(seen: Seen) -> Films {
        Films {
            seen,
            ..Films::default()
        }
    }

    /// Does a step.
    pub fn act(&mut self, step: FilmStep, number: u64, mailbox: &Mailbox) {
        match step {
            FilmStep::Begin(film) => {
                let (events, notices) = StreamEvents::new();
                let (grant, granted) = channel();
                self.notices.push(notices);
                self.playing.push(Playing {
                    number,
                    film,
                    granted,
                    player: None,
                });
                let seen = self.seen.clone();
                let attach = move |event_loop: &mut EventLoop| {
                    if let Some(granted) = film.attach(number, event_loop, (events, &seen)) {
                        // A world that was killed since does not listen.
                        let _ = grant.send(granted);
                    }
                };
                mailbox.call(attach).expect("it runs");
            }
            FilmStep::Stop(who) if !self.playing.is_empty() => {
                let place = who as usize % self.playing.len();
                close(&self.playing.remove(place), mailbox);
            }
            FilmStep::Stop(_) => (),
            FilmStep::Crowd { readers, seed } => {
                self.crowd = Some(Crowd {
                    readers,
                    dice: Dice::new(seed),
                    reads: 0,
                    until: 0,
                });
            }
        }
    }

    /// By how many microseconds the service was late, if it broke a promise since the last call. Films whose guarantee
    /// holds begin.
    pub fn listen(&mut self, now: u64) -> Option<u64> {
        let mut late = None;
        let notices = self.notices.iter_mut();
        let notices = notices.flat_map(|notices| std::iter::from_fn(|| notices.try_recv().ok()));
        for StreamNotice { stream, event } in notices {
            self.seen.told(&event);
            match event {
                StreamUpdate::Late { us, held_up_us } if us > held_up_us => {
                    late = late.max(Some(us))
                }
                StreamUpdate::Serving => {
                    let mut playing = self.playing.iter_mut();
                    if let Some(one) = playing.find(|one| one.number == stream)
                        && one.player.is_none()
                        && let Ok(granted) = one.granted.try_recv()
                    {
                        one.player = Some(Player {
                            granted,
                            next: 0,
                            at: now,
                            until: now + LONGEST_NS,
                        });
                    }
                }
                _ => (),
            }
        }
        late
    }

    /// When a player reads next.
    pub fn next_time(&self) -> Option<u64> {
        let players = self.playing.iter().filter_map(Playing::due);
        players.min()
    }

    /// Players read what is due, and others as much as they can. The answer is whether any did.
    pub fn play(&mut self, now: u64, doors: (&Mailbox, &Tell)) -> bool {
        let mut is_any = self.crowd_in(now, doors);
        for playing in &mut self.playing {
            while playing.due().is_some_and(|at| at <= now)
                && let Some(player) = &mut playing.player
            {
                let Granted { rate, first, .. } = player.granted;
                let offset = first + player.next;
                tell_position(playing.number, player.next, doors.0);
                player.next += PIECE;
                player.at += PIECE * 1_000_000_000 / rate;
                self.reads += 1;
                is_any = true;
                read(Reader::Player, (offset, PIECE), doors);
            }
        }
        is_any
    }

    /// Others read beside films that are played. The answer is whether any did.
    fn crowd_in(&mut self, now: u64, doors: (&Mailbox, &Tell)) -> bool {
        let mut playing = self.playing.iter().filter(|one| one.due().is_some());
        let length = playing.find_map(|one| Some(one.player.as_ref()?.granted.length));
        let (Some(length), Some(crowd)) = (length, &mut self.crowd) else {
            return false;
        };
        let is_any = crowd.reads < crowd.readers;
        while crowd.reads < crowd.readers {
            crowd.reads += 1;
            crowd.until = now;
            let place = crowd.dice.below(length / PAGE - LONGEST);
            let pages = 1 + crowd.dice.below(LONGEST);
            read(Reader::Crowd, (place * PAGE, pages * PAGE), doors);
        }
        is_any
    }

    /// A read has ended.
    pub fn ended(
        &mut self,
        reader: Reader,
        result: Result<bool, OperationError>,
        is_stopped: bool,
    ) {
        match (reader, &mut self.crowd) {
            (Reader::Crowd, Some(crowd)) => crowd.reads -= 1,
            _ => self.reads -= 1,
        }
        match result {
            Ok(is_zero) => assert!(is_zero, "a film has something else than zeroes"),
            Err(OperationError::ShuttingDown) if is_stopped => (),
            Err(failed) => panic!("a film cannot be read: {failed:?}"),
        }
    }

    /// Until when others have read beside films.
    pub fn crowded_until(&self) -> u64 {
        self.crowd.as_ref().map_or(0, |crowd| crowd.until)
    }

    /// Whether all reads were answered.
    pub fn are_idle(&self) -> bool {
        let of_crowd = self.crowd.as_ref().map_or(0, |crowd| crowd.reads);
        self.reads + of_crowd == 0
    }

    /// Ends all of them.
    pub fn end(&mut self, mailbox: &Mailbox) {
        for playing in self.playing.drain(..) {
            close(&playing, mailbox);
        }
    }
}

impl Playing {
    /// When its player reads, unless it has seen enough.
    fn due(&self) -> Option<u64> {
        let player = self.player.as_ref()?;
        let goes_on = player.next < self.film.bytes && player.at < player.until;
        goes_on.then_some(player.at)
    }
}

impl Film {
    /// Asks for too much, and then for some of what would be granted.
    fn attach(
        self,
        number: u64,
        event_loop: &mut EventLoop,
        (events, seen): (StreamEvents, &Seen),
    ) -> Option<Granted> {
        let length = event_loop.exports()[EXPORT].length;
        let first = length / 1_000_000 * self.millionths / PIECE * PIECE + self.behind;
        let first = first.min((length - self.bytes) / PIECE * PIECE);
        let request = |rate: u64, events: StreamEvents| StreamRequest {
            stream: number,
            user: 0,
            attach: Attach {
                terms: Terms {
                    export: Some(NAME.to_owned()),
                    memory: Some(self.memory),
                    ..Terms::play(rate, PIECE)
                },
                places: Places {
                    length: self.bytes,
                    pieces: vec![FilePiece(0, first, self.bytes)],
                },
            },
            events,
        };
        let (nobody, _) = StreamEvents::new();
        let refused = event_loop.streams().attach(request(TOO_FAST, nobody));
        seen.attached(refused.is_ok());
        let refused = refused.expect_err("no drive is so fast");
        let rate = refused.largest_rate.unwrap_or(0) * self.share / 100;
        let attached = event_loop.streams().attach(request(rate, events));
        seen.attached(attached.is_ok());
        match (rate, attached) {
            (_, Ok(_)) => Some(Granted {
                rate,
                first,
                length,
            }),
            (0, Err(_)) => None,
            (_, Err(refused)) => {
                assert!(is_fair(&refused.reason), "{}", refused.reason);
                None
            }
        }
    }
}

/// A player tells from where on it reads.
pub fn tell_position(stream: u64, offset: u64, mailbox: &Mailbox) {
    let position = Position { stream, offset };
    let call = move |event_loop: &mut EventLoop| event_loop.streams().position(&position);
    mailbox.call(call).expect("it runs");
}

/// Reads bytes of the volume, and tells whether they are zeroes.
fn read(reader: Reader, (offset, length): (u64, u64), (mailbox, told): (&Mailbox, &Tell)) {
    let told = Arc::clone(told);
    mailbox.submit(Posted {
        export: EXPORT,
        ask: Ask::Read,
        offset,
        length,
        contents: Contents::Owned(Vec::new()),
        owner: Owner::NOBODY,
        reply: Box::new(move |result| {
            let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
            tell(&told, Told::Film(reader, result.map(is_zero)));
        }),
    });
}

fn close(playing: &Playing, mailbox: &Mailbox) {
    let number = playing.number;
    let close = move |event_loop: &mut EventLoop| event_loop.streams().close(number);
    mailbox.call(close).expect("it runs");
}
