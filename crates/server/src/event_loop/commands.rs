//! The commands of the engine: to the back end, and back at their ends.

#![allow(
    unsafe_code,
    reason = "hands the memory of operations to the back end while commands are in flight"
)]

use block::{Action, Class, Extent, Lba, Status};
use engine::OWN_FLUSH;

use super::EventLoop;
use crate::arena::Memory;
use crate::disk::back_end::Ended;
use crate::status::HeadKind;

impl EventLoop {
    /// Starts the engine's commands at the back end. The answer is whether there was one.
    pub(super) fn give_commands(&mut self) -> bool {
        let EventLoop { volumes, disk, .. } = self;
        let mut is_any = false;
        volumes.poll_streams(disk);
        while let Some(command) = disk.engine.poll(disk.now) {
            is_any = true;
            let mut memory = [Memory::NONE; 3];
            let mut count = 0;
            for piece in volumes.lay_out(disk, &command).into_iter().flatten() {
                memory[count] = piece;
                count += 1;
            }
            // SAFETY: the pieces are parts of buffers that belong to operations, which are pending
            // until their commands have ended, and of scratch buffers kept until the command has.
            unsafe { disk.start(&command, &memory[..count]) };
        }
        // A round that has just begun may have answered a stream's client.
        is_any | volumes.poll_streams(disk)
    }

    /// Notifies the engine of commands that have ended. The answer is whether there was one.
    pub(super) fn end_commands(&mut self) -> bool {
        let mut is_any = false;
        while let Some(ended) = self.disk.poll_ended() {
            is_any = true;
            self.end_command(&ended);
        }
        self.clients.take_answers(&mut self.volumes);
        is_any
    }

    fn end_command(&mut self, ended: &Ended) {
        let EventLoop {
            volumes,
            disk,
            accounts,
            ..
        } = self;
        let request = disk.engine.request_of(ended.id);
        if let Some(request) = &request {
            accounts.command(ended.id, volumes.export_of(request));
        }
        let status = match ended.result {
            Ok(()) => Status::Good,
            Err(failed) => {
                if let Some(request) = &request {
                    volumes.note_failure(request, failed);
                }
                let of_request = request.map(|request| request.extent);
                let extent = of_request.or_else(|| volumes.streams.extent_of(ended.id));
                let at = extent.map_or(Lba(0), Extent::start);
                Status::MediumError { at }
            }
        };
        let is_good = ended.result.is_ok();
        let is_of_stream = volumes.streams.extent_of(ended.id).is_some();
        volumes.streams.command_ended(disk, ended.id, is_good);
        let lost = disk.complete(ended.id, status, ended.account);
        let kind = match request.map(|request| request.class) {
            Some(Class::RealTime { .. }) => HeadKind::RealTime,
            // A batch of a stream is no request.
            None if is_of_stream => HeadKind::RealTime,
            Some(Class::BestEffort(_)) => HeadKind::Foreground,
            // No client wants anything.
            None if disk.engine.held() == 0 => HeadKind::Idle,
            None | Some(Class::Background) => HeadKind::Free,
        };
        self.count(ended, kind, lost);
        let EventLoop {
            volumes,
            disk,
            tasks,
            ..
        } = self;
        volumes.poll_streams(disk);
        while let Some(scratch) = disk.take_scratch(ended.id) {
            let (start, memory) = (scratch.start, scratch.memory());
            let read = is_good.then_some(memory);
            volumes.background_read_ended(disk, ended.id, start, read);
            if is_good {
                volumes.streams.put_recorded(disk, start, memory);
                volumes.caches.apply_newer(start.0 * disk.block(), memory);
                tasks.deliver(disk, &scratch);
            }
            disk.free(scratch);
        }
        tasks.end(disk);
    }

    /// Counts a command that has ended and lost `lost` revolutions.
    fn count(&mut self, ended: &Ended, kind: HeadKind, lost: u64) {
        let EventLoop { disk, tally, .. } = self;
        let Some((command, given)) = disk.take_in_flight(ended.id) else {
            return;
        };
        if ended.result.is_err() {
            let kind = match command.action {
                Action::Write { .. } => 1,
                Action::Flush => 2,
                _ => 0,
            };
            tally.failed[kind] += 1;
        }
        if !disk.shape.rotational {
            return;
        }
        let lost = disk.engine.profile().spindle.period() * lost;
        tally.held_head(given, disk.now, kind, lost);
        tally.last = command.action.extent().or(tally.last);
    }

    /// Answers the operations of finished requests. The answer is whether there was one.
    pub(super) fn answer_finished(&mut self) -> bool {
        let EventLoop {
            clients,
            volumes,
            disk,
            ..
        } = self;
        let mut is_any = false;
        while let Some(finished) = disk.poll_finished() {
            is_any = true;
            self.tally.finished(&finished);
            self.tasks.company.finished(&finished);
            let export = volumes.export_of(&finished.request);
            self.accounts.finished(&disk.engine, export, &finished);
            volumes.finished(disk, &finished);
        }
        while let Some(flushed) = disk.poll_flushed() {
            is_any = true;
            let is_own = disk.take_checksum_flush(flushed.id) || flushed.id == OWN_FLUSH;
            match (is_own, flushed.status) {
                (false, _) => volumes.flushed(disk, &flushed),
                (true, Status::Good) => (),
                (true, _) => volumes.flush_failed(disk),
            }
        }
        while let Some((key, result)) = disk.poll_punched() {
            is_any = true;
            volumes.punched(disk, key, result);
        }
        while let Some((key, runs)) = disk.poll_runs() {
            is_any = true;
            clients.reply_runs(volumes, key, &runs);
        }
        clients.take_answers(volumes);
        is_any
    }
}
