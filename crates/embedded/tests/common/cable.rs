//! Nets on drivers of `embassy-net-driver`, and a cable between two of these.

use super::config;
use super::time::Time;
use embassy_net_driver::{Capabilities, Checksum, Driver, HardwareAddress, LinkState};
use embassy_net_driver_channel::{self as channel, Device, RxRunner, TxRunner};
use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::future::join;
use linerate_embedded::{EmbassyDevice, Net};
use linerate_nic::{Pool, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackPools};
use std::rc::Rc;
use std::task::Context;

/// Longest frame.
pub const MTU: usize = 1_514;
/// A short ring each way, that is often full.
pub type State = channel::State<MTU, 4, 4>;

/// A driver whose hardware does what `checksum` does not leave to others.
pub struct Hardware<'d>(pub Device<'d, MTU>, pub Checksum);

impl<'d> Driver for Hardware<'d> {
    type RxToken<'a>
        = <Device<'d, MTU> as Driver>::RxToken<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = <Device<'d, MTU> as Driver>::TxToken<'a>
    where
        Self: 'a;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        self.0.receive(cx)
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Self::TxToken<'_>> {
        self.0.transmit(cx)
    }

    fn link_state(&mut self, cx: &mut Context<'_>) -> LinkState {
        self.0.link_state(cx)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.0.capabilities();
        capabilities.checksum.ipv4 = self.1;
        capabilities.checksum.tcp = self.1;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        self.0.hardware_address()
    }
}

pub type DriverNet<'d> = Net<Node<EmbassyDevice<Hardware<'d>>>, Rc<Time>>;

pub fn net<'d>(driver: Hardware<'d>, last: u8, frames: usize, time: &Rc<Time>) -> DriverNet<'d> {
    let pool = Pool::new(frames, MTU);
    let device = EmbassyDevice::new(driver, pool.clone()).unwrap();
    let port = Port::new(device, PortConfig::default()).unwrap();
    let pools = StackPools::for_memory(1 << 20).with_receive(pool);
    Net::new(Node::new(port, config(last), [last; 32], pools, NodeConfig::default()), Rc::clone(time))
}

pub async fn run_net(net: &DriverNet<'_>) {
    let Err(error) = net.run(|node, waker| node.port.device_mut().set_waker(waker)).await;
    panic!("a driver never fails: {error}");
}

/// One direction of a cable. `wire` may change a frame, and says whether it arrives. It never makes the sender wait, as
/// drivers take nothing in while they have no room for an answer: two full ones would wait for each other for ever.
pub async fn carry(
    mut from: TxRunner<'_, MTU>,
    mut to: RxRunner<'_, MTU>,
    mut wire: impl FnMut(&mut [u8]) -> bool,
) {
    let (start, mut end) = mpsc::unbounded::<Vec<u8>>();
    let send = async {
        loop {
            let mut frame = from.tx_buf().await.to_vec();
            from.tx_done();
            if wire(&mut frame) {
                start.unbounded_send(frame).expect("the other half lives as long");
            }
        }
    };
    let receive = async {
        while let Some(frame) = end.next().await {
            to.rx_buf().await[..frame.len()].copy_from_slice(&frame);
            to.rx_done(frame.len());
        }
    };
    join(send, receive).await;
}
