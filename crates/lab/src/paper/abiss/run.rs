//! One run of players beside others, on one of two drives, and the machine that limits it.

use std::fmt;
use std::sync::Arc;

use block::{Duration, Lba};
use drive::{Imperfections, Profile, catalog};
use rayon::prelude::*;
use scheduler::ordering::Phases;
use simulator::playing::{
    self, Beside, File, Greed, Guarantee, PAGE, Paced, Players, Rate, Report, Service, Setup,
};

use crate::Failure;
use crate::paper::{Effort, PaperBench};

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbissRun {
    /// On which drive, in which machine.
    pub machine: Machine,
    /// How many streams of 1 MB/s play.
    pub streams: usize,
    /// Who gets them their data.
    pub scheme: Scheme,
    /// The elevator.
    pub policy: &'static str,
    /// Where the files are.
    pub layout: FileLayout,
    /// Who else is there.
    pub others: CompetingLoad,
}

/// A drive in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The paper's drive and its host.
    Paper,
    /// The same with a drive whose buffer has one segment.
    OneSegment,
    /// The paper's drive in a machine that limits nothing.
    Unlimited,
    /// The same where others write.
    Written,
    /// A drive of 20 TB in such a machine.
    Modern,
}

/// Who gets streams their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Nobody: they read at best effort.
    Plain,
    /// ABISS as it is in the paper, with batches of so many pages.
    Theirs(u64),
    /// Our guarantees.
    Ours(Buffered),
}

/// How our guarantees buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// The memory of a stream, in kB.
    pub kb: u64,
    /// Rounds as long as so many pages last; none: as long as admission has them.
    pub pages: Option<u64>,
}

/// Where the files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// One after the other from the first block, the background reader's last.
    Adjacent,
    /// Evenly over the disk, the background reader's in this place among them, from 0.
    Spread(usize),
}

/// Who is there beside the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompetingLoad {
    /// The background reader, with so many kB of read-ahead.
    Reader(u64),
    /// So many greedy tasks.
    Tasks(usize),
}

/// Runs and what they came to.
#[derive(Debug, Default)]
pub struct AbissRuns {
    all: Vec<(AbissRun, Report)>,
}

impl AbissRun {
    /// Plays it.
    ///
    /// # Errors
    /// If the drive is not shipped, or something is refused.
    pub fn play(&self, effort: Effort) -> Result<Report, Failure> {
        let setup = self.setup(effort)?;
        playing::play(&setup).map_err(|error| Failure::failed(format!("{self:?}: {error}")))
    }

    fn setup(&self, effort: Effort) -> Result<Setup, Failure> {
        let truth = Arc::new(self.machine.profile()?);
        let policy = scheduler::policy::find(self.policy).map_err(Failure::failed)?;
        let (files, reader) = self.files(&truth)?;
        let beside = match self.others {
            CompetingLoad::Reader(kb) => Beside::Reader {
                file: reader,
                read_ahead: kb * KB,
            },
            CompetingLoad::Tasks(tasks) => Beside::Tasks(Greed {
                tasks,
                bytes: engine::guarantees::FOREGROUND_BYTES,
                seed: SEED,
            }),
        };
        Ok(Setup {
            belief: Arc::clone(&truth),
            truth,
            imperfections: Imperfections::default(),
            seed: SEED,
            policy,
            phases: match self.scheme {
                Scheme::Theirs(_) => Phases::ABISS,
                Scheme::Plain | Scheme::Ours(_) => Phases::Mixed,
            },
            copies: self.machine.copies(),
            players: Players {
                files,
                rate: RATE,
                read: READ,
                service: self.scheme.service(),
            },
            beside,
            lasts: lasts(effort),
        })
    }

    /// The files of the streams, and the background reader's.
    fn files(&self, truth: &Profile) -> Result<(Vec<File>, File), Failure> {
        let block = u64::from(truth.block_bytes);
        let blocks = truth.geometry.sectors().0;
        let most = self.streams as u64;
        let mut first = Lba(0);
        let mut place = 0;
        let mut file = |bytes: u64, at: Option<u64>| {
            let bytes = bytes / PAGE * PAGE;
            if let Some(at) = at {
                // The last of them ends with the disk.
                let page = PAGE / block.min(PAGE);
                first = Lba((blocks - bytes / block) / most.max(1) * at / page * page);
            }
            let file = File::new(first, bytes, block);
            let file = file.ok_or_else(|| Failure::failed("a file of no whole blocks"))?;
            first = file.end();
            Ok::<_, Failure>(file)
        };
        let mut files = Vec::new();
        for _ in 0..self.streams {
            let at = match self.layout {
                FileLayout::Adjacent => None,
                FileLayout::Spread(reader) => {
                    place += u64::from(place == reader as u64);
                    Some(place)
                }
            };
            files.push(file(STREAM_BYTES, at)?);
            place += 1;
        }
        let at = match self.layout {
            FileLayout::Adjacent => None,
            FileLayout::Spread(reader) => Some(reader as u64),
        };
        Ok((files, file(READER_BYTES, at)?))
    }
}

impl Machine {
    fn profile(self) -> Result<Profile, Failure> {
        let name = match self {
            Machine::Modern => "modern-20tb",
            _ => "hitachi-travelstar-80gn",
        };
        let entry = catalog::find(name).map_err(Failure::failed)?;
        let mut profile = entry.profile().map_err(Failure::failed)?;
        if matches!(self, Machine::Paper | Machine::OneSegment) {
            profile.bus.read_block = LINK_BLOCK;
            profile.bus.write_block = LINK_BLOCK;
        }
        if self == Machine::OneSegment {
            profile.buffer.segments = 1;
        }
        if matches!(
            self,
            Machine::Paper | Machine::OneSegment | Machine::Unlimited
        ) {
            // Nobody writes there. The skew of this approximate profile covers a seek of one cylinder and
            // not the settling of a write after it, so that worst cases would count a revolution that
            // only writes lose, and 4 streams with 564 kB would be refused.
            profile.write_settle_nanos = 0;
        }
        Ok(profile)
    }

    fn copies(self) -> Option<Rate> {
        match self {
            Machine::Paper | Machine::OneSegment => Some(COPIES),
            Machine::Unlimited | Machine::Written | Machine::Modern => None,
        }
    }
}

impl fmt::Display for Machine {
    /// What a reader of a figure has to know of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Machine::Modern => "modern-20tb, an extrapolated profile",
            _ => {
                "hitachi-travelstar-80gn, an approximate profile (data sheets and the paper, gaps filled): \
                 media 22.5 to 11.7 MB/s sustained, 27.1 to 14.1 within a track"
            }
        })?;
        f.write_str(match self {
            Machine::Paper | Machine::OneSegment => {
                "; host model of specs/streams.md: a link of 25 MB/s, copies to applications limited to \
                 11.2 MB/s in all (streams' first, page by page), files one after the other from the first \
                 block; the background reader reads ahead in windows of 128 kB, asked for as in Linux 2.6.0 \
                 with the second page of the window before; best-effort streams do not read ahead"
            }
            _ => "; no host limit",
        })?;
        if *self == Machine::OneSegment {
            f.write_str("; one segment in the drive's buffer instead of 8")?;
        }
        f.write_str("; belief = truth")
    }
}

impl Scheme {
    fn service(self) -> Service {
        match self {
            Scheme::Plain => Service::Plain,
            Scheme::Theirs(pages) => Service::Abiss(Paced {
                memory: their_kb(pages) * KB,
                batch: pages * PAGE,
            }),
            Scheme::Ours(Buffered { kb, pages }) => Service::Guaranteed(Guarantee {
                memory: kb * KB,
                longest_round: match pages {
                    Some(pages) => RATE.at_least(pages * PAGE),
                    None => Duration::from_secs(LONGEST_ROUND),
                },
            }),
        }
    }

    /// Our guarantees with the paper's buffer for a batch, and rounds as long as that lasts.
    pub fn ours_as_theirs(pages: u64) -> Scheme {
        Scheme::Ours(Buffered {
            kb: their_kb(pages),
            pages: Some(pages),
        })
    }
}

/// The paper's buffer for a batch, in kB.
fn their_kb(pages: u64) -> u64 {
    match pages {
        ..160 => 564,
        _ => 1064,
    }
}

impl AbissRuns {
    /// Plays each of them once, on all cores.
    ///
    /// # Errors
    /// If one of them cannot be played.
    pub fn of(
        bench: &PaperBench,
        runs: impl IntoIterator<Item = AbissRun>,
    ) -> Result<AbissRuns, Failure> {
        let mut new: Vec<AbissRun> = Vec::new();
        for run in runs {
            if !new.contains(&run) {
                new.push(run);
            }
        }
        bench.expect(new.len());
        let play = |run: AbissRun| {
            let report = run.play(bench.effort)?;
            bench.done();
            Ok((run, report))
        };
        let all: Result<Vec<_>, Failure> = new.into_par_iter().map(play).collect();
        Ok(AbissRuns { all: all? })
    }

    /// What a run came to.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn get(&self, run: &AbissRun) -> Result<&Report, Failure> {
        let found = self.all.iter().find(|(other, _)| other == run);
        let found = found.ok_or_else(|| Failure::failed(format!("not run: {run:?}")));
        found.map(|(_, report)| report)
    }
}

/// How long everybody plays.
fn lasts(effort: Effort) -> Duration {
    match effort {
        Effort::Full => Duration::from_secs(SECONDS),
        Effort::Quick => Duration::from_secs(SECONDS / 10),
        // So many reads of each stream.
        Effort::Requests(reads) => RATE.at_least(reads.saturating_mul(READ)),
    }
}

/// Bytes of a kB of memory.
pub const KB: u64 = 1024;

/// ABISS, 4: 1 MB/s, in reads of 64 kB.
const RATE: Rate = match Rate::new(1_000_000) {
    Some(rate) => rate,
    None => panic!("more than nothing"),
};
const READ: u64 = 64 * KB;

/// ABISS, 4: the files of the streams, and the background reader's.
const STREAM_BYTES: u64 = 105_000_000;
const READER_BYTES: u64 = 175_000_000;

/// `specs/streams.md`: 512 bytes over a link of 25 MB/s.
const LINK_BLOCK: Duration = Duration::from_nanos(20_480);

/// `specs/streams.md`: what is copied to applications in all.
const COPIES: Rate = match Rate::new(11_200_000) {
    Some(rate) => rate,
    None => panic!("more than nothing"),
};

/// Virtual seconds for which everybody plays, unless a file ends before. A choice: what a file of a
/// stream lasts, less a little.
const SECONDS: u64 = 100;

/// Longer than any round that buffers of these sizes allow.
const LONGEST_ROUND: u64 = 60;

/// The seed of greedy tasks. A choice.
const SEED: u64 = 1;
