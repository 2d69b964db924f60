//! Two drives that hold the same blocks: which of them reads, what errors do, and what acknowledged writes are worth.

use block::Action;

use super::*;
use crate::NotMirrored;

mod history;

fn pair(rule: ReadRule) -> Engine {
    let belief = Arc::new(invented::profile());
    let policy = find("sptf").expect("a policy of the table");
    let beliefs = [Arc::clone(&belief), belief];
    Engine::mirrored(beliefs, rule, &|| policy.make(), Limits::default()).expect("two drives")
}

fn outcome(command: &Command, at: Instant, status: Status) -> Outcome {
    Outcome {
        id: command.id,
        at,
        status,
        account: None,
    }
}

fn error(command: &Command) -> Status {
    let extent = command.action.extent();
    Status::MediumError {
        at: extent.map_or(Lba(0), |extent| extent.start()),
    }
}

/// Two emulated drives behind a mirror's engine.
struct Served {
    engine: Engine,
    drives: [VirtualDrive; 2],
    now: Instant,
    given: Vec<(Side, Command)>,
}

impl Served {
    fn new(engine: Engine) -> Self {
        Served {
            engine,
            drives: [(); 2].map(|()| VirtualDrive::new(Arc::new(invented::profile()))),
            now: Instant::ZERO,
            given: Vec::new(),
        }
    }

    /// Lets engine and drives go on until nothing is left to do, or `most` commands were given.
    fn serve(&mut self, most: usize) {
        loop {
            for drive in &mut self.drives {
                while let Some(outcome) = drive.poll(self.now) {
                    self.engine.complete(self.now, outcome.id, outcome);
                }
            }
            while let Some(command) = self.engine.poll(self.now) {
                let side = Engine::leg_of(command.id);
                let submitted = self.drives[side as usize].submit(self.now, command);
                submitted.expect("the drive has room");
                self.given.push((side, command));
            }
            let wakeups = self.drives.iter().map(VirtualDrive::next_wakeup);
            let next = wakeups.chain([self.engine.next_wakeup()]).flatten().min();
            match next.filter(|_| self.given.len() < most) {
                Some(then) => self.now = then.max(self.now),
                None => return,
            }
        }
    }

    /// The drives to which a read is given.
    fn read(&mut self, id: u64, block: u64) -> Vec<Side> {
        let read = request(id, Direction::Read, extent(block, 1));
        self.engine.submit(self.now, read).expect("room");
        self.given.clear();
        self.serve(usize::MAX);
        let end = self.engine.poll_finished().expect("it ends");
        assert_eq!((end.request, end.status), (read, Status::Good));
        assert_eq!((self.engine.poll_finished(), self.engine.held()), (None, 0));
        self.given.iter().map(|&(side, _)| side).collect()
    }

    fn set(&mut self, side: Side, state: LegState) {
        let set = self.engine.set_leg(self.now, side, state);
        set.expect("the other one is in sync");
    }
}

#[test]
fn a_read_is_given_to_the_drive_whose_head_is_nearer_and_to_no_other() {
    let last = invented::profile().geometry.sectors().0 - 1;
    let mut served = Served::new(pair(ReadRule::Nearest));
    // The second drive's head is brought to the end of the disk.
    served.set(Side::First, LegState::Out);
    assert_eq!(served.read(1, last), [Side::Second]);
    served.set(Side::First, LegState::InSync);
    for (id, block, side) in [
        (2, 8, Side::First),
        (3, last - 9, Side::Second),
        (4, 20, Side::First),
        (5, last - 2, Side::Second),
    ] {
        assert_eq!(served.read(id, block), [side], "block {block}");
    }
}

#[test]
fn in_turn_each_drive_reads_every_other_time() {
    let mut served = Served::new(pair(ReadRule::RoundRobin));
    let sides: Vec<Side> = (0..6).flat_map(|id| served.read(id, 7)).collect();
    assert_eq!(sides, [Side::ALL, Side::ALL, Side::ALL].concat());
}

#[test]
fn a_write_is_given_to_both_drives_and_a_drive_that_fails_it_alone_is_out() {
    let mut engine = pair(ReadRule::Nearest);
    let write = request(1, Direction::Write, extent(3, 2));
    engine.submit(Instant::ZERO, write).expect("room");
    let given: Vec<Command> = std::iter::from_fn(|| engine.poll(Instant::ZERO)).collect();
    assert_eq!(given.len(), 2);
    assert_eq!(
        engine.abort(Instant::ZERO, write.id),
        Err(Unchanged::NotWaiting { id: write.id })
    );
    for (command, at) in given.iter().zip([5, 9]) {
        let status = match Engine::leg_of(command.id) {
            Side::First => error(command),
            Side::Second => Status::Good,
        };
        let at = Instant::from_nanos(at);
        assert_eq!(engine.poll_finished(), None, "one drive has not ended it");
        engine.complete(at, command.id, outcome(command, at, status));
    }
    let end = engine.poll_finished().expect("both have ended it");
    assert_eq!((end.status, end.at), (Status::Good, Instant::from_nanos(9)));
    let failure = LegFailure {
        leg: Side::First,
        work: LegWork::Request(write),
        status: Status::MediumError { at: Lba(3) },
    };
    assert_eq!(engine.poll_leg_failure(), Some(failure));
    assert_eq!(engine.poll_leg_failure(), None);
    assert_eq!(engine.leg(Side::First), LegState::Out);
    let now = Instant::from_nanos(9);
    assert_eq!(
        engine.set_leg(now, Side::Second, LegState::Out),
        Err(LegKept::LastInSync)
    );
    // What both fail is an error of the client, and takes none out.
    engine
        .set_leg(now, Side::First, LegState::InSync)
        .expect("there is another");
    let again = request(2, Direction::Write, extent(3, 2));
    engine.submit(now, again).expect("room");
    let given: Vec<Command> = std::iter::from_fn(|| engine.poll(now)).collect();
    for command in &given {
        engine.complete(now, command.id, outcome(command, now, error(command)));
    }
    let end = engine.poll_finished().expect("both have ended it");
    assert_eq!(end.status, Status::MediumError { at: Lba(3) });
    assert_eq!(engine.poll_leg_failure(), None);
    assert_eq!(
        Side::ALL.map(|side| engine.leg(side)),
        [LegState::InSync; 2]
    );
}

#[test]
fn a_write_to_the_drives_in_sync_is_not_given_to_one_that_is_filled() {
    let mut served = Served::new(pair(ReadRule::Nearest));
    let sides = |served: &mut Served, id: u64, direction: Direction, legs: WrittenLegs| {
        let request = request(id, direction, extent(3, 2));
        let submitted = served.engine.submit_to(served.now, request, legs);
        submitted.expect("room");
        served.given.clear();
        served.serve(usize::MAX);
        let end = served.engine.poll_finished().expect("it ends");
        assert_eq!((end.request, end.status), (request, Status::Good));
        assert_eq!(
            (served.engine.poll_finished(), served.engine.held()),
            (None, 0)
        );
        let mut sides: Vec<Side> = served.given.iter().map(|&(side, _)| side).collect();
        sides.sort_unstable();
        sides
    };
    let both = Side::ALL.to_vec();
    let write = Direction::Write;
    assert_eq!(sides(&mut served, 1, write, WrittenLegs::InSync), both);
    served.set(Side::First, LegState::Out);
    served.set(Side::First, LegState::Filling);
    assert_eq!(sides(&mut served, 2, write, WrittenLegs::All), both);
    let whole = [Side::Second];
    assert_eq!(sides(&mut served, 3, write, WrittenLegs::InSync), whole);
    let read = Direction::Read;
    assert_eq!(sides(&mut served, 4, read, WrittenLegs::InSync), whole);
    served.set(Side::First, LegState::InSync);
    assert_eq!(sides(&mut served, 5, write, WrittenLegs::InSync), both);
}

#[test]
fn what_a_drive_was_taken_out_with_does_not_take_it_out_again() {
    let mut engine = pair(ReadRule::Nearest);
    let (now, write) = (Instant::ZERO, request(1, Direction::Write, extent(3, 2)));
    engine.submit(now, write).expect("room");
    let given: Vec<Command> = std::iter::from_fn(|| engine.poll(now)).collect();
    for state in [LegState::Out, LegState::Filling] {
        let set = engine.set_leg(now, Side::First, state);
        set.expect("the other one is in sync");
    }
    for command in &given {
        let status = match Engine::leg_of(command.id) {
            Side::First => error(command),
            Side::Second => Status::Good,
        };
        engine.complete(now, command.id, outcome(command, now, status));
    }
    let end = engine.poll_finished().expect("it ends");
    assert_eq!(end.status, Status::Good);
    assert_eq!(engine.leg(Side::First), LegState::Filling);
    assert_eq!(engine.poll_leg_failure(), None);
}

#[test]
fn a_read_that_one_drive_fails_is_read_from_the_other_and_told() {
    for rule in [ReadRule::Nearest, ReadRule::RoundRobin] {
        read_failed_by_one(rule);
    }
}

/// A read of a mirror under `rule`, which the drive that has it fails.
fn read_failed_by_one(rule: ReadRule) {
    let mut engine = pair(rule);
    let (now, read) = (Instant::ZERO, request(1, Direction::Read, extent(3, 2)));
    engine.submit(now, read).expect("room");
    let failing = engine.poll(now).expect("one drive is given it");
    assert_eq!(engine.poll(now), None, "and the other is not");
    engine.complete(now, failing.id, outcome(&failing, now, error(&failing)));
    assert_eq!(engine.poll_finished(), None);
    let again = engine.poll(now).expect("now the other one");
    assert_ne!(Engine::leg_of(failing.id), Engine::leg_of(again.id));
    assert_eq!(engine.request_of(again.id), Some(read));
    engine.complete(now, again.id, outcome(&again, now, Status::Good));
    let end = engine.poll_finished().expect("it ends");
    assert_eq!((end.request, end.status), (read, Status::Good));
    let failure = engine.poll_leg_failure().expect("the error is told");
    assert_eq!(failure.leg, Engine::leg_of(failing.id));
    assert_eq!(failure.work, LegWork::Request(read));
    assert_eq!(
        Side::ALL.map(|side| engine.leg(side)),
        [LegState::InSync; 2]
    );
}

#[test]
fn a_read_of_a_drive_that_was_taken_out_meanwhile_is_read_again_wherever_all_data_are() {
    let mut engine = pair(ReadRule::Nearest);
    let (now, read) = (Instant::ZERO, request(1, Direction::Read, extent(3, 2)));
    engine.submit(now, read).expect("room");
    let early = engine.poll(now).expect("one drive is given it");
    let one = Engine::leg_of(early.id);
    // What it reads may be older than what was acknowledged since.
    for state in [LegState::Out, LegState::Filling, LegState::InSync] {
        let set = engine.set_leg(now, one, state);
        set.expect("the other one is in sync");
    }
    engine.complete(now, early.id, outcome(&early, now, Status::Good));
    assert_eq!((engine.poll_finished(), engine.held()), (None, 1));
    // The other one is taken out before it is given the read, and the first one is whole again.
    let set = engine.set_leg(now, one.other(), LegState::Out);
    set.expect("the first one is in sync");
    let again = engine.poll(now).expect("the only one that is left");
    assert_eq!(Engine::leg_of(again.id), one);
    engine.complete(now, again.id, outcome(&again, now, Status::Good));
    let end = engine.poll_finished().expect("it ends");
    assert_eq!((end.request, end.status), (read, Status::Good));
    assert_eq!((engine.poll_leg_failure(), engine.held()), (None, 0));
}

#[test]
fn a_task_is_read_once_by_both_drives_and_by_one_if_the_other_is_taken_out() {
    for taken_out in [None, Some(Side::First), Some(Side::Second)] {
        let rules = Rules {
            idle_after: Some(Duration::ZERO),
            ..Rules::default()
        };
        let mut served = Served::new(pair(ReadRule::Nearest).with_background(rules));
        let geometry = invented::profile().geometry;
        let order = Order {
            wanted: WantedBlocks::all(&geometry),
            priority: 3,
            deadline: None,
        };
        let begun = served.engine.begin_task(served.now, order);
        let task = begun.expect("a task");
        if let Some(side) = taken_out {
            served.serve(9);
            served.set(side, LegState::Out);
        }
        let before = served.given.len();
        served.serve(usize::MAX);
        let mut read = vec![0; geometry.sectors().0 as usize];
        for (_, command) in &served.given {
            let extent = command.action.extent().expect("a read");
            (extent.start().0..extent.end().0).for_each(|block| read[block as usize] += 1);
        }
        // What is left of a track is read with the blocks between it.
        let is_read = |&times: &i32| times == 1 || (times > 1 && taken_out.is_some());
        assert!(read.iter().all(is_read), "{taken_out:?}: every block once");
        let sides: Vec<Side> = served.given[before..]
            .iter()
            .map(|&(side, _)| side)
            .collect();
        for side in Side::ALL {
            assert_eq!(sides.contains(&side), taken_out != Some(side), "{side:?}");
        }
        let progress = served.engine.task(task).expect("not forgotten yet");
        assert_eq!(progress.left, Sectors(0));
        assert_eq!(progress.asked, geometry.sectors());
        if taken_out.is_none() {
            assert_eq!(progress.account.blocks(), geometry.sectors());
        }
        assert!(progress.ended.is_some(), "{progress:?}");
        assert_eq!(progress.state, TaskPhase::Finished);
    }
}

#[test]
fn a_flush_asks_the_drives_that_are_written() {
    let mut engine = pair(ReadRule::Nearest);
    let now = Instant::ZERO;
    engine.flush(now, RequestId(1)).expect("room");
    let given: Vec<Command> = std::iter::from_fn(|| engine.poll(now)).collect();
    assert!(given.iter().all(|command| command.action == Action::Flush));
    assert_eq!(given.len(), 2);
    // A drive that fails it may lack writes that its client was told of.
    for command in &given {
        let status = match Engine::leg_of(command.id) {
            Side::First => Status::Good,
            Side::Second => Status::TimedOut,
        };
        engine.complete(now, command.id, outcome(command, now, status));
    }
    let flushed = engine.poll_flushed().expect("both have ended");
    assert_eq!((flushed.id, flushed.status), (RequestId(1), Status::Good));
    let failure = engine.poll_leg_failure().expect("told");
    assert_eq!((failure.leg, failure.work), (Side::Second, LegWork::Flush));
    engine.flush(now, RequestId(2)).expect("room");
    let given: Vec<Command> = std::iter::from_fn(|| engine.poll(now)).collect();
    assert_eq!(given.len(), 1);
    assert_eq!(Engine::leg_of(given[0].id), Side::First);
    // In sync again, it keeps what comes from then on.
    engine
        .set_leg(now, Side::Second, LegState::InSync)
        .expect("there is another");
    let write = request(3, Direction::Write, extent(3, 2));
    engine.submit(now, write).expect("room");
    engine.complete(now, given[0].id, outcome(&given[0], now, Status::Good));
    assert_eq!(std::iter::from_fn(|| engine.poll(now)).count(), 2);
}

#[test]
fn drives_that_do_not_fit_are_no_mirror() {
    let belief = Arc::new(invented::profile());
    let policy = find("fcfs").expect("a policy of the table");
    let of = |change: &dyn Fn(&mut Profile)| {
        let mut other = Profile::clone(&belief);
        change(&mut other);
        let beliefs = [Arc::clone(&belief), Arc::new(other)];
        let made = Engine::mirrored(
            beliefs,
            ReadRule::Nearest,
            &|| policy.make(),
            Limits::default(),
        );
        made.err()
    };
    assert_eq!(of(&|_| ()), None);
    let (first, second) = (512, 4096);
    let blocks = NotMirrored::Blocks { first, second };
    assert_eq!(of(&|other| other.block_bytes = 4096), Some(blocks));
    let actuators = 2;
    let of_two = NotMirrored::Actuators { actuators };
    assert_eq!(of(&|other| other.actuators = 2), Some(of_two));
}
