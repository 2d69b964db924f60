//! Plans, executed on a drive that is exactly as believed.
