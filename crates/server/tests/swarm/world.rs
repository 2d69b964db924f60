//! The world around the service: clients, a front end, a scan, and what they know of the bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use block::operation::{Ask, OperationError};
use nbd::Style;
use server::clients::Seats;
use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::status::Mode;

use crate::client::Client;
use crate::failures::KnownFailures;
use crate::fickle::Fails;
use crate::films::{Films, Reader};
use crate::history::{Glance, History, Moment};
use crate::legs::{Broken, Refill, break_leg};
use crate::model::{Change, Stamp};
use crate::moments::{MomentStep, Moments};
use crate::plan::{Action, Plan, Setting};
use crate::regions::Regions;
use crate::reload::Reloads;
use crate::scan::Scan;
use crate::scrub::{self, PassLook, Scrub};
use crate::status::{Seen, Served};
use crate::straying::Straying;
use crate::streams::Streams;

mod counts;
mod ending;
mod findings;
mod losses;
mod operations;
mod status;

pub use counts::Counts;
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
    count: u64,
    change: Option<Change>,
    /// What each block of a read may have.
    possible: Vec<Vec<Stamp>>,
    moment: Moment,
    glance: Glance,
    /// The power cuts before it.
    cuts: usize,
    /// The failures of the drive before it.
    failed: usize,
    /// A flush may fail if there are more than these.
    excused: usize,
    /// Whether it reaches past the end of the volume, or did before one that was told meanwhile; `None` if that depends.
    is_beyond: Option<bool>,
    /// Whether the volume has become shorter under it.
    is_shortened: bool,
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
    /// The volume has another length in blocks, or the reason why not.
    Resized(Result<u64, String>),
    /// The volume has another export.
    Added(usize),
    /// Whether a leg of the mirror is being filled.
    Filled(bool),
    /// Whether a piece of a film is all zeroes.
    Film(Reader, Result<bool, OperationError>),
    /// A look at a scrub.
    Looked(PassLook),
    /// What the belief is used for.
    Mode(Mode),
}

/// Where it is told.
pub type Tell = Arc<Mutex<VecDeque<Told>>>;

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
    films: Films,
    /// What was seen of both.
    seen: Seen,
    served: Served,
    /// Commands that the drive failed before this service.
    failures_before: usize,
    moments: Moments,
    reloads: Reloads,
    /// The checksums, if there are any, and the scrub at the end.
    checked: Option<(Regions, Scrub)>,
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
    refill: Refill,
    straying: Option<Straying>,
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
        let seen = Seen::default();
        World {
            steps: steps.collect(),
            clients: Vec::new(),
            posted: BTreeMap::new(),
            departed: Vec::new(),
            look: 0,
            scans: Vec::new(),
            streams: Streams::new(plan.setting.pace, seen.clone()),
            films: Films::new(seen.clone()),
            seen,
            served: Served::nothing(),
            failures_before: 0,
            moments: Moments::default(),
            reloads: Reloads::begin(plan.setting.blocks),
            checked: None,
            history: History::new(plan.setting.blocks, plan.setting.is_filled),
            told: Tell::default(),
            mailbox,
            seats: Seats::default(),
            numbers: 0,
            stalled_until: 0,
            hung_until: 0,
            phase: Phase::Running,
            setting: plan.setting.clone(),
            broken: Broken::default(),
            refill: Refill::default(),
            straying: None,
            failures: Arc::default(),
            failing_until: None,
            posters: KnownFailures::default(),
            is_killed: false,
            is_stopped: false,
            counts: Counts::default(),
        }
    }

    /// The volume has checksums, and is scrubbed at the end.
    #[must_use]
    pub fn with_checksums(self, regions: Regions, scrub: Scrub) -> World {
        World {
            checked: Some((regions, scrub)),
            ..self
        }
    }

    /// The checksums, if there are any.
    pub fn regions(&self) -> Option<&Regions> {
        self.checked.as_ref().map(|(regions, _)| regions)
    }

    /// Whether the service only scrubs.
    pub fn is_scrubbing(&self) -> bool {
        self.checked
            .as_ref()
            .is_some_and(|(_, scrub)| scrub.is_on())
    }

    /// What the legs of a mirror fail.
    pub fn broken(&self) -> Broken {
        self.broken.clone()
    }

    /// Whether the process ends now.
    pub fn is_killed(&self) -> bool {
        self.is_killed
    }

    /// Whether the service was stopped between two steps.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether another service begins when this one has stopped.
    pub fn begins_again(&self) -> bool {
        let is_due = |(_, scrub): &(Regions, Scrub)| scrub.is_due();
        self.is_stopped || self.checked.as_ref().is_some_and(is_due)
    }

    /// Blocks of the volume.
    pub fn blocks(&self) -> u64 {
        self.reloads.blocks()
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
        let readers = [self.streams.next_time(), self.films.next_time()];
        let reader = readers.into_iter().flatten().filter(|_| !self.is_stopped);
        let times = step.into_iter().chain(paused).chain(look).chain(failing);
        let checked = self.checked.iter();
        let checked = checked.flat_map(|(regions, scrub)| [regions.next_time(), scrub.next_time()]);
        let times = times.chain(reader).chain(checked.flatten());
        let times = times.chain(self.refill.next_time());
        times.min()
    }

    /// Does what can be done now. The answer is whether anything was.
    pub fn progress(&mut self, now: u64) -> bool {
        if self.is_killed {
            return false;
        }
        let mut is_any = self.see_failures(now) | self.listen(now);
        if let Some((regions, _)) = &self.checked {
            is_any |= regions.progress(now);
        }
        let late = self.streams.listen(now).max(self.films.listen(now));
        if let Some(us) = late {
            self.counts.late += 1;
            assert!(!self.is_punctual(), "a stream's batch was {us} us late");
        }
        if !self.is_stopped {
            is_any |= self.films.play(now, (&self.mailbox, &self.told));
        }
        while !self.is_stopped
            && let Some((first, count)) = self.streams.read(now, &self.mailbox)
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
                    let checked =
                        self.moments
                            .ended(number, result, (self.history.cuts(), self.is_stopped));
                    self.counts.of_moments += checked;
                }
                Told::Present(numbers) => self.see(&numbers),
                Told::Resized(resized) => self.resized(resized),
                Told::Added(export) => self.reloads.added(export),
                Told::Filled(is_filled) => self.filled(now, is_filled),
                Told::Film(reader, result) => {
                    self.counts.pieces += u64::from(reader == Reader::Player);
                    self.films.ended(reader, result, self.is_stopped);
                }
                Told::Looked(look) => self.looked(now, &look),
                Told::Mode(mode) => self.seen_in(mode),
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
        // The host's files were slow until then, the drive hung, or others left nothing to the idle class.
        let quick_since = self.stalled_until.max(self.hung_until);
        let quick_since = quick_since.max(self.films.crowded_until());
        let took = now.saturating_sub(wait.since.max(quick_since));
        assert!(took < PATIENCE_NS, "{:?} took {took} ns", wait.ask);
    }

    fn act(&mut self, action: Action, now: u64) {
        let count = self.clients.len() as u64;
        let place = |who: u64| (count > 0).then(|| (who % count.max(1)) as usize);
        match action {
            Action::Connect(style) if self.reloads.is_settled() => self.connect(style),
            Action::Connect(_) => (),
            Action::Submit {
                who,
                ask,
                first,
                count,
            } => {
                if let Some(who) = place(who) {
                    self.submit(who, ask, (first, count), now);
                }
            }
            Action::Post { ask, first, count } => self.post(ask, first, count, now),
            Action::Stream(step) => {
                self.numbers += 1;
                let written = self.streams.act(step, self.numbers, &self.mailbox);
                if let Some(blocks) = written {
                    self.record(blocks, now);
                }
            }
            Action::Film(step) => {
                self.numbers += 1;
                self.films.act(step, self.numbers, &self.mailbox);
            }
            Action::Moment(step) => self.act_at_a_moment(step),
            Action::Reload(step) => {
                let doors = (&self.mailbox, &self.told);
                self.reloads.act(step, &self.setting, doors);
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
            Action::Pass => scrub::begin_pass(&self.mailbox),
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
            Action::Fail { what, ms } => self.fail(what, now + ms * 1_000_000),
            Action::Stall { ms } => self.stalled_until = now + ms * 1_000_000,
        }
    }

    /// A checkpoint begins, is read or ends. The length of a volume that is being resized nobody knows.
    fn act_at_a_moment(&mut self, step: MomentStep) {
        self.numbers += 1;
        self.served.are_all = false;
        let known = (&self.setting, &self.history, self.reloads.blocks());
        let doors = (&self.mailbox, &self.told);
        if self.reloads.is_settled() {
            self.moments.act(step, self.numbers, known, doors);
        }
    }

    /// The drive fails commands until then, or hangs.
    fn fail(&mut self, what: Fails, until: u64) {
        *self.broken[0].lock().expect("a mood") = what;
        self.failing_until = Some(until);
        if what == Fails::Hangs {
            self.hung_until = until;
        }
    }

    fn connect(&mut self, style: Style) {
        self.numbers += 1;
        self.counts.connections += 1;
        let seat = self.seats.take().expect("a seat");
        let seat = (seat, self.counts.failed as usize);
        let export = self.reloads.export(self.numbers);
        let volume = (export, self.reloads.blocks());
        let terms = (style, &self.setting);
        let client = Client::connect(self.numbers, terms, volume, seat, &self.mailbox);
        self.clients.push(client);
    }
}

/// Tells the world, from the loop's thread.
pub fn tell(to: &Tell, told: Told) {
    to.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_back(told);
}
