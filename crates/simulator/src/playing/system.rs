//! From event to event: what ends, what is due, what is copied, what the drive is given next.

use std::sync::Arc;

use block::{Class, Direction, Durability, Duration, Extent, Instant, Request, RequestId, Status};
use drive::VirtualDrive;
use engine::{Engine, Limits};

use super::copier::{Copier, For, Ready};
use super::guaranteed::promising;
use super::player::{Player, State};
use super::reader::Reader;
use super::report::Report;
use super::served::Served;
use super::setup::{Beside, NotPlayed, Service, Setup};
use super::tasks::Tasks;
use super::{COMMAND, File};

/// Plays.
///
/// # Errors
/// If a stream is refused, or a file is not on the drive.
///
/// # Panics
/// If the engine or the drive breaks its contract, or a command fails although nothing on the drive is
/// broken.
pub fn play(setup: &Setup) -> Result<Report, NotPlayed> {
    let mut system = System::new(setup)?;
    loop {
        system.instant()?;
        if system.is_over && system.engine.held() == 0 {
            return Ok(system.report());
        }
        match system.next_event() {
            Some(then) => system.now = then,
            None => return Ok(system.report()),
        }
    }
}

/// Everything of a run.
struct System<'a> {
    setup: &'a Setup,
    engine: Engine,
    drive: VirtualDrive,
    now: Instant,
    players: Vec<Player>,
    served: Served,
    reader: Option<Reader>,
    tasks: Option<Tasks>,
    copier: Copier,
    asked: Asked,
    /// From when on everybody plays.
    began: Option<Instant>,
    /// Nobody asks for anything any more.
    is_over: bool,
    report: Report,
}

/// Whose request it is, and for which bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// A player's plain read.
    Player(usize),
    /// A part of a player's buffer, from this byte on.
    Buffer(usize, u64),
    /// A part of the background reader's window, from this byte on.
    Reader(u64),
    /// A greedy task's.
    Task,
}

/// What the engine holds, by the name under which it knows it.
#[derive(Debug, Default)]
struct Asked {
    all: Vec<Whose>,
    free: Vec<usize>,
}

impl<'a> System<'a> {
    fn new(setup: &'a Setup) -> Result<System<'a>, NotPlayed> {
        let limits = Limits {
            phases: setup.phases,
            ..Limits::suited_to(setup.policy, &setup.belief)
        };
        let policy = setup.policy;
        let mut engine = Engine::new(Arc::clone(&setup.belief), &|| policy.make(), limits);
        if let Service::Guaranteed(guarantee) = setup.players.service {
            engine = promising(engine, &setup.players, guarantee)?;
        }
        let truth = Arc::clone(&setup.truth);
        let drive = VirtualDrive::imperfect(truth, setup.imperfections.clone(), setup.seed);
        let paced = &setup.players;
        let count = paced.files.len() as u64;
        let players = paced.files.iter().zip(0..).map(|(&file, number)| {
            let offset = paced.rate.at_most(paced.read * number / count);
            Player::new(file, offset)
        });
        let block = u64::from(setup.truth.block_bytes);
        let size = (setup.truth.geometry.sectors().0, block);
        let (reader, tasks) = match setup.beside {
            Beside::Nobody => (None, None),
            Beside::Reader { file, read_ahead } => (Some(Reader::new(file, read_ahead)), None),
            Beside::Tasks(greed) => (None, Some(Tasks::new(greed, size))),
        };
        let served = Served::new(&mut engine, paced, block)?;
        let mut system = System {
            setup,
            engine,
            drive,
            now: Instant::ZERO,
            players: players.collect(),
            served,
            reader,
            tasks,
            copier: Copier::new(setup.copies),
            asked: Asked::default(),
            began: None,
            is_over: false,
            report: Report::default(),
        };
        system.fill()?;
        Ok(system)
    }

    /// Buffers are filled before anybody plays.
    fn fill(&mut self) -> Result<(), NotPlayed> {
        let fills = self.served.fills();
        for (player, from, to) in fills {
            let file = self.players[player].file;
            self.refill(player, file, (from, to), Class::default())?;
        }
        Ok(())
    }

    /// All that happens now.
    fn instant(&mut self) -> Result<(), NotPlayed> {
        loop {
            while let Some(outcome) = self.drive.poll(self.now) {
                assert_eq!(
                    outcome.status,
                    Status::Good,
                    "nothing on the drive is broken"
                );
                self.engine.complete(self.now, outcome.id, outcome);
            }
            while let Some(finished) = self.engine.poll_finished() {
                let whose = self.asked.leave(finished.request.id);
                self.ended(whose, finished.response())?;
            }
            self.begin()?;
            if !self.is_over {
                self.act()?;
            }
            let read = self.setup.players.read;
            for player in self.served.answers(&mut self.engine, &self.players, read) {
                self.came(player);
            }
            let copied = self.copy();
            while let Some(command) = self.engine.poll(self.now) {
                self.drive.submit(self.now, command)?;
            }
            if copied == 0 && self.next_event().is_none_or(|then| then > self.now) {
                return Ok(());
            }
        }
    }

    /// Somebody's request has ended.
    fn ended(&mut self, whose: Whose, took: Duration) -> Result<(), NotPlayed> {
        match whose {
            Whose::Player(player) => {
                if let State::Waiting { requests, .. } = &mut self.players[player].state {
                    *requests -= 1;
                    if *requests == 0 {
                        self.came(player);
                    }
                }
            }
            Whose::Buffer(player, from) => self.served.came(player, from),
            Whose::Reader(from) => {
                if let Some(reader) = &mut self.reader {
                    reader.came(from);
                }
            }
            Whose::Task => {
                self.report.tasks.push(took);
                if !self.is_over {
                    self.task()?;
                }
            }
        }
        Ok(())
    }

    /// Once all buffers are full, everybody plays.
    fn begin(&mut self) -> Result<(), NotPlayed> {
        if self.began.is_some() || !self.served.is_filled(&self.engine) {
            return Ok(());
        }
        self.began = Some(self.now);
        let tasks = self.tasks.as_ref().map_or(0, Tasks::count);
        for _ in 0..tasks {
            self.task()?;
        }
        Ok(())
    }

    /// Pages that are copied, and those that can be copied next. Says how many were.
    fn copy(&mut self) -> u64 {
        let mut pages = 0;
        loop {
            if let Some(whose) = self.copier.copied(self.now) {
                self.copied(whose);
                pages += 1;
            }
            let ready = match (&self.reader, self.began) {
                (Some(reader), Some(_)) if !self.is_over => reader.ready(),
                _ => Ready::Nothing,
            };
            let has_begun = self.copier.begin(self.now, ready);
            if !has_begun || self.copier.next_event() != Some(self.now) {
                return pages;
            }
        }
    }

    fn copied(&mut self, whose: For) {
        match (whose, self.began) {
            (For::Player(player), Some(began)) => {
                if self.copier.is_whole() {
                    let paced = &self.setup.players;
                    self.players[player].read(self.now, (began, paced.rate), paced.read);
                }
            }
            (For::Reader, _) => {
                if let Some(reader) = &mut self.reader {
                    reader.copied();
                }
            }
            (For::Player(_), None) => {}
        }
    }

    /// What everybody does now of their own accord.
    fn act(&mut self) -> Result<(), NotPlayed> {
        let Some(began) = self.began else {
            return Ok(());
        };
        let is_read = self.reader.as_ref().is_some_and(Reader::is_over);
        let mut players = self.players.iter();
        let is_played = players.any(|player| player.state == State::Over);
        if is_read || is_played || self.now.since(began) >= self.setup.lasts {
            self.is_over = true;
            self.report.span = self.now.since(began);
            self.report.background = self.reader.as_ref().map_or(0, |reader| reader.copied);
            self.report.batch = self.served.batch(&self.engine);
            return Ok(());
        }
        for player in 0..self.players.len() {
            let paced = &self.setup.players;
            let one = &self.players[player];
            if one.state == State::Pausing && one.due(began, paced.rate) <= self.now {
                self.call(player)?;
            }
        }
        let points = || {
            let paced = &self.setup.players;
            let point = |one: &Player| one.point(self.now, began, paced.rate, paced.read);
            self.players.iter().map(point).collect()
        };
        self.served.tell(self.now, &mut self.engine, points);
        for (player, from, to) in self.served.due(self.now) {
            let file = self.players[player].file;
            let deadline = self.now + self.setup.players.rate.at_least(to - from);
            self.refill(player, file, (from, to), Class::RealTime { deadline })?;
        }
        while let Some((file, (from, to))) = self.reader.as_mut().and_then(Reader::ask) {
            self.submit(Whose::Reader(from), file, (from, to), Class::default())?;
        }
        Ok(())
    }

    /// A player calls for its next bytes.
    fn call(&mut self, player: usize) -> Result<(), NotPlayed> {
        self.players[player].state = State::Waiting {
            called: self.now,
            requests: 0,
        };
        if self.served.is_plain() {
            return self.read(player);
        }
        let bytes = self.players[player].next(self.setup.players.read);
        self.served.call(self.now, &mut self.engine, player, bytes);
        Ok(())
    }

    /// What a player has called for is read like everybody's.
    fn read(&mut self, player: usize) -> Result<(), NotPlayed> {
        let one = &mut self.players[player];
        let (from, to) = one.next(self.setup.players.read);
        let file = one.file;
        if let State::Waiting { requests, .. } = &mut one.state {
            *requests = parts(from, to).count();
        }
        for part in parts(from, to) {
            self.submit(Whose::Player(player), file, part, Class::default())?;
        }
        Ok(())
    }

    /// All that a player waits for is in memory.
    fn came(&mut self, player: usize) {
        let one = &mut self.players[player];
        let (from, to) = one.next(self.setup.players.read);
        one.came(self.now);
        self.copier.read(player, to - from);
    }

    /// A part of a player's buffer is read, in commands.
    fn refill(
        &mut self,
        player: usize,
        file: File,
        (from, to): (u64, u64),
        class: Class,
    ) -> Result<(), NotPlayed> {
        for part in parts(from, to) {
            self.served.asked(player, part.0);
            self.submit(Whose::Buffer(player, part.0), file, part, class)?;
        }
        Ok(())
    }

    /// The next request of a greedy task.
    fn task(&mut self) -> Result<(), NotPlayed> {
        let Some((direction, extent)) = self.tasks.as_mut().and_then(Tasks::next) else {
            return Ok(());
        };
        self.request(Whose::Task, (direction, extent), Class::default())
    }

    fn submit(
        &mut self,
        whose: Whose,
        file: File,
        (from, to): (u64, u64),
        class: Class,
    ) -> Result<(), NotPlayed> {
        let extent = file.blocks(from, to).expect("bytes of the file");
        self.request(whose, (Direction::Read, extent), class)
    }

    fn request(
        &mut self,
        whose: Whose,
        (direction, extent): (Direction, Extent),
        class: Class,
    ) -> Result<(), NotPlayed> {
        let request = Request {
            id: self.asked.enter(whose),
            direction,
            extent,
            class,
            durability: Durability::Volatile,
        };
        Ok(self.engine.submit(self.now, request)?)
    }

    /// When something happens next.
    fn next_event(&self) -> Option<Instant> {
        let paced = &self.setup.players;
        let playing = self.began.filter(|_| !self.is_over);
        let due = playing.and_then(|began| {
            let pausing = self.players.iter();
            let pausing = pausing.filter(|player| player.state == State::Pausing);
            pausing.map(|player| player.due(began, paced.rate)).min()
        });
        let batch = playing.and_then(|_| self.served.next_event());
        let over = playing.map(|began| began + self.setup.lasts);
        let all = [
            self.drive.next_wakeup(),
            self.engine.next_wakeup(),
            self.copier.next_event(),
            due,
            batch,
            over,
        ];
        all.into_iter().flatten().min()
    }

    fn report(mut self) -> Report {
        self.report.tasks.sort_unstable();
        self.report.players = self.players.into_iter().map(|one| one.reads).collect();
        self.report.late = self.engine.late();
        self.report
    }
}

impl Asked {
    fn enter(&mut self, whose: Whose) -> RequestId {
        let place = match self.free.pop() {
            Some(place) => {
                self.all[place] = whose;
                place
            }
            None => {
                self.all.push(whose);
                self.all.len() - 1
            }
        };
        RequestId(place as u64)
    }

    fn leave(&mut self, id: RequestId) -> Whose {
        let place = id.0 as usize;
        self.free.push(place);
        self.all[place]
    }
}

/// Bytes in commands.
fn parts(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = (from..to).step_by(COMMAND as usize);
    starts.map(move |start| (start, to.min(start + COMMAND)))
}
