//! All levels and the disk, from event to event.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use block::{Direction, Instant, Interval, RequestId, Switch};
use cache::coordinator::{LONGEST_REQUEST, Purpose, UpperRequest};
use cache::level::Ending;

use super::jobs::{Asker, JobId, Jobs, NONE};
use super::load::CacheArrival;
use super::lowest::Lowest;
use super::merging;
use super::node::LevelNode;
use super::report::{CachingReport, LevelReport, Responses};
use super::setup::{BadSetup, CachingSetup, FileEnds, Readmore, Scheduler, Writes};

mod hasten;
mod writing;

use hasten::FetchesAhead;

/// Caches in levels over a disk.
pub struct System {
    /// The clients' caches, then the lower levels.
    nodes: Vec<LevelNode>,
    clients: usize,
    /// Whether the lowest level uses wishes.
    wishes: Switch,
    file_ends: FileEnds,
    writes: Writes,
    disk: Lowest,
    jobs: Jobs,
    /// The outstanding prefetches, if they are less urgent than demands.
    ahead: Option<FetchesAhead>,
    /// Replies in transit: time of arrival, sequence number, job.
    replies: BinaryHeap<Reverse<(Instant, u64, JobId)>>,
    sent: u64,
    now: Instant,
    /// New jobs in order.
    to_serve: Vec<JobId>,
    /// Clients whose requests have ended, in order.
    answered: VecDeque<u32>,
    response: Responses,
}

/// Levels accept every request.
const SERVED: &str = "blocks of the disk, and any number of requests";

impl System {
    /// A system with empty caches.
    ///
    /// # Errors
    /// If a level cannot be built.
    pub fn new(setup: &CachingSetup) -> Result<Self, BadSetup> {
        let clients = setup.clients.len();
        if clients == 0 {
            return Err(BadSetup::NoClients);
        }
        let mut nodes = Vec::new();
        let below = |node: usize| match node - clients < setup.lower.len() {
            true => node as u32,
            false => NONE,
        };
        for level in &setup.clients {
            nodes.push(LevelNode::new(level, "none", 1, below(clients))?);
        }
        for (at, lower) in setup.lower.iter().enumerate() {
            let below = below(clients + at + 1);
            let mut node = LevelNode::new(&lower.level, &lower.coordinator, at + 2, below)?;
            node.link = lower.link;
            nodes.push(node);
        }
        if let (Scheduler::Engine(scheduled), false) = (&setup.scheduler, setup.lower.is_empty())
            && let Some(lowest) = nodes.pop()
        {
            nodes.push(lowest.with(scheduled.readmore));
        }
        let wishes = match &setup.scheduler {
            Scheduler::Engine(scheduled) if scheduled.readmore != Readmore::Fetched => Switch::On,
            _ => Switch::Off,
        };
        let disk = Lowest::new(setup)?;
        Ok(System {
            nodes,
            wishes,
            file_ends: setup.file_ends,
            writes: setup.writes,
            clients,
            ahead: disk.puts_prefetches_last().then(FetchesAhead::default),
            disk,
            jobs: Jobs::new(),
            replies: BinaryHeap::new(),
            sent: 0,
            now: Instant::ZERO,
            to_serve: Vec::new(),
            answered: VecDeque::new(),
            response: Responses::new(),
        })
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.clients
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A client sends a request at `at`, not before the last event.
    ///
    /// # Errors
    /// If the client or the blocks do not exist.
    pub fn request(&mut self, at: Instant, arrival: &CacheArrival) -> Result<(), BadSetup> {
        let (blocks, end) = (arrival.blocks, self.disk.blocks());
        if arrival.client as usize >= self.clients {
            return Err(BadSetup::NoSuchClient(arrival.client, self.clients));
        }
        if blocks.is_empty() || blocks.len() > LONGEST_REQUEST {
            return Err(BadSetup::Length(blocks.len()));
        }
        if blocks.last >= end {
            return Err(BadSetup::PastEnd {
                first: blocks.first,
                last: blocks.last,
                most: end - 1,
            });
        }
        let within = Interval::new(
            arrival.within.first.min(blocks.first),
            arrival.within.last.clamp(blocks.last, end - 1),
        );
        let asked = UpperRequest {
            client: arrival.client,
            file: arrival.file,
            blocks,
            within,
            purpose: Purpose::Demand,
            direction: arrival.direction,
        };
        self.now = self.now.max(at);
        match (asked.direction, self.writes) {
            (Direction::Write, Writes::Through) => self.write_client(asked),
            _ => self.serve_client(asked),
        }
        Ok(())
    }

    /// Serves a client's request. It becomes a job only if it waits or causes fetches.
    fn serve_client(&mut self, asked: UpperRequest) {
        let (now, client) = (self.now, asked.client);
        let node = &mut self.nodes[client as usize];
        node.requests += 1;
        // The job that it becomes if it is not over at once.
        let id = self.jobs.next();
        let served = node.level.serve(now, RequestId(u64::from(id)), asked);
        let ending = served.expect(SERVED);
        let is_over = ending.is_some() && node.level.is_polled();
        self.hasten(client, asked.blocks);
        if is_over {
            self.answer_client(client, self.now);
        } else {
            let job = self.jobs.add(asked, client, Asker::Client, self.now);
            debug_assert_eq!(job, id);
            self.fetch_all(client);
            if ending.is_some() {
                self.answer(job);
            }
            self.serve_all();
        }
        self.settle();
    }

    /// Passes wishes and reads of the lowest level to the disk.
    fn settle(&mut self) {
        if self.wishes == Switch::On
            && let Some(lowest) = self.nodes.last_mut()
        {
            while let Some(wish) = lowest.level.next_wish() {
                self.disk.wish(self.now, wish);
            }
        }
        self.disk.dispatch(self.now);
    }

    /// The time of the next event, if there is one.
    pub fn next_event(&self) -> Option<Instant> {
        let reply = self.replies.peek().map(|Reverse((at, _, _))| *at);
        match (reply, self.disk.next_event()) {
            (Some(reply), Some(disk)) => Some(reply.min(disk)),
            (reply, disk) => reply.or(disk),
        }
    }

    /// Whether no work is left. An engine outside of its drive has calibration events for ever.
    pub fn is_over(&self) -> bool {
        self.jobs.under_way() == 0 && self.disk.is_over()
    }

    /// Executes the next event.
    pub fn step(&mut self) {
        let Some(at) = self.next_event() else {
            return;
        };
        self.now = self.now.max(at);
        while let Some(&Reverse((reply, _, job))) = self.replies.peek()
            && reply <= self.now
        {
            self.replies.pop();
            self.deliver(job);
        }
        if let Some(first) = self.disk.ended(self.now) {
            let mut next = Some(first);
            while let Some(job) = next {
                next = merging::next_of(job, &self.jobs);
                self.deliver(job);
            }
        }
        if self.wishes == Switch::On {
            self.offer();
        }
        self.settle();
    }

    /// The next client whose request has ended.
    pub fn answered(&mut self) -> Option<u32> {
        self.answered.pop_front()
    }

    /// The results. All requests must have ended.
    pub fn report(&self) -> CachingReport {
        assert_eq!(
            self.jobs.under_way(),
            0,
            "a run that ends with something pending"
        );
        let is_none_ahead = self.ahead.as_ref().is_none_or(FetchesAhead::is_empty);
        assert!(is_none_ahead, "jobs that are over are noted as under way");
        let mut levels = vec![LevelReport::default()];
        for (at, node) in self.nodes.iter().enumerate() {
            let counts = node.report();
            match at < self.clients {
                true => levels[0].add(&counts),
                false => levels.push(counts),
            }
        }
        let (upper, lower) = self.nodes.split_at(self.clients);
        let duplicated = lower.first().map_or(0, |lower| {
            let common = |upper: &LevelNode| upper.in_common_with(lower);
            upper.iter().map(common).sum()
        });
        CachingReport {
            requests: self.response.count(),
            response: self.response.clone(),
            levels,
            disk: self.disk.counts(),
            slack: self.disk.slack(),
            tallies: self.disk.tallies(),
            duplicated,
            ended: self.now,
        }
    }

    /// The first block of the command in service.
    #[cfg(test)]
    pub(super) fn disk_position(&self) -> Option<u64> {
        match &self.disk {
            Lowest::Elevator(disk) => disk.reading(),
            Lowest::Engine(_) => None,
        }
    }

    /// The cache with this index; those of the clients come first.
    #[cfg(test)]
    pub(super) fn level(&self, number: usize) -> &cache::Level {
        &self.nodes[number].level
    }

    fn serve_all(&mut self) {
        let mut next = 0;
        while let Some(&id) = self.to_serve.get(next) {
            next += 1;
            let job = self.jobs.get(id);
            let (server, asked, transfer) = (job.server, job.asked, job.transfer);
            let Some(node) = self.nodes.get_mut(server as usize) else {
                self.disk.add(asked.blocks, id, &mut self.jobs);
                continue;
            };
            if transfer == Direction::Write {
                self.write(id);
                continue;
            }
            node.requests += 1;
            let served = node.level.serve(self.now, RequestId(u64::from(id)), asked);
            let ending = served.expect(SERVED);
            if asked.purpose == Purpose::Demand {
                self.hasten(server, asked.blocks);
            }
            self.fetch_all(server);
            if ending.is_some() {
                self.answer(id);
            }
        }
        self.to_serve.clear();
    }

    /// Turns the fetches of a node into jobs of the node below.
    fn fetch_all(&mut self, server: u32) {
        let node = &mut self.nodes[server as usize];
        while let Some(fetch) = node.level.poll() {
            let asker = Asker::Node(server, fetch.id);
            let mut asked = fetch.asked;
            if self.file_ends == FileEnds::FirstLevel {
                asked.within = Interval::of(0, self.disk.blocks());
            }
            let job = self.jobs.add(asked, node.below, asker, self.now);
            self.jobs.get_mut(job).readmore = fetch.readmore;
            if let Some(ahead) = &mut self.ahead {
                ahead.add(job, fetch.asked.purpose);
            }
            self.to_serve.push(job);
        }
    }

    /// Offers the wished blocks that were read to the lowest level.
    fn offer(&mut self) {
        while let Some(block) = self.disk.poll_read() {
            if let Some(lowest) = self.nodes.last_mut() {
                lowest.level.offer(block);
            }
        }
    }

    /// Answers a job that has all its blocks: sends a reply, or ends the client's request.
    fn answer(&mut self, id: JobId) {
        let job = self.jobs.get(id);
        match job.asker {
            Asker::Client => {
                let (client, at) = (job.asked.client, job.at);
                self.answer_client(client, at);
                self.jobs.end(id);
            }
            Asker::Node(..) | Asker::Write(_) => {
                let link = &self.nodes[job.server as usize].link;
                let at = self.now + link.reply(job.asked.blocks.len());
                self.sent += 1;
                self.replies.push(Reverse((at, self.sent, id)));
            }
        }
    }

    /// Ends a client's request that arrived at `at`.
    fn answer_client(&mut self, client: u32, at: Instant) {
        self.response.add(self.now.since(at));
        self.answered.push_back(client);
    }

    /// The reply of a job has reached the node that requested it.
    fn deliver(&mut self, id: JobId) {
        let (asker, fetch) = match self.jobs.get(id).asker {
            Asker::Node(asker, fetch) => (asker, fetch),
            Asker::Write(above) => return self.written(id, above),
            Asker::Client => unreachable!("a client's job is answered and not delivered"),
        };
        self.jobs.end(id);
        if let Some(ahead) = &mut self.ahead {
            ahead.end(id);
        }
        let level = &mut self.nodes[asker as usize].level;
        level.complete(self.now, fetch, Ending::Done);
        while let Some(answered) = self.nodes[asker as usize].level.poll_finished() {
            self.answer(answered.id.0 as JobId);
        }
    }
}
