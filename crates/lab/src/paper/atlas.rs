//! The drives of the freeblock paper: the truth and the noise by which all of its claims are judged, and others beside them.
//!
//! | Truth | Mean seek | Head switch |
//! |---|---|---|
//! | Table 1, judged | the paper's 5.0 ms | the paper's 0.8 ms |
//! | Table 1's seeks | the paper's 5.0 ms | extracted, 0.176 ms |
//! | extracted | extracted, 5.6 ms | extracted, 0.176 ms |

use block::Duration;
use drive::imperfection::Chance;

use super::scene::{AtlasTruth, Model, NOT_HELD, Noise};

/// A drive with its noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperDrive {
    /// The name in tables.
    pub name: &'static str,
    /// The drive.
    pub model: Model,
    /// The noise of its seeks and of their predictions.
    pub noise: Noise,
}

/// The Atlas 10K of the paper's Table 1, by which all claims are judged.
pub const JUDGED: PaperDrive = PaperDrive {
    name: "Table 1",
    model: Model::Atlas10k(AtlasTruth::Table1),
    noise: NOISE,
};

/// The other truths of the Atlas 10K.
pub const TRUTHS: [PaperDrive; 2] = [
    PaperDrive {
        name: "Table 1's mean seek, head switch 0.176 ms as extracted",
        model: Model::Atlas10k(AtlasTruth::Table1Seek),
        ..JUDGED
    },
    PaperDrive {
        name: "extracted: mean seek 5.6 ms, head switch 0.176 ms",
        model: Model::Atlas10k(AtlasTruth::Extracted),
        ..JUDGED
    },
];

/// The judged truth with the other candidate for the noise.
pub const BIASED: PaperDrive = PaperDrive {
    name: "predictions 60 us short, sigma 0.15 ms",
    noise: Noise {
        bias: Duration::from_micros(60),
        ..NOISE
    },
    ..JUDGED
};

/// The paper's other drive. Its noise has the paper's rotations: 0.7 % lost and won in total.
pub const CHEETAH: PaperDrive = PaperDrive {
    name: "Cheetah 18LP",
    model: Model::Cheetah18lp,
    noise: Noise::sigma(Duration::from_micros(55)),
};

/// The noise of all claims of the Atlas 10K. Of the paper's figures it was fitted to one: 2.5 % of the
/// 4 KB reads lose or win a rotation (Figure 7). The fit was made on the extracted seeks.
const NOISE: Noise = Noise {
    sigma: Duration::from_micros(150),
    bias: Duration::ZERO,
    late: Chance {
        per_million: 0,
        costs: Duration::ZERO,
    },
    held: NOT_HELD,
};
