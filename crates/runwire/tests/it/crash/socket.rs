//! A WebSocket client.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message, WebSocket};

use crate::command::TIMEOUT;

pub(crate) struct Socket(WebSocket<TcpStream>);

impl Socket {
    pub(crate) fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        let handshake = tungstenite::client(format!("ws://{server}/v1/ws"), stream);
        let (mut socket, _) = handshake.map_err(|error| io::Error::other(error.to_string()))?;
        socket.get_mut().set_read_timeout(Some(Duration::from_millis(25)))?;
        Ok(Self(socket))
    }

    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.0.send(Message::Text(text.into())).map_err(io::Error::other)
    }

    /// Waits until something has come, and leaves it where it is: buffers grow only for those who read.
    pub(crate) fn wait_unread(&self) {
        let begun = Instant::now();
        while !self.0.get_ref().peek(&mut [0]).is_ok_and(|count| count > 0) {
            assert!(begun.elapsed() < TIMEOUT, "nothing comes");
        }
    }

    /// Waits until the server closes the socket, and returns the close code; `None` if the connection just broke.
    pub(crate) fn closed(&mut self) -> Option<CloseCode> {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < TIMEOUT, "the socket stays open");
            match self.0.read() {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
                Ok(_) => {}
                Err(Error::Io(error)) if is_quiet(&error) => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits a moment for a message. A socket that is closed is an error.
    pub(crate) fn receive(&mut self) -> io::Result<Option<String>> {
        match self.0.read() {
            Ok(Message::Text(text)) => Ok(Some(text.to_string())),
            Ok(Message::Close(_)) => Err(ErrorKind::ConnectionAborted.into()),
            Ok(_) => Ok(None),
            Err(Error::Io(error)) if is_quiet(&error) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

fn is_quiet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Returns the `op` of a server message.
pub(crate) fn op(text: &str) -> String {
    let message: Value = serde_json::from_str(text).unwrap();
    message["op"].as_str().unwrap().to_owned()
}
