//! The thread of a region: the loop never waits for its file.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tracing::error;

use crate::checksums::orders::{Order, Report};
use crate::checksums::region::Region;

/// The state of a volume's checksums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// They are kept.
    On,
    /// They are not kept any more, and there are none.
    Off(String),
    /// They are neither kept nor could be removed: writes fail.
    Stuck(String),
}

/// An answer of a region.
#[derive(Debug)]
pub enum Answer {
    /// The end of an order.
    Report(Report),
    /// The region has failed, and takes no more orders.
    Failed(CheckState),
}

/// Where the orders of a region are carried out: apart from the loop, in their order.
pub trait RegionWorker {
    /// Takes an order, and does not wait for it.
    fn send(&self, order: Order);

    /// The answers since the last call.
    fn take_answers(&self) -> Vec<Answer>;
}

/// Makes the worker of a volume's region. It writes to the eventfd after each answer.
pub type MakeWorker<'a> =
    &'a dyn Fn(Region<File>, &str, &Arc<OwnedFd>) -> io::Result<Box<dyn RegionWorker>>;

/// The thread of a region. It ends when its orders do.
pub(super) struct RegionThread {
    orders: Option<Sender<Order>>,
    answers: Arc<Mutex<Vec<Answer>>>,
    thread: Option<JoinHandle<()>>,
}

impl RegionThread {
    pub(super) fn begin(
        region: Region<File>,
        volume: &str,
        bell: &Arc<OwnedFd>,
    ) -> io::Result<Self> {
        let (orders, received) = channel();
        let answers = Arc::new(Mutex::new(Vec::new()));
        let (told, bell) = (Arc::clone(&answers), Arc::clone(bell));
        let name = volume.to_owned();
        let thread = thread::Builder::new()
            .name(format!("sums {volume}"))
            .spawn(move || carry_out_all(region, &name, &received, &told, &bell))?;
        Ok(RegionThread {
            orders: Some(orders),
            answers,
            thread: Some(thread),
        })
    }
}

impl RegionWorker for RegionThread {
    fn send(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A thread that has failed says so.
            let _ = orders.send(order);
        }
    }

    fn take_answers(&self) -> Vec<Answer> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for RegionThread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry_out_all(
    mut region: Region<File>,
    volume: &str,
    orders: &Receiver<Order>,
    answers: &Mutex<Vec<Answer>>,
    bell: &OwnedFd,
) {
    let tell = |answer| {
        let mut all = answers.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(answer);
        drop(all);
        // It can only fail if it was rung 2^64 times.
        let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
    };
    let mut held = None;
    while let Some(mut order) = held.take().or_else(|| orders.recv().ok()) {
        if let Order::Intend(intents) = &mut order {
            // One sync for all that were asked for meanwhile.
            while held.is_none()
                && let Ok(next) = orders.try_recv()
            {
                match next {
                    Order::Intend(more) => intents.extend(more),
                    other => held = Some(other),
                }
            }
        }
        if let Some(answer) = carry_out(&mut region, volume, order) {
            let has_failed = matches!(answer, Answer::Failed(_));
            tell(answer);
            if has_failed {
                return;
            }
        }
    }
}

/// Carries out an order of a volume's region. A region that fails is emptied.
pub fn carry_out(region: &mut Region<File>, volume: &str, order: Order) -> Option<Answer> {
    match region.carry_out(order) {
        Ok(report) => report.map(Answer::Report),
        Err(failed) => {
            let state = match region.void() {
                Ok(()) => CheckState::Off(failed.to_string()),
                Err(_) => CheckState::Stuck(failed.to_string()),
            };
            error!(volume, ?state, "the checksums of the volume cannot be kept");
            Some(Answer::Failed(state))
        }
    }
}
