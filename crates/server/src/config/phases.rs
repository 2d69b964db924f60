//! `phases` of a drive: whether reads and writes take turns.

use block::Duration;
use document::quantity::Unit;
use document::{DocumentError, Section};
use scheduler::ordering::Phases;

/// The keys of the table.
const KEYS: [&str; 2] = ["read_ms", "write_ms"];

/// The turns of a drive; without the table reads and writes are mixed. Without a key a turn is that of ABISS.
pub(super) fn phases(drive: &Section<'_>) -> Result<Phases, DocumentError> {
    let Some(table) = drive.section("phases", &KEYS)? else {
        return Ok(Phases::Mixed);
    };
    let turn = |key| {
        let expected = format!("a whole number from 1 to {LONGEST_MS}");
        let value = table.get(key);
        let millis =
            value.map(|value| value.whole_quantity(Unit::Milliseconds, 1..=LONGEST_MS, &expected));
        let millis = millis.transpose()?;
        Ok::<_, DocumentError>(millis.map(Duration::from_millis))
    };
    let (read, write) = (turn("read_ms")?, turn("write_ms")?);
    Ok(match Phases::ABISS {
        Phases::Alternate {
            read: reads,
            write: writes,
        } => Phases::Alternate {
            read: read.unwrap_or(reads),
            write: write.unwrap_or(writes),
        },
        Phases::Mixed => Phases::Mixed,
    })
}

/// The longest turn: a minute, after which clients of the other direction give up. A choice.
const LONGEST_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::super::{Config, Places};
    use super::*;

    /// A drive with this line.
    fn parse(line: &str) -> Result<Phases, String> {
        let text = format!(
            "[[drive]]\nname = \"d\"\nback_end = {{ kind = \"memory\", size = \"1 GiB\" }}\n{line}\n\
             volume = [{{ name = \"v\" }}]\nexport = [{{ name = \"e\", volume = \"v\" }}]\n"
        );
        let places = Places {
            data: "/data".into(),
            runtime: "/run".into(),
            base: "/etc".into(),
        };
        let config = Config::parse("c.toml", &text, &places);
        let config = config.map_err(|error| error.to_string())?;
        Ok(config.drives[0].phases)
    }

    #[test]
    fn reads_and_writes_are_mixed_or_take_turns_of_abiss_or_of_the_keys() {
        assert_eq!(parse(""), Ok(Phases::Mixed));
        assert_eq!(parse("phases = {}"), Ok(Phases::ABISS));
        let turns = |read, write| Phases::Alternate {
            read: Duration::from_millis(read),
            write: Duration::from_millis(write),
        };
        let both = parse("phases = { read_ms = 500, write_ms = 100 }");
        assert_eq!(both, Ok(turns(500, 100)));
        assert_eq!(
            parse("phases = { read_ms = \"1 s\" }"),
            Ok(turns(1_000, 30))
        );
        assert_eq!(
            parse("phases = { write_ms = 60000 }"),
            Ok(turns(2_000, 60_000))
        );
    }

    #[test]
    fn a_turn_has_a_length() {
        for wrong in [
            "phases = { read_ms = 0 }",
            "phases = { write_ms = 60001 }",
            "phases = { read_ms = \"2 MB\" }",
            "phases = \"mixed\"",
        ] {
            let error = parse(wrong).expect_err(wrong);
            assert!(error.contains("expected"), "{wrong}: {error}");
        }
    }
}
