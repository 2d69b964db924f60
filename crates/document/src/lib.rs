//! TOML files, read key by key: every error has the file, the line, the key, and what was expected.
//!
//! ```text
//!   Document --root()--> Section --get(key)--> Field --section()--> Section ...
//!   the text             one table             one value
//! ```
//!
//! A program reads a table in three steps: [`Section::only`] refuses unknown keys, [`Section::need`] and
//! [`Section::get`] find values, and the methods of [`Field`] check them. [`Lines`] outlives the text: checks
//! that come later still report a line.

mod error;
mod lines;
mod location;
pub mod quantity;
mod section;
mod similar;

pub use error::DocumentError;
pub use lines::Lines;
pub use section::{Document, Field, Section};
pub use similar::most_similar;
