//! The thread of a bitmap's file: the loop never waits for it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tracing::error;

use super::bitmap::BitmapFile;
use super::bits::Bits;
use super::marks::{Answer, MarkState, Order};
use crate::checksums::region::Medium;

/// The thread of a bitmap's file. It ends when its orders do.
pub struct MarkThread {
    orders: Option<Sender<Order>>,
    answers: Arc<Mutex<Vec<Answer>>>,
    thread: Option<JoinHandle<()>>,
}

impl MarkThread {
    /// Begins a thread, which rings the bell after each answer.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn begin(file: BitmapFile<File>, bell: &Arc<OwnedFd>) -> io::Result<Self> {
        let (orders, received) = channel();
        let answers = Arc::new(Mutex::new(Vec::new()));
        let (told, bell) = (Arc::clone(&answers), Arc::clone(bell));
        let name = format!("bitmap {}", file.name());
        let thread = thread::Builder::new().name(name).spawn(move || {
            let tell = |answer| {
                let mut all = told.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(answer);
                drop(all);
                // It can only fail if it was rung 2^64 times.
                let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
            };
            carry_out_all(file, &received, tell);
        })?;
        Ok(MarkThread {
            orders: Some(orders),
            answers,
            thread: Some(thread),
        })
    }

    /// Sends an order.
    pub fn send(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A thread that has failed says so.
            let _ = orders.send(order);
        }
    }

    /// The answers since the last call.
    pub fn answers(&self) -> Vec<Answer> {
        let mut all = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }
}

impl Drop for MarkThread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry_out_all(mut file: BitmapFile<File>, orders: &Receiver<Order>, tell: impl Fn(Answer)) {
    let mut held = None;
    while let Some(mut order) = held.take().or_else(|| orders.recv().ok()) {
        if let Order::Mark(chunks) = &mut order {
            // One sync for all that were asked for meanwhile.
            while held.is_none()
                && let Ok(next) = orders.try_recv()
            {
                match next {
                    Order::Mark(more) => chunks.extend(more),
                    other => held = Some(other),
                }
            }
            chunks.sort_unstable();
        }
        match carry_out(&mut file, order) {
            Ok(answer) => tell(answer),
            Err(failed) => {
                let state = match file.void() {
                    Ok(()) => MarkState::Off(failed.to_string()),
                    Err(_) => MarkState::Stuck(failed.to_string()),
                };
                error!(
                    bitmap = file.name(),
                    ?state,
                    "the dirty bitmap cannot be kept"
                );
                return tell(Answer::Failed(state));
            }
        }
    }
}

/// Carries out an order.
///
/// # Errors
/// If the storage fails.
pub fn carry_out<M: Medium>(file: &mut BitmapFile<M>, order: Order) -> io::Result<Answer> {
    Ok(match order {
        Order::Mark(chunks) => {
            file.mark(&chunks)?;
            Answer::Marked(chunks)
        }
        Order::Freeze(checkpoint) => {
            file.freeze(checkpoint)?;
            Answer::Frozen(checkpoint)
        }
        Order::Release => {
            file.release()?;
            Answer::Released
        }
        Order::Abandon(frozen) => {
            file.abandon(&frozen)?;
            Answer::Released
        }
        Order::Resize(length) => {
            let mut dirty = Bits::none(file.length().div_ceil(super::CHUNK));
            file.resize(length, &mut dirty)?;
            Answer::Resized(length, dirty)
        }
    })
}
