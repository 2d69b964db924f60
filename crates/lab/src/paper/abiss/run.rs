//! A run of media players beside other load, and the drives and hosts of these runs.

use std::fmt;
use std::sync::Arc;

use block::{Duration, Lba};
use drive::{Imperfections, Profile, catalog};
use rayon::prelude::*;
use scheduler::ordering::Phases;
use simulator::playing::{
    self, DirtyPages, GreedyLoad, Guarantee, OtherClients, PAGE, PacedBuffer, PlayedFile,
    PlayerService, Players, PlayingReport, PlayingSetup, Rate,
};

use crate::Failure;
use crate::paper::{Effort, PaperBench};

/// A run of players beside other load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbissRun {
    /// The drive and its host.
    pub machine: Machine,
    /// The number of streams of 1 MB/s.
    pub streams: usize,
    /// The source of the streams' data.
    pub scheme: Scheme,
    /// The policy.
    pub policy: &'static str,
    /// The positions of the files.
    pub layout: FileLayout,
    /// The competing load.
    pub others: CompetingLoad,
}

/// A drive and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The paper's drive and its host.
    Paper,
    /// The paper's host, with a drive whose buffer has so many segments.
    Segments(u32),
    /// The paper's drive and its host in runs with writes.
    PaperWritten,
    /// The paper's drive without limits of the host.
    Unlimited,
    /// The same drive in runs with writes.
    Written,
    /// A drive of 20 TB without limits of the host.
    Modern,
}

/// The source of the streams' data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Best effort: no guarantees.
    Plain,
    /// ABISS as in the paper, with batches of this many pages.
    Theirs(u64),
    /// Our guarantees.
    Ours(Buffered),
}

/// The buffers of our guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// The memory of a stream, in kB.
    pub kb: u64,
    /// The length of rounds, in pages of the stream; without it, admission chooses.
    pub pages: Option<u64>,
}

/// The positions of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// One after the other from the first block; the background reader's file is the last.
    Adjacent,
    /// Evenly over the disk; the background reader's file has this place among them, from 0.
    Spread(usize),
}

/// The competing load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompetingLoad {
    /// The background reader, with its read-ahead in kB.
    Reader(u64),
    /// The background reader with the paper's read-ahead, and bursts of so many MB of dirty pages.
    Bursts(u64),
    /// A number of greedy tasks.
    Tasks(usize),
}

/// The results of runs.
#[derive(Debug, Default)]
pub struct AbissRuns {
    all: Vec<(AbissRun, PlayingReport)>,
}

impl AbissRun {
    /// Plays it.
    ///
    /// # Errors
    /// If the drive is not shipped, or something is refused.
    pub fn play(&self, effort: Effort) -> Result<PlayingReport, Failure> {
        let setup = self.setup(effort)?;
        playing::play(&setup).map_err(|error| Failure::failed(format!("{self:?}: {error}")))
    }

    fn setup(&self, effort: Effort) -> Result<PlayingSetup, Failure> {
        let truth = Arc::new(self.machine.profile()?);
        let policy = scheduler::policy::find(self.policy).map_err(Failure::failed)?;
        let (files, reader) = self.files(&truth)?;
        let dirty = self.dirty(&truth, reader)?;
        let beside = match self.others {
            CompetingLoad::Reader(_) | CompetingLoad::Bursts(_) => OtherClients::Reader {
                file: reader,
                read_ahead: self.others.read_ahead() * KB,
            },
            CompetingLoad::Tasks(tasks) => OtherClients::Tasks(GreedyLoad {
                tasks,
                bytes: engine::guarantees::FOREGROUND_BYTES,
                seed: SEED,
            }),
        };
        Ok(PlayingSetup {
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
            dirty,
            lasts: lasts(effort),
        })
    }

    /// The dirty pages of a file behind the background reader's.
    fn dirty(&self, truth: &Profile, reader: PlayedFile) -> Result<Option<DirtyPages>, Failure> {
        let CompetingLoad::Bursts(megabytes) = self.others else {
            return Ok(None);
        };
        let (file, bytes) = (
            READER_BYTES / PAGE * PAGE,
            megabytes * 1_000_000 / PAGE * PAGE,
        );
        let file = PlayedFile::new(reader.end(), file, u64::from(truth.block_bytes));
        let file = file.ok_or_else(|| Failure::failed("a file of no whole blocks"))?;
        Ok(Some(DirtyPages {
            file,
            every: FLUSHED_EVERY,
            bytes,
        }))
    }

    /// The files of the streams and of the background reader.
    fn files(&self, truth: &Profile) -> Result<(Vec<PlayedFile>, PlayedFile), Failure> {
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
            let file = PlayedFile::new(first, bytes, block);
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

impl CompetingLoad {
    /// The read-ahead of the background reader, in kB.
    fn read_ahead(self) -> u64 {
        match self {
            CompetingLoad::Reader(kb) => kb,
            CompetingLoad::Bursts(_) | CompetingLoad::Tasks(_) => super::READ_AHEAD_KB,
        }
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
        if self.has_host() {
            profile.bus.read_block = LINK_BLOCK;
            profile.bus.write_block = LINK_BLOCK;
        }
        if let Machine::Segments(segments) = self {
            profile.buffer.segments = segments;
        }
        if matches!(
            self,
            Machine::Paper | Machine::Segments(_) | Machine::Unlimited
        ) {
            // Nobody writes there. The skew of this approximate profile covers a seek of one cylinder and
            // not the settling of a write after it, so that worst cases would count a revolution that
            // only writes lose, and 4 streams with 564 kB would be refused.
            profile.write_settle_nanos = 0;
        }
        Ok(profile)
    }

    fn copies(self) -> Option<Rate> {
        self.has_host().then_some(COPIES)
    }

    /// Whether the paper's host limits it.
    fn has_host(self) -> bool {
        match self {
            Machine::Paper | Machine::Segments(_) | Machine::PaperWritten => true,
            Machine::Unlimited | Machine::Written | Machine::Modern => false,
        }
    }
}

impl fmt::Display for Machine {
    /// The circumstances of a figure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Machine::Modern => "modern-20tb, an extrapolated profile",
            _ => {
                "hitachi-travelstar-80gn, an approximate profile (data sheets and the paper, gaps filled): \
                 media 22.5 to 11.7 MB/s sustained, 27.1 to 14.1 within a track"
            }
        })?;
        f.write_str(match self.has_host() {
            true => {
                "; host model of specs/streams.md: a link of 25 MB/s, copies to applications limited to \
                 11.2 MB/s in all (streams' first, page by page), files one after the other from the first \
                 block; the background reader reads ahead in windows of 128 kB, asked for as in Linux 2.6.0 \
                 with the second page of the window before; best-effort streams do not read ahead"
            }
            false => "; no host limit",
        })?;
        if let Machine::Segments(segments) = self {
            write!(f, "; {segments} of 8 segments in the drive's buffer")?;
        }
        f.write_str("; belief = truth")
    }
}

impl Scheme {
    fn service(self) -> PlayerService {
        match self {
            Scheme::Plain => PlayerService::Plain,
            Scheme::Theirs(pages) => PlayerService::Abiss(PacedBuffer {
                memory: their_kb(pages) * KB,
                batch: pages * PAGE,
            }),
            Scheme::Ours(Buffered { kb, pages }) => PlayerService::Guaranteed(Guarantee {
                memory: kb * KB,
                longest_round: match pages {
                    Some(pages) => RATE.at_least(pages * PAGE),
                    None => Duration::from_secs(LONGEST_ROUND),
                },
            }),
        }
    }

    /// Our guarantees with the paper's buffer for a batch, and rounds of that batch.
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
    pub fn get(&self, run: &AbissRun) -> Result<&PlayingReport, Failure> {
        let found = self.all.iter().find(|(other, _)| other == run);
        let found = found.ok_or_else(|| Failure::failed(format!("not run: {run:?}")));
        found.map(|(_, report)| report)
    }
}

/// The length of a run.
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

/// Rate of a stream: 1 MB/s, in reads of 64 kB (ABISS, 4).
const RATE: Rate = match Rate::new(1_000_000) {
    Some(rate) => rate,
    None => panic!("more than nothing"),
};
const READ: u64 = 64 * KB;

/// Sizes of the streams' files and of the background reader's (ABISS, 4).
const STREAM_BYTES: u64 = 105_000_000;
const READER_BYTES: u64 = 175_000_000;

/// Time of 512 bytes over the host's link of 25 MB/s (`specs/streams.md`).
const LINK_BLOCK: Duration = Duration::from_nanos(20_480);

/// Rate of all copies to applications (`specs/streams.md`).
const COPIES: Rate = match Rate::new(11_200_000) {
    Some(rate) => rate,
    None => panic!("more than nothing"),
};

/// Length of a run in virtual seconds, unless a file ends before. A choice: slightly less than a
/// stream's file lasts.
const SECONDS: u64 = 100;

/// Time between two bursts of dirty pages: `dirty_writeback_centisecs` of Linux 2.6.0 (`mm/page-writeback.c`).
const FLUSHED_EVERY: Duration = Duration::from_secs(5);

/// Longest round, in seconds: above all rounds that these buffers allow.
const LONGEST_ROUND: u64 = 60;

/// The seed of greedy tasks. A choice.
const SEED: u64 = 1;
