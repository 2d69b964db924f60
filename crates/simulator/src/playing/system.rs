//! The applications as the host of a driver: ends of requests, new requests and copies.

use std::sync::Arc;

use block::{
    Class, Direction, Durability, Duration, Extent, Finished, Instant, Outcome, Request, Status,
};
use drive::VirtualDrive;
use engine::{Engine, Limits};

use super::copier::{Copier, CopyTarget, Ready};
use super::flusher::Flusher;
use super::guaranteed::promising;
use super::outstanding::{Outstanding, RequestCause};
use super::player::{Player, PlayerState};
use super::reader::BackgroundReader;
use super::report::PlayingReport;
use super::served::Supply;
use super::setup::{OtherClients, PlayerService, PlayingError, PlayingSetup};
use super::tasks::GreedyTasks;
use super::{COMMAND, PlayedFile};
use crate::driver::{Activity, Driver, Host};

/// Runs the setup and returns the report.
///
/// # Errors
/// If a stream is refused, or a file is not on the drive.
///
/// # Panics
/// If the engine or the drive breaks its contract, or a command fails on a drive without faults.
pub fn play(setup: &PlayingSetup) -> Result<PlayingReport, PlayingError> {
    let limits = Limits {
        phases: setup.phases,
        ..Limits::suited_to(setup.policy, &setup.belief)
    };
    let policy = setup.policy;
    let mut engine = Engine::new(Arc::clone(&setup.belief), &|| policy.make(), limits);
    if let PlayerService::Guaranteed(guarantee) = setup.players.service {
        engine = promising(engine, &setup.players, guarantee)?;
    }
    let truth = Arc::clone(&setup.truth);
    let drive = VirtualDrive::imperfect(truth, setup.imperfections.clone(), setup.seed);
    let mut playback = Playback::new(setup, &mut engine)?;
    let mut driver = Driver::new(engine, drive);
    driver.run(&mut playback)?;
    Ok(playback.report(driver.engine()))
}

/// The host of a run: the applications, their buffers, and the processor that copies for them.
struct Playback<'a> {
    setup: &'a PlayingSetup,
    players: Vec<Player>,
    served: Supply,
    reader: Option<BackgroundReader>,
    tasks: Option<GreedyTasks>,
    flusher: Option<Flusher>,
    copier: Copier,
    asked: Outstanding,
    /// The time at which all players started.
    began: Option<Instant>,
    /// No client sends further requests.
    is_over: bool,
    report: PlayingReport,
}

impl<'a> Playback<'a> {
    fn new(setup: &'a PlayingSetup, engine: &mut Engine) -> Result<Playback<'a>, PlayingError> {
        let paced = &setup.players;
        let count = paced.files.len() as u64;
        let players = paced.files.iter().zip(0..).map(|(&file, number)| {
            let offset = paced.rate.at_most(paced.read * number / count);
            Player::new(file, offset)
        });
        let block = u64::from(setup.truth.block_bytes);
        let size = (setup.truth.geometry.sectors().0, block);
        let (reader, tasks) = match setup.beside {
            OtherClients::Nobody => (None, None),
            OtherClients::Reader { file, read_ahead } => {
                (Some(BackgroundReader::new(file, read_ahead)), None)
            }
            OtherClients::Tasks(greed) => (None, Some(GreedyTasks::new(greed, size))),
        };
        let served = Supply::new(engine, paced, block)?;
        let mut playback = Playback {
            setup,
            players: players.collect(),
            served,
            reader,
            tasks,
            flusher: setup.dirty.map(Flusher::new),
            copier: Copier::new(setup.copies),
            asked: Outstanding::default(),
            began: None,
            is_over: false,
            report: PlayingReport::default(),
        };
        // Buffers are filled before anybody plays.
        let now = Instant::ZERO;
        for (player, from, to) in playback.served.fills() {
            let file = playback.players[player].file;
            playback.refill(now, engine, (player, file), (from, to), Class::default())?;
        }
        Ok(playback)
    }

    /// A request has ended.
    fn ended(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        whose: RequestCause,
        took: Duration,
    ) -> Result<(), PlayingError> {
        match whose {
            RequestCause::Player(player) => {
                if let PlayerState::Waiting { requests, .. } = &mut self.players[player].state {
                    *requests -= 1;
                    if *requests == 0 {
                        self.came(now, player);
                    }
                }
            }
            RequestCause::Buffer(player, from) => self.served.came(player, from),
            RequestCause::Reader(from) => {
                if let Some(reader) = &mut self.reader {
                    reader.came(from);
                }
            }
            RequestCause::Flush => {
                if let Some(flusher) = &mut self.flusher {
                    flusher.came();
                }
            }
            RequestCause::Task(task) => {
                self.report.tasks.push(took);
                if !self.is_over {
                    self.task(now, engine, task)?;
                }
            }
        }
        Ok(())
    }

    /// Starts the players once all buffers are full.
    fn begin(&mut self, now: Instant, engine: &mut Engine) -> Result<(), PlayingError> {
        if self.began.is_some() || !self.served.is_filled(engine) {
            return Ok(());
        }
        self.began = Some(now);
        let tasks = self.tasks.as_ref().map_or(0, GreedyTasks::count);
        for task in 0..tasks {
            self.task(now, engine, task)?;
        }
        Ok(())
    }

    /// Pages that are copied, and those that can be copied next. Says how many were.
    fn copy(&mut self, now: Instant) -> u64 {
        let mut pages = 0;
        loop {
            if let Some(whose) = self.copier.copied(now) {
                self.copied(now, whose);
                pages += 1;
            }
            let ready = match (&self.reader, self.began) {
                (Some(reader), Some(_)) if !self.is_over => reader.ready(),
                _ => Ready::Nothing,
            };
            let has_begun = self.copier.begin(now, ready);
            if !has_begun || self.copier.next_event() != Some(now) {
                return pages;
            }
        }
    }

    fn copied(&mut self, now: Instant, whose: CopyTarget) {
        match (whose, self.began) {
            (CopyTarget::Player(player), Some(began)) => {
                if self.copier.is_whole() {
                    let paced = &self.setup.players;
                    self.players[player].read(now, (began, paced.rate), paced.read);
                }
            }
            (CopyTarget::Reader, _) => {
                if let Some(reader) = &mut self.reader {
                    reader.copied();
                }
            }
            (CopyTarget::Player(_), None) => {}
        }
    }

    /// All actions that are due at `now`.
    fn play(&mut self, now: Instant, engine: &mut Engine) -> Result<(), PlayingError> {
        let Some(began) = self.began else {
            return Ok(());
        };
        let is_read = self.reader.as_ref().is_some_and(BackgroundReader::is_over);
        let mut players = self.players.iter();
        let is_played = players.any(|player| player.state == PlayerState::Over);
        if is_read || is_played || now.since(began) >= self.setup.lasts {
            self.is_over = true;
            self.report.span = now.since(began);
            self.report.background = self.reader.as_ref().map_or(0, |reader| reader.copied);
            self.report.batch = self.served.batch(engine);
            return Ok(());
        }
        for player in 0..self.players.len() {
            let paced = &self.setup.players;
            let one = &self.players[player];
            if one.state == PlayerState::Pausing && one.due(began, paced.rate) <= now {
                self.call(now, engine, player)?;
            }
        }
        let points = || {
            let paced = &self.setup.players;
            let point = |one: &Player| one.point(now, began, paced.rate, paced.read);
            self.players.iter().map(point).collect()
        };
        self.served.tell(now, engine, points);
        for (player, from, to) in self.served.due(now) {
            let file = self.players[player].file;
            let deadline = now + self.setup.players.rate.at_least(to - from);
            self.refill(
                now,
                engine,
                (player, file),
                (from, to),
                Class::RealTime { deadline },
            )?;
        }
        self.flush(now, began, engine)?;
        while let Some((file, (from, to))) = self.reader.as_mut().and_then(BackgroundReader::ask) {
            self.submit(
                now,
                engine,
                (RequestCause::Reader(from), file),
                (from, to),
                Class::default(),
            )?;
        }
        Ok(())
    }

    /// Writes dirty pages while a burst lasts.
    fn flush(
        &mut self,
        now: Instant,
        began: Instant,
        engine: &mut Engine,
    ) -> Result<(), PlayingError> {
        while let Some((file, (from, to))) = self
            .flusher
            .as_mut()
            .and_then(|flusher| flusher.ask(now, began))
        {
            let extent = file.blocks(from, to).expect("bytes of the file");
            let write = (Direction::Write, extent);
            self.request(now, engine, RequestCause::Flush, write, Class::default())?;
        }
        Ok(())
    }

    /// A player issues its next read.
    fn call(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        player: usize,
    ) -> Result<(), PlayingError> {
        self.players[player].state = PlayerState::Waiting {
            called: now,
            requests: 0,
        };
        if matches!(self.served, Supply::Plain) {
            return self.read(now, engine, player);
        }
        let bytes = self.players[player].next(self.setup.players.read);
        self.served.call(now, engine, player, bytes);
        Ok(())
    }

    /// What a player has called for is read like everybody's.
    fn read(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        player: usize,
    ) -> Result<(), PlayingError> {
        let one = &mut self.players[player];
        let (from, to) = one.next(self.setup.players.read);
        let file = one.file;
        if let PlayerState::Waiting { requests, .. } = &mut one.state {
            *requests = parts(from, to).count();
        }
        for part in parts(from, to) {
            self.submit(
                now,
                engine,
                (RequestCause::Player(player), file),
                part,
                Class::default(),
            )?;
        }
        Ok(())
    }

    /// All data of a player's read are in memory.
    fn came(&mut self, now: Instant, player: usize) {
        let one = &mut self.players[player];
        let (from, to) = one.next(self.setup.players.read);
        one.came(now);
        self.copier.read(player, to - from);
    }

    /// Reads a part of a player's buffer, in commands.
    fn refill(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        (player, file): (usize, PlayedFile),
        (from, to): (u64, u64),
        class: Class,
    ) -> Result<(), PlayingError> {
        for part in parts(from, to) {
            self.served.asked(player, part.0);
            self.submit(
                now,
                engine,
                (RequestCause::Buffer(player, part.0), file),
                part,
                class,
            )?;
        }
        Ok(())
    }

    /// Submits the next request of a greedy task.
    fn task(&mut self, now: Instant, engine: &mut Engine, task: usize) -> Result<(), PlayingError> {
        let Some((direction, extent)) = self.tasks.as_mut().and_then(GreedyTasks::next) else {
            return Ok(());
        };
        self.request(
            now,
            engine,
            RequestCause::Task(task),
            (direction, extent),
            Class::default(),
        )
    }

    fn submit(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        (whose, file): (RequestCause, PlayedFile),
        (from, to): (u64, u64),
        class: Class,
    ) -> Result<(), PlayingError> {
        let extent = file.blocks(from, to).expect("bytes of the file");
        self.request(now, engine, whose, (Direction::Read, extent), class)
    }

    fn request(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        whose: RequestCause,
        (direction, extent): (Direction, Extent),
        class: Class,
    ) -> Result<(), PlayingError> {
        let request = Request {
            id: self.asked.insert(whose),
            direction,
            extent,
            class,
            durability: Durability::Volatile,
            owner: whose.owner(self.players.len()),
        };
        Ok(engine.submit(now, request)?)
    }

    /// The next action of an application or the copier.
    fn next_act(&self) -> Option<Instant> {
        let paced = &self.setup.players;
        let playing = self.began.filter(|_| !self.is_over);
        let due = playing.and_then(|began| {
            let pausing = self.players.iter();
            let pausing = pausing.filter(|player| player.state == PlayerState::Pausing);
            pausing.map(|player| player.due(began, paced.rate)).min()
        });
        let batch = playing.and_then(|_| self.served.next_event());
        let over = playing.map(|began| began + self.setup.lasts);
        let flush = playing.zip(self.flusher.as_ref());
        let flush = flush.map(|(began, flusher)| flusher.next_event(began));
        let all = [self.copier.next_event(), due, batch, flush, over];
        all.into_iter().flatten().min()
    }

    fn report(mut self, engine: &Engine) -> PlayingReport {
        self.report.tasks.sort_unstable();
        self.report.players = self.players.into_iter().map(|one| one.reads).collect();
        self.report.late = engine.guarantees().late();
        self.report
    }
}

impl Host for Playback<'_> {
    type Error = PlayingError;

    fn command_ended(&mut self, _: Instant, _: &Engine, outcome: &Outcome) {
        let status = outcome.status;
        assert_eq!(status, Status::Good, "nothing on the drive is broken");
    }

    fn request_ended(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), PlayingError> {
        let whose = self.asked.remove(finished.request.id);
        self.ended(now, engine, whose, finished.response())
    }

    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, PlayingError> {
        self.begin(now, engine)?;
        if !self.is_over {
            self.play(now, engine)?;
        }
        let read = self.setup.players.read;
        for player in self.served.answers(engine, &self.players, read) {
            self.came(now, player);
        }
        let copied = self.copy(now);
        let is_due = self.next_act().is_some_and(|then| then <= now);
        Ok(match copied > 0 || is_due {
            true => Activity::Continues,
            false => Activity::Waits,
        })
    }

    fn is_over(&mut self, _: Instant, engine: &mut Engine) -> bool {
        self.is_over && engine.held() == 0
    }

    fn next_event(&self, _: Instant, _: &Engine) -> Option<Instant> {
        self.next_act()
    }
}

/// A byte range divided into commands.
fn parts(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = (from..to).step_by(COMMAND as usize);
    starts.map(move |start| (start, to.min(start + COMMAND)))
}
