//! A host with our own stack at the other end of the board's cable, in the board's time. Its own work takes no time.

use linerate_nic::{
    Capabilities, Device, DeviceError, Frame, MacAddr, Pool, Port, PortConfig, QueuePair, RxBatch, RxMeta,
    TxQueue, TxToken,
};
use linerate_rtl_sim::softcore::{CLOCK_NS, Softcore};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{ConnId, Engine as _, Left, Owner, SocketOptions, Transport as _};
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The board's address, as in its `board.toml`, and ours.
pub const BOARD: &str = "192.168.1.20";
const ADDRESS: &str = "192.168.1.100/24";
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 100]);
const OWNER: Owner = Owner(1);
const BUFFER: usize = 2_048;

/// The host's interface: frames in and out, no offload.
pub struct Wire {
    pool: Pool,
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
    left: VecDeque<TxToken>,
}

impl Device for Wire {
    fn mac(&self) -> MacAddr {
        MAC
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted == Capabilities::NONE { Ok(()) } else { Err(DeviceError::Unsupported) }
    }
}

impl QueuePair for Wire {
    fn enabled(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn receive(&mut self, _: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let mut count = 0;
        while !batch.is_full()
            && let Some(frame) = self.received.pop_front()
        {
            let Some(mut buffer) = self.pool.take().filter(|buffer| buffer.len() >= frame.len()) else {
                break;
            };
            buffer.bytes_mut()[..frame.len()].copy_from_slice(&frame);
            if batch.push(Frame::new(buffer.freeze(0..frame.len()), RxMeta::default())).is_err() {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, _: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let mut count = 0;
        while let Some(packet) = queue.front() {
            let mut frame = vec![0; packet.len()];
            packet.linearise(&mut frame).ok_or(DeviceError::Unsupported)?;
            self.sent.push_back(frame);
            self.left.push_back(packet.meta.token);
            queue.pop();
            count += 1;
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.left.pop_front()
    }
}

/// The host, and the board.
pub struct Client {
    /// The board.
    pub core: Softcore,
    /// The host.
    pub node: Node<Wire>,
    /// When the host has something to do though nothing comes.
    due: u64,
    /// Frames to the board, and from it.
    pub frames: (u64, u64),
    /// Whether clocks may be left out in which nothing moves.
    pub may_skip: bool,
}

impl Client {
    /// A host beside a board that has started.
    pub fn new(core: Softcore) -> Result<Client, String> {
        let pool = Pool::new(2_048, BUFFER);
        let wire = Wire {
            pool: pool.clone(),
            received: VecDeque::new(),
            sent: VecDeque::new(),
            left: VecDeque::new(),
        };
        let port = Port::new(wire, PortConfig::default()).map_err(|error| error.to_string())?;
        let config = StackConfig {
            addresses: vec![ADDRESS.parse().map_err(|_| "an address")?],
            dad_transmits: 0,
            ..StackConfig::default()
        };
        let pools = StackPools::for_memory(config.memory).with_receive(pool);
        let node = Node::new(port, config, [1; 32], pools, NodeConfig::default());
        Ok(Client { core, node, due: 0, frames: (0, 0), may_skip: true })
    }

    /// The board's time.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.core.clocks() * CLOCK_NS)
    }

    /// A port of the board.
    pub fn server(port: u16) -> Result<SocketAddr, String> {
        Ok(SocketAddr::new(BOARD.parse().map_err(|_| "an address")?, port))
    }

    /// Connects to a port of the board.
    pub fn connect(&mut self, port: u16) -> Result<ConnId, String> {
        let server = Client::server(port)?;
        let now = self.now();
        self.node.set_now(now);
        self.node
            .stack
            .connect(OWNER, None, server, &SocketOptions::default())
            .map_err(|error| format!("{error:?}"))
    }

    /// Lets the host send what it has, and the board run until the host is to be asked again: a frame has come, a time has passed.
    pub fn turn(&mut self, until: Option<u64>) -> Result<(), String> {
        let failed = |error: DeviceError| error.to_string();
        loop {
            let now = self.now();
            let output = self.node.output(now).map_err(failed)?;
            while let Some(frame) = self.node.port.device_mut().sent.pop_front() {
                self.core.send(frame);
                self.frames.0 += 1;
            }
            if output.left != Left::More {
                break;
            }
        }
        let at = self.node.poll_timeout().map_or(u64::MAX, |at| at.as_nanos().div_ceil(CLOCK_NS));
        self.due = at.min(until.unwrap_or(u64::MAX));
        loop {
            let mut has_come = false;
            while let Some(frame) = self.core.receive() {
                self.node.port.device_mut().received.push_back(frame);
                has_come = true;
                self.frames.1 += 1;
            }
            if has_come || self.core.clocks() >= self.due {
                break;
            }
            if self.may_skip {
                self.core.clock_until(self.due);
            } else {
                self.core.clock();
            }
        }
        let now = self.now();
        self.node.input(now).map_err(failed).map(drop)
    }
}
