//! Whether the transfer that is under way goes on, or steps aside for something more urgent.
//!
//! ```text
//!   goes on          | left |   way to the urgent   |             ... to whatever is next
//!   steps aside      |   way to the urgent   |   way back   | left |   ... to whatever is next
//! ```
//!
//! What it costs is the two ways less the one that there would be anyway; what it wins is the urgent
//! one's waiting. Both are known when the policy has chosen for whom: a near one is let in sooner.

use block::{Duration, Instant, Switch};
use scheduler::PieceId;
use scheduler::preemption::{When, Worth};

use super::Transfers;
use crate::context::StageContext;
use crate::guarantees::Guarantees;

/// Head time that may be spent on ways back to transfers that stepped aside.
#[derive(Clone, Debug, Default)]
pub(super) struct ReturnBudget {
    /// What a way back takes in the mean, with its latency.
    each: Duration,
    /// What may be spent, in nanoseconds.
    credit: u64,
    credited: Instant,
}

impl ReturnBudget {
    pub(super) fn new(now: Instant, each: Duration) -> Self {
        ReturnBudget {
            each,
            credit: CREDIT.as_nanos(),
            credited: now,
        }
    }

    /// A share of the time that has passed is granted.
    fn earn(&mut self, now: Instant, permille: u16) {
        let elapsed = now.since(self.credited).as_nanos();
        let earned = elapsed * u64::from(permille) / 1000;
        if earned > 0 {
            self.credit = (self.credit + earned).min(CREDIT.as_nanos());
            self.credited = now;
        }
    }

    /// Whether a way back is paid for.
    fn is_enough(&self) -> bool {
        self.credit >= self.each.as_nanos()
    }

    /// A way back is spent; the answer is what it takes.
    pub(super) fn spend(&mut self) -> Duration {
        self.credit = self.credit.saturating_sub(self.each.as_nanos());
        self.each
    }
}

impl Transfers {
    /// The piece that the transfer of `piece` steps aside for, chosen; `None` if the transfer goes on.
    pub(super) fn urgent_before(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
        piece: PieceId,
    ) -> Option<PieceId> {
        if !cx.ordering.is_outranked(piece) || cx.ordering.is_out_of_patience(cx.now, piece) {
            return None;
        }
        let is_real_time = cx.ordering.overtakes(piece);
        let rules = self.rules?;
        self.budget.earn(cx.now, rules.aside?.most_permille);
        if !is_real_time && !self.budget.is_enough() {
            return None;
        }
        let urgent = cx.choose()?;
        self.route_next_part(cx, guarantees, urgent);
        let is_let_in = cx.ordering.level(urgent) < cx.ordering.level(piece)
            && (is_real_time
                || rules.when == When::Always
                || Worth::is_worth_stepping_aside(
                    self.time_left(cx, piece),
                    self.cost_of_aside(cx, guarantees, piece, urgent),
                ));
        if !is_let_in {
            cx.ordering.put_back(urgent);
        }
        is_let_in.then_some(urgent)
    }

    /// What it costs that `urgent` is served before the rest of `piece`, by belief.
    fn cost_of_aside(
        &self,
        cx: &StageContext<'_>,
        guarantees: &Guarantees,
        piece: PieceId,
        urgent: PieceId,
    ) -> Duration {
        let (direction, _) = cx.ordering.blocks(piece);
        let (part, _) = self.next_part(cx, guarantees, piece, u64::MAX);
        let Some(rest) = cx.belief.route_of(part, direction) else {
            return self.budget.each;
        };
        let route = cx.route(urgent);
        let there = cx.expected_head().course(cx.profile(), cx.now, route);
        let given = there.head.free + route.tail(cx.profile(), &there.pass);
        let back = there.head.course(cx.profile(), given, &rest);
        // While the head waits for the urgent one's sector, the transfer may go on.
        let waited = match self.fills_slack() {
            Switch::On => Duration::ZERO,
            Switch::Off => there.pass.rotation,
        };
        let ways = there.pass.seek + waited + back.pass.seek + back.pass.rotation;
        ways.saturating_sub(self.budget.each)
    }

    /// For how long the medium is busy with what is left of a piece.
    fn time_left(&self, cx: &StageContext<'_>, piece: PieceId) -> Duration {
        let Some(progress) = self.progress(piece) else {
            return Duration::ZERO;
        };
        let blocks = progress.end.0.saturating_sub(progress.next.0);
        let sector = cx.route(piece).width();
        cx.profile().spindle.time_of(sector) * blocks
    }

    /// The piece that has stepped aside and where the head still is, if it fills slack.
    pub(crate) fn filler(&self) -> Option<PieceId> {
        self.aside.filter(|_| self.fills_slack() == Switch::On)
    }

    /// Whether what has stepped aside fills slack.
    fn fills_slack(&self) -> Switch {
        let rules = self.rules.and_then(|rules| rules.aside);
        rules.map_or(Switch::Off, |aside| aside.fill)
    }

    /// What follows the read that was given last, if it may be read in slack that nothing else wants.
    pub(crate) fn read_ahead(&self) -> Option<block::Lba> {
        let rules = self.rules.filter(|rules| rules.free_prefetch == Switch::On);
        rules.and_then(|_| self.reads.follows())
    }
}

/// How much head time for ways back can be saved up. A choice: that of a burst of some ten requests.
const CREDIT: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_back_are_paid_from_what_was_earned_and_no_more_is_saved_up_than_a_burst() {
        let each = Duration::from_millis(100);
        let mut budget = ReturnBudget::new(Instant::ZERO, each);
        let ways = std::iter::from_fn(|| budget.is_enough().then(|| budget.spend()));
        assert_eq!(ways.count(), 2);
        // 5 % of a second.
        let second = Instant::from_nanos(1_000_000_000);
        budget.earn(second, 50);
        assert!(budget.is_enough());
        budget.spend();
        budget.earn(second, 50);
        assert!(!budget.is_enough(), "no moment is granted twice");
        budget.earn(second + Duration::from_secs(3_600), 50);
        assert_eq!(budget.credit, CREDIT.as_nanos());
    }

    #[test]
    fn what_is_earned_in_moments_adds_up() {
        let (mut often, mut once) = [(); 2]
            .map(|()| {
                let mut budget = ReturnBudget::new(Instant::ZERO, Duration::from_millis(200));
                budget.spend();
                budget
            })
            .into();
        // A twentieth of some nanoseconds is none, and a part of one is lost each time.
        (1..=100_000).for_each(|n| often.earn(Instant::from_nanos(n * 13), 50));
        once.earn(Instant::from_nanos(1_300_000), 50);
        assert_eq!(once.credit, 50_000_000 + 65_000);
        assert!(often.credit > 50_000_000 + 40_000 && often.credit <= once.credit);
    }
}
