//! Reset, setup, and what is reached in several steps: MAC and PHY.

use super::{BUFFER_SIZE, COMPLETIONS, Lan9118, OpenError, Registers, Stats, regs};
use alloc::collections::VecDeque;
use linerate_nic::{LinkState, MacAddr, Pool};
use linerate_wire::units::Rate;
use regs::{mac, phy};

/// Ticks of `FREE_RUN`, 25 MHz.
pub(super) const MS: u32 = 25_000;
/// The longest wait for the EEPROM: the chip takes some milliseconds to read the address, or to find that there is none.
const EEPROM: u32 = 100 * MS;
/// Readings after which a wait ends though the chip's clock stands still.
const MOST_READINGS: u32 = 1_000_000;
/// The longest wait for a MAC or PHY register: a PHY access takes 64 bits at 2.5 MHz.
const ACCESS: u32 = MS;

impl<R: Registers> Lan9118<R> {
    /// Resets the chip, gives it its address, and starts it. Frames are received into buffers of `pool`.
    ///
    /// The link is not waited for: it comes up by itself, and an interrupt tells.
    pub fn open(registers: R, mac: MacAddr, pool: Pool) -> Result<Self, OpenError> {
        if pool.buffer_size() < BUFFER_SIZE {
            return Err(OpenError::SmallBuffers(pool.buffer_size()));
        }
        let mut chip = Lan9118 {
            registers,
            mac,
            link: LinkState::DOWN,
            pool,
            mac_cr: mac::TX_ENABLE | mac::RX_ENABLE | mac::FULL_DUPLEX,
            filter: mac::HASH_PERFECT,
            completions: VecDeque::with_capacity(COMPLETIONS),
            wants_room: None,
            starved_until: None,
            stats: Stats::default(),
        };
        chip.identify()?;
        chip.reset()?;
        chip.start()?;
        Ok(chip)
    }

    fn identify(&mut self) -> Result<(), OpenError> {
        // A chip that sleeps answers the first reading with nothing.
        let answers = self.wait(10 * MS, |r| r.read(regs::BYTE_TEST) == regs::BYTE_TEST_VALUE);
        if !answers {
            return Err(OpenError::NoAnswer(self.registers.read(regs::BYTE_TEST)));
        }
        let id = self.registers.read(regs::ID_REV);
        match id >> 16 {
            0x0115..=0x0118 | 0x115a | 0x117a | 0x9210 | 0x9211 | 0x9220 | 0x9221 => Ok(()),
            _ => Err(OpenError::OtherChip(id)),
        }
    }

    fn reset(&mut self) -> Result<(), OpenError> {
        self.registers.write(regs::HW_CFG, regs::SOFT_RESET);
        self.wait_for("reset", 10 * MS, |r| r.read(regs::HW_CFG) & regs::SOFT_RESET == 0)?;
        // After a reset the chip may load the address that the EEPROM has, and would do so over ours.
        self.wait_for("reading the EEPROM", EEPROM, |r| r.read(regs::E2P_CMD) & regs::EEPROM_BUSY == 0)?;
        self.registers.write(regs::HW_CFG, regs::MUST_BE_ONE | 5 << regs::TX_FIFO_KIB_SHIFT);
        self.registers.write(regs::INT_EN, 0);
        self.registers.write(regs::INT_STS, u32::MAX);
        let pin = regs::IRQ_ENABLE | regs::IRQ_ACTIVE_HIGH | regs::IRQ_PUSH_PULL;
        self.registers.write(regs::IRQ_CFG, pin);
        Ok(())
    }

    fn start(&mut self) -> Result<(), OpenError> {
        let [a, b, c, d, e, f] = self.mac.0;
        self.write_mac(mac::ADDRL, u32::from_le_bytes([a, b, c, d]))?;
        self.write_mac(mac::ADDRH, u32::from_le_bytes([e, f, 0, 0]))?;
        self.write_mac(mac::FLOW, mac::PAUSE)?;
        self.write_mac(mac::VLAN1, mac::TAG)?;
        self.write_phy(phy::ANAR, phy::ADVERTISED)?;
        self.write_phy(phy::INTERRUPT_MASK, phy::LINK_CHANGED)?;
        self.write_phy(phy::BMCR, phy::NEGOTIATE)?;
        self.registers.write(regs::RX_CFG, 2 << regs::RX_OFFSET_SHIFT);
        self.registers.write(regs::TX_CFG, regs::TX_ON | regs::TX_STATUS_OVERRUN);
        self.look_at_link()?;
        self.follow_link()
    }

    /// Reads the state of the link from the PHY; returns whether it changed.
    pub(super) fn look_at_link(&mut self) -> Result<bool, OpenError> {
        // Reading says that we have heard it.
        self.read_phy(phy::INTERRUPT_SOURCE)?;
        // A link that went and came back since the last reading reads as down once (IEEE 802.3, 22.2.4.2.13).
        self.read_phy(phy::BMSR)?;
        let mut pauses = false;
        let link = if self.read_phy(phy::BMSR)? & phy::LINK_UP == 0 {
            LinkState::DOWN
        } else {
            let common = self.read_phy(phy::ANLPAR)? & phy::ADVERTISED;
            let is_fast = common & (phy::FULL_100 | phy::HALF_100) != 0;
            // The best that both can (IEEE 802.3 annex 28B.3); a partner that does not negotiate is half duplex.
            let is_full_duplex =
                common & phy::FULL_100 != 0 || (common & phy::HALF_100 == 0 && common & phy::FULL_10 != 0);
            // In half duplex it would be collisions on purpose; and a partner that does not know pauses does not obey them.
            pauses = is_full_duplex && common & phy::PAUSE != 0;
            LinkState {
                is_up: true,
                speed: Some(Rate::from_bps(if is_fast { 100_000_000 } else { 10_000_000 })),
                is_full_duplex,
            }
        };
        let any_frame = if pauses { regs::AFC_ANY_FRAME } else { 0 };
        self.registers.write(regs::AFC_CFG, regs::AFC_LEVELS | any_frame);
        let changed = link != self.link;
        self.link = link;
        Ok(changed)
    }

    /// Sets full or half duplex as the link has it.
    pub(super) fn follow_link(&mut self) -> Result<(), OpenError> {
        if self.link.is_up {
            self.mac_cr &= !mac::FULL_DUPLEX;
            if self.link.is_full_duplex {
                self.mac_cr |= mac::FULL_DUPLEX;
            }
        }
        self.write_mac(mac::CR, self.mac_cr | self.filter)
    }

    pub(super) fn write_mac(&mut self, register: u32, value: u32) -> Result<(), OpenError> {
        self.registers.write(regs::MAC_CSR_DATA, value);
        self.registers.write(regs::MAC_CSR_CMD, regs::CSR_BUSY | register);
        self.wait_for("a write to the MAC", ACCESS, |r| r.read(regs::MAC_CSR_CMD) & regs::CSR_BUSY == 0)
    }

    fn read_mac(&mut self, register: u32) -> Result<u32, OpenError> {
        self.registers.write(regs::MAC_CSR_CMD, regs::CSR_BUSY | regs::CSR_READ | register);
        self.wait_for("a read of the MAC", ACCESS, |r| r.read(regs::MAC_CSR_CMD) & regs::CSR_BUSY == 0)?;
        Ok(self.registers.read(regs::MAC_CSR_DATA))
    }

    fn write_phy(&mut self, register: u32, value: u16) -> Result<(), OpenError> {
        self.write_mac(mac::MII_DATA, value.into())?;
        self.access_phy(register, mac::MII_WRITE)
    }

    fn read_phy(&mut self, register: u32) -> Result<u16, OpenError> {
        self.access_phy(register, 0)?;
        Ok(self.read_mac(mac::MII_DATA)? as u16)
    }

    fn access_phy(&mut self, register: u32, direction: u32) -> Result<(), OpenError> {
        let access = mac::INTERNAL_PHY | register << mac::MII_REGISTER_SHIFT | direction | mac::MII_BUSY;
        self.write_mac(mac::MII_ACC, access)?;
        let started = self.registers.read(regs::FREE_RUN);
        for _ in 0..MOST_READINGS {
            if self.read_mac(mac::MII_ACC)? & mac::MII_BUSY == 0 {
                return Ok(());
            }
            if self.registers.read(regs::FREE_RUN).wrapping_sub(started) > ACCESS {
                break;
            }
        }
        Err(OpenError::Stuck("an access to the PHY"))
    }

    pub(super) fn wait_for(
        &mut self,
        what: &'static str,
        ticks: u32,
        done: impl FnMut(&mut R) -> bool,
    ) -> Result<(), OpenError> {
        if self.wait(ticks, done) { Ok(()) } else { Err(OpenError::Stuck(what)) }
    }

    /// Asks until `done`, at most so many ticks of 40 ns.
    pub(super) fn wait(&mut self, ticks: u32, mut done: impl FnMut(&mut R) -> bool) -> bool {
        let mut started = None;
        for _ in 0..MOST_READINGS {
            if done(&mut self.registers) {
                return true;
            }
            let now = self.registers.read(regs::FREE_RUN);
            if now.wrapping_sub(*started.get_or_insert(now)) > ticks {
                break;
            }
        }
        false
    }
}
