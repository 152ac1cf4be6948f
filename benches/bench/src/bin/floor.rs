//! The floor as a program: `floor tap:NAME|packet:INTERFACE|xdp:INTERFACE all|none bulk|http STATUS BYTES keep|close`.
//!
//! Opening the device, its offloads and buffers are those of our own drivers; moving the frames is not, but for AF_XDP, whose
//! rings only our driver has.

use anyhow::{Context, Result, bail};
use bench::floor::Responder;
use bench::floor::bulk::Bulk;
use bench::floor::frame::Us;
use bench::floor::http::Http;
use bench::floor::link::Device;
use bench::floor::xdp::Rings;
use linerate_linux::RxPools;
use linerate_linux::netconfig::HostInterface;
use linerate_linux::packet::{PacketOptions, PacketQueue};
use linerate_linux::tap::{TapOptions, TapQueue};
use linerate_linux::xdp::{XdpOptions, XdpQueue};
use linerate_nic::{Capabilities, MacAddr};

const US: Us = Us { mac: [2, 0, 0, 0, 0, 4], ip: [192, 168, 1, 4] };

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [device, offload, rest @ ..] = args.as_slice() else { bail!("device, offloads and what to do") };
    let mut responder: Box<dyn Responder> = match rest {
        ["bulk"] => Box::new(Bulk::default()),
        ["http", status, body, end] => Box::new(Http::new(status.parse()?, body.parse()?, *end == "close")),
        _ => bail!("bulk, or http STATUS BYTES keep|close, not {rest:?}"),
    };
    let offload = *offload == "all";
    let enabled = if offload { Capabilities::ALL } else { Capabilities::NONE };
    match device.split_once(':') {
        Some(("tap", name)) => {
            let options = TapOptions {
                name: name.to_owned(),
                mtu: Some(1_500),
                mac: Some(MacAddr(US.mac)),
                frames: 16_384,
                queues: 1,
            };
            let queue = TapQueue::open_all(&options)?.pop().context("a queue")?;
            let tap = queue.into_device(enabled, RxPools::for_memory(4 << 20, 1_500))?;
            let mut host = HostInterface::open(name)?;
            host.add_address([192, 168, 1, 1].into(), 24)?;
            host.up()?;
            println!("Ready");
            Device::new(tap, 12, offload, US).serve(responder.as_mut())
        }
        Some(("packet", name)) => {
            let options = PacketOptions { mac: Some(MacAddr(US.mac)), ..PacketOptions::new(name) };
            let queue = PacketQueue::open_all(&options)?.pop().context("a queue")?;
            let socket = queue.into_device(enabled, RxPools::for_memory(4 << 20, 1_500))?;
            println!("Ready");
            Device::new(socket, 10, offload, US).serve(responder.as_mut())
        }
        Some(("xdp", name)) => {
            let options = XdpOptions { mac: Some(MacAddr(US.mac)), ..XdpOptions::new(name) };
            let queue = XdpQueue::open_all(&options)?.pop().context("a queue")?;
            println!("Ready");
            Rings::new(queue.into_device(enabled), US).serve(responder.as_mut())
        }
        _ => bail!("tap:NAME, packet:INTERFACE or xdp:INTERFACE, not {device}"),
    }
}
