//! Volumes as files, against the kernel that runs the tests.
//!
//! They need root and `/dev/fuse`, and some a loop device or a tool. Where that is missing a test
//! is skipped, which is said and counted; in CI (`CI=true`) it fails.

mod block_device;
mod contents;
mod medium;
mod mounting;
mod refusals;
mod scene;
