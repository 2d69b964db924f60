//! The order in which the drive executes queued commands.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use block::{Direction, Lba};
use drive::firmware::{QueueOrder, QueueRules};

use super::site::{TestSite, moment};
use crate::confidence::Confidence;
use crate::findings::FirmwareConfidence;
use crate::prober::Timing;

/// Number of tests: one to find the order, the others to check it.
const ROUNDS: u32 = 6;

/// Number of near commands that compete with a far one: enough that one of them is always cheaper
/// than a long seek.
const NEAR: usize = 24;

/// Maximum wait of a far command, in nanoseconds. Aging by 6 ms per second (Worthington et al.
/// 1994) makes up for the longest seek in less.
const PATIENCE: f64 = 2e9;

type Waiting = Pin<Box<dyn Future<Output = Timing> + Send>>;

pub(super) async fn measure(site: &mut TestSite, parts: &mut FirmwareConfidence) -> QueueRules {
    let depth = site.device().depth;
    if depth < 4 {
        // Too few to tell; with one there is no order.
        return QueueRules {
            depth,
            order: QueueOrder::Fcfs,
        };
    }
    let mut in_order = 0;
    for _ in 0..ROUNDS {
        in_order += u32::from(ends_in_order(site).await);
    }
    if in_order * 2 > ROUNDS {
        parts.queue = Confidence::of(in_order - 1, ROUNDS - 1);
        let order = QueueOrder::Fcfs;
        return QueueRules { depth, order };
    }
    let near = NEAR.min(depth as usize - 1);
    let order = if starves(site, near).await {
        QueueOrder::Sptf
    } else {
        QueueOrder::AgedSptf
    };
    parts.queue = Confidence::of(ROUNDS - in_order - 1, ROUNDS - 1);
    QueueRules { depth, order }
}

/// A block of a fresh track, and a far one of the same arm.
fn pair(site: &mut TestSite) -> (Lba, Lba) {
    let near = site.fresh().first;
    (near, Lba(near.0 + site.device().blocks / 8))
}

/// Whether alternating near and far commands end in order of submission.
async fn ends_in_order(site: &mut TestSite) -> bool {
    let (start, _) = pair(site);
    let mut places = vec![start];
    while places.len() < (site.device().depth as usize).min(6) {
        let (near, far) = pair(site);
        places.extend([far, near]);
    }
    places.truncate(site.device().depth as usize);
    let give = |lba: &Lba| site.prober.give(site.to_medium(Direction::Read, *lba, 1));
    let tickets: Vec<_> = places.iter().map(give).collect();
    let mut ends = Vec::new();
    for ticket in tickets {
        ends.push(site.prober.ended(ticket).await.ended);
    }
    ends.is_sorted()
}

/// Whether a far command never runs while near ones keep coming.
async fn starves(site: &mut TestSite, near: usize) -> bool {
    let (start, far) = pair(site);
    let given = moment(site.ask(Direction::Read, start, 1).await.ended);
    let mut waiting: Vec<Waiting> = (0..near).map(|_| give_near(site, start)).collect();
    waiting.push(give(site, far));
    loop {
        let (index, timing) = next(&mut waiting).await;
        if index == near {
            break;
        }
        if moment(timing.ended) - given > PATIENCE {
            drain(waiting, index).await;
            return true;
        }
        waiting[index] = give_near(site, start);
    }
    drain(waiting, near).await;
    false
}

/// Submits a read of a block.
fn give(site: &TestSite, lba: Lba) -> Waiting {
    let ticket = site.prober.give(site.to_medium(Direction::Read, lba, 1));
    let prober = site.prober.clone();
    Box::pin(async move { prober.ended(ticket).await })
}

/// Submits a read of a block close to `start`.
fn give_near(site: &mut TestSite, start: Lba) -> Waiting {
    let blocks = site.draw() * 4096.0;
    give(site, Lba(start.0 + blocks as u64))
}

/// The next command that ends.
async fn next(waiting: &mut [Waiting]) -> (usize, Timing) {
    poll_fn(|context| {
        for (index, one) in waiting.iter_mut().enumerate() {
            if let Poll::Ready(timing) = one.as_mut().poll(context) {
                return Poll::Ready((index, timing));
            }
        }
        Poll::Pending
    })
    .await
}

/// Awaits all commands but `ended`, which has ended.
async fn drain(waiting: Vec<Waiting>, ended: usize) {
    for (index, one) in waiting.into_iter().enumerate() {
        if index != ended {
            one.await;
        }
    }
}
