//! `background_grace_ms` of a drive: how long others must be quiet before background requests begin.

use block::Duration;
use document::quantity::Unit;
use document::{DocumentError, Section};
use scheduler::ordering::Grace;

/// The grace period of background requests, as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GracePeriod {
    /// That of the engine on a drive with a belief. Without one nobody knows whether a head moves, and the background
    /// begins as soon as no other request waits.
    #[default]
    ByBelief,
    /// Background requests begin as soon as no other request waits.
    Off,
    /// So long.
    Of(Duration),
}

impl GracePeriod {
    /// The rule of an engine for a drive with a belief.
    pub fn with_belief(self) -> Option<Grace> {
        match self {
            GracePeriod::ByBelief => Some(Grace::default()),
            GracePeriod::Off | GracePeriod::Of(_) => self.without_belief(),
        }
    }

    /// The rule of an engine for a drive without a belief.
    pub fn without_belief(self) -> Option<Grace> {
        match self {
            GracePeriod::ByBelief | GracePeriod::Off => None,
            GracePeriod::Of(period) => Some(Grace {
                period,
                ..Grace::default()
            }),
        }
    }
}

/// The key of a drive.
pub(super) const KEY: &str = "background_grace_ms";

/// The grace period of a drive.
pub(super) fn grace(drive: &Section<'_>) -> Result<GracePeriod, DocumentError> {
    let Some(value) = drive.get(KEY) else {
        return Ok(GracePeriod::ByBelief);
    };
    let expected = format!("a whole number from 0 to {LONGEST_MS}");
    let millis = value.whole_quantity(Unit::Milliseconds, 0..=LONGEST_MS, &expected)?;
    Ok(match millis {
        0 => GracePeriod::Off,
        millis => GracePeriod::Of(Duration::from_millis(millis)),
    })
}

/// The longest period: the background has one command in 200 ms then. A choice.
const LONGEST_MS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::super::{Config, Places};
    use super::*;

    /// A drive with this line.
    fn parse(line: &str) -> Result<GracePeriod, String> {
        let text = format!(
            "[[drive]]\nname = \"d\"\nback_end = {{ kind = \"memory\", size = \"1 GiB\" }}\n{line}\n\
             volume = [{{ name = \"v\" }}]\nexport = [{{ name = \"e\", volume = \"v\" }}]\n"
        );
        let places = Places {
            data: "/data".into(),
            runtime: "/run".into(),
            base: "/etc".into(),
        };
        let config = Config::parse("c.toml", &text, &places).map_err(|error| error.to_string())?;
        Ok(config.drives[0].grace)
    }

    #[test]
    fn a_drive_has_the_period_that_is_configured() {
        assert_eq!(parse(""), Ok(GracePeriod::ByBelief));
        assert_eq!(parse("background_grace_ms = 0"), Ok(GracePeriod::Off));
        let of = |millis| Ok(GracePeriod::Of(Duration::from_millis(millis)));
        assert_eq!(parse("background_grace_ms = 25"), of(25));
        assert_eq!(parse("background_grace_ms = \"1 s\""), of(1000));
        let refused = parse("background_grace_ms = 10001").expect_err("too long");
        let expected = "a whole number from 0 to 10000";
        assert!(
            refused.contains("background_grace_ms") && refused.contains(expected),
            "{refused}"
        );
    }

    #[test]
    fn the_background_waits_for_others_where_a_head_is_known_to_move() {
        let by_belief = GracePeriod::ByBelief;
        assert_eq!(by_belief.with_belief(), Some(Grace::default()));
        assert_eq!(by_belief.without_belief(), None);
        assert_eq!(GracePeriod::Off.with_belief(), None);
        let period = Duration::from_millis(30);
        let rule = GracePeriod::Of(period).without_belief().expect("a period");
        assert_eq!((rule.period, rule.turn), (period, Grace::default().turn));
    }
}
