//! Whether the drive has a seek without transfer.
//!
//! A drive that has it takes longer over a seek to far blocks than over one to the track where the
//! arm is. One that has not, or takes it for a hint, ends both at once or refuses them.

use block::{Action, Direction, Lba, Status, Switch};

use super::site::{TestSite, took};

/// Pairs of seeks, of which most decide: a stall may spoil one.
const PAIRS: u32 = 5;

/// So much longer, in nanoseconds, a far seek is at least. A choice: an eighth of the blocks takes
/// all arms that we know 2 ms and more, and the electronics' noise is below 0.1 ms.
const LONGER: f64 = 1e6;

pub(super) async fn measure(site: &mut TestSite) -> Switch {
    let mut longer = 0;
    for _ in 0..PAIRS {
        let near = site.fresh().first;
        site.ask(Direction::Read, near, 1).await;
        let far = Lba(near.0 + site.device().blocks / 8);
        let times = (seek(site, near).await, seek(site, far).await);
        if let (Some(near), Some(far)) = times {
            longer += u32::from(far - near > LONGER);
        }
    }
    match longer * 2 > PAIRS {
        true => Switch::On,
        false => Switch::Off,
    }
}

/// How long a seek takes, in nanoseconds, if the drive does not refuse it.
async fn seek(site: &TestSite, to: Lba) -> Option<f64> {
    let timing = site.prober.ask(Action::Seek { to }).await;
    (timing.status == Status::Good).then(|| took(&timing))
}
