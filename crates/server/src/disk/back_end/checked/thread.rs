//! The thread of a region: the loop never waits for its file.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// An answer of a region's thread.
pub(super) enum Answered {
    Report(Report),
    Failed(CheckState),
}

/// The thread of a region. It ends when its orders do.
pub(super) struct RegionThread {
    orders: Option<Sender<Order>>,
    answers: Arc<Mutex<Vec<Answered>>>,
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
            .spawn(move || carry_out(region, &name, &received, &told, &bell))?;
        Ok(RegionThread {
            orders: Some(orders),
            answers,
            thread: Some(thread),
        })
    }

    pub(super) fn send(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A thread that has failed says so.
            let _ = orders.send(order);
        }
    }

    pub(super) fn answers(&self) -> MutexGuard<'_, Vec<Answered>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
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

fn carry_out(
    mut region: Region<File>,
    volume: &str,
    orders: &Receiver<Order>,
    answers: &Mutex<Vec<Answered>>,
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
        match region.carry_out(order) {
            Ok(None) => (),
            Ok(Some(report)) => tell(Answered::Report(report)),
            Err(failed) => {
                let state = match region.void() {
                    Ok(()) => CheckState::Off(failed.to_string()),
                    Err(_) => CheckState::Stuck(failed.to_string()),
                };
                error!(volume, ?state, "the checksums of the volume cannot be kept");
                return tell(Answered::Failed(state));
            }
        }
    }
}
