//! Scrubs: a pass over a volume in the gaps of its drive, as tasks.
//!
//! ```text
//!   begin --> task over all blocks --> what is left: being changed, differs once, failed --> task over these --> end
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use block::{Extent, Lba, Sectors};
use scheduler::background::DeclaredSet;
use scheduler::freeblock::WantedBlocks;
use tracing::{info, warn};

use super::drives::Drive;
use super::{Running, locked};
use crate::checksums::keeper::Keeper;
use crate::checksums::pass::{Pass, PassCounts};
use crate::checksums::report::{Covered, History, ScrubReport, ScrubState};
use crate::checksums::schedule::bytes_of_slice;
use crate::checksums::{CHUNK, PAGE};
use crate::control::ScrubOrder;
use crate::disk::back_end::checked::CheckState;
use crate::event_loop::EventLoop;
use crate::event_loop::mailbox::Mailbox;
use crate::file_systems::UsedMap;
use crate::status::scrub::{ENDED, GIVEN_UP, GONE};
use crate::status::{ScrubStatus, ServiceState, TaskState};
use crate::tasks::sink::hooks::HookEvent;
use crate::tasks::{HOLD, ROOM, SinkHandle, Steer, TaskRequest};

mod scheduled;
mod unreadable;
mod used;

/// The scrubs of a service, by volume.
pub(super) struct Scrubs {
    /// The service, which its scrubs do not keep alive.
    service: Weak<Running>,
    all: Mutex<BTreeMap<String, Arc<Mutex<ScrubReport>>>>,
}

/// A scrub under way.
struct Scrub {
    service: Weak<Running>,
    mailbox: Mailbox,
    order: ScrubOrder,
    /// The slice of the volume, or all of it.
    slice: Option<usize>,
    /// The blocks that the file system uses, if only these are verified.
    used: Option<UsedMap>,
    /// The number of the pass. Another scrub may take its place.
    pass: u64,
    /// The first byte of the volume on the drive, and its bytes.
    offset: u64,
    length: u64,
    block_bytes: u64,
    history: PathBuf,
    report: Arc<Mutex<ScrubReport>>,
    begun: Instant,
}

/// The progress of a pass on the loop.
struct Look {
    left_bytes: u64,
    counts: PassCounts,
    is_comparing: bool,
    state: CheckState,
    waits_for_flush: bool,
}

/// The largest number of tasks of a scrub. A choice: what is being changed each time is left out.
const MOST_ROUNDS: usize = 6;
/// The interval of looks at the task. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// The time between two rounds in which flushes make changes durable. A choice.
const BETWEEN: Duration = Duration::from_millis(1500);

impl Scrubs {
    /// No scrubs of a service.
    pub(super) fn of(service: &Weak<Running>) -> Self {
        Scrubs {
            service: Weak::clone(service),
            all: Mutex::default(),
        }
    }
}

impl Running {
    /// Begins a scrub of a volume, or of a slice. A volume has one at a time: a scrub of all takes the place of a
    /// scheduled one.
    ///
    /// # Errors
    /// The reason, and what was expected.
    pub(super) fn begin_scrub(
        &self,
        order: &ScrubOrder,
        slice: Option<usize>,
    ) -> Result<(), String> {
        let (drive, file, offset, length) = self.found_with_checksums(&order.volume)?;
        let history = History::beside(&file);
        let past = History::load(&history)?;
        let mut all = locked(&self.scrubs.all);
        let earlier = all
            .get(&order.volume)
            .map(|earlier| locked(earlier).clone());
        let earlier = earlier.unwrap_or_default();
        let (was_running, task) = (earlier.state == ScrubState::Running, earlier.task);
        if earlier.state == ScrubState::Running && earlier.slice.is_none() {
            return Err(format!("volume {} is being scrubbed already", order.volume));
        }
        let name = order.volume.clone();
        let begun = Self::asked(drive.mailbox(), move |event_loop| {
            event_loop.tasks().check()?;
            if was_running {
                // Its thread finds another pass and ends.
                let _ = event_loop.tasks().steer(task, Steer::Abort);
            }
            begin_pass(event_loop, &name, slice)
        });
        let pass = begun.unwrap_or_else(|| Err("the drive does not answer".to_owned()))?;
        let report = Arc::new(Mutex::new(ScrubReport {
            volume: order.volume.clone(),
            state: ScrubState::Running,
            begun_s: now_s(),
            asked_bytes: slice.map_or(length, |slice| bytes_of_slice(length, slice)),
            slice,
            schedule: earlier.schedule,
            verified_before_chunks: earlier.verified_before_chunks
                + earlier.verified_bytes.div_ceil(CHUNK),
            verified_s: past.verified_s,
            findings: past.findings,
            ..ScrubReport::default()
        }));
        all.insert(order.volume.clone(), Arc::clone(&report));
        drop(all);
        let scrub = Scrub {
            service: self.scrubs.service.clone(),
            mailbox: drive.mailbox().clone(),
            order: order.clone(),
            slice,
            used: None,
            pass,
            offset,
            length,
            block_bytes: u64::from(drive.block_bytes()),
            history,
            report,
            begun: Instant::now(),
        };
        let spawned = thread::Builder::new()
            .name(format!("scrub {}", order.volume))
            .spawn(move || scrub.run());
        spawned.map_err(|error| format!("no thread for the scrub: {error}"))?;
        Ok(())
    }

    /// A volume with checksums, its drive and its length.
    fn found_with_checksums(&self, name: &str) -> Result<(&Drive, PathBuf, u64, u64), String> {
        let found = self.drives.iter().find_map(|drive| {
            let (volume, length) = drive.found(name)?;
            Some((drive, volume, length))
        });
        let Some((drive, volume, length)) = found else {
            let volumes: Vec<String> = self.drives.iter().flat_map(Drive::volumes).collect();
            let all = volumes.join(", ");
            return Err(format!("no volume {name}: expected one of {all}"));
        };
        let file = volume.checksums.ok_or_else(|| {
            format!(
                "volume {name} keeps no checksums: expected `checksums = \"FILE\"` in its table, or `headtime scan`"
            )
        })?;
        Ok((drive, file, volume.offset, length))
    }

    /// The scrubs of the volumes with checksums, for the status.
    pub(super) fn scrub_statuses(&self) -> Vec<ScrubStatus> {
        let (now_s, all) = (now_s(), locked(&self.scrubs.all));
        let each = all.values();
        each.map(|report| ScrubStatus::of(&locked(report), now_s))
            .collect()
    }

    /// The present or last scrubs of the volumes with checksums.
    pub(super) fn scrub_reports(&self) -> Vec<ScrubReport> {
        let (now_s, all) = (now_s(), locked(&self.scrubs.all));
        let each = all.values().map(|report| {
            let mut report = locked(report).clone();
            let schedule = report.schedule;
            report.late_by_s =
                schedule.map_or(0, |schedule| schedule.late_by_s(now_s, &report.verified_s));
            report
        });
        each.collect()
    }
}

/// Begins a pass. The answer is its number.
fn begin_pass(
    event_loop: &mut EventLoop,
    volume: &str,
    slice: Option<usize>,
) -> Result<u64, String> {
    let checks = event_loop.checks();
    let Some((keeper, state)) = checks.and_then(|checks| checks.volume(volume)) else {
        return Err(format!(
            "volume {volume} keeps no checksums since the service began: restart it"
        ));
    };
    match state {
        CheckState::On => match slice {
            Some(slice) => keeper.begin_slice(slice),
            None => keeper.begin_pass(),
        },
        CheckState::Off(why) | CheckState::Stuck(why) => {
            return Err(format!(
                "the checksums of volume {volume} cannot be kept: {why}"
            ));
        }
    }
    Ok(keeper.passes())
}

impl Scrub {
    fn run(mut self) {
        let ended = self.leave_out_unused().and_then(|()| self.rounds());
        let mut report = locked(&self.report);
        report.elapsed_s = self.begun.elapsed().as_secs_f64();
        let result = match ended {
            Ok(()) => {
                report.state = ScrubState::Finished;
                let findings = report.present().count();
                info!(volume = report.volume, findings, "a scrub has ended");
                match findings {
                    0 => Ok(format!("{} bytes verified", report.verified_bytes)),
                    findings => Err(format!("{findings} places with damage")),
                }
            }
            Err(problem) => {
                warn!(volume = report.volume, problem, "a scrub was given up");
                report.state = ScrubState::Aborted;
                report.problem = Some(problem.clone());
                Err(problem)
            }
        };
        let was_given_up = result
            .as_ref()
            .is_err_and(|why| ENDED.contains(&why.as_str()));
        let service = self.service.upgrade().filter(|_| !was_given_up);
        // One that stops gives up its scrubs.
        let serves = |service: &Arc<Running>| *locked(&service.state) == ServiceState::Serving;
        if let Some(service) = service.filter(serves) {
            service.hooks.run_for(HookEvent {
                task: Some(report.task),
                name: format!("scrub {}", report.volume),
                result,
            });
        }
    }

    fn rounds(&self) -> Result<(), String> {
        self.wait_until(|look| !look.waits_for_flush)?;
        for round in 0..MOST_ROUNDS {
            let left = self.remaining()?;
            if left.left() == 0 {
                break;
            }
            if round > 0 {
                thread::sleep(BETWEEN);
            }
            self.round(left, LOOK_AGAIN)?;
            self.probe()?;
            self.wait_until(|look| !look.is_comparing)?;
        }
        if !self.unreadable()?.is_empty() {
            // The drive may have been without power for a moment.
            thread::sleep(BETWEEN);
            self.probe()?;
            self.wait_until(|look| !look.is_comparing)?;
        }
        self.compare_beside()?;
        self.end()
    }

    /// Asks the keeper of the volume on the loop.
    fn of_pass<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Keeper) -> Option<T> + Send + 'static,
    ) -> Result<T, String> {
        let (name, number) = (self.order.volume.clone(), self.pass);
        let answer = self.ask(move |event_loop| {
            let (keeper, _) = event_loop.checks()?.volume(&name)?;
            match keeper.passes() == number {
                true => what(keeper),
                false => None,
            }
        })?;
        answer.ok_or_else(|| GONE.to_owned())
    }

    /// Reads some blocks, and waits for the end.
    fn round(&self, left: WantedBlocks, look: Duration) -> Result<(), String> {
        let service = self.service.upgrade().ok_or("the service is stopping")?;
        let number = service.tasks.fetch_add(1, Ordering::Relaxed);
        drop(service);
        let first = Lba(self.offset / self.block_bytes);
        let count = Sectors(self.length / self.block_bytes);
        let whole = Extent::new(first, count).map_err(|error| error.to_string())?;
        let task = TaskRequest {
            number,
            name: format!("scrub {}", self.order.volume),
            set: DeclaredSet::all(vec![whole]).map_err(|refused| refused.to_string())?,
            priority: self.order.priority,
            deadline: self.order.deadline_s.map(block::Duration::from_secs),
            left: Some(left),
            sink: drain(number, &self.mailbox)?,
        };
        self.ask(move |event_loop| event_loop.tasks().begin(task))??;
        locked(&self.report).task = number;
        loop {
            self.look()?;
            let state = self.ask(move |event_loop| {
                let tasks = event_loop.tasks().list();
                let mut tasks = tasks.into_iter();
                tasks.find(|task| task.id == number).map(|task| task.state)
            })?;
            match state {
                Some(TaskState::Active | TaskState::Suspended) => thread::sleep(look),
                Some(TaskState::Finished) => return Ok(()),
                Some(TaskState::Aborted) | None => return Err(GIVEN_UP.to_owned()),
            }
        }
    }

    fn wait_until(&self, is_over: impl Fn(&Look) -> bool) -> Result<(), String> {
        while !is_over(&self.look()?) {
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Asks the loop for the pass, and notes its progress.
    fn look(&self) -> Result<Look, String> {
        let (name, number) = (self.order.volume.clone(), self.pass);
        let look = self.ask(move |event_loop| {
            let (keeper, state) = event_loop.checks()?.volume(&name)?;
            let pass = keeper.pass().filter(|_| keeper.passes() == number)?;
            Some(Look {
                left_bytes: pass.left() * CHUNK,
                counts: pass.counts(),
                is_comparing: pass.is_comparing(),
                waits_for_flush: keeper.waits_for_flush(),
                state: state.clone(),
            })
        })?;
        let look = look.ok_or(GONE)?;
        if let CheckState::Off(why) | CheckState::Stuck(why) = &look.state {
            return Err(format!("the checksums cannot be kept: {why}"));
        }
        let mut report = locked(&self.report);
        report.elapsed_s = self.begun.elapsed().as_secs_f64();
        report.verified_bytes = report.asked_bytes.saturating_sub(look.left_bytes);
        let most = report.asked_bytes;
        let bytes = |chunks: u64| (chunks * CHUNK).min(most);
        report.adopted_bytes = bytes(look.counts.adopted);
        report.adopted_after_crash_bytes = (look.counts.adopted_pages * PAGE).min(most);
        report.undefined_bytes = bytes(look.counts.undefined);
        report.transient_total = look.counts.transient;
        drop(report);
        Ok(look)
    }

    /// The blocks of the chunks that are not verified.
    fn remaining(&self) -> Result<WantedBlocks, String> {
        self.wanted(Pass::remaining_readable)
    }

    /// The blocks of some bytes of the volume.
    fn wanted(
        &self,
        bytes: impl FnOnce(&Pass) -> Vec<Range<u64>> + Send + 'static,
    ) -> Result<WantedBlocks, String> {
        let (name, offset, block) = (self.order.volume.clone(), self.offset, self.block_bytes);
        let number = self.pass;
        let wanted = self.ask(move |event_loop| {
            let geometry = Arc::clone(&event_loop.engine().profile().geometry);
            let (keeper, _) = event_loop.checks()?.volume(&name)?;
            if keeper.passes() != number {
                return None;
            }
            // What is durable gets its record: the next round can compare it.
            keeper.hasten();
            let mut wanted = WantedBlocks::none(&geometry);
            for range in bytes(keeper.pass()?) {
                let first = Lba((offset + range.start) / block);
                let count = Sectors((range.end - range.start) / block);
                let added = Extent::new(first, count)
                    .ok()
                    .and_then(|extent| wanted.add(extent).ok());
                added?;
            }
            Some(wanted)
        })?;
        wanted.ok_or_else(|| GONE.to_owned())
    }

    /// Ends the pass, and adds what was found to the history.
    fn end(&self) -> Result<(), String> {
        let (damaged, left, counts) = self.of_pass(|keeper| {
            let pass = keeper.pass_mut()?;
            let left = pass.remaining();
            pass.end();
            Some((pass.damaged().to_vec(), left, pass.counts()))
        })?;
        let is_checked = |offset: u64| {
            let is_wanted = self.used.as_ref().is_none_or(|map| map.has(offset / CHUNK));
            is_wanted && !left.iter().any(|range| range.contains(&offset))
        };
        let covered = match (self.slice, &self.used) {
            (Some(slice), _) => Covered::Slice(slice),
            (None, Some(_)) => Covered::Used,
            (None, None) => Covered::All,
        };
        let mut history = History::load(&self.history)?;
        history.add(
            (now_s(), covered),
            &damaged,
            (self.offset, self.block_bytes),
            |finding| is_checked(finding.offset_bytes),
        );
        let saved = history.save(&self.history);
        let mut report = locked(&self.report);
        report.skipped_bytes = left.iter().map(|range| range.end - range.start).sum();
        report.unverified_bytes = counts.unverified_bytes;
        report.verified_s = history.verified_s;
        report.findings = history.findings;
        saved.map_err(|error| format!("{}: {error}", self.history.display()))
    }

    fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut EventLoop) -> T + Send + 'static,
    ) -> Result<T, String> {
        Running::asked(&self.mailbox, what).ok_or_else(|| "the drive does not answer".to_owned())
    }
}

/// A sink that has no use for the bytes: the back end has compared them.
fn drain(number: u64, mailbox: &Mailbox) -> Result<SinkHandle, String> {
    let (portions, received) = sync_channel(ROOM);
    let outstanding = Arc::new(AtomicUsize::new(0));
    let sink = SinkHandle {
        portions,
        outstanding: Arc::clone(&outstanding),
        is_enough: Arc::default(),
        is_cut: Arc::default(),
        outcome: Arc::default(),
    };
    let outcome = Arc::clone(&sink.outcome);
    let mailbox = mailbox.clone();
    let spawned = thread::Builder::new()
        .name(format!("scrub {number}"))
        .spawn(move || {
            for portion in received {
                drop(portion);
                if outstanding.fetch_sub(1, Ordering::AcqRel) == HOLD / 2 {
                    // A loop that has ended has no tasks.
                    let _ = mailbox.call(move |event_loop| event_loop.tasks().caught_up(number));
                }
            }
            let _ = outcome.set(Ok("read".to_owned()));
        });
    spawned.map_err(|error| format!("no thread for the scrub: {error}"))?;
    Ok(sink)
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
