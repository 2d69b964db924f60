//! What is read when nobody waits.

use std::sync::Arc;

use block::Sectors;
use drive::SeekTarget;
use proptest::prelude::*;
use scheduler::freeblock::{Planner, WantedBlocks};

use crate::drives::{Moved, extent};
use crate::planner::{Situation, situation};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// As long as anything is wanted there is a read, and with read after read it ends.
    #[test]
    fn idle_time_reads_everything(situation in situation(Moved::Some), most in 1u64..40) {
        let Situation { profile, gap, .. } = &situation;
        let mut set = situation.set();
        let planner = Planner::new(Arc::clone(profile));
        let (mut from, mut now) = (gap.source, gap.leaves);
        while set.left() > 0 {
            let stop = planner.idle(&set, from, now, Sectors(most));
            let stop = stop.expect("something is wanted");
            prop_assert!(stop.extent.length().0 <= most);
            prop_assert!(stop.ends > now);
            prop_assert_eq!(set.remove(stop.extent), u64::from(stop.wanted));
            prop_assert!(stop.wanted > 0);
            now = stop.ends;
            let place = profile.geometry.locate(stop.extent.last()).expect("a block");
            from = SeekTarget::from(&place).position;
        }
        prop_assert_eq!(planner.idle(&set, from, now, Sectors(most)), None);
    }

    /// However far away the only wanted block is.
    #[test]
    fn a_lonely_block_is_found_from_anywhere(
        situation in situation(Moved::None),
        only in any::<proptest::sample::Index>(),
    ) {
        let Situation { profile, gap, .. } = &situation;
        let block = only.index(profile.geometry.sectors().0 as usize) as u64;
        let mut set = WantedBlocks::none(&profile.geometry);
        set.add(extent(block, 1)).expect("on the drive");
        let planner = Planner::new(Arc::clone(profile));
        let stop = planner.idle(&set, gap.source, gap.leaves, Sectors(8));
        let stop = stop.expect("one block is wanted");
        prop_assert_eq!(stop.extent, extent(block, 1));
    }
}
