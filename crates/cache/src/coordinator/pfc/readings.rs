//! What the paper leaves open, and how it can be read: A1 to A19 of `shared/specs/cache-and-pfc.md`, 8.

use block::Direction;

use crate::coordinator::{
    CoordinatorRules, EmptyNative, Purpose, ReadmoreAs, ReadmoreFetch, Retention, SilentHits,
    SilentUse, Submissions, UpperRequest,
};
use crate::settings::{AlgorithmSettings, Parameter, Values, words};

words! {
    /// What the coordinator does: Figure 7 of the paper compares them.
    Actions {
        /// Both.
        Both = "both",
        /// It lets blocks past, and never reads more.
        Bypass = "bypass",
        /// It reads more, and lets nothing past.
        Readmore = "readmore",
    }
}

words! {
    /// A1: how large `bypass_len` may become.
    BypassBound {
        /// It grows; a request is let past as far as it goes.
        OnUse = "on-use",
        /// At most `rm`.
        Window = "rm",
        /// At most the request.
        Request = "n",
    }
}

words! {
    /// A2: how small `bypass_len` may become.
    BypassFloor {
        /// 0.
        Zero = "zero",
        /// It goes on below 0, which is used as 0.
        Below = "below",
    }
}

words! {
    /// A3: when a request is large.
    Large {
        /// Longer than the mean: the pseudo-code.
        Mean = "mean",
        /// Longer than half of it: the text.
        Half = "half",
    }
}

words! {
    /// A4: what follows from a large request to a full cache.
    WhenFull {
        /// `readmore_len` is 0 and may be set again: the pseudo-code.
        GoOn = "code",
        /// It stays 0 for this request.
        Veto = "veto",
        /// The whole request is let past: the text.
        BypassAll = "bypass-all",
    }
}

words! {
    /// A5: when the lower cache is full.
    Full {
        /// No frame is free.
        NoFreeFrame = "no-free-frame",
        /// No frame is free, and none waits for its block.
        AllValid = "all-valid",
    }
}

words! {
    /// A6: which blocks show that the lower level is far enough ahead.
    Beyond {
        /// As many as asked for, behind them, all of them.
        All = "all",
        /// The last one asked for and as many behind it, all of them: the pseudo-code.
        WithLast = "code",
        /// As many as asked for, behind them, one of them at least.
        Any = "any",
    }
}

words! {
    /// A7: whether blocks in flight are in the cache.
    InFlight {
        /// They are.
        Counts = "counts",
        /// They are not.
        Absent = "absent",
    }
}

words! {
    /// A8: which of the blocks asked for make a hit in the lower cache.
    CacheHit {
        /// Any.
        Any = "any",
        /// Only those that were let past before.
        Bypassed = "bypassed",
        /// All of them.
        All = "all",
    }
}

words! {
    /// A9: where the window behind what was read begins.
    WindowStart {
        /// Behind it.
        After = "after",
        /// With the last block that was read: the pseudo-code.
        WithLast = "code",
    }
}

words! {
    /// A10: which requests the mean is of.
    MeanOf {
        /// All up to this one that were no longer than twice the mean at their time.
        NoOutliers = "no-outliers",
        /// All.
        All = "all",
        /// As `no-outliers`, but the others count as requests of no blocks.
        Counted = "counted",
        /// As `no-outliers`, but it begins anew after 1000 outliers in a row.
        Reseeded = "reseeded",
        /// As `no-outliers`, without this one.
        Previous = "previous",
    }
}

words! {
    /// A13: what goes where a queue is full.
    QueueFull {
        /// The oldest of that queue; of a run that is too long the lowest numbers stay.
        Lowest = "lowest",
        /// The oldest of that queue; of a run that is too long the highest numbers stay.
        Highest = "highest",
        /// As `lowest`, and the oldest of the other queue goes too.
        Either = "either",
    }
}

words! {
    /// A14: what being found in a queue does.
    QueueHit {
        /// The number becomes the newest.
        Refresh = "refresh",
        /// Nothing.
        Stay = "stay",
        /// It is taken out.
        Remove = "remove",
    }
}

words! {
    /// A18, A19: what becomes of requests that the paper does not mention.
    Others {
        /// They are as any other.
        Coordinated = "coordinated",
        /// They are served as if there were no coordinator.
        Passed = "passed",
    }
}

words! {
    /// Whether something happens that the paper does not do.
    Choice {
        /// No.
        Literal = "literal",
        /// Yes.
        Otherwise = "otherwise",
    }
}

/// How the paper is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readings {
    /// What the coordinator does.
    pub actions: Actions,
    /// A1.
    pub bypass_bound: BypassBound,
    /// A2.
    pub bypass_floor: BypassFloor,
    /// A3.
    pub large: Large,
    /// A4.
    pub when_full: WhenFull,
    /// A5.
    pub full: Full,
    /// A6.
    pub beyond: Beyond,
    /// A7.
    pub in_flight: InFlight,
    /// A8.
    pub cache_hit: CacheHit,
    /// A9.
    pub window_start: WindowStart,
    /// A10.
    pub mean_of: MeanOf,
    /// A13.
    pub queue_full: QueueFull,
    /// A14.
    pub queue_hit: QueueHit,
    /// A18.
    pub prefetches: Others,
    /// A19.
    pub writes: Others,
    /// A11, A12, A15 to A17.
    pub rules: CoordinatorRules,
}

/// A line of the table of parameters.
const fn word(key: &'static str, what: &'static str, words: &'static [&'static str]) -> Parameter {
    Parameter {
        key,
        what,
        values: Values::Words(words),
    }
}

/// What can be set.
pub const PARAMETERS: &[Parameter] = &[
    word("actions", "What it does: Figure 7.", Actions::WORDS),
    Parameter {
        key: "queue",
        what: "Each queue's size in percent of the lower cache's blocks; the paper: 10.",
        values: Values::Number {
            range: 1..=100,
            default: 10,
        },
    },
    word("a1", "How large bypass_len may become.", BypassBound::WORDS),
    word("a2", "How small bypass_len may become.", BypassFloor::WORDS),
    word("a3", "When a request is large.", Large::WORDS),
    word(
        "a4",
        "What a large request to a full cache changes.",
        WhenFull::WORDS,
    ),
    word("a5", "When the lower cache is full.", Full::WORDS),
    word(
        "a6",
        "Which blocks show that the lower level is ahead.",
        Beyond::WORDS,
    ),
    word(
        "a7",
        "Whether blocks in flight are in the cache.",
        InFlight::WORDS,
    ),
    word(
        "a8",
        "Which blocks make a hit in the lower cache.",
        CacheHit::WORDS,
    ),
    word(
        "a9",
        "Where the readmore window begins.",
        WindowStart::WORDS,
    ),
    word("a10", "Which requests the mean is of.", MeanOf::WORDS),
    word(
        "a11",
        "Whether silent hits reach the replacement: otherwise.",
        Choice::WORDS,
    ),
    word(
        "a12",
        "Whether the prefetcher is told of silent use: otherwise.",
        Choice::WORDS,
    ),
    word("a13", "What goes where a queue is full.", QueueFull::WORDS),
    word("a14", "What being found in a queue does.", QueueHit::WORDS),
    word(
        "a15",
        "Whether readmore blocks are prefetches below: otherwise.",
        Choice::WORDS,
    ),
    word(
        "a16",
        "Whether an empty request is seen below: otherwise.",
        Choice::WORDS,
    ),
    word(
        "a17",
        "Whether both parts are one submission: otherwise.",
        Choice::WORDS,
    ),
    word(
        "a18",
        "What becomes of the upper level's own prefetches.",
        Others::WORDS,
    ),
    word("a19", "What becomes of writes.", Others::WORDS),
    word(
        "readmore",
        "Whether readmore blocks are a fetch of their own, for which no request waits: otherwise.",
        Choice::WORDS,
    ),
];

impl Readings {
    /// As set.
    pub fn of(settings: &AlgorithmSettings) -> Self {
        Readings {
            actions: Actions::of(settings, "actions"),
            bypass_bound: BypassBound::of(settings, "a1"),
            bypass_floor: BypassFloor::of(settings, "a2"),
            large: Large::of(settings, "a3"),
            when_full: WhenFull::of(settings, "a4"),
            full: Full::of(settings, "a5"),
            beyond: Beyond::of(settings, "a6"),
            in_flight: InFlight::of(settings, "a7"),
            cache_hit: CacheHit::of(settings, "a8"),
            window_start: WindowStart::of(settings, "a9"),
            mean_of: MeanOf::of(settings, "a10"),
            queue_full: QueueFull::of(settings, "a13"),
            queue_hit: QueueHit::of(settings, "a14"),
            prefetches: Others::of(settings, "a18"),
            writes: Others::of(settings, "a19"),
            rules: rules(settings),
        }
    }

    /// What does not change from request to request.
    pub fn rules(&self) -> CoordinatorRules {
        self.rules
    }

    /// Whether the request is none of the coordinator's business.
    pub fn passes(&self, asked: &UpperRequest) -> bool {
        let is_prefetch = asked.purpose == Purpose::Prefetch;
        let is_write = asked.direction == Direction::Write;
        is_prefetch && self.prefetches == Others::Passed
            || is_write && self.writes == Others::Passed
    }
}

fn rules(settings: &AlgorithmSettings) -> CoordinatorRules {
    let is_literal = |key| Choice::of(settings, key) == Choice::Literal;
    CoordinatorRules {
        silent_hits: match is_literal("a11") {
            true => SilentHits::Unseen,
            false => SilentHits::Touched,
        },
        silent_use: match is_literal("a12") {
            true => SilentUse::Hidden,
            false => SilentUse::Reported,
        },
        readmore: match is_literal("a15") {
            true => ReadmoreAs::Demand,
            false => ReadmoreAs::Prefetch,
        },
        empty_native: match is_literal("a16") {
            true => EmptyNative::Skipped,
            false => EmptyNative::Seen,
        },
        submissions: match is_literal("a17") {
            true => Submissions::Two,
            false => Submissions::One,
        },
        readmore_fetch: match is_literal("readmore") {
            true => ReadmoreFetch::Joined,
            false => ReadmoreFetch::Own,
        },
        sent: Retention::Kept,
    }
}
