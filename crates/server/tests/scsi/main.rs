//! SCSI commands, switches and their restoration against a target of our own (see `machine`), and the
//! profiler over it.

mod at_once;
mod commands;
mod machine;
mod profiling;
mod switches;
