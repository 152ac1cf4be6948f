//! From a board and some memory to a control and queues.

use crate::bus::{Bus, Platform};
use crate::device::Capabilities;
use crate::gem::control::{Control, Facts};
use crate::gem::error::OpenError;
use crate::gem::mdio::Phy;
use crate::gem::queue::{Shape, StoppedQueue};
use crate::gem::regs::{self, FIRST_GEM, QueueRegisters, cause};
use crate::gem::screener;
use crate::gem::settings::{ALIGN, Layout, MAX_QUEUES, RECEIVE_BUFFER, RING, Settings};
use crate::meta::MacAddr;
use alloc::vec::Vec;

/// `designcfg_debug2`: packets are held whole in both directions, without which there are no checksums.
const DESIGN_2: u32 = 0x284;
const HOLDS_PACKETS: u32 = 1 << 20 | 1 << 21;
/// The fastest clock of the PHY's lines, of clause 22.
const MANAGEMENT_HZ: u32 = 2_500_000;
/// What the clock of the registers can be divided by, in the order of the field.
const DIVIDERS: [u32; 8] = [8, 16, 32, 48, 64, 96, 128, 224];
/// `type_id_match_1` to 4.
const TYPE_MATCHES: core::ops::RangeInclusive<u32> = 0x0A8..=0x0B4;

/// Whether a GEM answers at these registers.
pub fn is_gem(board: &impl Bus) -> bool {
    let module = board.read(regs::REVISION) >> 16 & 0xFFF;
    // Nothing there reads as all ones, or as nothing.
    module >= FIRST_GEM && module != 0xFFF
}

/// Resets the device, lays the rings out in descriptor memory, finds the PHY, and sets up the MAC.
///
/// `base` and `len` are memory for descriptors ([`memory_len`](crate::gem::memory_len)), by its bus address, seen by both
/// sides without a cache, and the driver's alone for as long as control or a queue exists. A queue receives nothing before it is
/// started; queues that are not used get rings of one descriptor without a buffer, as the hardware asks for.
///
/// # Errors
/// What was found, and what was expected. The device is off then.
pub fn open<P: Platform>(
    board: P,
    (base, len): (u64, usize),
    settings: &Settings,
) -> Result<(Control<P>, Vec<StoppedQueue<P>>), OpenError> {
    if !is_gem(&board) {
        return Err(OpenError::NoGem(board.read(regs::REVISION)));
    }
    let design = board.read(regs::DESIGN_6);
    let layout = Layout::new(base, settings, design & regs::HAS_64 != 0);
    // The first queue is not among the bits.
    let built_in = design & 0xFF | 1;
    check(settings, layout, (base, len), built_in)?;
    reset(&board, built_in);
    let mac = choose_address(&board, settings.mac)?;
    let (frames, dma) = configuration(&board, settings, layout);
    lay_out(&board, layout, built_in);
    board.write(regs::NETWORK_CONFIG, frames);
    board.write(regs::NETWORK_CONTROL, regs::MANAGEMENT);
    let phy = match settings.phy {
        Some(address) => Some(Phy(address)).filter(|phy| phy.is_there(&board)),
        None => Phy::find(&board),
    };
    let Some(phy) = phy else {
        board.write(regs::NETWORK_CONTROL, 0);
        return Err(OpenError::NoPhy(settings.phy));
    };
    phy.wake(&board);
    let facts = Facts {
        mac,
        queues: settings.queues,
        phy,
        capabilities: capabilities(&board, settings.offloads),
        screeners: settings.screeners.unwrap_or_else(|| screener::built_in(&board)),
        link_every: settings.link_every,
        frames,
        dma,
        layout,
    };
    let mut control = Control::new(board.clone(), facts);
    // None are left of whoever had the device before.
    let cleared = control.set_screeners(&[]);
    debug_assert_eq!(cleared, Ok(()));
    board.write(regs::NETWORK_CONTROL, regs::RUNNING);
    let queues = (0..settings.queues as u16).map(|index| {
        let poll = settings.priority_poll.filter(|_| index > 0);
        let look_every = poll.or(settings.look_every);
        StoppedQueue::new(board.clone(), Shape { index, layout, look_every, interrupts: poll.is_none() })
    });
    Ok((control, queues.collect()))
}

fn check(
    settings: &Settings,
    layout: Layout,
    (base, have): (u64, usize),
    built_in: u32,
) -> Result<(), OpenError> {
    for len in [settings.receive_ring, settings.transmit_ring] {
        if !RING.contains(&len) {
            return Err(OpenError::Length(len));
        }
    }
    let most = if built_in & 1 << 1 != 0 { MAX_QUEUES } else { 1 };
    if !(1..=most).contains(&settings.queues) {
        return Err(OpenError::Queues { want: settings.queues, have: most });
    }
    let need = layout.bytes() as usize;
    if !base.is_multiple_of(ALIGN) || have < need {
        return Err(OpenError::Memory { base, have, need });
    }
    let is_wide = layout.is_wide;
    let last = base.checked_add(need as u64 - 1).ok_or(OpenError::Half { base, is_wide })?;
    if base >> 32 != last >> 32 || !is_wide && last >> 32 != 0 {
        return Err(OpenError::Half { base, is_wide });
    }
    Ok(())
}

/// Stops everything, and forgets what has happened.
fn reset(board: &impl Bus, built_in: u32) {
    board.write(regs::NETWORK_CONTROL, 0);
    board.write(regs::NETWORK_CONTROL, regs::CLEAR_STATISTICS);
    board.write(regs::TRANSMIT_STATUS, !0);
    board.write(regs::RECEIVE_STATUS, !0);
    for queue in queues(built_in) {
        let registers = QueueRegisters::of(queue);
        board.write(registers.disable, cause::ALL);
        // Cleared by the one or the other.
        let come = board.read(registers.status);
        board.write(registers.status, come);
    }
    for half in [regs::HASH, regs::HASH + 4] {
        board.write(half, 0);
    }
    TYPE_MATCHES.step_by(4).for_each(|register| board.write(register, 0));
}

/// The queues that are built in.
fn queues(built_in: u32) -> impl Iterator<Item = u16> {
    (0..8).filter(move |queue| built_in >> queue & 1 != 0)
}

/// The address that was given, or the one that lies in the device; it filters by it.
fn choose_address(board: &impl Bus, given: Option<MacAddr>) -> Result<MacAddr, OpenError> {
    let mac = given.unwrap_or_else(|| {
        let [a, b, c, d] = board.read(regs::ADDRESS_LOW).to_le_bytes();
        let [e, f, ..] = board.read(regs::ADDRESS_HIGH).to_le_bytes();
        MacAddr([a, b, c, d, e, f])
    });
    let [a, b, c, d, e, f] = mac.0;
    if mac.0 == [0; 6] || a & 1 != 0 {
        return Err(OpenError::NoAddress);
    }
    board.write(regs::ADDRESS_LOW, u32::from_le_bytes([a, b, c, d]));
    board.write(regs::ADDRESS_HIGH, u32::from_le_bytes([e, f, 0, 0]));
    Ok(mac)
}

/// `network_config` and `dma_config`, without what changes later.
fn configuration(board: &impl Bus, settings: &Settings, layout: Layout) -> (u32, u32) {
    let clock = settings.register_clock_hz;
    let divider = DIVIDERS.iter().position(|divider| clock.div_ceil(*divider) <= MANAGEMENT_HZ);
    let divider = divider.unwrap_or(DIVIDERS.len() - 1) as u32;
    let bus_width = match board.read(regs::DESIGN_1) >> 25 & 0b111 {
        4 => 0b10,
        2 => 0b01,
        _ => 0b00,
    };
    let frames = board.read(regs::NETWORK_CONFIG) & regs::PCS
        | regs::LONG_FRAMES
        | regs::REMOVE_FCS
        | divider << regs::MANAGEMENT_CLOCK_SHIFT
        | bus_width << regs::BUS_WIDTH_SHIFT;
    let dma = regs::BURST_16
        | regs::ALL_PACKET_MEMORY
        | (RECEIVE_BUFFER as u32 / 64) << regs::BUFFER_SIZE_SHIFT
        | if layout.is_wide { regs::ADDRESSES_64 } else { 0 };
    (frames, dma)
}

/// What is asked of it and built in.
fn capabilities(board: &impl Bus, wanted: Capabilities) -> Capabilities {
    let has = board.read(DESIGN_2) & HOLDS_PACKETS == HOLDS_PACKETS;
    Capabilities {
        tx_checksum4: has && wanted.tx_checksum4,
        tx_checksum6: has && wanted.tx_checksum6,
        rx_checksum: has && wanted.rx_checksum,
        gather: true,
        ..Capabilities::NONE
    }
}

/// Points all queues to the rings of those that are not used.
fn lay_out(board: &impl Bus, layout: Layout, built_in: u32) {
    let (receive, transmit) = (layout.idle_receive(), layout.idle_transmit());
    receive.take_receive(board, 0, layout.scrap());
    transmit.take_transmit(board, 0);
    for word in [layout.enabled(), layout.link(), layout.stops(0), layout.stops(1)] {
        board.store(word, 0);
    }
    if layout.is_wide {
        board.write(regs::RECEIVE_BASE_HIGH, (receive.base >> 32) as u32);
        board.write(regs::TRANSMIT_BASE_HIGH, (transmit.base >> 32) as u32);
    }
    for queue in queues(built_in) {
        let registers = QueueRegisters::of(queue);
        board.write(registers.receive_base, receive.base as u32);
        board.write(registers.transmit_base, transmit.base as u32);
        if let Some(size) = registers.buffer_size {
            board.write(size, RECEIVE_BUFFER as u32 / 64);
        }
    }
}
