//! `headtime serve` over other NBD servers: ours, QEMU's, killed ones, one that lies, and
//! one that has a cache, as we have.

mod bytes;
mod levels;
mod lost;
mod power;
pub mod process;
mod proxy;
mod tls;
