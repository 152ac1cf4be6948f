//! A device on a scripted driver.

use super::*;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use embassy_net_driver::Capabilities as Found;

const NOW: Instant = Instant::ZERO;

/// What the driver has and has been given.
#[derive(Default)]
struct Wire {
    arriving: Vec<Vec<u8>>,
    room: usize,
    sent: Vec<Vec<u8>>,
    is_down: bool,
    checksums: ChecksumCapabilities,
}

#[derive(Clone, Default)]
struct Script(Rc<RefCell<Wire>>);

impl Driver for Script {
    type RxToken<'a> = Script;
    type TxToken<'a> = Script;

    fn receive(&mut self, _cx: &mut Context<'_>) -> Option<(Script, Script)> {
        (!self.0.borrow().arriving.is_empty()).then(|| (self.clone(), self.clone()))
    }

    fn transmit(&mut self, _cx: &mut Context<'_>) -> Option<Script> {
        (self.0.borrow().room > 0).then(|| self.clone())
    }

    fn link_state(&mut self, _cx: &mut Context<'_>) -> embassy_net_driver::LinkState {
        match self.0.borrow().is_down {
            true => embassy_net_driver::LinkState::Down,
            false => embassy_net_driver::LinkState::Up,
        }
    }

    fn capabilities(&self) -> Found {
        let mut found = Found::default();
        found.max_transmission_unit = 600;
        found.checksum = self.0.borrow().checksums.clone();
        found
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet([2, 0, 0, 0, 0, 1])
    }
}

impl RxToken for Script {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, f: F) -> R {
        let mut frame = self.0.borrow_mut().arriving.remove(0);
        f(&mut frame)
    }
}

impl TxToken for Script {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        let mut wire = self.0.borrow_mut();
        wire.sent.push(frame);
        wire.room -= 1;
        result
    }
}

fn device(script: &Script) -> EmbassyDevice<Script> {
    EmbassyDevice::new(script.clone(), Pool::new(2, 600)).expect("an Ethernet driver")
}

/// Queues a packet of `len` bytes that names itself with `token`.
fn queue(queue: &mut TxQueue, len: usize, token: u64) {
    let packet = queue.vacant().expect("room");
    packet.header_mut(14).fill(1);
    let payload = linerate_nic::Bytes::from(vec![2; len - 14]);
    packet.push_chunk(linerate_nic::Chunk::Shared(payload)).expect("room in the gather list");
    packet.meta.token = Token(token);
    queue.commit();
}

#[test]
fn it_is_armed_for_what_it_waits_for() {
    let script = Script::default();
    let mut device = device(&script);
    assert!(!device.arm(NOW), "nothing has come");
    script.0.borrow_mut().arriving = vec![vec![0; 60]; 3];
    assert!(device.arm(NOW));
    let mut batch = RxBatch::with_limit(8);
    assert_eq!(device.receive(NOW, &mut batch), Ok(2), "as many as there are buffers");
    assert!(!device.arm(NOW), "a frame without a buffer wakes nobody, or the loop would never sleep");
    drop(batch.pop());
    assert!(device.arm(NOW), "the buffer came back");
    assert_eq!(device.receive(NOW, &mut batch), Ok(1));

    let mut packets = TxQueue::with_capacity(4);
    assert!(!device.arm(NOW), "nobody asks for room");
    queue(&mut packets, 60, 0);
    assert_eq!(device.transmit(NOW, &mut packets), Ok(0));
    assert!(!device.arm(NOW));
    script.0.borrow_mut().room = 1;
    assert!(device.arm(NOW), "there is room again");
    assert_eq!(device.transmit(NOW, &mut packets), Ok(1));
    assert!(!device.arm(NOW));

    script.0.borrow_mut().is_down = true;
    assert!(device.link().is_up && device.arm(NOW), "the link has changed");
    assert_eq!(device.receive(NOW, &mut batch), Ok(0));
    assert!(!device.link().is_up && !device.arm(NOW));
}

#[test]
fn what_does_not_fit_is_dropped_and_counted() {
    let script = Script::default();
    let mut device = device(&script);
    script.0.borrow_mut().arriving = vec![vec![0; 601], vec![0; 600]];
    let mut batch = RxBatch::with_limit(8);
    assert_eq!(device.receive(NOW, &mut batch), Ok(1));
    assert_eq!(batch.pop().map(|frame| frame.len()), Some(600));

    let mut packets = TxQueue::with_capacity(4);
    script.0.borrow_mut().room = 8;
    for (len, token) in [(601, 7), (600, 8), (60, 0)] {
        queue(&mut packets, len, token);
    }
    assert_eq!(device.transmit(NOW, &mut packets), Ok(3));
    assert!(device.arm(NOW), "packets have left");
    assert_eq!(device.poll_completion(), Some(Token(7)), "dropped, but done with");
    assert_eq!(device.poll_completion(), Some(Token(8)));
    assert_eq!(device.poll_completion(), None, "nobody asked for the third");
    assert_eq!(script.0.borrow().sent.iter().map(Vec::len).collect::<Vec<_>>(), [600, 60]);
    assert_eq!(device.stats(), DriverStats { received_oversize: 1, sent_oversize: 1 });
}

#[test]
fn completions_nobody_takes_hold_back_what_follows() {
    let script = Script::default();
    let mut device = device(&script);
    script.0.borrow_mut().room = 1_000;
    let mut packets = TxQueue::with_capacity(COMPLETIONS + 1);
    for token in 1..=COMPLETIONS as u64 + 1 {
        queue(&mut packets, 60, token);
    }
    assert_eq!(device.transmit(NOW, &mut packets), Ok(COMPLETIONS));
    assert_eq!(device.poll_completion(), Some(Token(1)));
    assert_eq!(device.transmit(NOW, &mut packets), Ok(1));
}

/// A frame with a layer-4 header of zeros behind the IPv4 header, and the request for its checksum.
fn request(queue: &mut TxQueue, protocol: Protocol, header_len: usize, offset: usize) {
    let packet = queue.vacant().expect("room");
    let header = packet.header_mut(34 + header_len);
    header.fill(0);
    header[34 + offset] = 0x12;
    header[23] = protocol.0;
    packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: offset as u16 });
    queue.commit();
}

#[test]
fn each_protocol_is_left_to_who_does_it() {
    // The driver computes UDP's and leaves TCP's to us.
    let script = Script::default();
    script.0.borrow_mut().checksums.udp = Checksum::Rx;
    script.0.borrow_mut().room = 2;
    let mut device = device(&script);
    assert!(device.capabilities().tx_checksum4 && device.capabilities().tx_checksum6);
    assert!(!device.capabilities().rx_checksum, "it verifies nothing");
    assert_eq!(device.enable(Capabilities::ALL), Err(DeviceError::Unsupported));
    let mut packets = TxQueue::with_capacity(2);
    request(&mut packets, Protocol::TCP, 20, tcp::CHECKSUM_OFFSET);
    request(&mut packets, Protocol::UDP, 8, 6);
    assert_eq!(device.transmit(NOW, &mut packets), Ok(2));
    let sent = &script.0.borrow().sent;
    assert_eq!(sent[0][50..52], (!0x1200_u16).to_be_bytes(), "the pseudo-header's sum, complemented");
    assert_eq!(sent[1][40..42], [0, 0], "for the driver");
}

/// An Ethernet frame with an IPv4 header of this protocol.
fn ipv4_frame(protocol: Protocol, fragment: bool) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&EtherType::IPV4.0.to_be_bytes());
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&46_u16.to_be_bytes());
    frame[20] = if fragment { 0x20 } else { 0 };
    frame[23] = protocol.0;
    frame
}

#[test]
fn the_driver_vouches_for_what_it_understands() {
    let tcp_only = ChecksumCapabilities::default();
    let none = {
        let mut all = ChecksumCapabilities::default();
        for one in [&mut all.ipv4, &mut all.tcp, &mut all.udp, &mut all.icmpv4, &mut all.icmpv6] {
            *one = Checksum::None;
        }
        all
    };
    let mut tcp_only = tcp_only;
    (tcp_only.ipv4, tcp_only.tcp) = (Checksum::Tx, Checksum::Tx);
    let check = |frame: &[u8], by_all, by_tcp_only| {
        assert_eq!((is_verified(frame, &none), is_verified(frame, &tcp_only)), (by_all, by_tcp_only));
        assert!(!is_verified(frame, &ChecksumCapabilities::default()));
    };
    check(&ipv4_frame(Protocol::TCP, false), true, true);
    check(&ipv4_frame(Protocol::UDP, false), true, false);
    check(&ipv4_frame(Protocol::ICMPV4, false), true, false);
    check(&ipv4_frame(Protocol::TCP, true), false, false);
    check(&ipv4_frame(Protocol::ESP, false), false, false);
    check(&ipv4_frame(Protocol::TCP, false)[..20], false, false);
    check(&[0; 60], false, false);
    let mut ipv6 = vec![0; 80];
    ipv6[12..14].copy_from_slice(&EtherType::IPV6.0.to_be_bytes());
    ipv6[14] = 0x60;
    ipv6[20] = Protocol::TCP.0;
    check(&ipv6, true, true);
    ipv6[20] = Protocol::FRAGMENT.0;
    check(&ipv6, false, false);
}
