//! Replies of connections.

use crate::disk::Disk;
use crate::disk::back_end::{Holds, Run};
use crate::volume::Volumes;
use crate::volume::operation::{OperationSource, PendingOperation};
use block::operation::{Ask, OperationError};
use nbd::reply::{self, Reply};
use nbd::request::Header;
use nbd::{Context, DIRTY, Descriptor, HOLE, ZERO};

use super::Clients;
use super::connection::Reading;

impl Clients {
    /// A send has completed.
    pub(crate) fn sent(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
        result: i32,
    ) {
        let now = disk.now;
        let mut free = Vec::new();
        let connection = &mut self.connections[place];
        let is_on = match usize::try_from(result) {
            Ok(count @ 1..) => {
                connection.moved = now;
                let (outbox, mut socket) = connection.outbox(place, &mut disk.ring);
                outbox.sent_some(count, &mut socket, &mut free).is_ok()
            }
            _ => {
                connection.outbox.give_up(&mut free);
                false
            }
        };
        for bytes in free {
            self.take_back(volumes, place, bytes);
        }
        if !is_on {
            return self.cut_off(volumes, disk, place);
        }
        if self.connections[place].outbox.has_more() {
            // It was answered while the kernel was busy: nothing else may come that would send it.
            self.note_answered(place);
        }
        if std::mem::take(&mut self.connections[place].is_full) {
            self.read_on(volumes, disk, place);
        }
        if !self.connections.contains(place) {
            return;
        }
        self.leave_if_done(volumes, disk, place);
    }

    /// Sends all replies. The answer is the smallest number of replies of a connection.
    pub(crate) fn send_all(&mut self, volumes: &mut Volumes, disk: &mut Disk) -> Option<usize> {
        let mut fewest = None;
        while let Some(place) = self.answered.pop() {
            let Some(connection) = self.connections.get_mut(place) else {
                continue;
            };
            connection.is_answered = false;
            if !connection.outbox.is_sending() {
                connection.moved = disk.now;
            }
            let replies = connection.outbox.replies();
            fewest = Some(fewest.map_or(replies, |fewest: usize| fewest.min(replies)));
            let (outbox, mut socket) = connection.outbox(place, &mut disk.ring);
            match outbox.send(&mut socket) {
                Ok(()) => self.leave_if_done(volumes, disk, place),
                Err(_) => self.cut_off(volumes, disk, place),
            }
        }
        fewest
    }

    /// Appends replies for the answers of volumes to the outboxes.
    pub(crate) fn take_answers(&mut self, volumes: &mut Volumes) {
        while let Some(ended) = volumes.operations.poll_ended() {
            self.reply(volumes, ended);
        }
    }

    fn reply(&mut self, volumes: &mut Volumes, ended: PendingOperation) {
        let PendingOperation {
            source: OperationSource::Connection { client, header },
            operation,
            result,
            bytes,
            ..
        } = ended
        else {
            return;
        };
        let place = client.place;
        let connection = &mut self.connections[place];
        connection.release_operation(&operation);
        if result.is_ok() {
            connection.served.requests += 1;
            if let Ask::Read | Ask::Write { .. } = operation.ask {
                connection.served.bytes += operation.length;
            }
        }
        let reply = Reply::to(&header, connection.agreed.style);
        let outbox = &mut connection.outbox;
        match (operation.ask, result) {
            (Ask::Read, Ok(())) => {
                outbox.head(|out| reply.contents(out));
                outbox.bytes(bytes);
            }
            (_, Ok(())) => {
                outbox.head(|out| reply.done(out));
                self.take_back(volumes, place, bytes);
            }
            (_, Err(failed)) => {
                outbox.head(|out| reply.failed(out, failed, &failed.to_string()));
                self.take_back(volumes, place, bytes);
            }
        }
        self.note_answered(place);
    }

    pub(super) fn note_answered(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if !connection.is_answered {
            connection.is_answered = true;
            self.answered.push(place);
        }
    }

    /// Replies to a block status request, now or when the back end has the answer.
    pub(super) fn reply_status(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
        header: &Header,
    ) {
        let connection = &mut self.connections[place];
        connection.reading = Reading::Header;
        // It is kept until it was told.
        connection.held += 1;
        let export = connection.export;
        let key = self.questions.insert((place, *header));
        let runs = volumes.ask_runs(disk, key, export, (header.offset, header.length));
        if let Some(runs) = runs {
            self.reply_runs(volumes, key, &runs);
        }
    }

    /// Replies to a block status request with the back end's answer.
    pub(crate) fn reply_runs(&mut self, volumes: &Volumes, key: usize, runs: &[Run]) {
        let (place, header) = self.questions.remove(key);
        let connection = &mut self.connections[place];
        connection.held -= 1;
        let (export, offset) = (connection.export, header.offset);
        let checkpoints = &volumes.checkpoints;
        let states = |context: &Context| match context.bitmap() {
            None => {
                let runs = checkpoints.runs_of_moment(export, offset, runs);
                runs.iter().map(allocated).collect()
            }
            Some(name) => {
                let dirty = checkpoints.dirty_runs(export, name, (offset, header.length));
                dirty.into_iter().map(dirtied).collect::<Vec<_>>()
            }
        };
        let reply = Reply::to(&header, connection.agreed.style);
        let block = connection.offer.block.min();
        let contexts = &connection.agreed.contexts;
        let last = contexts.len().saturating_sub(1);
        connection.outbox.head(|out| {
            let begin = out.len();
            let Some(chunks) = reply.chunks().filter(|_| !contexts.is_empty()) else {
                return reply.failed(out, OperationError::Invalid, "no context was agreed on");
            };
            for (number, (id, context)) in contexts.iter().enumerate() {
                let place = match number == last {
                    true => reply::ChunkPosition::Last,
                    false => reply::ChunkPosition::Before,
                };
                if let Err(nothing) = chunks.block_status(out, *id, block, states(context), place) {
                    out.truncate(begin);
                    return reply.failed(out, OperationError::Io, &nothing.to_string());
                }
            }
        });
        self.note_answered(place);
    }
}

fn allocated(run: &Run) -> Descriptor {
    Descriptor {
        length: run.length,
        state: match run.holds {
            Holds::Bytes => 0,
            Holds::Hole => HOLE | ZERO,
        },
    }
}

fn dirtied((length, is_dirty): (u64, bool)) -> Descriptor {
    Descriptor {
        length,
        state: if is_dirty { DIRTY } else { 0 },
    }
}
