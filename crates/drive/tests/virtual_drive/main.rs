//! The simulated drive: against an oracle, against formulas, and its promises under random loads.

mod buffered_reads;
mod buffered_writes;
mod catalog;
mod faults;
mod mechanics;
mod oracle;
mod outside;
mod play;
mod power;
mod properties;
mod queue;
mod small;
mod switched;
mod two_arms;
mod virtual_io;
mod write_rules;
