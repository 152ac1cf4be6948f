//! What one frame costs on the devices: nanoseconds per frame, median of nine runs, for TAP and for AF_PACKET with several
//! batch sizes on a veth pair.
//!
//! It makes interfaces, and so runs in a network namespace of its own only:
//!
//! ```text
//! cargo build --release -p linerate-linux --example device_cost
//! sudo unshare --net target/release/examples/device_cost
//! ```

use linerate_linux::RxPools;
use linerate_linux::netconfig::{LinkChange, Netlink};
use linerate_linux::packet::{PacketConfig, PacketDevice, PacketOptions};
use linerate_linux::tap::{Tap, TapConfig};
use linerate_nic::{ChecksumRequest, Chunk, Interface, MacAddr, RxBatch, Segmentation, TxQueue};
use linerate_wire::units::Instant;
use std::error::Error;

static PAGE: [u8; 4096] = [0x5a; 4096];
const RUNS: usize = 9;
const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 4]);
/// The address of nobody: the receiving stack stops at the Ethernet header, and the device alone is measured.
const NOBODY: MacAddr = MacAddr([2, 0, 0, 0, 0, 99]);
const UP: LinkChange = LinkChange { up: Some(true), mtu: None, tx_queue_len: None, mac: None };

/// A size of frame, and how many make a run.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    payload: usize,
    segment_size: u16,
    frames: usize,
}

const LOADS: [Load; 3] = [
    Load { name: "66 B frame", payload: 12, segment_size: 0, frames: 512 },
    Load { name: "1,514 B frame", payload: 1460, segment_size: 0, frames: 512 },
    Load { name: "64 KiB super-frame", payload: 44 * 1460, segment_size: 1460, frames: 128 },
];

fn main() -> Result<(), Box<dyn Error>> {
    let interfaces = std::fs::read_to_string("/proc/net/dev")?;
    if interfaces.lines().filter(|line| line.contains(':')).any(|line| !line.trim_start().starts_with("lo:"))
    {
        return Err("this namespace has interfaces: run me under `unshare --net`".into());
    }
    for load in LOADS {
        tap(load)?;
    }
    for load in LOADS {
        for batch in [1, 4, 8, 16, 32] {
            packet(load, batch)?;
        }
    }
    Ok(())
}

/// Fills the queue with TCP frames to `to`.
fn fill(queue: &mut TxQueue, load: Load, to: MacAddr) {
    for _ in 0..load.frames {
        let Some(packet) = queue.vacant() else { return };
        let total = (40 + load.payload) as u16;
        let mut header = [to.0, NOBODY.0].concat();
        header.extend_from_slice(&[0x08, 0x00, 0x45, 0]);
        header.extend_from_slice(&total.to_be_bytes());
        header.extend_from_slice(&[0, 1, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 4, 10, 77, 0, 1]);
        header.extend_from_slice(&[0, 7, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        packet.header_mut(header.len()).copy_from_slice(&header);
        let mut left = load.payload;
        while left > 0 {
            let len = left.min(PAGE.len());
            if packet.push_chunk(Chunk::constant(&PAGE[..len])).is_err() {
                break;
            }
            left -= len;
        }
        packet.meta.header_len = 54;
        packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 16 });
        if load.segment_size != 0 {
            packet.meta.segmentation = Segmentation::Tcp4(load.segment_size);
        }
        queue.commit();
    }
}

/// Nanoseconds per frame of `work`, which says how many frames it moved; the median of the runs. `prepare` goes first.
fn median(
    mut prepare: impl FnMut() -> Result<(), Box<dyn Error>>,
    mut work: impl FnMut() -> Result<usize, Box<dyn Error>>,
) -> Result<u64, Box<dyn Error>> {
    let mut costs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        prepare()?;
        let start = std::time::Instant::now();
        let frames = work()?;
        let ns = start.elapsed().as_nanos() as u64;
        if frames == 0 {
            return Err("no frame moved".into());
        }
        costs.push(ns / frames as u64);
    }
    costs.sort_unstable();
    Ok(costs[RUNS / 2])
}

/// Sends all of `queue`.
fn send(device: &mut impl Interface, queue: &mut TxQueue) -> Result<usize, Box<dyn Error>> {
    let mut sent = 0;
    while !queue.is_empty() {
        sent += device.transmit(Instant::ZERO, queue)?;
    }
    Ok(sent)
}

/// Receives until nothing is left, dropping the frames.
fn drain(device: &mut impl Interface, batch: &mut RxBatch) -> Result<usize, Box<dyn Error>> {
    let mut received = 0;
    while device.receive(Instant::ZERO, batch)? > 0 {
        while batch.pop().is_some() {
            received += 1;
        }
    }
    Ok(received)
}

fn tap(load: Load) -> Result<(), Box<dyn Error>> {
    let mut tap = Tap::open(TapConfig::new(RxPools::for_memory(4 << 20, 1_500)))?;
    Netlink::open()?.change_link(tap.index(), &UP)?;
    // Queues are not shared between the closures: the one fills what the other empties.
    let queue = std::cell::RefCell::new(TxQueue::with_capacity(load.frames));
    let write = median(
        || {
            fill(&mut queue.borrow_mut(), load, NOBODY);
            Ok(())
        },
        || send(&mut tap, &mut queue.borrow_mut()),
    )?;
    let mut host = PacketDevice::open(PacketConfig::new(tap.name(), RxPools::for_memory(4 << 20, 1_500)))?;
    let mut batch = RxBatch::with_limit(32);
    drain(&mut tap, &mut batch)?;
    let read = median(
        || {
            fill(&mut queue.borrow_mut(), load, OURS);
            send(&mut host, &mut queue.borrow_mut()).map(|_| ())
        },
        || drain(&mut tap, &mut batch),
    )?;
    println!("TAP                 {:>18}: write {write:>6} ns, read {read:>6} ns", load.name);
    Ok(())
}

fn packet(load: Load, size: usize) -> Result<(), Box<dyn Error>> {
    let mut netlink = Netlink::open()?;
    netlink.create_veth("lrcost0", "lrcost1")?;
    let index = netlink.link("lrcost0")?.index;
    let peer = netlink.link("lrcost1")?.index;
    netlink.change_link(index, &UP)?;
    netlink.change_link(peer, &UP)?;
    let open = |name, mac| {
        let options = PacketOptions { batch: size, mac: Some(mac), ..PacketOptions::new(name) };
        let pools = RxPools::for_memory(8 << 20, 1_500);
        PacketDevice::open(PacketConfig { options, ..PacketConfig::new(name, pools) })
    };
    let mut sender = open("lrcost0", NOBODY)?;
    let mut receiver = open("lrcost1", OURS)?;
    let queue = std::cell::RefCell::new(TxQueue::with_capacity(load.frames));
    let mut batch = RxBatch::with_limit(32);
    drain(&mut receiver, &mut batch)?;
    let write = median(
        || {
            drain(&mut receiver, &mut batch)?;
            fill(&mut queue.borrow_mut(), load, OURS);
            Ok(())
        },
        || send(&mut sender, &mut queue.borrow_mut()),
    )?;
    drain(&mut receiver, &mut batch)?;
    let read = median(
        || {
            fill(&mut queue.borrow_mut(), load, OURS);
            send(&mut sender, &mut queue.borrow_mut()).map(|_| ())
        },
        || drain(&mut receiver, &mut batch),
    )?;
    println!("AF_PACKET batch {size:>3} {:>18}: send  {write:>6} ns, receive {read:>6} ns", load.name);
    let dropped = receiver.stats().rx_kernel_dropped;
    if dropped > 0 {
        println!("    {dropped} frames were dropped by the kernel");
    }
    netlink.delete_link(index)?;
    Ok(())
}
