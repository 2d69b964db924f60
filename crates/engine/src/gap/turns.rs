//! Turns: free gaps go to background requests and to tasks alternately, while both have something that fits.

use drive::Profile;
use scheduler::background::Means;
use scheduler::freeblock::{GapPlan, PlanRules};

use super::free_blocks::{FreeBlocks, GapBefore, PaidPlan};
use super::requests::{GapTurn, WaitingRequests};

impl FreeBlocks {
    /// A free plan: that of a background request or of tasks, whose turn it is; the other's, if that has none.
    pub(super) fn in_turn(
        &mut self,
        belief: &Profile,
        before: &GapBefore<'_>,
        reach: &PlanRules,
        requests: Option<&WaitingRequests<'_>>,
        is_clear: impl Fn(&GapPlan) -> bool,
    ) -> Option<PaidPlan> {
        let turns = match self.turn {
            GapTurn::Requests => [GapTurn::Requests, GapTurn::Tasks],
            GapTurn::Tasks => [GapTurn::Tasks, GapTurn::Requests],
        };
        turns.into_iter().find_map(|turn| {
            let (plan, request) = match turn {
                GapTurn::Requests => {
                    let found = requests?.best(reach)?;
                    let pays = self.pays(before, &found.plan, || found.worth);
                    self.gaps.unworthy += u64::from(!pays);
                    pays.then_some((found.plan, Some((found.piece, found.part))))?
                }
                GapTurn::Tasks => (self.free(belief, before, reach).filter(&is_clear)?, None),
            };
            Some(PaidPlan {
                plan,
                request,
                means: Means::Free,
            })
        })
    }
}
