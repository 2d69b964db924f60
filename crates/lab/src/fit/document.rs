//! The `[fitted]` table of a profile: only differences from the published constants.

use std::fmt::Write;

use drive::{Angle, Profile};

use super::electronics::{RULES, TIMES};

/// The table's text. `origin` names the data of the fit.
pub fn table(published: &Profile, fitted: &Profile, origin: &str) -> String {
    let mut text = format!("[fitted]\norigin = {origin:?}\n");
    if fitted.spindle.period_ps() != published.spindle.period_ps() {
        let millis = fitted.spindle.period_ps() as f64 * 1e-9;
        let _ = writeln!(text, "revolution_ms = {millis:.9}");
    }
    let (mut before, mut after) = (published.clone(), fitted.clone());
    for (key, time) in TIMES {
        let (old, new) = (*time(&mut before), *time(&mut after));
        if old != new {
            let _ = writeln!(text, "{key} = {}", new.as_nanos() as f64 / 1e6);
        }
    }
    for (key, settings) in RULES {
        let set = settings.iter().find(|(_, setting)| {
            let mut same = fitted.buffer;
            setting(&mut same);
            same == fitted.buffer
        });
        let changed = |setting: &dyn Fn(&mut drive::firmware::BufferRules)| {
            let mut same = published.buffer;
            setting(&mut same);
            same != published.buffer
        };
        if let Some((value, setting)) = set
            && changed(setting)
        {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    let turns = fitted.geometry.turns();
    if !turns.is_empty() {
        text.push_str("# [group, run, start, step], angles in revolutions\nturns = [\n");
        for turn in turns {
            let (start, step) = (digits(turn.start, 7), digits(turn.step, 9));
            // A value that rounds to zero is omitted.
            if start.contains(NOT_ZERO) || step.contains(NOT_ZERO) {
                let _ = writeln!(text, "  [{}, {}, {start}, {step}],", turn.group, turn.run);
            }
        }
        text.push_str("]\n");
    }
    text
}

/// An angle in revolutions from -1/2 to 1/2, with this many decimals. Seven are a nanosecond of the
/// fastest spindle. A step, which adds up over thousands of tracks, has nine.
fn digits(angle: Angle, precision: usize) -> String {
    let revolutions = angle.revolutions();
    let signed = if revolutions > 0.5 {
        revolutions - 1.0
    } else {
        revolutions
    };
    format!("{signed:.precision$}")
}

/// The digits of a number that is not zero.
const NOT_ZERO: [char; 9] = ['1', '2', '3', '4', '5', '6', '7', '8', '9'];

/// Whether two fits of the same drive have the same constants.
pub fn same_constants(one: &Profile, other: &Profile) -> bool {
    table(&one.published(), one, "") == table(&one.published(), other, "")
}

/// Replaces the `[fitted]` table, which is always the last of a profile.
pub fn replaced(profile: &str, table: &str) -> String {
    let published = match profile.find("\n[fitted]") {
        Some(at) => &profile[..=at],
        None => profile,
    };
    format!("{}\n\n{table}", published.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_replaces_the_one_before_and_nothing_else() {
        let bare = "name = \"x\"\n\n[layout]\nkind = \"zoned\"\n";
        let once = replaced(bare, "[fitted]\norigin = \"a\"\n");
        assert_eq!(once, format!("{bare}\n[fitted]\norigin = \"a\"\n"));
        assert_eq!(
            replaced(&once, "[fitted]\norigin = \"b\"\n"),
            once.replace("\"a\"", "\"b\"")
        );
    }
}
