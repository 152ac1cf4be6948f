//! What the stack counted: traffic per layer, and one counter for each reason to drop something.

use crate::tcp::{DropReason, Tally};
use linerate_wire::figures::{Figures as _, Kind};

macro_rules! counters {
    ($($fields:tt)*) => {
        linerate_wire::figures! {
            /// Counters since the start of the stack. Names that begin with `drop_` count what was thrown away, one
            /// reason each; `[drop]` marks others that count what was given up, `[bytes]` those that count bytes.
            pub struct Counters {
                $($fields)*
            }
        }
    };
}

counters! {
    /// Frames taken from the device.
    frames_in,
    /// Bytes of the frames taken from the device.
    bytes_in [bytes],
    /// Frames given to the device; a super-segment counts once.
    frames_out,
    /// Bytes of the frames given to the device.
    bytes_out [bytes],
    /// Packets that the device reported as sent.
    completions,
    /// The device, or the offload layer in its place, found a checksum wrong.
    drop_checksum_device,
    /// No Ethernet header.
    drop_ethernet_malformed,
    /// Addressed to another station, or to a group that we are not in.
    drop_ethernet_not_for_us,
    /// The source address is a group, or our own.
    drop_ethernet_source,
    /// Of another VLAN.
    drop_vlan,
    /// Neither ARP nor IPv4 nor IPv6.
    drop_ethertype,
    /// How often the link went up or down.
    link_changes,
    /// ARP packets received.
    arp_in,
    /// ARP packets sent.
    arp_out,
    /// ARP packets that cannot be, by format or addresses.
    drop_arp_malformed,
    /// ARP packets that claim one of our addresses.
    arp_conflicts,
    /// IPv4 packets received.
    ipv4_in,
    /// IPv4 packets sent (fragments each).
    ipv4_out,
    /// IPv4 headers that cannot be read.
    drop_ipv4_malformed,
    /// IPv4 header checksum wrong.
    drop_ipv4_checksum,
    /// IPv4 source routes (RFC 7126 section 4.3).
    drop_ipv4_source_route,
    /// IPv6 packets received.
    ipv6_in,
    /// IPv6 packets sent (fragments each).
    ipv6_out,
    /// IPv6 headers or extension headers that cannot be read.
    drop_ipv6_malformed,
    /// IPv6 extension headers or options that we must refuse.
    drop_ipv6_extension,
    /// IPv6 packets with nothing after their headers.
    drop_ipv6_no_next_header,
    /// A source address that no packet may have (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5).
    drop_martian_source,
    /// Source and destination are the same address.
    drop_land,
    /// A destination that is not ours; we do not forward.
    drop_not_our_address,
    /// A layer-4 protocol that we do not have.
    drop_protocol,
    /// Fragments received.
    fragments_in,
    /// Fragments sent.
    fragments_out,
    /// Datagrams put together.
    datagrams_reassembled,
    /// Fragments whose length is zero or no multiple of 8.
    drop_fragment_length,
    /// Fragments that reach beyond the longest datagram.
    drop_fragment_too_long,
    /// First fragments without all headers, or TCP fragments that start within the header.
    drop_fragment_tiny,
    /// Datagrams with fragments that overlap.
    drop_fragment_overlap,
    /// Datagrams in too many pieces out of order.
    drop_fragment_holes,
    /// Datagrams with a fragment marked for congestion and one that does not know of ECN (RFC 3168 section 5.3).
    drop_fragment_ecn,
    /// Incomplete datagrams that gave way to newer ones, or fragments without a buffer that is long enough.
    drop_reassembly_full,
    /// Datagrams that did not become complete in time.
    drop_reassembly_timeout,
    /// ICMP messages of both families received.
    icmp_in,
    /// ICMP messages of both families sent.
    icmp_out,
    /// Echo requests answered.
    echo_replies,
    /// ICMP errors sent.
    icmp_errors_out,
    /// ICMP messages that cannot be read.
    drop_icmp_malformed,
    /// ICMP checksum wrong.
    drop_icmp_checksum,
    /// ICMP types that mean nothing to a host.
    drop_icmp_type,
    /// Echo requests to a broadcast address, or from nobody.
    drop_icmp_broadcast,
    /// ICMP errors whose quoted packet belongs to none of our sockets.
    drop_icmp_error_unknown,
    /// ICMP errors not sent because of their rate limit.
    drop_icmp_error_limited,
    /// Path MTUs lowered.
    path_mtu_lowered,
    /// ICMP errors whose quoted TCP segment is not in flight: guesses of somebody off the path (RFC 5927 section 4).
    drop_icmp_error_not_in_flight,
    /// "Packet too big" messages that no packet can have met: the size named is below what every link carries, or the
    /// packet quoted is not larger than it (RFC 5927 section 7).
    drop_icmp_too_big_absurd,
    /// "Packet too big" messages beyond their rate limit.
    drop_icmp_too_big_limited,
    /// Neighbour discovery messages received.
    ndp_in,
    /// Neighbour discovery messages sent.
    ndp_out,
    /// Neighbour discovery messages that break RFC 4861's rules (hop limit, addresses, lengths), or came in fragments (RFC 6980).
    drop_ndp_invalid,
    /// IPv6 addresses that turned out to be in use by others.
    dad_conflicts,
    /// Neighbours that did not answer.
    neighbors_unreachable,
    /// Claims of another link-layer address for a neighbour known to be reachable; not believed, the neighbour is asked.
    neighbors_disputed,
    /// Neighbour entries thrown out to make room.
    neighbors_evicted,
    /// Packets that gave way to newer ones while their neighbour was asked for.
    drop_neighbor_queue,
    /// Packets whose neighbour did not answer, or could not be asked for.
    drop_neighbor_unreachable,
    /// Packets without a route.
    drop_no_route,
    /// Control packets and replies for which the queue had no room.
    drop_control_full,
    /// UDP datagrams received.
    udp_in,
    /// UDP datagrams sent.
    udp_out,
    /// UDP datagrams that cannot be read.
    drop_udp_malformed,
    /// UDP checksum wrong, or missing over IPv6.
    drop_udp_checksum,
    /// UDP datagrams to a port where nobody listens.
    drop_udp_port,
    /// UDP datagrams for which the socket's receive buffer had no room.
    drop_udp_receive_full,
    /// UDP datagrams for which there was no memory.
    drop_udp_no_memory,
    /// UDP datagrams not sent because queue or pool was full.
    drop_udp_send_full,
    /// DHCP messages received.
    dhcp_in,
    /// DHCP messages sent.
    dhcp_out,
    /// DHCP messages that are not for us, or not for this state.
    drop_dhcp,
    /// TCP segments received, coalesced ones counted one by one.
    tcp_in,
    /// TCP segments sent, pieces of super-segments counted one by one.
    tcp_out,
    /// Payload bytes of TCP sent; retransmitted bytes count again.
    tcp_bytes_out [bytes],
    /// Payload bytes of TCP received, duplicates included.
    tcp_bytes_in [bytes],
    /// TCP segments sent again.
    tcp_retransmits,
    /// Connections begun by peers.
    tcp_passive_opens,
    /// Connections begun by us.
    tcp_active_opens,
    /// Connections that became established.
    tcp_established,
    /// RST segments sent to segments of no connection.
    tcp_resets_out,
    /// Letters to the other stacks on the link.
    letters_out,
    /// Letters for which there was no place until the host carries them.
    drop_letters_full [drop],
    /// Packets passed on by another stack for which there was no buffer.
    drop_letters_no_buffer [drop],
    /// Connections in TIME-WAIT that made room for newer ones.
    tcp_time_wait_recycled,
    /// SYNs answered with a cookie, because the backlog, the half-open connections or the table were full (RFC 4987).
    syn_cookies_sent,
    /// Connections made from the ACK of a SYN cookie.
    syn_cookies_accepted,
    /// ACKs to a listener that fit no SYN cookie, while cookies were being sent: guesses, or cookies too old.
    syn_cookies_failed,
    /// SYN-ACKs with a Fast Open cookie, because the client asked for one, or its own was invalid or old (RFC 7413).
    tfo_cookies_sent,
    /// SYNs with a valid Fast Open cookie whose connection was given to the application at once.
    tfo_cookies_accepted,
    /// SYNs with a Fast Open cookie that is not ours or too old; they open the ordinary way.
    tfo_cookies_rejected,
    /// SYNs with a valid Fast Open cookie beyond the limit of their listener; they open the ordinary way.
    tfo_pending_limited,
    /// SYNs whose data was taken.
    tfo_data_accepted,
    /// Half-open connections that made room for a peer that had shown that it receives.
    tcp_half_open_evicted [drop],
    /// Connections reset because memory was short and their peers took (nearly) nothing of what they held: closed windows,
    /// a few bytes at a time.
    tcp_stalled_shed [drop],
    /// Times that data out of order was dropped, which the peer sends again, because memory was short.
    tcp_out_of_order_shed [drop],
    /// Closed connections that were reset before all was delivered: there were too many, or the table was full.
    tcp_orphans_shed [drop],
    /// Challenge ACKs sent: to a RST, SYN or ACK that a peer in good standing would not have sent (RFC 5961).
    tcp_challenge_acks,
    /// Challenge ACKs not sent because of the limit of each connection.
    tcp_challenge_acks_limited,
    /// Retransmission timeouts of TCP.
    tcp_timeouts,
    /// Retransmission timeouts taken back because nothing had been lost.
    tcp_timeouts_undone,
    /// Fast recoveries of TCP.
    tcp_fast_recoveries,
    /// Fast recoveries taken back because nothing had been lost.
    tcp_fast_recoveries_undone,
    /// Tail loss probes (RFC 8985 section 7).
    tcp_tail_loss_probes,
    /// Timeouts that were taken for a black hole in the path; the segment size was lowered (RFC 4821).
    tcp_black_holes,
    /// Longer segments sent to learn whether the path carries them (RFC 4821).
    tcp_size_probes,
    /// Size probes that were lost.
    tcp_size_probes_lost,
    /// TCP headers that cannot be read.
    drop_tcp_malformed,
    /// TCP checksum wrong.
    drop_tcp_checksum,
    /// TCP segments to or from a broadcast or multicast address (RFC 9293 section 3.9.2.3).
    drop_tcp_broadcast,
    /// TCP segments of no connection.
    drop_tcp_no_connection,
    /// SYNs dropped because their listener's accept queue is full.
    drop_syn_backlog,
    /// ACKs of valid SYN cookies answered with a RST because their listener's accept queue is full.
    drop_syn_cookie_backlog,
    /// ACKs of valid SYN cookies answered with a RST because the table of connections is full, and none can give way.
    drop_syn_cookie_table,
    /// SYNs while memory or connection slots are short.
    drop_syn_no_memory,
    /// RST segments not sent because of their rate limit.
    drop_reset_limited,
    /// Segments of a closed connection.
    drop_tcp_closed,
    /// Segments that are wrong for their step of the handshake.
    drop_tcp_handshake,
    /// Segments without ACK.
    drop_tcp_no_ack,
    /// Segments outside the receive window.
    drop_tcp_out_of_window,
    /// Segments received before.
    drop_tcp_duplicate,
    /// Segments with an older timestamp than the last one (PAWS).
    drop_tcp_old_timestamp,
    /// Segments without the timestamp that was agreed upon.
    drop_tcp_no_timestamp,
    /// RST segments not at the window's left edge (RFC 5961).
    drop_tcp_inexact_reset,
    /// SYN segments on established connections (RFC 5961).
    drop_tcp_unexpected_syn,
    /// Acknowledgements of what was never sent.
    drop_tcp_bad_ack,
    /// Payload after FIN.
    drop_tcp_after_fin,
    /// Payload out of order without room to keep it.
    drop_tcp_out_of_order_full,
    /// Payload for which memory or receive buffer had no room.
    drop_tcp_no_memory,
}

impl Counters {
    /// Every counter by its name, in the order of the layers.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.figures().map(|(figure, count)| (figure.name, count))
    }

    /// Counts a segment that a connection did not use.
    pub(crate) fn count_tcp_drop(&mut self, reason: DropReason) {
        let counter = match reason {
            DropReason::Closed => &mut self.drop_tcp_closed,
            DropReason::Handshake => &mut self.drop_tcp_handshake,
            DropReason::NoAck => &mut self.drop_tcp_no_ack,
            DropReason::OutOfWindow => &mut self.drop_tcp_out_of_window,
            DropReason::Duplicate => &mut self.drop_tcp_duplicate,
            DropReason::OldTimestamp => &mut self.drop_tcp_old_timestamp,
            DropReason::NoTimestamp => &mut self.drop_tcp_no_timestamp,
            DropReason::InexactReset => &mut self.drop_tcp_inexact_reset,
            DropReason::UnexpectedSyn => &mut self.drop_tcp_unexpected_syn,
            DropReason::BadAck => &mut self.drop_tcp_bad_ack,
            DropReason::AfterFin => &mut self.drop_tcp_after_fin,
            DropReason::OutOfOrderFull => &mut self.drop_tcp_out_of_order_full,
            DropReason::NoMemory => &mut self.drop_tcp_no_memory,
        };
        *counter += 1;
    }

    /// Counts what happened to a connection.
    pub(crate) fn count_tally(&mut self, tally: &Tally) {
        self.tcp_challenge_acks += u64::from(tally.challenge_acks);
        self.tcp_challenge_acks_limited += u64::from(tally.challenge_acks_limited);
        self.tcp_timeouts += u64::from(tally.timeouts);
        self.tcp_timeouts_undone += u64::from(tally.timeouts_undone);
        self.tcp_fast_recoveries += u64::from(tally.fast_recoveries);
        self.tcp_fast_recoveries_undone += u64::from(tally.fast_recoveries_undone);
        self.tcp_tail_loss_probes += u64::from(tally.tail_loss_probes);
        self.tcp_black_holes += u64::from(tally.black_holes);
        self.tcp_size_probes += u64::from(tally.size_probes);
        self.tcp_size_probes_lost += u64::from(tally.size_probes_lost);
    }

    /// Everything thrown away, for whatever reason.
    pub fn drops(&self) -> u64 {
        self.figures().filter(|(figure, _)| figure.kind == Kind::Drop).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_drop_reason_of_tcp_has_a_counter_of_its_own() {
        let mut names = BTreeSet::new();
        for reason in DropReason::ALL {
            let mut counters = Counters::default();
            counters.count_tcp_drop(reason);
            assert_eq!(counters.drops(), 1);
            names.extend(counters.iter().filter(|(_, count)| *count == 1).map(|(name, _)| name));
        }
        assert_eq!(names.len(), DropReason::ALL.len());
    }
}
