//! The driver against the model of the registers.

use super::model::Model;
use super::regs::{self, mac, phy};
use super::{BUFFER_SIZE, Lan9118, OpenError, control};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linerate_nic::{
    Capabilities, Chunk, Device, DeviceError, Filter, LinkState, MacAddr, Pool, Port, PortConfig, QueuePair,
    RxBatch, TxQueue, TxToken,
};
use linerate_wire::units::{Instant, Rate};
use proptest::prelude::*;

type Chip = Rc<RefCell<Model>>;

const MAC: MacAddr = MacAddr([2, 0, 0xc0, 0xa8, 1, 0x32]);
const NOW: Instant = Instant::ZERO;

fn open() -> (Lan9118<Chip>, Chip, Pool) {
    let (model, pool) = (Model::new(), Pool::new(16, BUFFER_SIZE));
    let chip = Lan9118::open(Rc::clone(&model), MAC, pool.clone()).unwrap();
    (chip, model, pool)
}

/// A frame of so many bytes, none like the next.
fn frame(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

/// Takes up to `limit` frames.
fn receive(chip: &mut Lan9118<Chip>, limit: usize) -> Vec<Vec<u8>> {
    let mut batch = RxBatch::with_limit(limit);
    chip.receive(NOW, &mut batch).unwrap();
    core::iter::from_fn(|| batch.pop()).map(|frame| frame.data.bytes().to_vec()).collect()
}

/// Sends packets of a header and these chunks.
fn send(chip: &mut Lan9118<Chip>, packets: &[(&[u8], &[&[u8]])]) -> usize {
    let mut queue = TxQueue::with_capacity(packets.len());
    for (at, (header, chunks)) in packets.iter().enumerate() {
        let packet = queue.vacant().unwrap();
        packet.header_mut(header.len()).copy_from_slice(header);
        for chunk in *chunks {
            packet.push_chunk(Chunk::Shared(linerate_transport::Bytes::copy_from_slice(chunk))).unwrap();
        }
        packet.meta.token = TxToken(at as u64 + 1);
        queue.commit();
    }
    chip.transmit(NOW, &mut queue).unwrap()
}

#[test]
fn it_opens_with_its_address_and_full_duplex() {
    let (chip, model, _) = open();
    let model = model.borrow();
    assert_eq!(model.mac[mac::ADDRL as usize], 0xa8c0_0002);
    assert_eq!(model.mac[mac::ADDRH as usize], 0x3201);
    let running = mac::RX_ENABLE | mac::TX_ENABLE | mac::FULL_DUPLEX | mac::HASH_PERFECT;
    assert_eq!(model.mac[mac::CR as usize], running);
    assert_eq!(model.phy[phy::ANAR as usize], phy::ADVERTISED);
    assert_eq!(chip.link().speed, Some(Rate::from_bps(100_000_000)));
}

#[test]
fn what_is_not_there_or_does_not_answer_is_named() {
    let check = |change: fn(&mut Model), expected: OpenError| {
        let model = Model::new();
        change(&mut model.borrow_mut());
        let error = Lan9118::open(Rc::clone(&model), MAC, Pool::new(1, BUFFER_SIZE)).err();
        assert_eq!(error, Some(expected));
    };
    check(|model| model.byte_test = 0x4321_8765, OpenError::NoAnswer(0x4321_8765));
    check(|model| model.id = 0x1234_0000, OpenError::OtherChip(0x1234_0000));
    check(|model| model.stuck = Some(regs::HW_CFG), OpenError::Stuck("reset"));
    check(|model| model.stuck = Some(regs::E2P_CMD), OpenError::Stuck("reading the EEPROM"));
    check(|model| model.stuck = Some(regs::MAC_CSR_CMD), OpenError::Stuck("a write to the MAC"));
    let small = Lan9118::open(Model::new(), MAC, Pool::new(1, 1_514)).err();
    assert_eq!(small, Some(OpenError::SmallBuffers(1_514)));
}

/// The classical fault: one word too many is read when frame and FCS end on a word, as every 60-byte acknowledgement does.
#[test]
fn frames_that_end_on_a_word_do_not_eat_the_next() {
    let (mut chip, model, _) = open();
    let frames: Vec<_> = (60..=80).chain([1_514]).map(|len| frame(len, len as u8)).collect();
    for chunk in frames.chunks(6) {
        chunk.iter().for_each(|frame| assert!(model.borrow_mut().arrive(frame)));
        assert_eq!(receive(&mut chip, 16), chunk);
    }
    assert_eq!(model.borrow().faults, 0);
}

/// The other classical fault: all interrupts are cleared after looking, and what came in between is not heard of.
#[test]
fn a_frame_that_comes_while_interrupts_are_cleared_is_heard_of() {
    let (mut chip, model, _) = open();
    model.borrow_mut().meanwhile = Some(frame(60, 1));
    assert!(chip.arm(NOW), "it has come already");
    assert_eq!(receive(&mut chip, 16).len(), 1);
    // And one that comes later interrupts.
    assert!(!chip.arm(NOW) && !model.borrow().interrupts());
    model.borrow_mut().arrive(&frame(60, 2));
    assert!(model.borrow().interrupts());
    super::silence(&mut Rc::clone(&model));
    assert!(!model.borrow().interrupts());
}

/// For a loop that lets frames wait until there are so many.
#[test]
fn it_interrupts_at_the_frame_that_was_asked_for() {
    let (mut chip, model, _) = open();
    assert_eq!(chip.arm_for(NOW, 3), Some(false));
    for waiting in 1..=3 {
        model.borrow_mut().arrive(&frame(60, waiting));
        assert_eq!((chip.waiting(), model.borrow().interrupts()), (waiting.into(), waiting == 3));
    }
    assert_eq!((chip.arm_for(NOW, 3), chip.arm_for(NOW, 4)), (Some(true), Some(false)));
    assert_eq!(receive(&mut chip, 16).len(), 3);
    assert_eq!(chip.most_counted(), Some(4));
    // None is one, and more than the FIFO surely holds are as many as it does.
    assert_eq!(chip.arm_for(NOW, 0), Some(false));
    model.borrow_mut().arrive(&frame(60, 1));
    assert!(model.borrow().interrupts());
    assert_eq!(chip.arm_for(NOW, u32::MAX), Some(false));
    for waiting in 2..=4 {
        model.borrow_mut().arrive(&frame(60, waiting));
        assert_eq!(model.borrow().interrupts(), waiting == 4);
    }
}

/// What comes between reading the events and clearing them stays.
#[test]
fn a_link_that_goes_while_interrupts_are_cleared_is_heard_of() {
    let (mut chip, model, _) = open();
    model.borrow_mut().link_goes_meanwhile = true;
    assert!(!chip.arm(NOW));
    assert!(model.borrow().interrupts());
    assert!(chip.arm(NOW));
    assert_eq!(chip.link(), LinkState::DOWN);
}

#[test]
fn a_full_fifo_drops_and_counts_and_goes_on() {
    let (mut chip, model, _) = open();
    let taken = (0..8).filter(|n| model.borrow_mut().arrive(&frame(1_514, *n))).count();
    assert_eq!(taken, super::FIFO_FRAMES);
    assert_eq!(receive(&mut chip, 16).len(), taken);
    assert!(!chip.arm(NOW));
    assert_eq!(chip.stats().drop_rx_overrun, 2);
    model.borrow_mut().arrive(&frame(100, 9));
    assert_eq!(receive(&mut chip, 16), [frame(100, 9)]);
}

#[test]
fn frames_with_errors_are_left_out_and_counted() {
    let (mut chip, model, pool) = open();
    {
        let mut model = model.borrow_mut();
        model.arrive(&frame(60, 1));
        model.arrive_with(&frame(60, 2), regs::RX_BAD);
        // Cut off by a collision: fewer words than the chip can skip.
        model.arrive_with(&frame(5, 3), regs::RX_BAD);
        model.arrive_with(&frame(1_900, 4), 0);
        // Less than a header.
        model.arrive(&frame(13, 4));
        model.arrive(&frame(61, 5));
    }
    assert_eq!(receive(&mut chip, 16), [frame(60, 1), frame(61, 5)]);
    assert_eq!((chip.stats().drop_rx_errors, model.borrow().faults, pool.free()), (4, 0, 16));
}

/// The longest packet with a tag, as for a priority, has 1,522 bytes with its FCS.
#[test]
fn a_full_frame_with_a_tag_is_received() {
    let (mut chip, model, _) = open();
    let (mut tagged, mut longer) = (frame(1_518, 1), frame(1_519, 2));
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    longer[12..14].copy_from_slice(&[0x81, 0]);
    for frame in [&tagged, &frame(1_518, 3), &longer] {
        model.borrow_mut().arrive(frame);
    }
    assert_eq!(receive(&mut chip, 16), [tagged]);
    assert_eq!(chip.stats().drop_rx_errors, 2);
}

/// Pause frames are sent to whom they are agreed with: both ends know them, and frames go both ways at once.
#[test]
fn pause_frames_are_sent_where_both_ends_know_them() {
    let (mut chip, model, _) = open();
    assert_eq!(model.borrow().flow, regs::AFC_LEVELS | regs::AFC_ANY_FRAME);
    for (partner, expected) in [(0x41e1, 0), (0x45e1, 1), (0x44a1, 0), (0x4461, 1), (0x0000, 0)] {
        model.borrow_mut().set_link(true, partner);
        chip.arm(NOW);
        assert_eq!(model.borrow().flow, regs::AFC_LEVELS | expected, "{partner:#06x}");
    }
    model.borrow_mut().set_link(true, 0x45e1);
    chip.arm(NOW);
    model.borrow_mut().set_link(false, 0);
    chip.arm(NOW);
    assert_eq!(model.borrow().flow, regs::AFC_LEVELS);
}

#[test]
fn a_link_of_half_duplex_at_the_start_is_followed() {
    let model = Model::new();
    model.borrow_mut().phy[phy::ANLPAR as usize] = 0x40a1;
    let chip = Lan9118::open(Rc::clone(&model), MAC, Pool::new(1, BUFFER_SIZE)).unwrap();
    assert!(!chip.link().is_full_duplex);
    assert_eq!(model.borrow().mac[mac::CR as usize] & mac::FULL_DUPLEX, 0);
}

#[test]
fn without_buffers_frames_wait_in_the_chip() {
    let (mut chip, model, pool) = open();
    let taken: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    model.borrow_mut().arrive(&frame(60, 1));
    assert!(receive(&mut chip, 16).is_empty());
    assert!(!chip.arm(NOW), "it would not get further");
    assert!(!model.borrow().interrupts());
    assert!(chip.poll_timeout().is_some(), "it looks again");
    drop(taken);
    assert_eq!(receive(&mut chip, 16), [frame(60, 1)]);
    assert_eq!((chip.poll_timeout(), chip.stats().rx_starved), (None, 1));
}

#[test]
fn the_sum_of_a_frame_is_that_of_its_bytes() {
    let (mut chip, model, _) = open();
    for len in 14..200 {
        model.borrow_mut().arrive(&frame(len, 7));
        let mut batch = RxBatch::with_limit(1);
        chip.receive(NOW, &mut batch).unwrap();
        let received = batch.pop().unwrap();
        let expected = linerate_wire::checksum::checksum(&frame(len, 7)[14..]);
        assert_eq!(received.meta.raw_sum, Some(!expected), "{len}");
    }
}

#[test]
fn packets_leave_whole_and_their_completions_come_once() {
    let (mut chip, model, _) = open();
    let header = frame(54, 1);
    let body = frame(1_461, 2);
    let pieces: [&[u8]; 4] = [&body[..1], &body[1..8], &[], &body[8..]];
    assert_eq!(send(&mut chip, &[(&header, &pieces), (&header, &[])]), 2);
    let whole = [header.as_slice(), &body[..]].concat();
    assert_eq!(model.borrow().sent, [whole, header]);
    assert_eq!(chip.poll_completion(), Some(TxToken(1)));
    assert_eq!(chip.poll_completion(), Some(TxToken(2)));
    assert_eq!((chip.poll_completion(), model.borrow().faults), (None, 0));
}

/// A piece in the middle has four bytes at least. What is joined takes no more of the FIFO than the pieces as they were.
#[test]
fn short_pieces_are_joined_with_what_follows() {
    let (mut chip, model, _) = open();
    let (header, body) = (frame(54, 1), frame(64, 2));
    let mut check = |lengths: &[usize]| {
        let mut rest = &body[..];
        let mut pieces = Vec::new();
        let mut words = 2 + header.len().div_ceil(4);
        for len in lengths {
            let (piece, others) = rest.split_at(*len);
            pieces.push(piece);
            rest = others;
            words += 2 * usize::from(*len > 0) + len.div_ceil(4);
        }
        model.borrow_mut().written = 0;
        model.borrow_mut().sent.clear();
        assert_eq!(send(&mut chip, &[(&header, &pieces)]), 1);
        let sum: usize = lengths.iter().sum();
        let whole = [&header[..], &body[..sum]].concat();
        let model = model.borrow();
        assert_eq!(model.sent, [whole], "{lengths:?}");
        assert_eq!((model.faults, model.events & regs::INT_TX_ERROR), (0, 0), "{lengths:?}");
        assert!(model.written <= words, "{lengths:?}: {} words of {words}", model.written);
        while chip.poll_completion().is_some() {}
    };
    for first in 0..6 {
        for second in 0..6 {
            for third in 0..6 {
                for last in [0, 1, 3, 4, 5, 40] {
                    check(&[first, second, third, last]);
                }
            }
        }
    }
}

#[test]
fn a_full_transmit_fifo_takes_what_fits_and_tells_when_there_is_room() {
    let (mut chip, model, _) = open();
    model.borrow_mut().is_slow = true;
    let (header, body) = (frame(54, 1), frame(1_446, 2));
    let pieces: [&[u8]; 1] = [&body];
    let packets: Vec<(&[u8], &[&[u8]])> = (0..5).map(|_| (&header[..], &pieces[..])).collect();
    assert_eq!(send(&mut chip, &packets), 3);
    while chip.poll_completion().is_some() {}
    assert!(!chip.arm(NOW) && !model.borrow().interrupts());
    model.borrow_mut().leave();
    assert!(model.borrow().interrupts());
    assert_eq!(send(&mut chip, &packets[..2]), 2);
    assert_eq!((model.borrow().sent.len(), model.borrow().faults), (5, 0));
}

#[test]
fn failed_frames_are_counted() {
    let (mut chip, model, _) = open();
    model.borrow_mut().fails = true;
    send(&mut chip, &[(&frame(60, 1), &[])]);
    send(&mut chip, &[(&frame(60, 2), &[])]);
    assert_eq!((chip.stats().drop_tx_errors, chip.stats().tx_frames), (1, 2));
}

#[test]
fn fifos_in_disorder_are_emptied_and_it_goes_on() {
    let (mut chip, model, _) = open();
    model.borrow_mut().arrive(&frame(60, 1));
    model.borrow_mut().rx_data.pop_front();
    model.borrow_mut().events |= regs::INT_RX_ERROR | regs::INT_TX_ERROR;
    assert!(!chip.arm(NOW));
    assert_eq!((chip.stats().rx_resets, chip.stats().tx_resets), (1, 1));
    assert_eq!(model.borrow().faults, 0, "both sides stood still");
    model.borrow_mut().arrive(&frame(70, 2));
    assert_eq!(receive(&mut chip, 16), [frame(70, 2)]);
    send(&mut chip, &[(&frame(60, 3), &[])]);
    assert_eq!(model.borrow().sent, [frame(60, 3)]);
}

/// A side that does not stop is not waited for without end.
#[test]
fn fifos_of_sides_that_do_not_stop_are_emptied_all_the_same() {
    let (mut chip, model, _) = open();
    for stuck in [regs::TX_CFG, regs::MAC_CSR_CMD] {
        model.borrow_mut().events |= regs::INT_RX_ERROR | regs::INT_TX_ERROR;
        model.borrow_mut().stuck = Some(stuck);
        chip.arm(NOW);
    }
    assert_eq!((chip.stats().rx_resets, chip.stats().tx_resets), (2, 2));
    model.borrow_mut().stuck = None;
    model.borrow_mut().events |= regs::INT_RX_ERROR;
    chip.arm(NOW);
    model.borrow_mut().arrive(&frame(70, 2));
    assert_eq!(receive(&mut chip, 16), [frame(70, 2)]);
    send(&mut chip, &[(&frame(60, 3), &[])]);
    assert_eq!(model.borrow().sent, [frame(60, 3)]);
}

#[test]
fn the_cable_is_pulled_and_put_back_into_a_slower_port() {
    let (mut chip, model, _) = open();
    assert!(!chip.arm(NOW));
    model.borrow_mut().set_link(false, 0);
    assert!(model.borrow().interrupts());
    assert!(chip.arm(NOW), "the stack hears of it");
    assert_eq!(chip.link(), LinkState::DOWN);
    // 10 Mb/s, half duplex.
    model.borrow_mut().set_link(true, 0x4021);
    assert!(chip.arm(NOW));
    let expected = LinkState { is_up: true, speed: Some(Rate::from_bps(10_000_000)), is_full_duplex: false };
    assert_eq!(chip.link(), expected);
    assert_eq!(model.borrow().mac[mac::CR as usize] & mac::FULL_DUPLEX, 0);
    model.borrow_mut().set_link(true, 0x45e1);
    assert!(chip.arm(NOW));
    assert_ne!(model.borrow().mac[mac::CR as usize] & mac::FULL_DUPLEX, 0);
    assert_eq!(chip.stats().link_changes, 3);
}

#[test]
fn a_spurious_interrupt_is_nothing() {
    let (mut chip, model, _) = open();
    model.borrow_mut().events |= regs::INT_PHY | regs::INT_RX_STATUS;
    assert!(!chip.arm(NOW));
    assert_eq!(receive(&mut chip, 16), Vec::<Vec<u8>>::new());
    assert_eq!(model.borrow().faults, 0);
}

#[test]
fn the_filter_is_the_chips() {
    let (mut chip, model, _) = open();
    let filter = Filter { groups: &[], all_groups: false, promiscuous: false };
    let all = MacAddr([1, 0, 0x5e, 0, 0, 1]);
    // CRC-32 of this address, bit by bit as the chip has it, begins with 0b10000.
    chip.set_filter(&Filter { groups: &[all], ..filter }).unwrap();
    let hash = control::hash(all);
    let table = u64::from(model.borrow().mac[mac::HASHL as usize])
        | u64::from(model.borrow().mac[mac::HASHH as usize]) << 32;
    assert_eq!(table, 1 << hash);
    let cr = |model: &Chip| model.borrow().mac[mac::CR as usize] & (mac::PROMISCUOUS | mac::ALL_GROUPS);
    assert_eq!(cr(&model), 0);
    chip.set_filter(&Filter { promiscuous: true, ..filter }).unwrap();
    assert_eq!(cr(&model), mac::PROMISCUOUS);
    chip.set_filter(&Filter { all_groups: true, ..filter }).unwrap();
    assert_eq!(cr(&model), mac::ALL_GROUPS);
    assert_eq!(chip.enable(Capabilities::ALL), Err(DeviceError::Unsupported));
}

/// The polynomial and the bits that the chip takes: known values of the Ethernet CRC.
#[test]
fn groups_have_the_hash_of_their_crc() {
    // The FCS of these six bytes, as zlib's crc32 gives it, from its lowest bit up is the chip's from the highest down.
    let reflected = |bytes: &[u8]| {
        bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
        })
    };
    assert_eq!(!reflected(b"123456789"), 0xcbf4_3926);
    for group in [[1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1], [0x33, 0x33, 0xff, 0xa8, 1, 0x32]] {
        assert_eq!(control::hash(MacAddr(group)), reflected(&group).reverse_bits() >> 26);
    }
}

proptest! {
    /// Whatever comes and goes: frames arrive as they were, or are counted as dropped; what is sent leaves as it was.
    #[test]
    fn nothing_is_lost_doubled_or_changed(
        steps in proptest::collection::vec((0..4u8, 14..1_515usize, any::<u8>(), 1..9usize), 1..200),
    ) {
        let (mut chip, model, pool) = open();
        let mut expected = alloc::collections::VecDeque::new();
        let mut sent = Vec::new();
        for (what, len, seed, limit) in steps {
            match what {
                0 | 1 => {
                    let frame = frame(len, seed);
                    if model.borrow_mut().arrive(&frame) {
                        expected.push_back(frame);
                    }
                }
                2 => {
                    for frame in receive(&mut chip, limit) {
                        prop_assert_eq!(Some(frame), expected.pop_front());
                    }
                }
                _ => {
                    let packet = frame(len, seed);
                    let (header, body) = packet.split_at(14);
                    let cut = body.len() / 3;
                    prop_assert_eq!(send(&mut chip, &[(header, &[&body[..cut], &body[cut..]])]), 1);
                    while chip.poll_completion().is_some() {}
                    sent.push(packet);
                }
            }
        }
        while !expected.is_empty() {
            prop_assert!(chip.arm(NOW));
            for frame in receive(&mut chip, 16) {
                prop_assert_eq!(Some(frame), expected.pop_front());
            }
        }
        prop_assert_eq!(&model.borrow().sent, &sent);
        prop_assert_eq!((model.borrow().faults, pool.free()), (0, 16));
    }
}

#[test]
fn a_port_works_with_it() {
    let (chip, _, _) = open();
    let port = Port::new(chip, PortConfig::default()).unwrap();
    assert_eq!((port.mac(), port.mtu(), port.enabled()), (MAC, 1_500, control::CAPABILITIES));
}
