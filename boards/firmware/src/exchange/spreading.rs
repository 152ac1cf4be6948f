//! Which core a frame belongs to.

use crate::settings::Settings;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_nic::offload::steer::{INDIRECTION_LEN, Steer, Tuple};
use linerate_wire::toeplitz::KEY_LEN;

/// The rule by which frames are spread over the seats: it looks at nothing but the frame, so that a flow stays where it is.
///
/// | frame | seat |
/// |---|---|
/// | to a group; not TCP or UDP; a fragment | 0, which owns what belongs to the link |
/// | to a port of FTP, the one below it, or one that iperf3 has on all of the machine | 0 |
/// | to the port that iperf3 has on one core | that core's |
/// | to a port of HTTP | by the Toeplitz hash of addresses and ports, and a table of 128 |
/// | to another port | the port modulo the number of seats: stacks choose the ports that they open by the same rule |
pub struct Spreading {
    seats: u16,
    steer: Box<Steer>,
    fixed: Vec<(u16, u16)>,
    hashed: &'static [u16],
}

impl Spreading {
    /// The rule for so many seats, with a secret key.
    pub fn new(settings: &Settings, seats: u16, key: [u8; KEY_LEN]) -> Spreading {
        let table: Vec<u16> = (0..INDIRECTION_LEN as u16).map(|at| at % seats.max(1)).collect();
        let steer = Steer::new(key);
        let steer = steer.clone().with_tables(&table, &[]).unwrap_or(steer);
        let of_all = settings.ftp.iter().flat_map(|port| [*port, port.saturating_sub(1)]);
        let of_all = of_all.chain(settings.iperf3.iter().copied()).map(|port| (port, 0));
        let of_one = (0..seats).filter_map(|seat| Some((iperf3_port(settings, seat)?, seat)));
        let fixed = of_all.chain(of_one).collect();
        Spreading { seats, steer: Box::new(steer), fixed, hashed: settings.http }
    }

    /// The seat of a frame, of which the first bytes are enough as long as they hold its headers.
    pub fn seat_of(&self, frame: &[u8]) -> u16 {
        let is_group = frame.first().is_some_and(|first| first & 1 != 0);
        let Some(tuple) = Tuple::of_frame(frame).filter(|_| !is_group) else { return 0 };
        let Some([_, to]) = tuple.ports else { return 0 };
        if let Some((_, seat)) = self.fixed.iter().find(|(port, _)| *port == to) {
            return *seat;
        }
        if self.hashed.contains(&to) {
            return self.steer.steer_tuple(&tuple).channel.into();
        }
        to % self.seats.max(1)
    }
}

/// The port that iperf3 has on this seat alone.
pub(crate) fn iperf3_port(settings: &Settings, seat: u16) -> Option<u16> {
    let first = settings.iperf3_by_core?;
    first.checked_add(seat)
}
