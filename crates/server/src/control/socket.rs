//! The unix socket of `headtime ctl`: JSON lines, each client on its own.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::desk::{BREATH, Desk};
use super::protocol::{self, Answer, LONGEST_LINE, parse};

/// Serves until the plane ends, then finishes the answers that are under way.
pub(super) async fn serve(listener: UnixListener, mut desk: Desk) {
    let places = Arc::new(Semaphore::new(desk.bounds.connections));
    let mut clients = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = clients.join_next() => continue,
            _ = desk.ended.changed() => break,
        };
        let mut stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the control socket accepts nobody for a moment");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                let desk = desk.clone();
                clients.spawn(async move {
                    converse(stream, desk).await;
                    drop(place);
                });
            }
            Err(_) => {
                let most = desk.bounds.connections;
                let problem = format!("{most} clients are connected: expected fewer");
                // A client that does not even take this line is not waited for.
                let _ = stream.try_write(Answer::refusal(problem).line().as_bytes());
                let _ = stream.shutdown().await;
            }
        }
    }
    drop(listener);
    while clients.join_next().await.is_some() {}
}

/// Answers one client until it disconnects, is too slow, breaks the protocol, or the plane ends. A
/// request that was read is answered first.
async fn converse(stream: UnixStream, mut desk: Desk) {
    // Who cannot be asked who he is has no streams.
    let Ok(peer) = stream.peer_cred() else {
        return;
    };
    let (lease, mut told) = desk.lease(peer.uid());
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        // The first byte may be long in coming, the rest of its line may not. Who has streams may be
        // silent for as long as he likes.
        let told = tokio::select! {
            bytes = reader.fill_buf() => match bytes {
                Ok(bytes) if !bytes.is_empty() => None,
                _ => return,
            },
            Some(told) = told.recv() => Some(told),
            () = tokio::time::sleep(desk.bounds.idle), if lease.is_empty() => return,
            _ = desk.ended.changed() => return,
        };
        if let Some(told) = told {
            let text = protocol::told(&told);
            let written = timeout(desk.bounds.patience, writer.write_all(text.as_bytes())).await;
            match written {
                Ok(Ok(())) => continue,
                _ => return,
            }
        }
        line.clear();
        let most = LONGEST_LINE as u64 + 1;
        let mut bounded = (&mut reader).take(most);
        let whole = bounded.read_until(b'\n', &mut line);
        let (answer, goes_on) = match timeout(desk.bounds.patience, whole).await {
            Err(_) => (
                Answer::refusal("half a line: expected the rest of it"),
                false,
            ),
            Ok(Err(_)) => return,
            Ok(Ok(_)) if line.last() == Some(&b'\n') => match parse(&line[..line.len() - 1]) {
                Ok(ask) => {
                    let lease = Some(Arc::clone(&lease));
                    (desk.answer_with(lease, ask).await, true)
                }
                Err(problem) => (Answer::refusal(problem), true),
            },
            Ok(Ok(_)) if line.len() > LONGEST_LINE => (
                Answer::refusal(format!("a line of more than {LONGEST_LINE} bytes")),
                false,
            ),
            Ok(Ok(_)) => (
                Answer::refusal("no line end: expected one after each request"),
                false,
            ),
        };
        let text = answer.line();
        let written = timeout(desk.bounds.patience, writer.write_all(text.as_bytes())).await;
        if !matches!(written, Ok(Ok(()))) || !goes_on {
            return;
        }
    }
}
