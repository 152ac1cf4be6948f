//! Why a test did not come to its end.

use core::fmt;
use linerate_transport::{CloseReason, ConnectError, ListenError};

/// Why a test did not come to its end, and who is at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientError {
    /// This host cannot open a connection.
    Open(ConnectError),
    /// This host cannot open a UDP socket.
    OpenUdp(ListenError),
    /// The server cannot be reached.
    Connect(CloseReason),
    /// The server did not answer the connection in time.
    ConnectTimeout,
    /// A stream could not be opened.
    Stream(CloseReason),
    /// The server answered no datagram of ours.
    NoDatagram,
    /// The server runs another test, or takes no more.
    Busy,
    /// The server ended the connection without a word. One that is busy says so and closes at once, and what it said is lost
    /// when our cookie meets the closed connection and a reset comes back.
    TurnedAway(CloseReason),
    /// The server stops.
    ServerTerminated,
    /// The server refuses the test, or fails: `i_errno` of the original, and its `errno`.
    Server {
        /// What is wrong, by the original's numbers.
        code: u32,
        /// The error of the server's system; 0 for none.
        errno: u32,
    },
    /// The server closed the control connection, or it was lost.
    Control(CloseReason),
    /// A stream ended before the test did.
    StreamLost(CloseReason),
    /// The server said what does not fit.
    Protocol {
        /// The state byte.
        state: i8,
    },
    /// The server's results cannot be read.
    Results,
    /// The server was silent where it should have gone on.
    Silent,
    /// The user ended it.
    Interrupted,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Open(why) => write!(f, "cannot open a connection: {why}"),
            ClientError::OpenUdp(why) => write!(f, "cannot open a UDP socket: {why}"),
            ClientError::Connect(why) => write!(f, "unable to connect to the server: connection {why}"),
            ClientError::ConnectTimeout => {
                f.write_str("unable to connect to the server: it did not answer in time")
            }
            ClientError::Stream(why) => write!(f, "unable to open a stream: connection {why}"),
            ClientError::NoDatagram => f.write_str(
                "unable to open a UDP stream: the server answers no datagram (is its UDP port reachable?)",
            ),
            ClientError::Busy => f.write_str("the server is busy running a test; try again later"),
            ClientError::TurnedAway(why) => write!(
                f,
                "the connection to the server was {why} before the server said anything: it is busy running a test, or no \
                 iperf3 server"
            ),
            ClientError::ServerTerminated => f.write_str("the server has terminated"),
            ClientError::Server { code, errno } => {
                match meaning(*code) {
                    Some(text) => write!(f, "the server refuses: {text} (its error {code})")?,
                    None => write!(f, "the server refuses with its error {code}")?,
                }
                if *errno != 0 { write!(f, ", system error {errno}") } else { Ok(()) }
            }
            ClientError::Control(why) => write!(f, "the control connection to the server was {why}"),
            ClientError::StreamLost(why) => write!(f, "a stream to the server was {why} during the test"),
            ClientError::Protocol { state } => {
                write!(f, "the server sent the state {state}, which does not fit: is it an iperf3 server?")
            }
            ClientError::Results => f.write_str("the server's results cannot be read"),
            ClientError::Silent => f.write_str("the server went silent"),
            ClientError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl core::error::Error for ClientError {}

/// What the numbers of the original mean, as far as a server sends them.
fn meaning(code: u32) -> Option<&'static str> {
    Some(match code {
        5 => "the test is too long",
        6 => "too many streams",
        7 | 20 => "the block size is out of range",
        8 => "the socket buffer is too large",
        10 => "the segment size is out of range",
        12 => "the omit time is too long",
        27 => "the rate is above the server's limit",
        106 => "it did not get the cookie",
        114 => "it cannot read the parameters",
        117 => "it cannot read the results",
        122 => "it cannot set TCP_NODELAY",
        123 => "it cannot set the segment size",
        124 | 141 => "it cannot set the socket buffer",
        125 => "it cannot set the type of service",
        134 => "it lacks that congestion control",
        140 => "it cannot pace at that rate",
        142 => "it wants a user and a password, which this client has no means to send",
        _ => return None,
    })
}
