//! The DMA engine: two frames are received.

use crate::bench::Bench;
use crate::frames::{ACK, tcp};
use crate::record::{PLAIN, Picture, Sample};
use linerate_rtl_sim::{AxiLite, AxiSlave, Dut, Memory, Response, RxUser, Timing, UserAt};

const DESCRIPTORS: u64 = 0x1000;
const BUFFERS: u64 = 0x8000;
const BUFFER_LEN: u32 = 2_048;
const RING: u64 = 8;

/// Registers of the receive side, and of its first queue.
const COMMON: u32 = 0x500;
const QUEUE: u32 = 0x540;

/// 64 KiB.
struct Ram(Vec<u8>);

impl Memory for Ram {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Response {
        match self.0.get(address as usize..address as usize + bytes.len()) {
            Some(from) => bytes.copy_from_slice(from),
            None => return Response::DecodeError,
        }
        Response::Okay
    }

    fn write(&mut self, address: u64, bytes: &[u8], strobes: u64) -> Response {
        let Some(to) = self.0.get_mut(address as usize..address as usize + bytes.len()) else {
            return Response::DecodeError;
        };
        for (at, (to, from)) in to.iter_mut().zip(bytes).enumerate() {
            if strobes >> at & 1 != 0 {
                *to = *from;
            }
        }
        Response::Okay
    }
}

impl Ram {
    /// A ring of receive descriptors.
    fn with_ring() -> Ram {
        let mut ram = Ram(vec![0; 1 << 16]);
        for at in 0..RING {
            let descriptor = DESCRIPTORS + 64 * at;
            let next = DESCRIPTORS + 64 * ((at + 1) % RING);
            ram.put(descriptor, next as u32);
            ram.put(descriptor + 0x08, (BUFFERS + at * u64::from(BUFFER_LEN)) as u32);
            ram.put(descriptor + 0x14, BUFFER_LEN);
        }
        ram
    }

    fn put(&mut self, address: u64, word: u32) {
        self.0[address as usize..][..4].copy_from_slice(&word.to_le_bytes());
    }
}

/// The engine with memory, and registers.
struct Engine {
    bench: Bench,
    ram: Ram,
    data: AxiSlave,
    descriptors: AxiSlave,
    lite: AxiLite,
}

impl Engine {
    fn new() -> Result<Engine, String> {
        let bench = Bench::open("dma", UserAt::Every)?;
        let data = AxiSlave::new(&bench.dut, "m_axi", Timing::steady(4), 5)?;
        let descriptors = AxiSlave::new(&bench.dut, "m_axi_sg", Timing::steady(4), 6)?;
        let lite = AxiLite::new(&bench.dut, "s_axil")?;
        Ok(Engine { bench, ram: Ram::with_ring(), data, descriptors, lite })
    }

    fn clock(&mut self, record: bool) -> Result<(), String> {
        let Engine { bench, ram, data, descriptors, lite } = self;
        data.drive(&mut bench.dut, ram);
        descriptors.drive(&mut bench.dut, ram);
        lite.drive(&mut bench.dut);
        bench.source.drive(&mut bench.dut);
        bench.dut.settle();
        data.observe(&bench.dut, ram);
        descriptors.observe(&bench.dut, ram);
        lite.observe(&bench.dut);
        bench.source.observe(&bench.dut);
        if record {
            bench.scope.sample(&bench.dut);
        }
        bench.dut.edge();
        data.check()?;
        descriptors.check()
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), String> {
        self.lite.write(address, value);
        for _ in 0..100 {
            self.clock(false)?;
            if let Some(answer) = self.lite.take() {
                return answer.map(drop).map_err(|response| format!("the register answers {response}"));
            }
        }
        Err("a register access that does not end".to_owned())
    }

    /// Starts the first queue and hands over the ring but for one descriptor, then waits until descriptors have been read ahead.
    fn start(&mut self) -> Result<(), String> {
        self.write(COMMON, 1)?;
        self.write(COMMON + 8, 1)?;
        self.write(QUEUE + 0x08, DESCRIPTORS as u32)?;
        self.write(QUEUE + 0x0c, 0)?;
        // Run, interrupts on, each packet interrupts.
        self.write(QUEUE, 1 | 0xe0 | 1 << 16)?;
        self.write(QUEUE + 0x14, 0)?;
        self.write(QUEUE + 0x10, (DESCRIPTORS + 64 * (RING - 1)) as u32)?;
        (0..200).try_for_each(|_| self.clock(false))
    }
}

/// Shows the transfers of a channel.
fn channel(
    bench: &mut Bench,
    name: &str,
    ports: [&str; 2],
    mut show: impl FnMut(&Dut) -> Sample + 'static,
) -> Result<(), String> {
    let (valid, ready) = (bench.dut.port(ports[0])?, bench.dut.port(ports[1])?);
    bench.scope.add(name, move |dut| match dut.get(valid) & dut.get(ready) {
        0 => Sample::Idle,
        _ => show(dut),
    });
    Ok(())
}

/// What lies at a place in a descriptor.
fn field(address: u64) -> &'static str {
    match address % 64 {
        // 128 bits at a time: the status is the upper half of them.
        0x10..0x20 => "st",
        _ => "app",
    }
}

fn channels(bench: &mut Bench) -> Result<(), String> {
    let address = bench.dut.port("m_axi_awaddr")?;
    channel(bench, "m_axi AW", ["m_axi_awvalid", "m_axi_awready"], move |dut| {
        let buffer = (dut.get(address) - BUFFERS) / u64::from(BUFFER_LEN);
        Sample::value(["a", "b"].get(buffer as usize).copied().unwrap_or("?"), buffer as usize)
    })?;
    let last = bench.dut.port("m_axi_wlast")?;
    let (mut frame, mut beat) = (0, 0);
    channel(bench, "m_axi W", ["m_axi_wvalid", "m_axi_wready"], move |dut| {
        let sample = Sample::value(format!("{}{beat}", ["a", "b"].get(frame).copied().unwrap_or("?")), frame);
        (frame, beat) = if dut.get(last) != 0 { (frame + 1, 0) } else { (frame, beat + 1) };
        sample
    })?;
    let mut answered = 0;
    channel(bench, "m_axi B", ["m_axi_bvalid", "m_axi_bready"], move |_| {
        answered += 1;
        Sample::value(["a", "b"].get(answered - 1).copied().unwrap_or("?"), answered - 1)
    })?;
    let address = bench.dut.port("m_axi_sg_awaddr")?;
    channel(bench, "m_axi_sg AW", ["m_axi_sg_awvalid", "m_axi_sg_awready"], move |dut| {
        let at = dut.get(address);
        Sample::value(field(at), ((at - DESCRIPTORS) / 64) as usize)
    })?;
    let (strobe, last) = (bench.dut.port("m_axi_sg_wstrb")?, bench.dut.port("m_axi_sg_wlast")?);
    channel(bench, "m_axi_sg W", ["m_axi_sg_wvalid", "m_axi_sg_wready"], move |dut| {
        let words = (0..4).filter(|word| dut.get(strobe) >> (4 * word) & 15 != 0).count();
        Sample::value(format!("{words}w{}", if dut.get(last) != 0 { "." } else { "" }), PLAIN)
    })?;
    channel(bench, "m_axi_sg B", ["m_axi_sg_bvalid", "m_axi_sg_bready"], |_| Sample::value("ok", PLAIN))
}

/// From the stream to the interrupt.
pub fn receive() -> Result<Picture, String> {
    let mut engine = Engine::new()?;
    engine.start()?;
    let frames = [tcp(80, 1, ACK, 6), tcp(80, 7, ACK, 6)];
    for frame in &frames {
        engine.bench.source.push(frame.clone(), RxUser { csum_status: 2, ..RxUser::default() }.to_words());
    }
    let bench = &mut engine.bench;
    bench.scope.stream(&bench.dut, "s_axis", &["a", "b"], 0)?;
    bench.scope.bit(&bench.dut, "s_axis_tready", 0)?;
    channels(bench)?;
    bench.scope.bit(&bench.dut, "event_rx_frame", 0)?;
    bench.scope.bit(&bench.dut, "irq_rx", 0)?;
    (0..47).try_for_each(|_| engine.clock(true))?;
    for (at, frame) in frames.iter().enumerate() {
        let buffer = BUFFERS as usize + at * BUFFER_LEN as usize;
        let status = &engine.ram.0[DESCRIPTORS as usize + 64 * at + 0x18..][..4];
        if engine.ram.0[buffer..][..60] != frame[..] || status[3] & 0x8c != 0x8c || status[0] != 60 {
            return Err(format!("frame {at} is not in memory as it should be: status {status:02x?}"));
        }
    }
    let mut picture = engine.bench.picture(
        "dma: two frames of 60 bytes are received, with memories that answer after four clocks",
        &[
            "Descriptors have been read ahead. The burst is asked for when the frame's end has come, as its length is known then (m_axi).",
            "Beside it the app words are written (m_axi_sg: descriptors; so many words a beat), and when both are answered the status.",
            "The interrupt comes when the status has been answered: who sees it finds all the rest in memory.",
        ],
    );
    picture.measure(("s_axis_tlast", 0, ""), ("m_axi AW", "a"), "until the burst is asked for")?;
    picture.measure(("s_axis_tlast", 0, ""), ("m_axi_sg AW", "st"), "until the status")?;
    picture.measure(("s_axis_tlast", 0, ""), ("irq_rx[0]", ""), "until the interrupt")?;
    Ok(picture)
}
