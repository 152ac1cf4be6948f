//! Goodput as a share of the ideal over rates, round-trip times, losses and reordering, in both directions.
//!
//! `cargo xtask goodput` prints the table and fails when a cell stalls, a clean cell is below 97 %, or the cell with
//! 100 Mb/s, 2 ms and 0.3 % is below 92 %. Arguments choose cells (`100M`, `2ms`, `0.3%`); `both` puts loss and reordering
//! on the acknowledgements too; `report` prints the faults and ends well; `times` prints what each cell took, `trace` how it got on.
//!
//! * The ideal is the rate times payload over what a full frame takes on the wire (1,448 of 1,538 bytes: preamble, check
//!   sequence and gap counted), times 1 - loss.
//! * The bottleneck is a path with a drop-tail queue of one bandwidth-delay product, 64 frames at least. Interfaces are
//!   twice as fast. Buffers grow as far as they are needed, within a memory cap of 64 MiB to 1 GiB.
//! * Goodput is measured after a warm-up, as iperf3 does with `-O`: a clean cell's ends 30 round trips after 90 % of
//!   the ideal were reached (that time is printed), so after what slow start did to the queue; a lossy one's after 30 round
//!   trips and 10 expected losses.
//! * A segment that is held back comes an eighth of a round trip later, three frame times at least.
//! * A cell stalls when nothing arrives for 3 s and 20 round trips.
//! * In brackets: what random loss allows CUBIC (RFC 9438 section 5.2: the larger of its own window and Reno's), as a share
//!   of the same ideal. Where it is low, the algorithm is the limit, by design.

use linerate_sim::*;
use linerate_stack::StackConfig;
use linerate_transport::{BufferSize, SocketOptions};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const RATES: [u64; 4] = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];
const RTTS_US: [u64; 4] = [200, 2_000, 20_000, 100_000];
const LOSSES: [f64; 5] = [0.0, 0.001, 0.003, 0.01, 0.03];
const REORDERS: [f64; 2] = [0.0, 0.01];
/// Payload of a full segment, and the bits that its frame takes.
const PAYLOAD: f64 = 1_448.0;
const FRAME_BITS: f64 = 1_538.0 * 8.0;
/// Clean cells reach this share of the ideal.
const CLEAN: f64 = 0.97;
/// The named cell: rate, round-trip time, loss and the share that it reaches.
const NAMED: (u64, u64, f64, f64) = (100_000_000, 2_000, 0.003, 0.92);
/// Most virtual time of a cell.
const LIMIT: Duration = Duration::from_secs(90);
const THREADS: usize = 2;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Cell {
    rate_bps: u64,
    rtt: Duration,
    loss: f64,
    reorder: f64,
    /// The server sends.
    is_download: bool,
    /// Acknowledgements are lost and held back too.
    is_both: bool,
    /// Its course is printed.
    is_traced: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// Goodput over the ideal.
    share: f64,
    /// Virtual time until 90 % of the ideal, of clean cells.
    to_90: Option<Duration>,
    /// Longest time without anything new.
    stall: Duration,
    /// It went on to the end.
    is_alive: bool,
    /// Of all segments, those sent again.
    again: f64,
    wall: Duration,
    virtual_time: Duration,
}

impl Cell {
    fn ideal_bps(&self) -> f64 {
        self.rate_bps as f64 * PAYLOAD * 8.0 / FRAME_BITS * (1.0 - self.loss)
    }

    fn frame_time(&self) -> Duration {
        Duration::from_secs_f64(FRAME_BITS / self.rate_bps as f64)
    }

    fn product_bytes(&self) -> usize {
        (self.rate_bps as f64 / 8.0 * self.rtt.as_secs_f64()) as usize
    }

    fn is_clean(&self) -> bool {
        self.loss == 0.0 && self.reorder == 0.0
    }

    /// What random loss allows, as a share of the ideal.
    fn bound(&self) -> f64 {
        let rtt = self.rtt.as_secs_f64();
        let cubic = (0.4 * 3.7 / (4.0 * 0.3_f64)).powf(0.25) * (rtt / self.loss).powf(0.75);
        let reno = (1.5 / self.loss).sqrt();
        (cubic.max(reno) * PAYLOAD * 8.0 / rtt / self.ideal_bps()).min(1.0)
    }

    fn world(&self) -> Running {
        let impaired = Path {
            rate_bps: Some(self.rate_bps),
            queue: Queue::bytes(self.product_bytes().max(64 * 1_514)),
            delay: self.rtt / 2,
            loss: if self.loss > 0.0 { Loss::Random(self.loss) } else { Loss::None },
            reorder: self.reorder,
            reorder_delay: (self.rtt / 8).max(self.frame_time() * 3),
            ..Path::default()
        };
        let plain = match self.is_both {
            true => impaired.clone(),
            false => Path::with_delay(self.rtt / 2),
        };
        let (a_to_b, b_to_a) = if self.is_download { (plain, impaired) } else { (impaired, plain) };
        let mut config = PairConfig { a_to_b, b_to_a, ..PairConfig::default() };
        let window = (8 * self.product_bytes()).clamp(4 << 20, 768 << 20);
        let memory = (16 * self.product_bytes()).clamp(64 << 20, 1 << 30);
        for host in &mut config.hosts {
            host.stack = StackConfig { memory, ..host.stack.clone() };
            host.nic.rate_bps = Some(2 * self.rate_bps);
            host.nic.rx_buffers = (8 * self.product_bytes() / 1_448).max(8_192);
            host.nic.rx_ring = 4_096;
        }
        let options = SocketOptions {
            send_buffer: BufferSize::Auto { max: window },
            receive_buffer: BufferSize::Auto { max: window },
            ..SocketOptions::default()
        };
        let (mut world, client, server) = World::pair(1, config);
        let end = Amount::Until(world.now() + 2 * LIMIT);
        let flow = match self.is_download {
            true => FlowConfig::download(client, server, end),
            false => FlowConfig::upload(client, server, end),
        };
        let flow = FlowConfig { client_options: options.clone(), server_options: options, ..flow };
        let flow = world.add_flow(flow);
        let (sender, receiver) = if self.is_download { (server, client) } else { (client, server) };
        Running { world, flow, sender, receiver }
    }

    /// How long is measured: long enough to be steady, as short as the machine needs it.
    fn measured_segments(&self) -> f64 {
        let round = self.rate_bps as f64 / FRAME_BITS * self.rtt.as_secs_f64();
        match self.loss {
            0.0 => (10.0 * round).max(4_000.0),
            loss => (100.0 / loss).max(10_000.0),
        }
    }

    fn measure(&self) -> Measured {
        let began = std::time::Instant::now();
        let mut running = self.world();
        let start = running.world.now();
        let step = self.rtt.max(self.frame_time() * 100);
        let warm_up = (self.rtt * 30).max(self.frame_time().mul_f64(10.0 / self.loss.max(0.001)));
        let mut last = (Duration::ZERO, 0);
        let mut from = None;
        let mut measured = Measured { is_alive: true, ..Measured::default() };
        let mut progress = Duration::ZERO;
        loop {
            running.world.run_for(step);
            let at = running.world.now() - start;
            let report = running.world.flow(running.flow);
            let (sender, receiver) = if self.is_download {
                (report.server, report.client)
            } else {
                (report.client, report.server)
            };
            let bytes = receiver.bytes_received;
            let bps = |since: (Duration, u64)| (bytes - since.1) as f64 * 8.0 / (at - since.0).as_secs_f64();
            if self.is_clean() && measured.to_90.is_none() && bps(last) >= 0.9 * self.ideal_bps() {
                measured.to_90 = Some(at);
            }
            if self.is_traced {
                running.trace(at, bps(last), &sender);
            }
            if bytes > last.1 {
                progress = at;
            }
            measured.stall = measured.stall.max(at - progress);
            measured.is_alive &=
                sender.closed.is_none() && receiver.closed.is_none() && receiver.error.is_none();
            last = (at, bytes);
            let is_warm = match self.is_clean() {
                true => measured.to_90.is_some_and(|reached| at >= reached + self.rtt * 30),
                false => at >= warm_up,
            };
            if from.is_none() && (is_warm || at >= LIMIT / 2) {
                from = Some(last);
            }
            let Some(from) = from else { continue };
            let is_enough = (bytes - from.1) as f64 >= self.measured_segments() * PAYLOAD;
            let is_over = at >= LIMIT || !measured.is_alive || measured.is_stalled(self);
            if at > from.0 && is_enough && at - from.0 >= self.rtt * 4 || is_over {
                let info = sender.info;
                measured.share = if at > from.0 { bps(from) / self.ideal_bps() } else { 0.0 };
                measured.again =
                    info.map_or(0.0, |info| info.retransmits as f64 / info.segments_sent.max(1) as f64);
                measured.wall = began.elapsed();
                measured.virtual_time = at;
                return measured;
            }
        }
    }

    fn name(&self) -> String {
        format!(
            "{} {} {}% reorder {}% {}",
            rate_name(self.rate_bps),
            rtt_name(self.rtt),
            self.loss * 100.0,
            self.reorder * 100.0,
            if self.is_download { "down" } else { "up" }
        )
    }

    /// What is wrong with the result, if anything.
    fn fault(&self, measured: &Measured) -> Option<String> {
        let share = measured.share * 100.0;
        let named = (self.rate_bps, self.rtt.as_micros() as u64, self.loss) == (NAMED.0, NAMED.1, NAMED.2);
        if !measured.is_alive {
            Some("the transfer ended early".to_string())
        } else if measured.is_stalled(self) {
            Some(format!("nothing arrived for {:?}", measured.stall))
        } else if self.is_clean() && measured.share < CLEAN {
            Some(format!("{share:.1} % of the ideal; at least {:.0} % expected", CLEAN * 100.0))
        } else if named && self.reorder == 0.0 && measured.share < NAMED.3 {
            Some(format!("{share:.1} % of the ideal; at least {:.0} % expected", NAMED.3 * 100.0))
        } else {
            None
        }
    }
}

/// A cell at work.
struct Running {
    world: World,
    flow: FlowId,
    sender: HostId,
    receiver: HostId,
}

impl Running {
    /// A line about the last step.
    fn trace(&mut self, at: Duration, bps: f64, sender: &EndReport) {
        let Some(info) = sender.info else { return };
        let nic = self.world.host(self.receiver).nic().stats();
        let path = self.world.path_stats(self.sender, Direction::Up);
        println!(
            "{:9.4} s {:7.1} Mb/s  window {:>9}  in flight {:>9}  threshold {:>9}  rtt {:>7} us  queue {:>9}  again {:>7}  \
             dropped {:>6}  ring {}  buffers {}",
            at.as_secs_f64(),
            bps / 1e6,
            info.congestion_window,
            info.in_flight,
            info.slow_start_threshold.unwrap_or(0),
            info.rtt.unwrap_or_default().as_micros(),
            self.world.queue_len(self.sender, Direction::Up).1,
            info.retransmits,
            path.queue_full,
            nic.rx_ring_full,
            nic.rx_no_buffer
        );
    }
}

impl Measured {
    fn is_stalled(&self, cell: &Cell) -> bool {
        self.stall > (cell.rtt * 20).max(Duration::from_secs(3))
    }
}

fn rate_name(bps: u64) -> String {
    match bps {
        1_000_000_000.. => format!("{}G", bps / 1_000_000_000),
        _ => format!("{}M", bps / 1_000_000),
    }
}

fn rtt_name(rtt: Duration) -> String {
    format!("{}ms", rtt.as_secs_f64() * 1e3)
}

/// All cells that the arguments leave.
fn cells(arguments: &[String]) -> Vec<Cell> {
    let asks = |name: &str| arguments.iter().any(|argument| argument == name);
    let all_or = |names: &[String], name: &str| !names.iter().any(|name| asks(name)) || asks(name);
    let rates: Vec<String> = RATES.iter().map(|rate| rate_name(*rate)).collect();
    let rtts: Vec<String> = RTTS_US.iter().map(|us| rtt_name(Duration::from_micros(*us))).collect();
    let losses: Vec<String> = LOSSES.iter().map(|loss| format!("{}%", loss * 100.0)).collect();
    let mut cells = Vec::new();
    for rate_bps in RATES {
        for rtt in RTTS_US.map(Duration::from_micros) {
            for (reorder, loss) in REORDERS.iter().flat_map(|r| LOSSES.iter().map(|l| (*r, *l))) {
                let is_asked = all_or(&rates, &rate_name(rate_bps))
                    && all_or(&rtts, &rtt_name(rtt))
                    && all_or(&losses, &format!("{}%", loss * 100.0))
                    && !(asks("in-order") && reorder > 0.0);
                for is_download in [true, false].into_iter().filter(|_| is_asked) {
                    cells.push(Cell {
                        rate_bps,
                        rtt,
                        loss,
                        reorder,
                        is_download,
                        is_both: asks("both"),
                        is_traced: asks("trace"),
                    });
                }
            }
        }
    }
    cells
}

/// Measures all cells on a few threads; the results are in their order.
fn measure(cells: &[Cell]) -> Vec<Measured> {
    // The most expensive cells first, so that no thread ends alone.
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(cells[*index].product_bytes()));
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![Measured::default(); cells.len()]);
    let work = || {
        while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let measured = cells[*index].measure();
            results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[*index] = measured;
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A line per rate, round-trip time and reordering; in each cell the server's and the client's goodput in per cent.
fn print(cells: &[Cell], results: &[Measured]) {
    print!("goodput in % of the ideal, from the server / from the client [bound of CUBIC]\n{:<17}", "");
    LOSSES.iter().for_each(|loss| print!("{:>20}", format!("{:.1} % lost", loss * 100.0)));
    println!();
    let mut line = String::new();
    for (cell, measured) in cells.iter().zip(results) {
        let name = format!(
            "{:>4} {:>6} {}",
            rate_name(cell.rate_bps),
            rtt_name(cell.rtt),
            if cell.reorder > 0.0 { "reord" } else { "" }
        );
        if cell.is_download {
            if line != name {
                print!("{}{name:<17}", if line.is_empty() { "" } else { "\n" });
                line = name;
            }
            print!("{:>7.1}", measured.share * 100.0);
            continue;
        }
        let note = match measured.to_90 {
            Some(time) => rtt_note(time),
            None if cell.loss > 0.0 => match cell.bound() * 100.0 {
                bound if bound < 9.95 => format!("[{bound:.1}]"),
                bound => format!("[{bound:.0}]"),
            },
            None => String::new(),
        };
        print!("/{:<6.1}{note:<6}", measured.share * 100.0);
    }
    println!("\n\nin clean cells: time to 90 % of the ideal");
}

/// A time in five characters.
fn rtt_note(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1}s"),
        seconds => format!("{:.0}ms", seconds * 1e3),
    }
}

fn main() -> ExitCode {
    let began = std::time::Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cells = cells(&arguments);
    let results = measure(&cells);
    print(&cells, &results);
    if arguments.iter().any(|argument| argument == "times") {
        for (cell, measured) in cells.iter().zip(&results) {
            println!(
                "{:40} {:6.2} %  again {:5.2} %  {:7.3} s virtual  {:6.3} s wall  stall {:?}",
                cell.name(),
                measured.share * 100.0,
                measured.again * 100.0,
                measured.virtual_time.as_secs_f64(),
                measured.wall.as_secs_f64(),
                measured.stall
            );
        }
    }
    let mut faults = 0;
    for (cell, measured) in cells.iter().zip(&results) {
        if let Some(fault) = cell.fault(measured) {
            println!("fault: {}: {fault}", cell.name());
            faults += 1;
        }
    }
    println!("{} cells in {:.1} s, {faults} faults", cells.len(), began.elapsed().as_secs_f64());
    if faults == 0 || arguments.iter().any(|argument| argument == "report") {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
