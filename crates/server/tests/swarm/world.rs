//! The world around the service: clients, a front end, a scan, and what they know of the bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use block::Durability;
use block::operation::{Ask, OperationError};
use nbd::Style;
use server::clients::Seats;
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;

use crate::client::Client;
use crate::failures::KnownFailures;
use crate::fickle::Fails;
use crate::history::{History, Moment};
use crate::legs::{Broken, break_leg};
use crate::model::{Change, Stamp};
use crate::moments::Moments;
use crate::plan::{Action, Belief, Plan, Setting};
use crate::run::BLOCKS;
use crate::scan::Scan;
use crate::streams::Streams;

mod ending;
mod findings;
mod losses;
mod operations;

use ending::Phase;
use losses::Departed;

/// An operation takes at most so long, in virtual time, unless its client takes no replies.
const PATIENCE_NS: u64 = 120_000_000_000;

/// So many requests of a client are under way at most: fewer than the service accepts.
const DEPTH: usize = 64;

/// What was asked.
pub struct Wait {
    ask: Ask,
    first: u64,
    change: Option<Change>,
    /// What each block of a read may have.
    possible: Vec<Vec<Stamp>>,
    moment: Moment,
    /// The power cuts before it.
    cuts: usize,
    /// The failures of the drive before it.
    failed: usize,
    /// A flush may fail if there are more than these.
    excused: usize,
    since: u64,
}

/// What the loop's thread tells, in order.
pub enum Told {
    Posted(u64, Result<Vec<u8>, OperationError>),
    Cut,
    /// A checkpoint is open by an export, or refused.
    Opened(u64, Result<usize, String>),
    MomentRead(u64, Result<Vec<u8>, OperationError>),
    /// The connections that there are.
    Present(Vec<u64>),
}

/// Where it is told.
pub type Tell = Arc<Mutex<VecDeque<Told>>>;

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub operations: u64,
    pub cuts: u64,
    pub kills: u64,
    /// Services that were stopped, and began again.
    pub stops: u64,
    pub breaks: u64,
    /// Commands that the drive failed.
    pub failed: u64,
    pub scanned: u64,
    /// Blocks of checkpoints that were checked.
    pub of_moments: u64,
    pub unreadable: u64,
    /// Batches of streams that were late, because drive or host were.
    pub late: u64,
    pub connections: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.operations += other.operations;
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.stops += other.stops;
        self.breaks += other.breaks;
        self.failed += other.failed;
        self.scanned += other.scanned;
        self.of_moments += other.of_moments;
        self.unreadable += other.unreadable;
        self.late += other.late;
        self.connections += other.connections;
    }
}

/// The world.
pub struct World {
    steps: VecDeque<(u64, Action)>,
    clients: Vec<Client>,
    posted: BTreeMap<u64, Wait>,
    departed: Vec<Departed>,
    /// When to look for them next.
    look: u64,
    scans: Vec<Scan>,
    streams: Streams,
    moments: Moments,
    history: History,
    told: Tell,
    mailbox: Mailbox,
    seats: Seats,
    numbers: u64,
    stalled_until: u64,
    hung_until: u64,
    phase: Phase,
    setting: Setting,
    broken: Broken,
    /// Commands that the drive failed.
    failures: Arc<AtomicUsize>,
    failing_until: Option<u64>,
    /// What front ends know of them.
    posters: KnownFailures,
    /// Whether the process ends now.
    is_killed: bool,
    /// Whether the service stops, to begin again.
    is_stopped: bool,
    pub counts: Counts,
}

impl World {
    pub fn new(plan: &Plan, mailbox: Mailbox) -> World {
        let mut at = 0;
        let steps = plan.steps.iter().map(|step| {
            at += step.after_us * 1000;
            (at, step.action)
        });
        World {
            steps: steps.collect(),
            clients: Vec::new(),
            posted: BTreeMap::new(),
            departed: Vec::new(),
            look: 0,
            scans: Vec::new(),
            streams: Streams::new(plan.setting.pace),
            moments: Moments::default(),
            history: History::new(BLOCKS),
            told: Tell::default(),
            mailbox,
            seats: Seats::default(),
            numbers: 0,
            stalled_until: 0,
            hung_until: 0,
            phase: Phase::Running,
            setting: plan.setting.clone(),
            broken: Broken::default(),
            failures: Arc::default(),
            failing_until: None,
            posters: KnownFailures::default(),
            is_killed: false,
            is_stopped: false,
            counts: Counts::default(),
        }
    }

    /// What the legs of a mirror fail.
    pub fn broken(&self) -> Broken {
        self.broken.clone()
    }

    /// The number of commands that the drive has failed.
    pub fn failures(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.failures)
    }

    /// Whether the process ends now.
    pub fn is_killed(&self) -> bool {
        self.is_killed
    }

    /// Whether another service begins when this one has stopped.
    pub fn begins_again(&self) -> bool {
        self.is_stopped
    }

    /// Until when the host's files are slow.
    pub fn stalled_until(&self) -> u64 {
        self.stalled_until
    }

    /// When the world acts next by itself.
    pub fn next_time(&self) -> Option<u64> {
        let step = self.next_step().map(|&(at, _)| at);
        let paused = self.clients.iter().filter_map(Client::paused_until);
        let look = self.may_look().then_some(self.look);
        let failing = self.failing_until;
        let reader = self.streams.next_time().filter(|_| !self.is_stopped);
        let times = step.into_iter().chain(paused).chain(look).chain(failing);
        let times = times.chain(reader);
        times.min()
    }

    /// Does what can be done now. The answer is whether anything was.
    pub fn progress(&mut self, now: u64) -> bool {
        if self.is_killed {
            return false;
        }
        let mut is_any = self.see_failures(now) | self.listen(now);
        if let Some(us) = self.streams.listen(now) {
            self.counts.late += 1;
            assert!(!self.is_punctual(), "a stream's batch was {us} us late");
        }
        while !self.is_stopped
            && let Some((first, count)) = self.streams.read(now)
        {
            self.post(Ask::Read, first, count, now);
            is_any = true;
        }
        for who in 0..self.clients.len() {
            is_any |= self.move_client(who, now);
        }
        self.clients.retain(|client| {
            let has_lost = client.has_left() && client.under_way() > 0 && !self.is_stopped;
            assert!(
                !has_lost,
                "the service has closed a connection with requests"
            );
            !client.has_left() || client.under_way() > 0
        });
        for scan in &mut self.scans {
            let blocks = scan.take(&self.history, &self.mailbox);
            self.counts.scanned += blocks;
            is_any |= blocks > 0;
        }
        if self.may_look() && self.look <= now {
            self.look(now);
            return true;
        }
        if let Some(&(at, action)) = self.next_step()
            && at <= now
        {
            self.steps.pop_front();
            self.act(action, now);
            return true;
        }
        is_any || (self.steps.is_empty() && !self.is_stopped && self.end(now))
    }

    /// Whether the drive and its host have kept their own times so far.
    fn is_punctual(&self) -> bool {
        let is_quick = self.setting.host_us == 5 && self.setting.belief == Belief::True;
        is_quick && self.stalled_until == 0 && self.hung_until == 0 && self.counts.cuts == 0
    }

    /// The next step, unless it needs a service that is stopping.
    fn next_step(&self) -> Option<&(u64, Action)> {
        let needs = |action: &Action| {
            !matches!(
                action,
                Action::Kill | Action::Fail { .. } | Action::Stall { .. }
            )
        };
        let next = self.steps.front();
        next.filter(|(_, action)| !(self.is_stopped && needs(action)))
    }

    /// Takes what the loop has told.
    fn listen(&mut self, now: u64) -> bool {
        let told = std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner));
        let is_any = !told.is_empty();
        for told in told {
            match told {
                Told::Posted(number, result) => {
                    let wait = self.posted.remove(&number).expect("each ends once");
                    let (result, bytes) = match result {
                        Ok(bytes) => (Ok(()), bytes),
                        Err(failed) => (Err(failed), Vec::new()),
                    };
                    self.assert_in_time(&wait, now);
                    let mut posters = self.posters;
                    self.ended(wait, (result, &bytes), &mut posters);
                    self.posters = posters;
                }
                Told::Cut => self.cut(now),
                Told::Opened(number, opened) => self.moments.opened(number, opened),
                Told::MomentRead(number, result) => {
                    let checked = self.moments.ended(number, result, self.history.cuts());
                    self.counts.of_moments += checked;
                }
                Told::Present(numbers) => self.see(&numbers),
            }
        }
        is_any
    }

    /// Sends and receives for a client. The answer is whether anything moved.
    fn move_client(&mut self, who: usize, now: u64) -> bool {
        let mut is_any = self.clients[who].transfer(now);
        while let Some((wait, end, is_patient)) = self.clients[who].next_end() {
            is_any = true;
            if !is_patient {
                self.assert_in_time(&wait, now);
            }
            let mut known = self.clients[who].failures;
            self.ended(wait, (end.result, &end.bytes), &mut known);
            self.clients[who].failures = known;
        }
        is_any
    }

    fn assert_in_time(&self, wait: &Wait, now: u64) {
        // The host's files were slow until then, or the drive hung.
        let quick_since = self.stalled_until.max(self.hung_until);
        let took = now.saturating_sub(wait.since.max(quick_since));
        assert!(took < PATIENCE_NS, "{:?} took {took} ns", wait.ask);
    }

    fn act(&mut self, action: Action, now: u64) {
        let count = self.clients.len() as u64;
        let place = |who: u64| (count > 0).then(|| (who % count.max(1)) as usize);
        match action {
            Action::Connect(style) => self.connect(style),
            Action::Submit {
                who,
                ask,
                first,
                count,
            } => {
                if let Some(who) = place(who).filter(|&who| self.clients[who].has_room(DEPTH)) {
                    let known = self.clients[who].failures;
                    let (wait, payload) = self.ask(ask, (first, count), known, now);
                    self.clients[who].submit(wait, ask, (first, count), &payload);
                }
            }
            Action::Post { ask, first, count } => self.post(ask, first, count, now),
            Action::Stream(step) => {
                self.numbers += 1;
                let written = self.streams.act(step, self.numbers, &self.mailbox);
                if let Some((first, count)) = written {
                    let durability = Durability::Volatile;
                    self.post(Ask::Write { durability }, first, count, now);
                }
            }
            Action::Moment(step) => {
                self.numbers += 1;
                let known = (&self.setting, &self.history);
                let doors = (&self.mailbox, &self.told);
                self.moments.act(step, self.numbers, known, doors);
            }
            Action::Leave(who, how) => {
                if let Some(who) = place(who) {
                    self.leave(who, how);
                }
            }
            Action::Pause { who, ms } => {
                if let Some(who) = place(who) {
                    self.clients[who].pause(now + ms * 1_000_000);
                }
            }
            Action::Scan => {
                self.numbers += 1;
                let scan = Scan::begin(self.numbers, &self.setting, &self.history, &self.mailbox);
                self.scans.push(scan);
            }
            Action::PowerCut => self.cut_power(),
            Action::Kill => self.is_killed = true,
            Action::Restart => {
                self.is_stopped = true;
                self.mailbox.call(EventLoop::stop).expect("it runs");
            }
            Action::BreakLeg(leg) => {
                self.counts.breaks += 1;
                break_leg(leg, &self.broken, &self.mailbox);
            }
            Action::Fail { what, ms } => {
                *self.broken[0].lock().expect("a mood") = what;
                let until = now + ms * 1_000_000;
                self.failing_until = Some(until);
                if what == Fails::Hangs {
                    self.hung_until = until;
                }
            }
            Action::Stall { ms } => self.stalled_until = now + ms * 1_000_000,
        }
    }

    fn connect(&mut self, style: Style) {
        self.numbers += 1;
        self.counts.connections += 1;
        let seat = self.seats.take().expect("a seat");
        let seat = (seat, self.counts.failed as usize);
        let client = Client::connect(self.numbers, (style, &self.setting), seat, &self.mailbox);
        self.clients.push(client);
    }
}

/// Tells the world, from the loop's thread.
pub fn tell(to: &Tell, told: Told) {
    to.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_back(told);
}
