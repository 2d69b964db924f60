//! Publishes figures: papers' claims measured again, experiments, benches, validation of drive models, fits.
//!
//! Every result is a typed table that serialises; the command line prints and draws it.

pub mod claims;
pub mod experiment;
pub mod fit;
pub mod plot;
pub mod validate;
