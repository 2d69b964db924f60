//! The clients of a described system, as text.

use std::fmt::Write as _;

use lab::comparison::load::PlacedLoad;
use lab::comparison::streams::StreamsFigures;
use simulator::workload::class;

use crate::output::grouped;

/// The loads with their classes and blocks.
pub fn heading(loads: &[PlacedLoad]) -> String {
    let mut text = String::new();
    for (place, placed) in loads.iter().enumerate() {
        let label = if place == 0 { "load" } else { "" };
        let (name, class) = (&placed.name, class::name(placed.class));
        let end = placed.first + placed.blocks;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {label:7} {name}: {}, {class}, blocks {}..{end}",
            placed.source.name(),
            placed.first
        );
    }
    text
}

/// What became of players and recorders.
pub fn streams(policy: &str, figures: &StreamsFigures) -> String {
    let refused = figures.refused.as_ref();
    let refused = refused.map_or_else(String::new, |why| format!("; {why}"));
    format!(
        "  streams under {policy}: {} of {} granted, rounds of {:.0} ms, {:.1} % of head time; {} accesses, {} waited \
         ({:.1} ms at most), {} batches late, {} lapsed{refused}\n\n",
        figures.granted,
        figures.asked,
        figures.round_ms,
        figures.head_percent,
        grouped(figures.accesses),
        figures.waited,
        figures.longest_wait_ms,
        figures.late,
        figures.lapsed
    )
}
