//! What a network interface is: frames, pools, rings, offload capabilities, interrupt pacing, and the same offloads in
//! software.
//!
//! # How bytes move
//!
//! **Receive.** A [`QueuePair`] fills an [`RxBatch`] with [`Frame`]s: handles to pool buffers with a range and
//! [`RxMeta`]. Nothing copies; the last handle dropped returns the buffer to its [`Pool`].
//!
//! **Transmit.** The stack fills slots of a [`TxQueue`]: a header block, a gather list of payload [`Chunk`]s and
//! [`TxMeta`]. The device takes them from the front. Chunks are reference-counted, so a slice lives until both the
//! device and the send queue have let go of it; [`QueuePair::poll_completion`] tells the stack when the device has.
//!
//! **By DMA.** Buffers lie where the device reaches them ([`Pool::over`]); the driver asks the platform for bus addresses and
//! cache maintenance ([`Dma`]).
//!
//! # What there is once, and what for each queue
//!
//! [`Device`] is the control: address, link, filter, capabilities, steering. [`QueuePair`] is what a core owns: frames in and
//! out, completions, interrupt, pacing. A device with one queue is both ([`Interface`]); of one with several, the control
//! is [`Joined`] to the queue of the core that owns it, and the others are [`Member`]s. [`Paced`] lets the frames of a queue
//! wait for one another. A wrapper of your own leaves to what it wraps what it does not change by [`pass_on!`].
//!
//! # Who does the work
//!
//! The owner of the loop puts a [`Port`] on the device. The stack then always asks for checksums and super-segments, and
//! always gets verified and coalesced frames; the port decides for each packet whether device or software does it, tells
//! [where and why](Port::place), and counts. [`selftest`] finds out whether a device does what it claims, [`Pacing`]
//! decides when to look at it, and [`Link`] is a device pair for tests.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod bus;
pub mod checksum;
#[cfg(target_arch = "aarch64")]
mod checksum_aarch64;
// Processors with compare-and-swap have the instructions too.
#[cfg(all(target_arch = "arm", target_has_atomic = "32"))]
mod checksum_arm;
#[cfg(target_arch = "x86_64")]
mod checksum_avx2;
pub mod chunk;
pub mod device;
pub mod dma;
mod fallback;
pub mod feature;
pub mod frame;
pub mod gem;
mod gro;
mod layers;
pub mod loopback;
pub mod mcdma;
pub mod meta;
pub mod offload;
pub mod paced;
pub mod pacing;
pub mod pass_on;
pub mod pieces;
pub mod pool;
pub mod port;
pub mod queue;
pub mod selftest;
mod split;
pub mod tx;
mod verify;
pub mod virtio;
pub mod vnet;

pub use bus::{Bus, Platform};
pub use bytes::Bytes;
pub use chunk::Chunk;
pub use device::{Capabilities, Device, DeviceError, Filter, Interface, LinkState, Steering};
pub use dma::{Coherent, Dma};
pub use fallback::TxStats;
pub use feature::{Feature, Place, Reason};
pub use frame::{Frame, RxBatch};
pub use gro::GroConfig;
pub use layers::{PlainPacket, Version};
pub use loopback::Link;
pub use meta::{ChecksumRequest, ChecksumStatus, MacAddr, RxMeta, Segmentation, TxMeta, TxToken};
pub use paced::Paced;
pub use pacing::{AdaptiveConfig, AdaptivePacing, Pacing, PacingConfig, PacingMode};
pub use pieces::{PieceShelf, Pieces};
pub use pool::{Buffer, Pool, PoolStats, RegionError, Slice};
pub use port::{Port, PortConfig, PortStats, RxStats};
pub use queue::{Joined, Member, QueuePair};
pub use tx::{MAX_CHUNKS, MAX_HEADER, TxPacket, TxQueue};
