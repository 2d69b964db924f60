//! The engine's commands on their way to the back end and back.

#![allow(
    unsafe_code,
    reason = "hands the memory of operations to the back end while commands are under way"
)]

use block::{Action, Class, Command, CommandId, Extent, Lba, Outcome, Request, Sectors, Status};

use super::EventLoop;
use crate::arena::Memory;
use crate::back_end::Ended;
use crate::status::HeadKind;

impl EventLoop {
    /// Gives the back end what the engine wants it to do; whether there was something.
    pub(super) fn give_commands(&mut self) -> bool {
        let mut is_any = false;
        self.hear_streams();
        while let Some(command) = self.engine.poll(self.now) {
            is_any = true;
            let mut pieces = [None; 3];
            self.lay_out(&command, &mut pieces);
            let mut memory = [NOTHING; 3];
            let mut count = 0;
            for piece in pieces.into_iter().flatten() {
                memory[count] = piece;
                count += 1;
            }
            self.given.push((command.id, self.now, command.action));
            // SAFETY: the pieces are parts of buffers that belong to operations, which are pending
            // until their commands have ended, and of scratch buffers kept until the command has.
            unsafe {
                self.back_end
                    .start(self.now, &command, &memory[..count], &mut self.ring);
            }
        }
        // A round that has just begun may have answered somebody.
        is_any | self.hear_streams()
    }

    /// Where the blocks of a command go: those of its request to the request's buffer, those
    /// around them to a buffer of the command's own.
    ///
    /// ```text
    ///   command   |  free blocks  |  request's  |
    ///   memory    [ scratch       ][ its buffer ]
    /// ```
    fn lay_out(&mut self, command: &Command, pieces: &mut [Option<Memory>; 3]) {
        let (Action::Read { extent, .. } | Action::Write { extent, .. }) = command.action else {
            return;
        };
        if self.lay_out_stream(command, pieces) {
            return;
        }
        let request = self.engine.request_of(command.id);
        let own = request.and_then(|request| Some((request, request.extent.intersection(extent)?)));
        let Some((request, own)) = own else {
            pieces[0] = self.scratch(command, extent.start(), extent.length());
            return;
        };
        pieces[1] = Some(self.memory_of(&request, own));
        if own.start() > extent.start() {
            let before = Sectors(own.start().0 - extent.start().0);
            pieces[0] = self.scratch(command, extent.start(), before);
        }
        if own.end() < extent.end() {
            let after = Sectors(extent.end().0 - own.end().0);
            pieces[2] = self.scratch(command, own.end(), after);
        }
    }

    fn scratch(&mut self, command: &Command, start: Lba, blocks: Sectors) -> Option<Memory> {
        let length = blocks.0 as usize * self.shape.block_bytes as usize;
        let buffer = self.spare.allocate(length).expect(
            "at most as many background reads at the back end as there is scratch memory for",
        );
        let memory = buffer.memory();
        self.scratch.push((command.id, start, buffer));
        self.note_passing(command.id, start, length);
        Some(memory)
    }

    /// Tells the engine what has ended; whether something has.
    pub(super) fn end_commands(&mut self) -> bool {
        let mut is_any = false;
        while let Some(ended) = self.back_end.poll(self.now) {
            is_any = true;
            self.end_command(&ended);
        }
        is_any
    }

    fn end_command(&mut self, ended: &Ended) {
        let request = self.engine.request_of(ended.id);
        if let Some(request) = &request {
            let export = self.export_of(request);
            self.accounts.command(ended.id, export);
        }
        let status = match ended.result {
            Ok(()) => Status::Good,
            Err(failed) => {
                if let Some(request) = &request {
                    self.note_failure(request, failed);
                }
                self.bad(ended.id, request.as_ref())
            }
        };
        self.land_stream(ended.id, ended.result.map_err(|_| ()));
        let outcome = Outcome {
            id: ended.id,
            at: self.now,
            status,
            account: ended.account,
        };
        let mispredicted = self.engine.background().gaps().mispredicted;
        self.engine.complete(self.now, ended.id, outcome);
        let lost = self.engine.background().gaps().mispredicted - mispredicted;
        self.count(ended, request.as_ref(), lost);
        self.hear_streams();
        let is_read = ended.result.is_ok();
        while let Some(place) = self.scratch.iter().position(|(id, ..)| *id == ended.id) {
            let (_, start, buffer) = self.scratch.swap_remove(place);
            let read = is_read.then(|| buffer.memory());
            self.note_passed(ended.id, start, read);
            if is_read {
                self.put_recorded(start, buffer.memory());
                self.put_cached(start, buffer.memory());
                self.deliver(start, buffer.memory());
            }
            self.spare.free(buffer);
        }
        self.end_tasks();
    }

    /// A command has ended that lost so many revolutions.
    fn count(&mut self, ended: &Ended, request: Option<&Request>, lost: u64) {
        let Some(place) = self.given.iter().position(|(id, ..)| *id == ended.id) else {
            return;
        };
        let (_, given, action) = self.given.swap_remove(place);
        if ended.result.is_err() {
            let kind = match action {
                Action::Write { .. } => 1,
                Action::Flush => 2,
                _ => 0,
            };
            self.tally.failed[kind] += 1;
        }
        if !self.shape.rotational {
            return;
        }
        let kind = match request.map(|request| request.class) {
            Some(Class::RealTime { .. }) => HeadKind::RealTime,
            Some(Class::BestEffort(_)) => HeadKind::Foreground,
            // Nobody else wants anything.
            None if self.engine.held() == 0 => HeadKind::Idle,
            None | Some(Class::Background) => HeadKind::Free,
        };
        let lost = self.engine.belief().profile().spindle.period() * lost;
        self.tally.held_head(given, self.now, kind, lost);
        self.tally.last = action.extent().or(self.tally.last);
    }

    /// What the engine is told of a failure: some block of the command was bad.
    fn bad(&self, id: CommandId, request: Option<&Request>) -> Status {
        let of_request = request.map(|request| request.extent);
        let extent = of_request.or_else(|| self.extent_of_stream(id));
        let at = extent.map_or(Lba(0), Extent::start);
        Status::MediumError { at }
    }
}

const NOTHING: Memory = Memory {
    at: std::ptr::null_mut(),
    length: 0,
};
