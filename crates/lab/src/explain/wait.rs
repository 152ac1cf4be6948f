//! What a sender waited for between two segments: that which ended the wait.

use serde::Serialize;

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// An acknowledgement moved the receiver's window, which had been full.
    Window,
    /// A larger window for the same bytes: the receiver's application had read.
    WindowUpdate,
    /// An acknowledgement, though the receiver's window had room: the congestion window or the send buffer was full.
    Acknowledgement,
    /// The acknowledgement of all that was under way, after which a segment came that is not full (RFC 896).
    Nagle,
    /// An acknowledgement or a timer, upon which something was sent again.
    Recovery,
    /// Nothing that was seen, with all acknowledged: there was nothing to send. Or a request of the other end.
    Application,
    /// Nothing that was seen, with data under way: the sender's own rhythm.
    Rhythm,
}

impl Wait {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// All of them, in the order of their numbers.
    pub const ALL: [Wait; Wait::COUNT] = [
        Wait::Window,
        Wait::WindowUpdate,
        Wait::Acknowledgement,
        Wait::Nagle,
        Wait::Recovery,
        Wait::Application,
        Wait::Rhythm,
    ];

    /// In words, behind "waits for".
    pub fn name(self) -> &'static str {
        match self {
            Wait::Window => "an acknowledgement that moves the full window",
            Wait::WindowUpdate => "the receiver's application to open the window",
            Wait::Acknowledgement => "an acknowledgement, with room in the window",
            Wait::Nagle => "the acknowledgement of everything, to send less than a segment",
            Wait::Recovery => "the moment to send again",
            Wait::Application => "its own application",
            Wait::Rhythm => "its own rhythm",
        }
    }
}
