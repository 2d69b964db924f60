//! The file of the control socket.

use server::config::SocketRights;
use server::control::listen;

#[test]
fn the_socket_is_the_users_own_and_a_left_one_is_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/control.sock");
    let first = listen(&path, SocketRights::default()).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let error = listen(&path, SocketRights::default()).unwrap_err();
    assert_eq!(
        error.kind(),
        std::io::ErrorKind::AddrInUse,
        "somebody listens there"
    );
    drop(first);
    listen(&path, SocketRights::default()).unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    assert!(listen(&file, SocketRights::default()).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}
