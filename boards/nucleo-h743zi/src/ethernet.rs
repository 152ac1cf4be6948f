//! The network device of this board: embassy's driver for the chip's Ethernet, as a device of ours.

use crate::SETTINGS;
use crate::interrupts::{self, Lines};
use crate::phy::Lan8742;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use embassy_stm32::Peri;
use embassy_stm32::eth::{Ethernet, PacketQueue, Sma};
use embassy_stm32::peripherals::{ETH, ETH_SMA, PA1, PA2, PA7, PB13, PC1, PC4, PC5, PG11, PG13};
use linerate_embedded::{DriverError, EmbassyDevice};
use linerate_firmware::Counting;
use linerate_nic::{Device, Pool, QueuePair, pass_on};

/// Frames that wait in the driver, received and to be sent.
pub const RECEIVE_RING: usize = 24;
const TRANSMIT_RING: usize = 16;
/// Frames taken in and packets handed over at once.
pub const BATCH: usize = 8;
/// Bytes of a receive buffer.
const BUFFER: usize = 1_536;

type Packets = PacketQueue<TRANSMIT_RING, RECEIVE_RING>;

struct PacketMemory(UnsafeCell<MaybeUninit<Packets>>);

// SAFETY: `open` hands it out once, as it takes the peripheral of which there is one.
unsafe impl Sync for PacketMemory {}

// SAFETY: this section is memory as any other, whose bytes are nothing yet, as the type says.
#[unsafe(link_section = ".packet")]
static PACKETS: PacketMemory = PacketMemory(UnsafeCell::new(MaybeUninit::uninit()));

/// The pins of the RMII, as this board wires them (UM1974).
pub struct Wires {
    pub ref_clk: Peri<'static, PA1>,
    pub mdio: Peri<'static, PA2>,
    pub crs_dv: Peri<'static, PA7>,
    pub mdc: Peri<'static, PC1>,
    pub rxd0: Peri<'static, PC4>,
    pub rxd1: Peri<'static, PC5>,
    pub tx_en: Peri<'static, PG11>,
    pub txd0: Peri<'static, PG13>,
    pub txd1: Peri<'static, PB13>,
}

/// The interface.
pub struct Nic(EmbassyDevice<Ethernet<'static, ETH, Lan8742>>);

/// The device and its pool.
pub struct Opened {
    pub device: Nic,
    pub receive: Pool,
}

/// Resets the interface, waits for the PHY, and starts it.
pub fn open(
    ethernet: Peri<'static, ETH>,
    management: Peri<'static, ETH_SMA>,
    wires: Wires,
) -> Result<Opened, DriverError> {
    // SAFETY: the peripheral is taken, so this is the first call and the only one.
    let packets = unsafe { &mut *PACKETS.0.get() };
    Packets::init(packets);
    // SAFETY: `init` has just written it.
    let packets = unsafe { packets.assume_init_mut() };
    let phy = Lan8742::new(Sma::new(management, wires.mdio, wires.mdc));
    let Wires { ref_clk, crs_dv, rxd0, rxd1, txd0, txd1, tx_en, .. } = wires;
    let driver = Ethernet::new_with_phy(
        packets,
        ethernet,
        Lines,
        ref_clk,
        crs_dv,
        rxd0,
        rxd1,
        txd0,
        txd1,
        tx_en,
        SETTINGS.mac,
        phy,
    );
    let receive = Pool::new(SETTINGS.receive_buffers, BUFFER);
    let mut device = EmbassyDevice::new(driver, receive.clone())?;
    device.set_waker(&interrupts::waker());
    Ok(Opened { device: Nic(device), receive })
}

impl Counting for Nic {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let stats = self.0.stats();
        visit("drop_rx_oversize", stats.received_oversize);
        visit("drop_tx_oversize", stats.sent_oversize);
    }
}

impl Device for Nic {
    pass_on!(0: all of Device);
}

impl QueuePair for Nic {
    pass_on!(0: all of QueuePair);
}
