//! The shipped drives: their maps against published ones and against naive ones, and the loader.

mod bad_profiles;
mod golden;
mod oracle;
mod random_layouts;
mod raw_map;
mod remapped;
mod shared;
mod shares;
mod shipped;
mod small_zones;
