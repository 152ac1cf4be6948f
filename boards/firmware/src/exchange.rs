//! Several cores on one interface: what they hand to each other.
//!
//! ```text
//!               interface
//!                   │
//!              ┌────▼────┐   frames, copied    ┌─────────┐
//!              │ seat 0  │────────────────────▶│ seat 1  │   a core each: stack, servers, memory of its own
//!              │         │◀────────────────────│ ... 3   │
//!              └─────────┘   frames to send    └─────────┘
//!                    ◀──────── letters ────────▶
//! ```
//!
//! Seat 0 has the interface, and another may have a queue of it as well, for what hardware steers there and for what it sends. Seat 0
//! looks at each frame ([`Spreading`]) and copies those of others into parcels; what they send comes
//! back the same way. Between two cores goes a fixed number of parcels to and fro (`lane`): where none is empty, a frame that
//! came is dropped and counted, and a packet that is to leave waits in its stack. Nobody ever waits for another core inside of a turn.
//! Whoever puts something in rings, if the other core sleeps or is about to.
//!
//! What stacks tell each other ([`linerate_stack::Letter`]), what servers tell each other of files, and the counts for the report are
//! `Post`.

mod lane;
mod mailbox;
mod spread;
mod spreading;
#[cfg(test)]
mod tests;

use crate::capture::Capture;
use crate::disk::RamDisk;
use crate::report::Told;
use crate::settings::Settings;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use critical_section::Mutex;
use lane::Lane;
use linerate_nic::LinkState;
use linerate_serve::Change;
use linerate_stack::{Letter, Message, Seat};
use linerate_wire::toeplitz::KEY_LEN;

pub use mailbox::Mailbox;
pub use spread::NoQueue;
pub(crate) use spread::{Spread, Watched};
pub use spreading::Spreading;
pub(crate) use spreading::iperf3_port;

/// Frames on their way to a core: what a seat without a queue may be sent at once.
pub const INBOUND: usize = 512;
/// Frames on their way from a core.
const OUTBOUND: usize = 256;
/// Packets in letters that wait for a core.
const MOST_PACKETS: usize = 256;

/// There may be several cores. Without the feature `cores` nothing has this type, so that what is kept together with it is left
/// out of the image.
#[cfg(feature = "cores")]
#[derive(Clone, Copy)]
pub(crate) struct Several;
#[cfg(not(feature = "cores"))]
#[derive(Clone, Copy)]
pub(crate) enum Several {}

/// Whether there may be.
pub(crate) const fn several() -> Option<Several> {
    #[cfg(feature = "cores")]
    return Some(Several);
    #[cfg(not(feature = "cores"))]
    None
}

/// What one seat tells another.
pub(crate) enum Post {
    /// From stack to stack.
    Letter(Message),
    /// A file has changed.
    Changed(Change),
    /// This seat wants to know what there is to report.
    Ask(u16),
    /// The answer.
    Told(Box<Told>),
}

/// What there is of each seat.
struct Place {
    /// Frames to it and from it; seat 0 has none.
    lanes: Option<(Lane, Lane)>,
    post: Mailbox<Post>,
    /// It sleeps, or is about to: whoever has something for it rings.
    sleeps: AtomicBool,
    /// It has packets that found no empty parcel.
    wants_room: AtomicBool,
    drops: Drops,
}

/// What was thrown away on the way to a seat, one reason each.
#[derive(Default)]
struct Drops {
    /// No parcel was empty.
    full: AtomicUsize,
    /// The seat had no buffer.
    no_buffer: AtomicUsize,
    /// Longer than a parcel.
    too_long: AtomicUsize,
}

/// What all cores share; made once, and there for good.
pub struct Exchange {
    places: Vec<Place>,
    spreading: Spreading,
    ring: fn(usize),
    is_link_up: AtomicBool,
    /// Somebody looks at the frames that pass.
    is_watched: AtomicBool,
    /// The secret of all stacks: a cookie of one is good at the others.
    pub(crate) seed: [u8; 32],
    pub(crate) ram: Arc<Mutex<RefCell<RamDisk>>>,
    pub(crate) capture: Arc<Mutex<RefCell<Capture>>>,
}

impl Exchange {
    /// For so many seats, of an image that was built then; `ring` wakes the core of a seat, and `random` is not to be guessed.
    pub fn new(
        settings: &Settings,
        built_ns: i64,
        seats: u16,
        ring: fn(usize),
        random: &mut dyn FnMut() -> u64,
    ) -> Exchange {
        let mut seed = [0; 32];
        seed.as_chunks_mut::<8>().0.iter_mut().for_each(|piece| *piece = random().to_le_bytes());
        let mut key = [0; KEY_LEN];
        key.as_chunks_mut::<8>().0.iter_mut().for_each(|piece| *piece = random().to_le_bytes());
        let place = |seat: u16| Place {
            lanes: (seat > 0).then(|| (Lane::new(INBOUND), Lane::new(OUTBOUND))),
            post: Mailbox::with_room(MOST_PACKETS),
            sleeps: AtomicBool::new(false),
            wants_room: AtomicBool::new(false),
            drops: Drops::default(),
        };
        let capture = Capture::with_bytes(settings.capture, settings.name, settings.mac);
        Exchange {
            places: (0..seats).map(place).collect(),
            spreading: Spreading::new(settings, seats, key),
            ring,
            is_link_up: AtomicBool::new(true),
            is_watched: AtomicBool::new(false),
            seed,
            ram: Arc::new(Mutex::new(RefCell::new(RamDisk::new(settings.ram_disk, built_ns)))),
            capture: Arc::new(Mutex::new(RefCell::new(capture))),
        }
    }

    /// How many seats there are.
    pub fn seats(&self) -> u16 {
        self.places.len() as u16
    }

    fn place(&self, seat: u16) -> Option<&Place> {
        self.places.get(usize::from(seat))
    }

    /// Wakes a core, if it sleeps: once for everything that it finds then.
    fn wake(&self, seat: u16) {
        if self.place(seat).is_some_and(|place| place.sleeps.swap(false, Ordering::SeqCst)) {
            (self.ring)(seat.into());
        }
    }

    /// From here on a core wants to be woken. What it looks at behind this, nobody else puts in unnoticed.
    fn falls_asleep(&self, seat: u16, sleeps: bool) {
        if let Some(place) = self.place(seat) {
            place.sleeps.store(sleeps, Ordering::SeqCst);
        }
    }

    fn has_post(&self, seat: u16) -> bool {
        self.place(seat).is_some_and(|place| !place.post.is_empty())
    }

    pub(crate) fn poll_post(&self, seat: u16) -> Option<Post> {
        self.place(seat)?.post.pop()
    }

    /// Tells one seat. Only packets may be refused, and are then counted by whoever sent them.
    pub(crate) fn tell(&self, seat: u16, post: Post) -> bool {
        let Some(place) = self.place(seat) else { return false };
        let is_packet = matches!(&post, Post::Letter(message) if message.is_packet());
        // What is no packet is little, bounded by tables, and told once.
        let most = if is_packet { MOST_PACKETS } else { usize::MAX };
        let has_room = place.post.push_within(most, post).is_ok();
        self.wake(seat);
        has_room
    }

    /// Tells all others.
    pub(crate) fn tell_others(&self, from: u16, post: impl Fn() -> Post) {
        (0..self.seats()).filter(|seat| *seat != from).for_each(|seat| {
            // None of these is a packet.
            let _told = self.tell(seat, post());
        });
    }

    /// Carries a letter to whom it is addressed; returns how many of them had no room for it.
    pub(crate) fn carry(&self, sender: Seat, letter: Letter) -> usize {
        let seats = letter.to.seats(sender);
        seats.filter(|seat| !self.tell(*seat, Post::Letter(letter.message.clone()))).count()
    }

    fn set_link(&self, link: LinkState) {
        if self.is_link_up.swap(link.is_up, Ordering::SeqCst) != link.is_up {
            (1..self.seats()).for_each(|seat| self.wake(seat));
        }
    }

    fn link(&self) -> LinkState {
        if self.is_link_up.load(Ordering::SeqCst) { LinkState::UP } else { LinkState::DOWN }
    }

    /// Frames that were thrown away on their way to a seat, with the reason's name.
    pub(crate) fn drops(&self, seat: u16) -> [(&'static str, u64); 3] {
        let Some(place) = self.place(seat) else { return [("", 0); 3] };
        let value = |count: &AtomicUsize| count.load(Ordering::Relaxed) as u64;
        let Drops { full, no_buffer, too_long } = &place.drops;
        [
            ("drop_mailbox_full", value(full)),
            ("drop_mailbox_no_buffer", value(no_buffer)),
            ("drop_mailbox_too_long", value(too_long)),
        ]
    }
}
