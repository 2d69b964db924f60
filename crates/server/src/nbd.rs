//! The NBD protocol, without sockets: bytes in, bytes out.
