//! The profiler on drives whose truth is known: each stage by itself, then the whole procedure.

mod arm;
mod bad_beginning;
mod behind_load;
mod belief;
mod compact;
mod densities;
mod firmware;
mod harness;
mod hostile;
mod map;
mod place;
mod procedure;
mod random;
mod reads_alone;
mod reposition;
mod spindle;
mod zone_ends;
