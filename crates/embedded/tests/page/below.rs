//! A driver of embassy-net-driver below the stack, the echo server above it.

use alloc::vec;
use embassy_net_driver::Driver;
use linerate_embedded::{Clock, EmbassyDevice, Net};
use linerate_nic::{Pool, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};

/// Brings the device up with this address, and serves until it fails. All memory is taken at the start.
pub async fn serve<D: Driver>(driver: D, clock: impl Clock, address: &str, seed: [u8; 32]) {
    let frames = Pool::new(24, 1_536);
    let device = EmbassyDevice::new(driver, frames.clone()).expect("an Ethernet driver");
    let port = Port::new(device, PortConfig::default()).expect("a driver that can do anything");
    let pools = StackPools {
        pages: Pool::new(32, 512),
        datagrams: Pool::new(0, 1_536),
        receive: Some(frames),
        device_queue: None,
    };
    let config = StackConfig {
        addresses: vec![address.parse().expect("an address")],
        memory: 48 << 10,
        max_connections: 8,
        ..StackConfig::default()
    };
    let sizes = NodeConfig { rx_batch: 8, tx_queue: 8, tx_rounds: 4 };
    let net = Net::new(Node::new(port, config, seed, pools, sizes), clock);
    let run = net.run(|node, waker| node.port.device_mut().set_waker(waker));
    let (_served, gone) = futures::future::join(super::above::echo(&net), run).await;
    gone.expect("a device that lives forever");
}
