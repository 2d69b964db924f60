//! Tasks on a drive in memory whose commands take no time: what their sinks get, their states, and their ends.

use std::sync::mpsc::{Receiver, sync_channel};

use block::{Action, Lba, Status};

use super::*;
use crate::disk::tests::in_memory;
use crate::status::TaskState;

/// A drive with free blocks. Its commands take no time.
fn rotating() -> Disk {
    let entry = drive::catalog::find("dec-rz26").expect("it is shipped");
    let belief = entry.profile().expect("a profile");
    in_memory("sptf-sw60", belief, |engine| {
        engine.with_background(engine::Rules::default())
    })
}

fn scan(number: u64, blocks: u64) -> (TaskRequest, Receiver<Portion>, Arc<AtomicUsize>) {
    let (portions, received) = sync_channel(ROOM);
    let outstanding = Arc::new(AtomicUsize::new(0));
    let sink = SinkHandle {
        portions,
        outstanding: Arc::clone(&outstanding),
        is_enough: Arc::default(),
        is_cut: Arc::default(),
        outcome: Arc::default(),
    };
    let whole = Extent::new(Lba(0), Sectors(blocks)).expect("blocks");
    let scan = TaskRequest {
        number,
        name: format!("scan {number}"),
        set: DeclaredSet::all(vec![whole]).expect("a piece"),
        priority: 1,
        deadline: None,
        left: None,
        sink,
    };
    (scan, received, outstanding)
}

/// Executes what the engine wants until it wants nothing now.
fn turn(tasks: &mut Tasks, disk: &mut Disk) {
    turn_with(tasks, disk, Status::Good);
}

fn turn_with(tasks: &mut Tasks, disk: &mut Disk, status: Status) {
    turn_beside(tasks, disk, |_| status, |_, _| ());
}

/// The same, with something that happens while each command is in flight.
fn turn_beside(
    tasks: &mut Tasks,
    disk: &mut Disk,
    status: impl Fn(&Tasks) -> Status,
    mut beside: impl FnMut(&mut Tasks, &mut Disk),
) {
    if let Some(then) = disk.next_wakeup() {
        disk.now = disk.now.max(then);
    }
    while let Some(command) = disk.engine.poll(disk.now) {
        let Action::Read { extent, .. } = command.action else {
            panic!("tasks only read: {command:?}");
        };
        let length = (extent.length().0 * disk.block()) as usize;
        let memory = disk.scratch(command.id, extent.start(), length);
        // SAFETY: scratch memory is kept until it is freed below.
        unsafe { disk.start(&command, &[memory]) };
        let ended = disk.poll_ended().expect("memory is quick");
        disk.now += block::Duration::from_millis(20);
        beside(tasks, disk);
        let status = status(tasks);
        disk.complete(ended.id, status, ended.account);
        disk.take_in_flight(ended.id);
        while let Some(scratch) = disk.take_scratch(ended.id) {
            if status == Status::Good {
                tasks.deliver(disk, &scratch);
            }
            disk.free(scratch);
        }
        tasks.end(disk);
    }
}

fn state(tasks: &mut Tasks, disk: &Disk, number: u64) -> TaskState {
    let listed = tasks.listed(disk);
    let task = listed.iter().find(|task| task.id == number);
    task.expect("it is listed").state
}

#[test]
fn each_block_of_a_task_reaches_its_sink_once_and_then_the_sink_is_closed() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let (scan, received, outstanding) = scan(1, 1000);
    tasks.begin(&mut disk, scan).expect("it begins");
    assert!(tasks.is_any_active(&disk));
    let mut had = vec![0; 1000];
    for _ in 0..10_000 {
        turn(&mut tasks, &mut disk);
        while let Ok(portion) = received.try_recv() {
            outstanding.fetch_sub(1, Ordering::AcqRel);
            let first = (portion.offset / 512) as usize;
            had[first..][..portion.bytes.len() / 512]
                .iter_mut()
                .for_each(|count| *count += 1);
        }
        if state(&mut tasks, &disk, 1) == TaskState::Finished {
            break;
        }
    }
    assert!(had.iter().all(|&count| count == 1), "{had:?}");
    assert!(received.recv().is_err(), "the sink is closed");
    assert!(!tasks.is_any_active(&disk));
    let listed = &tasks.listed(&disk)[0];
    assert_eq!((listed.asked_bytes, listed.done_bytes), (512_000, 512_000));
}

#[test]
fn a_task_gets_nothing_that_was_read_before_it_began() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let (first, received, outstanding) = scan(1, 1000);
    tasks.begin(&mut disk, first).expect("it begins");
    let (second, of_second, outstanding_of_second) = scan(2, 1000);
    let mut second = Some(second);
    while second.is_some() {
        turn_beside(
            &mut tasks,
            &mut disk,
            |_| Status::Good,
            |tasks, disk| {
                if let Some(second) = second.take() {
                    tasks.begin(disk, second).expect("it begins");
                }
            },
        );
    }
    let mut had = [vec![], vec![]];
    for _ in 0..10_000 {
        for (had, received) in had.iter_mut().zip([&received, &of_second]) {
            had.extend(received.try_iter());
        }
        for all in [&outstanding, &outstanding_of_second] {
            all.store(0, Ordering::Release);
        }
        turn(&mut tasks, &mut disk);
    }
    let [of_first, of_second] = had;
    assert_ne!(
        of_first[0].offset, of_second[0].offset,
        "it was read before"
    );
    for had in [of_first, of_second] {
        let blocks: usize = had.iter().map(|portion| portion.bytes.len() / 512).sum();
        assert_eq!(blocks, 1000, "each block once");
    }
}

#[test]
fn a_task_is_held_until_its_sink_has_caught_up() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let (scan, received, outstanding) = scan(1, 100_000);
    tasks.begin(&mut disk, scan).expect("it begins");
    outstanding.store(HOLD - 1, Ordering::Release);
    for _ in 0..10 {
        turn(&mut tasks, &mut disk);
    }
    let held = tasks.listed(&disk)[0].done_bytes;
    assert!(held > 0);
    turn(&mut tasks, &mut disk);
    assert_eq!(tasks.listed(&disk)[0].done_bytes, held, "it is held");
    let shown = state(&mut tasks, &disk, 1);
    assert_eq!(shown, TaskState::Active, "a user did not suspend it");
    while received.try_recv().is_ok() {}
    outstanding.store(0, Ordering::Release);
    tasks.caught_up(&mut disk, 1);
    for _ in 0..10 {
        turn(&mut tasks, &mut disk);
    }
    assert!(tasks.listed(&disk)[0].done_bytes > held, "it goes on");
}

#[test]
fn a_task_has_time_left_while_it_is_under_way_and_none_once_it_was_aborted() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let (scan, _received, _) = scan(1, 100_000);
    tasks.begin(&mut disk, scan).expect("it begins");
    for _ in 0..100 {
        turn(&mut tasks, &mut disk);
        tasks.listed(&disk);
    }
    let listed = &tasks.listed(&disk)[0];
    assert!(listed.mb_per_s > 0.0 && listed.done_bytes < listed.asked_bytes);
    assert!(listed.eta_s.is_some_and(|left| left > 0.0), "{listed:?}");
    tasks.steer(&mut disk, 1, Steer::Abort).expect("under way");
    let listed = &tasks.listed(&disk)[0];
    assert_eq!((listed.state, listed.eta_s), (TaskState::Aborted, None));
}

#[test]
fn the_end_of_a_task_has_its_problem_though_the_engine_has_forgotten_it_and_none_if_it_was_given_up()
 {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let (one, _received, _) = scan(1, 64);
    let outcome = Arc::clone(&one.sink.outcome);
    tasks.begin(&mut disk, one).expect("it begins");
    for _ in 0..100 {
        turn_with(&mut tasks, &mut disk, Status::MediumError { at: Lba(0) });
    }
    assert_eq!(tasks.end_of(&disk, 1), None, "its sink has not ended");
    for number in 2..4 {
        let (other, _received, _) = scan(number, 64);
        tasks.begin(&mut disk, other).expect("it begins");
    }
    outcome.set(Ok("checksum".to_owned())).expect("once");
    let end = tasks.end_of(&disk, 1).expect("it was not given up");
    assert_eq!((end.task, end.name.as_str()), (Some(1), "scan 1"));
    assert_eq!(end.result, Err("32768 bytes could not be read".to_owned()));
    tasks.steer(&mut disk, 3, Steer::Abort).expect("under way");
    assert_eq!(tasks.end_of(&disk, 3), None);
    assert_eq!(tasks.end_of(&disk, 9), None);
}

/// Pieces of eight blocks every hundred blocks, of which any four will do.
fn any_of_ten(number: u64) -> (TaskRequest, Receiver<Portion>, Arc<AtomicUsize>) {
    let (scan, received, outstanding) = scan(number, 8);
    let pieces = (0..10).map(|place| Extent::new(Lba(place * 100), Sectors(8)));
    let pieces: Result<Vec<Extent>, _> = pieces.collect();
    let set = DeclaredSet::all(pieces.expect("extents")).and_then(|set| set.any(4));
    let set = set.expect("a set");
    (TaskRequest { set, ..scan }, received, outstanding)
}

#[test]
fn a_task_with_enough_pieces_is_finished_and_its_sink_gets_blocks_of_pieces_only() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let (scan, received, outstanding) = any_of_ten(1);
    let is_enough = Arc::clone(&scan.sink.is_enough);
    tasks.begin(&mut disk, scan).expect("it begins");
    tasks
        .steer(&mut disk, 1, Steer::Hasten)
        .expect("it is active");
    assert!(tasks.listed(&disk)[0].hastened);
    let mut had = std::collections::BTreeSet::new();
    for _ in 0..1_000 {
        turn(&mut tasks, &mut disk);
        while let Ok(portion) = received.try_recv() {
            outstanding.fetch_sub(1, Ordering::AcqRel);
            let first = portion.offset / 512;
            for block in first..first + portion.bytes.len() as u64 / 512 {
                assert!(block % 100 < 8, "block {block} is of no piece");
                assert!(had.insert(block), "block {block} came twice");
            }
        }
        if state(&mut tasks, &disk, 1) == TaskState::Finished {
            break;
        }
    }
    assert_eq!(state(&mut tasks, &disk, 1), TaskState::Finished);
    let listed = &tasks.listed(&disk)[0];
    assert_eq!((listed.pieces, listed.pieces_needed), (10, 4));
    let complete = (0..10).filter(|piece| (0..8).all(|b| had.contains(&(piece * 100 + b))));
    assert_eq!(listed.pieces_done, complete.count() as u64);
    assert!(listed.pieces_done >= 4);
    assert!(received.recv().is_err(), "the sink is closed");
    assert!(is_enough.load(Ordering::Acquire));
}

#[test]
fn a_task_that_gave_pieces_up_takes_them_up_again_when_others_cannot_be_read() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let set = |count: u64, length: u64| {
        let pieces = (0..count).map(|place| Extent::new(Lba(place * 500), Sectors(length)));
        let pieces: Result<Vec<Extent>, _> = pieces.collect();
        DeclaredSet::all(pieces.expect("extents")).expect("a set")
    };
    let (scan_1, received, outstanding) = scan(1, 8);
    let any = set(12, 200).any(6).expect("a set");
    tasks
        .begin(&mut disk, TaskRequest { set: any, ..scan_1 })
        .expect("it begins");
    // It has the first part of seven pieces from another task, which goes first.
    let (scan_2, _received, _) = scan(2, 8);
    let parts = TaskRequest {
        set: set(7, 10),
        priority: 0,
        ..scan_2
    };
    tasks.begin(&mut disk, parts).expect("it begins");
    let lacking = |tasks: &Tasks| {
        let progress = &tasks.all[0].progress;
        (progress.to_come(), progress.missing().left())
    };
    let first = tasks.all[0].id;
    // All that is read of the chosen pieces fails, until others are read.
    let is_narrowed = |tasks: &Tasks| {
        let (to_come, missing) = lacking(tasks);
        to_come < missing
    };
    let was_narrowed = std::cell::Cell::new(false);
    let status = |tasks: &Tasks| {
        was_narrowed.set(was_narrowed.get() || is_narrowed(tasks));
        match is_narrowed(tasks) && tasks.all[0].id == first {
            true => Status::MediumError { at: Lba(0) },
            false => Status::Good,
        }
    };
    for _ in 0..10_000 {
        turn_beside(&mut tasks, &mut disk, status, |_, _| ());
        while received.try_recv().is_ok() {
            outstanding.fetch_sub(1, Ordering::AcqRel);
        }
        tasks.caught_up(&mut disk, 1);
        if state(&mut tasks, &disk, 1) == TaskState::Finished {
            break;
        }
    }
    assert!(was_narrowed.get(), "{:?}", lacking(&tasks));
    assert_ne!(tasks.all[0].id, first, "{:?}", lacking(&tasks));
    let listed = &tasks.listed(&disk)[0];
    assert_eq!(listed.state, TaskState::Finished);
    assert!(listed.pieces_done >= 6, "{listed:?}");
    let (to_come, missing) = lacking(&tasks);
    assert!(missing > 0, "others were not read");
    assert_eq!(to_come, missing, "nothing is given up any more");
}

#[test]
fn a_set_past_the_end_is_refused() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let end = disk.engine.profile().geometry.sectors();
    let (scan, ..) = scan(1, end.0 + 1);
    let refused = tasks.begin(&mut disk, scan).unwrap_err();
    assert!(
        refused.contains("expected an extent that ends on the drive"),
        "{refused}"
    );
}

#[test]
fn commands_reach_the_task_of_their_number_only() {
    let (mut tasks, mut disk) = (Tasks::default(), rotating());
    let (one, _received, _) = scan(1, 100_000);
    let (other, gone, _) = scan(2, 100_000);
    tasks.begin(&mut disk, one).expect("it begins");
    tasks.begin(&mut disk, other).expect("it begins");
    let unknown = tasks.steer(&mut disk, 3, Steer::Suspend);
    assert_eq!(unknown, Err("no task 3 is under way".to_owned()));
    tasks
        .steer(&mut disk, 1, Steer::Suspend)
        .expect("it is active");
    tasks
        .steer(&mut disk, 2, Steer::Abort)
        .expect("it is active");
    assert_eq!(state(&mut tasks, &disk, 1), TaskState::Suspended);
    assert_eq!(state(&mut tasks, &disk, 2), TaskState::Aborted);
    assert!(
        gone.recv().is_err(),
        "the sink of an aborted task is closed"
    );
    assert!(tasks.steer(&mut disk, 2, Steer::Resume).is_err());
    tasks
        .steer(&mut disk, 1, Steer::Resume)
        .expect("it is suspended");
    assert_eq!(state(&mut tasks, &disk, 1), TaskState::Active);
    let promoted = tasks.steer(&mut disk, 1, Steer::Promote { priority: 0 });
    promoted.expect("it is active");
    assert_eq!(tasks.listed(&disk)[0].priority, 0);
    tasks.leave(&mut disk);
    assert!(!tasks.is_any_active(&disk), "the service ends");
}

#[test]
fn a_drive_without_free_blocks_has_no_tasks() {
    let mut disk = crate::disk::tests::plain();
    let (scan, ..) = scan(1, 8);
    let refused = Tasks::default().begin(&mut disk, scan).unwrap_err();
    assert!(refused.starts_with("free blocks need a drive that turns"));
}
