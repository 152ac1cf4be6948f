//! What of a stream was seen at the last look.

use super::super::stream::{Carrier, Stream};
use super::report::Amount;
use crate::Context;
use core::time::Duration;
use linerate_transport::ConnInfo;

/// What of a stream was seen at the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// Whether the cookie is sent.
    pub is_greeted: bool,
    pub before: Amount,
    pub max_congestion_window: Option<u32>,
    pub max_send_window: Option<u32>,
    rtt_sum: Duration,
    rtt_count: u32,
    rtt_min: Option<Duration>,
    rtt_max: Option<Duration>,
}

impl Marks {
    /// What was counted until now does not count.
    pub fn restart(&mut self, stream: &Stream) {
        *self = Marks { is_greeted: true, before: counted(stream), ..Marks::default() };
    }

    /// Notes extremes; returns the measurements of the transport.
    pub fn look(&mut self, ctx: &Context<'_>, stream: &Stream) -> Option<ConnInfo> {
        let Carrier::Tcp(conn) = stream.carrier else { return None };
        let info = ctx.net.info(conn)?;
        self.max_congestion_window = self.max_congestion_window.max(Some(info.congestion_window));
        self.max_send_window = self.max_send_window.max(Some(info.send_window));
        if let Some(rtt) = info.rtt {
            self.rtt_sum += rtt;
            self.rtt_count += 1;
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
            self.rtt_max = self.rtt_max.max(Some(rtt));
        }
        Some(info)
    }

    /// Smallest, mean and largest round-trip time seen.
    pub fn rtt(&self) -> Option<[Duration; 3]> {
        Some([self.rtt_min?, self.rtt_sum.checked_div(self.rtt_count)?, self.rtt_max?])
    }
}

/// What a stream has counted, without the omit time.
pub fn counted(stream: &Stream) -> Amount {
    let (packets, omitted) = match stream.sends {
        true => (stream.datagrams, stream.omitted_datagrams),
        false => (stream.reception.packets, stream.omitted.packets),
    };
    let is_tcp = matches!(stream.carrier, Carrier::Tcp(_));
    Amount {
        bytes: stream.counted_bytes(),
        retransmits: (stream.sends && is_tcp)
            .then(|| stream.retransmits.saturating_sub(stream.omitted_retransmits)),
        packets: packets.saturating_sub(omitted),
        lost: stream.reception.errors.saturating_sub(stream.omitted.errors),
        out_of_order: stream.reception.out_of_order.saturating_sub(stream.omitted.out_of_order),
        jitter_s: stream.reception.jitter_s,
    }
}
