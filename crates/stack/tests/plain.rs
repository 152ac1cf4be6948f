//! What a port has found in a frame saves the stack from looking again, and changes nothing else: the same frames, with and
//! without it, lead to the same answers and the same counters.

mod common;

use common::frames::{HOST_MAC, HOST4, HOST6, PEER_MAC, PEER4, PEER6};
use common::{Setup, shown};
use core::net::{Ipv4Addr, Ipv6Addr};
use linerate_nic::{
    Capabilities, Device, DeviceError, Frame, MacAddr, Pieces, Pool, Port, PortConfig, QueuePair, RxBatch,
    RxMeta, TxQueue, TxToken,
};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{Engine as _, ListenAddr, ListenOptions, Owner, Transport as _};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::{Ecn, Protocol};
use linerate_wire::tcp::{self, Flags, Options, SeqNumber, Timestamps};
use linerate_wire::units::Instant;
use linerate_wire::vlan::{Tag, Tags};
use linerate_wire::{ipv4, ipv6};
use proptest::prelude::*;

/// A device whose frames are put there by the test.
struct Hand {
    arriving: Vec<Frame>,
    sent: Vec<Vec<u8>>,
}

impl Device for Hand {
    fn mac(&self) -> MacAddr {
        HOST_MAC
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn enable(&mut self, _wanted: Capabilities) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl QueuePair for Hand {
    fn enabled(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let count = self.arriving.len();
        for frame in self.arriving.drain(..) {
            batch.push(frame).expect("room");
        }
        Ok(count)
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let count = queue.len();
        while let Some(packet) = queue.front() {
            let mut bytes = vec![0; packet.len()];
            packet.linearise(&mut bytes).expect("room");
            self.sent.push(bytes);
            queue.pop();
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        None
    }
}

struct Host {
    node: Node<Hand>,
    pool: Pool,
    /// Whether the stack is to hear what the port has found.
    is_told: bool,
}

impl Host {
    fn new(is_told: bool, coalesces: bool, vlan: Option<u16>) -> Host {
        let pool = Pool::new(256, 2_048);
        let mut port = Port::new(Hand { arriving: Vec::new(), sent: Vec::new() }, PortConfig::default())
            .expect("a port");
        port.set_offloads(Capabilities { rx_coalescing: coalesces, ..Capabilities::ALL }).expect("switches");
        let config = StackConfig { vlan, completions: false, ..Setup::default().config[0].clone() };
        let pools = StackPools::for_memory(config.memory).with_receive(pool.clone());
        let mut node = Node::new(port, config, [9; 32], pools, NodeConfig::default());
        let options = ListenOptions::default();
        node.stack.listen(Owner(1), ListenAddr { ip: None, port: 80 }, &options).expect("a free port");
        Host { node, pool, is_told }
    }

    /// A frame in pieces that end at `cuts`.
    fn frame(&self, bytes: &[u8], cuts: &[usize], segment_size: u16) -> Frame {
        let mut ends: Vec<usize> = cuts.iter().copied().filter(|&cut| cut < bytes.len()).collect();
        ends.sort_unstable();
        ends.dedup();
        ends.push(bytes.len());
        let mut from = 0;
        let mut pieces = ends.into_iter().map(|to| {
            let mut buffer = self.pool.take().expect("a buffer");
            buffer.bytes_mut()[..to - from].copy_from_slice(&bytes[from..to]);
            let slice = buffer.freeze(0..to - from);
            from = to;
            slice
        });
        let first = pieces.next().expect("one at least");
        let more = Pieces::from(pieces.collect::<Vec<_>>());
        Frame::in_pieces(first, more, RxMeta { segment_size, ..RxMeta::default() })
    }

    /// Takes frames together; what is sent for them.
    fn take(&mut self, now: Instant, frames: Vec<Frame>) -> Vec<Vec<u8>> {
        self.node.port.device_mut().arriving = frames;
        if self.is_told {
            self.node.input(now).expect("a device");
        } else {
            let mut found = RxBatch::with_limit(256);
            self.node.port.receive(now, &mut found).expect("a device");
            let mut batch = RxBatch::with_limit(256);
            while let Some(Frame { data, more, meta, .. }) = found.pop() {
                batch.push(Frame::in_pieces(data, more, meta)).expect("room");
            }
            self.node.stack.handle_frames(now, &mut batch);
            self.node.input(now).expect("a device");
        }
        self.node.output(now).expect("a device");
        std::mem::take(&mut self.node.port.device_mut().sent)
    }
}

/// A frame of the peer, most of whose parts are as they should be.
#[derive(Clone, Debug)]
struct Plan {
    is_v6: bool,
    port: u16,
    destination: MacAddr,
    source: MacAddr,
    tag: Option<u16>,
    peer4: Ipv4Addr,
    host4: Ipv4Addr,
    peer6: Ipv6Addr,
    host6: Ipv6Addr,
    options: Vec<u8>,
    fragment: (bool, u16),
    ecn: Ecn,
    flags: Flags,
    ahead: i32,
    len: usize,
    has_timestamps: bool,
    padding: usize,
    cuts: Vec<usize>,
    segment_size: u16,
    flip: Option<usize>,
}

/// What is usual, or now and then something else.
fn mostly<T: Clone + core::fmt::Debug + 'static>(usual: T, others: Vec<T>) -> impl Strategy<Value = T> {
    prop_oneof![14 => Just(usual), 1 => proptest::sample::select(others)]
}

fn plan() -> impl Strategy<Value = Plan> {
    let group = MacAddr([1, 0, 0x5e, 0, 0, 1]);
    let other = MacAddr([2, 0, 0, 0, 0, 7]);
    let link = (
        any::<bool>(),
        mostly(HOST_MAC, vec![other, group, MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])]),
        mostly(PEER_MAC, vec![HOST_MAC, group, MacAddr::UNSPECIFIED, other]),
        mostly(None, vec![Some(0), Some(5)]),
        prop_oneof![8 => Just(0usize), 1 => 1usize..20],
        prop_oneof![8 => Just(vec![]), 1 => proptest::collection::vec(10usize..300, 1..4)],
        mostly(0u16, vec![100, 1]),
        prop_oneof![14 => Just(None), 1 => (0usize..120).prop_map(Some)],
    );
    let network = (
        mostly(PEER4, vec![HOST4, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 255)]),
        mostly(
            HOST4,
            vec![PEER4, Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 77), Ipv4Addr::new(224, 0, 0, 1)],
        ),
        mostly(PEER6, vec![HOST6, Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST]),
        mostly(HOST6, vec![PEER6, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::LOCALHOST]),
        mostly(vec![], vec![vec![1, 1, 1, 1], vec![131, 3, 4, 0], vec![7, 1, 0, 0]]),
        mostly((false, 0u16), vec![(true, 0), (false, 8), (true, 800)]),
        mostly(Ecn::NotCapable, vec![Ecn::Congested, Ecn::Capable0]),
    );
    let ack = Flags::ACK;
    let segment = (
        mostly(
            ack,
            vec![ack | Flags::PSH, ack | Flags::FIN, ack | Flags::RST, ack | Flags::SYN, Flags::EMPTY],
        ),
        mostly(0i32, vec![100, -100, 5_000, -5_000, 70_000]),
        0usize..700,
        mostly(true, vec![false]),
        mostly(80u16, vec![0, 81]),
    );
    (link, network, segment).prop_map(|(link, network, segment)| Plan {
        is_v6: link.0,
        destination: link.1,
        source: link.2,
        tag: link.3,
        padding: link.4,
        cuts: link.5,
        segment_size: link.6,
        flip: link.7,
        peer4: network.0,
        host4: network.1,
        peer6: network.2,
        host6: network.3,
        options: network.4,
        fragment: network.5,
        ecn: network.6,
        flags: segment.0,
        ahead: segment.1,
        len: segment.2,
        has_timestamps: segment.3,
        port: segment.4,
    })
}

/// Where a connection stands at the peer.
#[derive(Clone, Copy, Default)]
struct Stand {
    next: SeqNumber,
    ack: SeqNumber,
    echo: u32,
}

impl Plan {
    /// The usual frame with these flags and so much payload.
    fn usual(is_v6: bool, flags: Flags, len: usize) -> Plan {
        Plan {
            is_v6,
            port: 80,
            destination: HOST_MAC,
            source: PEER_MAC,
            tag: None,
            peer4: PEER4,
            host4: HOST4,
            peer6: PEER6,
            host6: HOST6,
            options: Vec::new(),
            fragment: (false, 0),
            ecn: Ecn::NotCapable,
            flags,
            ahead: 0,
            len,
            has_timestamps: true,
            padding: 0,
            cuts: Vec::new(),
            segment_size: 0,
            flip: None,
        }
    }

    fn bytes(&self, stand: &Stand) -> Vec<u8> {
        let opens = self.flags.contains(Flags::SYN) && !self.flags.contains(Flags::ACK);
        let builder = tcp::Builder {
            source_port: 4_000,
            destination_port: self.port,
            sequence: SeqNumber(stand.next.0.wrapping_add_signed(self.ahead)),
            acknowledgement: stand.ack,
            flags: self.flags,
            window: 60_000,
            options: Options {
                mss: opens.then_some(1_400),
                sack_permitted: opens,
                timestamps: self.has_timestamps.then_some(Timestamps { value: 1_000, echo: stand.echo }),
                ..Options::default()
            },
            ..tcp::Builder::default()
        };
        let mut segment = vec![0; builder.header_len()];
        builder.emit(&mut segment).expect("room");
        segment.extend((0..self.len).map(|at| at as u8));
        let tags = match self.tag {
            Some(id) => Tags::one(Tag { protocol: EtherType::VLAN, priority: 0, drop_eligible: false, id }),
            None => Tags::NONE,
        };
        let ether_type = if self.is_v6 { EtherType::IPV6 } else { EtherType::IPV4 };
        let link = ethernet::Builder { destination: self.destination, source: self.source, tags, ether_type };
        let mut frame = vec![0; link.header_len()];
        link.emit(&mut frame).expect("room");
        let mut ip = vec![0; 60];
        let (len, mut sum) = if self.is_v6 {
            let header = ipv6::Builder {
                ecn: self.ecn,
                ..ipv6::Builder::new(self.peer6, self.host6, Protocol::TCP, segment.len())
            };
            (header.emit(&mut ip).expect("room"), header.pseudo_header())
        } else {
            let header = ipv4::Builder {
                ecn: self.ecn,
                dont_fragment: false,
                more_fragments: self.fragment.0,
                fragment_offset: self.fragment.1,
                options: &self.options,
                ..ipv4::Builder::new(self.peer4, self.host4, Protocol::TCP, segment.len())
            };
            (header.emit(&mut ip).expect("room"), header.pseudo_header())
        };
        sum.add(&segment);
        tcp::set_checksum(&mut segment, sum.finish()).expect("room");
        frame.extend_from_slice(&ip[..len]);
        frame.extend_from_slice(&segment);
        frame.resize(frame.len() + self.padding, 0xee);
        if let Some(at) = self.flip
            && let Some(byte) = frame.get_mut(at)
        {
            *byte ^= 0x21;
        }
        frame
    }
}

/// Two hosts that see the same frames.
struct Pair {
    hosts: [Host; 2],
    now: Instant,
}

impl Pair {
    /// Hands both these frames, and compares what follows.
    fn take(&mut self, frames: &[(Vec<u8>, &Plan)]) -> Vec<Vec<u8>> {
        self.now += core::time::Duration::from_millis(3);
        let now = self.now;
        let [told, other] = self.hosts.each_mut().map(|host| {
            let made = frames.iter().map(|(bytes, plan)| host.frame(bytes, &plan.cuts, plan.segment_size));
            let made = made.collect();
            host.take(now, made)
        });
        assert_eq!(told, other, "what is sent");
        let [told_counters, other_counters] =
            self.hosts.each_ref().map(|host| shown(host.node.stack.counters()));
        assert_eq!(told_counters, other_counters);
        told
    }

    fn open(&mut self, is_v6: bool) -> Stand {
        // With ECN, so that marks are answered.
        let syn = Plan::usual(is_v6, Flags::SYN | Flags::ECE | Flags::CWR, 0);
        let stand = Stand { next: SeqNumber(7_000), ..Stand::default() };
        self.take(&[(syn.bytes(&stand), &syn)]);
        // It asks for the peer first; whoever speaks to it is known from then on.
        let hello = if is_v6 {
            common::frames::advertisement(PEER6, HOST6)
        } else {
            common::frames::arp(linerate_wire::arp::Operation::REPLY, PEER4, HOST4)
        };
        let sent = self.take(&[(hello, &syn)]);
        let header_at = if is_v6 { 54 } else { 34 };
        let answer = sent.iter().find_map(|frame| {
            let header = tcp::Header::parse(frame.get(header_at..)?).ok()?;
            (header.source_port() == 80).then(|| (header.sequence(), header.options().timestamps))
        });
        let (seq, timestamps) = answer.expect("a SYN-ACK");
        let echo = timestamps.map_or(0, |timestamps| timestamps.value);
        let stand = Stand { next: stand.next + 1, ack: seq + 1, echo };
        let ack = Plan::usual(is_v6, Flags::ACK, 0);
        self.take(&[(ack.bytes(&stand), &ack)]);
        stand
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_stack_that_hears_what_the_port_found_does_the_same(
        batches in proptest::collection::vec(proptest::collection::vec(plan(), 1..6), 1..8),
        coalesces: bool,
    ) {
        let hosts = [true, false].map(|is_told| Host::new(is_told, coalesces, None));
        let mut pair = Pair { hosts, now: Instant::from_millis(1) };
        let mut stands = [pair.open(false), pair.open(true)];
        for batch in &batches {
            let frames: Vec<(Vec<u8>, &Plan)> = batch.iter().map(|plan| {
                let stand = &mut stands[usize::from(plan.is_v6)];
                let bytes = plan.bytes(stand);
                if plan.ahead == 0 && plan.flip.is_none() {
                    stand.next += plan.len as u32;
                }
                (bytes, plan)
            }).collect();
            pair.take(&frames);
        }
    }
}

#[test]
fn a_tagged_interface_takes_no_untagged_frame_by_the_short_way() {
    let mut host = Host::new(true, false, Some(5));
    for (tag, taken) in [(None, 0), (Some(5), 1), (Some(6), 1)] {
        let syn = Plan { tag, ..Plan::usual(false, Flags::SYN, 0) };
        let frame = host.frame(&syn.bytes(&Stand::default()), &[], 0);
        host.take(Instant::from_millis(1), vec![frame]);
        assert_eq!(host.node.stack.counters().tcp_in, taken, "{tag:?}");
    }
}
