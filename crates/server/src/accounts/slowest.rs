//! The slowest recent requests of each export, with the account of their time.

use block::{CommandId, Duration, Finished, Instant};
use engine::Engine;
use engine::explanation::{Explanation, NAMED, REMEMBERED, Slowest, Whose};

use crate::volume::Export;
use crate::why::{Query, Slow};

/// The number of requests kept for each export, in each of two periods. A choice: more than a user reads.
pub const KEPT: usize = 16;

/// The duration of a period in the drive's time. A slow request is kept at least as long. A choice: long
/// enough to notice and ask.
pub const WHILE: Duration = Duration::from_secs(300);

/// The accounts of a loop. A request needs no allocation: the entries are allocated at an export's first
/// request.
pub(crate) struct Accounts {
    /// The requests by export.
    exports: Vec<Lately>,
    /// The exports of the last commands, by their numbers.
    owners: Box<[(CommandId, usize)]>,
    /// The number of ended requests.
    ended: u64,
}

/// The slowest requests of a period and of the one before.
struct Lately {
    slowest: [Slowest<Name>; 2],
    /// The begin of the earlier period.
    since: Instant,
}

/// The name of a kept request, and the exports of the commands before it.
#[derive(Clone, Copy)]
struct Name {
    number: u64,
    owners: [Option<usize>; NAMED],
}

/// The number of ended commands that the engine remembers, and of those in flight.
const OWNERS: usize = 2 * REMEMBERED;

impl Default for Accounts {
    fn default() -> Self {
        Accounts {
            exports: Vec::new(),
            owners: vec![(CommandId(u64::MAX), 0); OWNERS].into(),
            ended: 0,
        }
    }
}

impl Accounts {
    /// A command of an export's request has ended.
    pub(crate) fn command(&mut self, id: CommandId, export: usize) {
        self.owners[id.0 as usize % OWNERS] = (id, export);
    }

    /// A request of an export has ended.
    pub(crate) fn finished(&mut self, engine: &Engine, export: usize, finished: &Finished) {
        self.ended += 1;
        while self.exports.len() <= export {
            self.exports.push(Lately::since(finished.at));
        }
        self.exports[export].advance(finished.at);
        if !self.exports[export].slowest[0].is_one(finished.response()) {
            return;
        }
        let Some(explanation) = engine.explain(finished, finished.submitted) else {
            return;
        };
        let name = Name {
            number: self.ended,
            owners: explanation.before.map(|before| {
                let held = before?.held;
                let is_request = matches!(held.whose, Whose::Request { .. });
                let (id, export) = self.owners[held.command.0 as usize % OWNERS];
                (is_request && id == held.command).then_some(export)
            }),
        };
        self.exports[export].slowest[0].take(name, explanation);
    }
}

impl Lately {
    fn since(now: Instant) -> Self {
        Lately {
            slowest: [Slowest::of(KEPT), Slowest::of(KEPT)],
            since: now,
        }
    }

    /// Removes requests that are too old at `now`.
    fn advance(&mut self, now: Instant) {
        let passed = now.since(self.since);
        if passed < WHILE {
            return;
        }
        self.slowest.swap(0, 1);
        self.slowest[0].clear();
        if passed >= WHILE * 2 {
            self.slowest[1].clear();
        }
        self.since = now;
    }

    fn all(&self) -> impl Iterator<Item = &(Name, Explanation)> {
        self.slowest.iter().flat_map(Slowest::iter)
    }
}

impl Accounts {
    /// The slowest requests that match, the slowest first, without the name of the drive.
    pub(crate) fn slowest(
        &mut self,
        now: Instant,
        (exports, block_bytes): (&[Export], u32),
        query: &Query,
    ) -> Vec<Slow> {
        let names: Vec<String> = exports.iter().map(|e| e.name.clone()).collect();
        let mut slow = Vec::new();
        for (lately, export) in self.exports.iter_mut().zip(&names) {
            lately.advance(now);
            if query.export.as_ref().is_some_and(|asked| asked != export) {
                continue;
            }
            for (name, explanation) in lately.all() {
                if query.request.is_some_and(|asked| asked != name.number) {
                    continue;
                }
                let ago = now.since(explanation.finished.at).as_secs_f64();
                let owner = |place: usize| names.get(name.owners[place]?).cloned();
                slow.push(Slow {
                    export: export.clone(),
                    block_bytes,
                    ended_s_ago: Some(ago),
                    ..Slow::new(name.number, explanation, owner)
                });
            }
        }
        slow.sort_by(|a, b| b.response_us.total_cmp(&a.response_us));
        slow.truncate(query.slowest.unwrap_or(u32::MAX) as usize);
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Class, Direction, Durability, Extent, Lba, Request, RequestId, Sectors, Status};

    fn kept(lately: &Lately) -> Vec<u64> {
        lately.all().map(|(name, _)| name.number).collect()
    }

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    fn slow(number: u64, ended: u64) -> (Name, Explanation) {
        let request = Request {
            id: RequestId(1),
            direction: Direction::Read,
            extent: Extent::new(Lba(1), Sectors(1)).unwrap(),
            class: Class::default(),
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        let finished = Finished {
            request,
            submitted: at(0),
            at: at(ended),
            status: Status::Good,
            waited: Duration::ZERO,
            waited_order: Duration::ZERO,
            account: None,
        };
        let explanation = Explanation {
            finished,
            came: at(0),
            order: Duration::ZERO,
            others: Default::default(),
            held_back: Duration::ZERO,
            forgotten: Duration::ZERO,
            drive: Default::default(),
            before: [None; NAMED],
        };
        let owners = [None; NAMED];
        (Name { number, owners }, explanation)
    }

    #[test]
    fn a_slow_request_is_kept_for_a_while_and_no_longer_than_two() {
        let mut lately = Lately::since(at(0));
        let (name, explanation) = slow(7, 10);
        lately.advance(at(10));
        lately.slowest[0].take(name, explanation);
        lately.advance(at(299));
        assert_eq!(kept(&lately), [7]);
        lately.advance(at(310));
        assert_eq!(kept(&lately), [7]);
        lately.advance(at(609));
        assert_eq!(kept(&lately), [7]);
        lately.advance(at(611));
        assert!(kept(&lately).is_empty());
        let (name, explanation) = slow(8, 612);
        lately.slowest[0].take(name, explanation);
        lately.advance(at(2000));
        assert!(kept(&lately).is_empty(), "nothing happened for two whiles");
    }
}
