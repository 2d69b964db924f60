//! Streams of the whole program: over files of a FUSE folder, and over file systems on them.

mod files;
mod places;
mod planned;
mod refusals;
mod reloads;
mod service;
