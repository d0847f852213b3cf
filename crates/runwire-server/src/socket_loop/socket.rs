//! A socket that a loop owns.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Interest, Registry, Token};
use socket2::SockRef;

use super::reader::LoopReader;
use super::writer::LoopWriter;
use crate::listener::ConnectionPermit;

/// Identifies a socket of a loop: its place, and a number that tells it from earlier ones there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketId {
    pub(super) key: usize,
    pub(super) generation: u32,
}

impl SocketId {
    /// Packs it into the ticket of an append. There are fewer sockets than 2^32.
    pub(super) fn to_ticket(self) -> u64 {
        (u64::from(self.generation) << 32) | (self.key as u64 & u64::from(u32::MAX))
    }

    pub(super) fn of_ticket(ticket: u64) -> Self {
        let key = usize::try_from(ticket & u64::from(u32::MAX)).unwrap_or(usize::MAX);
        Self { key, generation: (ticket >> 32) as u32 }
    }
}

/// A socket, whose it is, and until when it may stay.
pub(super) struct LoopSocket {
    pub(super) stream: mio::net::TcpStream,
    pub(super) generation: u32,
    /// The tenant that it belongs to.
    pub(super) owner: Arc<str>,
    /// When it is closed.
    pub(super) deadline: Option<Instant>,
    pub(super) permit: ConnectionPermit,
    pub(super) role: Role,
}

/// What a socket does. Boxed where it is large: most sockets are idle readers.
pub(super) enum Role {
    Writer(Box<LoopWriter>),
    Reader(LoopReader),
}

impl LoopSocket {
    /// Registers with the poller of a loop; the first event comes at once.
    pub(super) fn register(&mut self, registry: &Registry, key: usize) -> io::Result<()> {
        registry.register(&mut self.stream, Token(key), Interest::READABLE | Interest::WRITABLE)
    }

    /// Takes the socket out of the loop.
    pub(super) fn release(mut self, registry: &Registry) -> io::Result<(TcpStream, ConnectionPermit, Role)> {
        registry.deregister(&mut self.stream)?;
        Ok((self.stream.into(), self.permit, self.role))
    }

    /// Resets the connection: the client learns at once that nothing more comes, and the kernel drops what is unsent.
    pub(super) fn reset(self) {
        // If this fails the connection is gone.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }

    /// Returns true if the client of a stream has disconnected. One that sends more bytes counts as disconnected: none are
    /// expected.
    pub(super) fn has_left(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
            Ok(0..) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_names_its_socket() {
        for (key, generation) in [(0, 0), (1, u32::MAX), (u32::MAX as usize, 7)] {
            let id = SocketId { key, generation };
            assert_eq!(SocketId::of_ticket(id.to_ticket()), id);
        }
    }

    #[test]
    fn an_idle_reader_is_small() {
        assert!(size_of::<LoopSocket>() <= 160, "{} bytes for each idle reader", size_of::<LoopSocket>());
    }
}
