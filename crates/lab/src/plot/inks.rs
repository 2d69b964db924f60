//! Colours: a policy has the same one in every figure, and parts of head time have others.
//!
//! ```text
//!   series      Okabe, Ito 2008, without black and yellow: bright hues that colour-blind readers tell apart
//!   head time   slate, from dark to pale, and sand: no hue of a series
//! ```

use plotters::style::RGBColor;

use super::Ink;

/// The palette of series, ordered so that neighbours differ in lightness, too.
const SERIES: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 130, 98),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
];

/// Policies and their places in the palette. A choice: those that papers and the documentation compare first
/// have a colour of their own, and the others share one with a policy that they are seldom beside.
const POLICIES: [(&str, usize); 9] = [
    ("fcfs", 0),
    ("look", 5),
    ("c-look", 1),
    ("sstf", 2),
    ("sptf-sw60", 3),
    ("sptf", 4),
    ("sptf-sw", 3),
    ("deadline", 5),
    ("aged-sptf", 2),
];

/// Seek, rotation, transfer, and what is none of them. A choice: 4.5 : 1 or more between neighbours is not needed,
/// because lines separate them and texts name them.
const HEAD: [RGBColor; 4] = [
    RGBColor(58, 70, 84),
    RGBColor(122, 138, 155),
    RGBColor(184, 196, 208),
    RGBColor(214, 203, 178),
];

/// What stands for nothing, such as idle time.
const PALE: RGBColor = RGBColor(236, 238, 240);

/// The colours of series with these names, in their order. A policy has its own, unless another series of the plot
/// has it. The others take what is left.
pub(super) fn colours<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<RGBColor> {
    let place = |name: &str| {
        let mut policies = POLICIES.iter();
        policies
            .find(|(policy, _)| *policy == name)
            .map(|found| found.1)
    };
    let mut taken = Vec::new();
    let fixed = names.map(|name| {
        let place = place(name).filter(|place| !taken.contains(place));
        taken.extend(place);
        place
    });
    let fixed: Vec<Option<usize>> = fixed.collect();
    let mut left = (0..SERIES.len()).filter(|place| !taken.contains(place));
    let mut again = 0..;
    let chosen = fixed
        .into_iter()
        .map(|place| match place.or_else(|| left.next()) {
            Some(place) => SERIES[place],
            None => darker(again.next().unwrap_or(0)),
        });
    chosen.collect()
}

/// A colour for series beyond the palette: darker with each round through it.
fn darker(number: usize) -> RGBColor {
    let RGBColor(r, g, b) = SERIES[number % SERIES.len()];
    let round = (number / SERIES.len()) as u32 + 1;
    // Nine sixteenths: as far apart as neighbours of the palette.
    let dark = |part: u8| (0..round).fold(part, |part, _| (u16::from(part) * 9 / 16) as u8);
    RGBColor(dark(r), dark(g), dark(b))
}

/// The colour of a part of a bar.
pub(super) fn fill(ink: Ink) -> RGBColor {
    match ink {
        Ink::Colour(number) => SERIES[number % SERIES.len()],
        Ink::Head(number) => HEAD[number % HEAD.len()],
        Ink::Pale => PALE,
    }
}

/// Whether text on this colour needs to be light.
pub(super) fn is_dark(colour: RGBColor) -> bool {
    // The luma of ITU-R BT.601.
    let RGBColor(r, g, b) = colour;
    299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) < 140_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<RGBColor> {
        colours(names.iter().copied())
    }

    #[test]
    fn a_policy_has_one_colour_whatever_is_beside_it() {
        let all = of(&["fcfs", "c-look", "sstf", "sptf-sw60", "sptf"]);
        assert_eq!(of(&["sptf", "fcfs"]), [all[4], all[0]]);
        assert_eq!(of(&["theirs", "sptf"])[1], all[4]);
        let distinct: std::collections::BTreeSet<_> =
            all.iter().map(|ink| (ink.0, ink.1, ink.2)).collect();
        assert_eq!(distinct.len(), 5);
    }

    #[test]
    fn every_policy_of_the_table_of_policies_that_is_named_here_exists() {
        for (name, place) in POLICIES {
            assert!(scheduler::policy::find(name).is_ok(), "{name}");
            assert!(place < SERIES.len());
        }
    }

    #[test]
    fn other_series_take_what_is_left_and_then_darker_ones() {
        let names: Vec<String> = (0..18).map(|number| format!("series {number}")).collect();
        let inks = colours(names.iter().map(String::as_str));
        assert_eq!(inks[..6], SERIES);
        let distinct: std::collections::BTreeSet<_> =
            inks.iter().map(|ink| (ink.0, ink.1, ink.2)).collect();
        assert_eq!(distinct.len(), 18, "{inks:?}");
    }

    #[test]
    fn no_head_time_has_the_colour_of_a_series() {
        assert!(
            HEAD.iter()
                .chain([&PALE])
                .all(|head| !SERIES.contains(head))
        );
    }
}
