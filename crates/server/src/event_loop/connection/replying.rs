//! Replies on their way to a client.

use crate::back_end::{Holds, Run, Span};
use crate::event_loop::EventLoop;
use crate::event_loop::operations::{Bytes, Operation};
use crate::nbd::reply::{self, Reply};
use crate::nbd::request::Header;
use crate::nbd::{Descriptor, HOLE, ZERO};
use crate::operation::{Ask, Failed};

use super::Reading;

impl EventLoop {
    /// The kernel says how many bytes have left.
    pub(in crate::event_loop) fn sent(&mut self, place: usize, result: i32) {
        let now = self.now;
        let mut free = Vec::new();
        let connection = &mut self.connections[place];
        let is_on = match usize::try_from(result) {
            Ok(count @ 1..) => {
                connection.moved = now;
                let (outbox, mut way) = connection.way(place, &mut self.ring);
                outbox.sent_some(count, &mut way, &mut free).is_ok()
            }
            _ => {
                connection.outbox.give_up(&mut free);
                false
            }
        };
        for bytes in free {
            self.take_back(place, bytes);
        }
        if !is_on {
            return self.cut_off(place);
        }
        if self.connections[place].outbox.has_more() {
            // It was answered while the kernel was busy: nothing else may come that would send it.
            self.note_answered(place);
        }
        if std::mem::take(&mut self.connections[place].is_full) {
            self.read_on(place);
        }
        if !self.connections.contains(place) {
            return;
        }
        self.leave_if_done(place);
    }

    /// Hands all replies to the kernel: how many the client gets that gets fewest of them.
    pub(in crate::event_loop) fn send_all(&mut self) -> Option<usize> {
        let mut fewest = None;
        while let Some(place) = self.answered.pop() {
            let Some(connection) = self.connections.get_mut(place) else {
                continue;
            };
            connection.is_answered = false;
            if !connection.outbox.is_sending() {
                connection.moved = self.now;
            }
            let replies = connection.outbox.replies();
            fewest = Some(fewest.map_or(replies, |fewest: usize| fewest.min(replies)));
            let (outbox, mut way) = connection.way(place, &mut self.ring);
            match outbox.send(&mut way) {
                Ok(()) => self.leave_if_done(place),
                Err(_) => self.cut_off(place),
            }
        }
        fewest
    }

    /// Tells a client how its operation ended.
    pub(in crate::event_loop) fn reply(
        &mut self,
        place: usize,
        header: &Header,
        operation: &Operation,
        result: Result<(), Failed>,
        bytes: Bytes,
    ) {
        let connection = &mut self.connections[place];
        connection.gave(operation);
        if result.is_ok() {
            connection.served.requests += 1;
            if let Ask::Read | Ask::Write { .. } = operation.ask {
                connection.served.bytes += operation.length;
            }
        }
        let reply = Reply::to(header, connection.agreed.style);
        let outbox = &mut connection.outbox;
        match (operation.ask, result) {
            (Ask::Read, Ok(())) => {
                outbox.head(|out| reply.contents(out));
                outbox.bytes(bytes);
            }
            (_, Ok(())) => {
                outbox.head(|out| reply.done(out));
                self.take_back(place, bytes);
            }
            (_, Err(failed)) => {
                outbox.head(|out| reply.failed(out, failed, &failed.to_string()));
                self.take_back(place, bytes);
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

    /// Tells a client what its blocks hold: at once, or when the back end has found out.
    pub(super) fn reply_status(&mut self, place: usize, header: &Header) {
        let connection = &mut self.connections[place];
        connection.reading = Reading::Header;
        let start = self.exports[connection.export].offset;
        let span = Span {
            offset: start + header.offset,
            length: header.length,
        };
        let key = self.questions.insert((place, *header));
        // It is kept until it was told.
        connection.held += 1;
        let export = connection.export;
        let runs = match (self.recorded_in(span), self.is_written(export)) {
            (Some(run), _) => Some(vec![run]),
            (None, true) => self.back_end.ask_runs(key as u32, span, &mut self.ring),
            (None, false) => Some(vec![Run {
                length: header.length,
                holds: Holds::Bytes,
            }]),
        };
        if let Some(runs) = runs {
            self.tell_question(key, &runs);
        }
    }

    /// The back end has found out.
    pub(in crate::event_loop) fn tell_question(&mut self, key: usize, runs: &[Run]) {
        let (place, header) = self.questions.remove(key);
        let connection = &mut self.connections[place];
        connection.held -= 1;
        let descriptors = runs.iter().map(|run| Descriptor {
            length: run.length,
            state: match run.holds {
                Holds::Bytes => 0,
                Holds::Hole => HOLE | ZERO,
            },
        });
        let reply = Reply::to(&header, connection.agreed.style);
        let block = connection.offer.block.min();
        let context = connection.agreed.contexts.first();
        connection
            .outbox
            .head(|out| match (reply.chunks(), context) {
                (Some(chunks), Some(&(context, _))) => {
                    let place = reply::ChunkPosition::Last;
                    if let Err(nothing) =
                        chunks.block_status(out, context, block, descriptors, place)
                    {
                        reply.failed(out, Failed::Io, &nothing.to_string());
                    }
                }
                _ => reply.failed(out, Failed::Invalid, "no context was agreed on"),
            });
        self.note_answered(place);
    }
}
