//! Whether the drive supports a seek without transfer.
//!
//! Such a drive takes longer for a seek to far blocks than for one to the current track. A drive
//! without support, or with seeks as hints only, ends both immediately or refuses them.

use block::{Action, Direction, Lba, Status, Switch};

use super::site::{TestSite, took};

/// Number of pairs of seeks; the majority decides, since a stall may spoil one.
const PAIRS: u32 = 5;

/// Minimum additional time of a far seek, in nanoseconds. A choice: an eighth of the blocks takes
/// all known arms 2 ms and more, and the noise of electronics is below 0.1 ms.
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

/// The time of a seek in nanoseconds, unless the drive refuses it.
async fn seek(site: &TestSite, to: Lba) -> Option<f64> {
    let timing = site.prober.ask(Action::Seek { to }).await;
    (timing.status == Status::Good).then(|| took(&timing))
}
