//! NBD over TLS, from the socket to the back end's memory: our client, others' clients, and those
//! that mean harm.

mod authority;
mod client;
mod files;
mod named;
mod others;
mod refused;
mod scene;
mod served;
