//! A laboratory: a namespace with a TAP, our stack behind the relay, and the loop that drives many worlds at once.

use super::device::Relay;
use super::plan::{LabKind, Plan, Side};
use super::report::{Entry, Fault, Report};
use super::trace::Trace;
use super::world::{Verdict, World, address};
use crate::lab::Namespace;
use linerate_linux::RxPools;
use linerate_linux::clock::MonotonicClock;
use linerate_linux::files::DemoFiles;
use linerate_linux::kernel::{KernelConfig, KernelTransport};
use linerate_linux::poller::{self, PollFd, PollFlags};
use linerate_linux::tap::{Tap, TapConfig};
use linerate_nic::{Capabilities, Pool, Port, PortConfig};
use linerate_stack::{Cidr, Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{Engine as _, Left, Source, Transport as _};
use linerate_wire::units::Instant;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Worlds at once.
const ACTIVE: usize = 200;
/// The same where rings are tiny: more of them would only wait for a slot.
const ACTIVE_TINY: usize = 50;
/// Worlds begun in one turn, so that those under way have theirs.
const STARTS_PER_TURN: usize = 4;
/// The first port; each world has the next one.
const FIRST_PORT: u16 = 2_000;
/// How long the kernel's last sockets may take to go.
const SETTLE: Duration = Duration::from_secs(40);
/// Longer than anything in our stack waits, TIME-WAIT included.
const ALL_TIMERS: Duration = Duration::from_secs(300);

/// A laboratory.
pub struct Bench {
    clock: MonotonicClock,
    node: Node<Relay>,
    kernel: KernelTransport,
    pools: [Pool; 4],
    stack_pools: StackPools,
    worlds: HashMap<u16, World>,
    wakes: BinaryHeap<Reverse<(Instant, u16)>>,
    next_port: u16,
    active: usize,
    report: Report,
}

/// Runs all `plans` in a laboratory of this kind, in a thread of its own; the second value is a trace, if wanted.
pub fn run(kind: LabKind, plans: Vec<Plan>, traces: bool) -> (Report, Option<Trace>) {
    let namespace = Namespace::new();
    let result = std::thread::scope(|scope| {
        let work = || {
            enter(&namespace);
            let mut bench = Bench::new(&namespace, kind);
            if traces {
                bench.node.port.device_mut().start_trace();
            }
            bench.run(plans.into());
            bench.check_memory();
            (bench.report, bench.node.port.device_mut().take_trace())
        };
        scope.spawn(work).join()
    });
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Moves this thread, and the sockets it will open, into the namespace.
fn enter(namespace: &Namespace) {
    let file = std::fs::File::open(format!("/run/netns/{}", namespace.name())).expect("the namespace");
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("setns");
}

fn configure_kernel(namespace: &Namespace, kind: LabKind, tap: &str) {
    let flag = u16::from;
    for (name, value) in [
        ("tcp_mtu_probing", 1u16),
        ("tcp_sack", flag(kind.sack)),
        ("tcp_timestamps", flag(kind.timestamps)),
        ("tcp_ecn", flag(kind.ecn)),
        // Else the kernel takes repeated losses for a black hole until it sends 48 bytes at a time.
        ("tcp_mtu_probe_floor", 500),
        ("tcp_syn_retries", 6),
    ] {
        namespace.must(&format!("sysctl -qw net.ipv4.{name}={value}"));
    }
    // Kernels before 6.15 do not have it; there, worlds with much loss take longer.
    namespace.sh("sysctl -qw net.ipv4.tcp_rto_max_ms=4000");
    for narrow in [false, true] {
        let ip4 = address(Side::Kernel, false, narrow);
        let ip6 = address(Side::Kernel, true, narrow);
        namespace.must(&format!("ip addr add {ip4}/24 dev {tap}; ip -6 addr add {ip6}/64 dev {tap} nodad"));
    }
    namespace.must(&format!("ip link set {tap} up"));
}

impl Bench {
    fn new(namespace: &Namespace, kind: LabKind) -> Bench {
        let tap_pools = RxPools::for_memory(8 << 20, 1_500);
        let pools = if kind.tiny_rings { RxPools::new(8, 128) } else { RxPools::new(256, 8_192) };
        let config = TapConfig { enabled: Capabilities::NONE, ..TapConfig::new(tap_pools.clone()) };
        let tap = Tap::open(config).expect("a TAP device");
        configure_kernel(namespace, kind, tap.name());
        let sizes = match kind.tiny_rings {
            true => NodeConfig { rx_batch: 4, tx_queue: 8, ..NodeConfig::default() },
            false => NodeConfig::default(),
        };
        let limits = if kind.tiny_rings {
            PortConfig { rx_batch: 2, tx_segments: 2, ..PortConfig::default() }
        } else {
            PortConfig::default()
        };
        let relay = Relay::new(tap, kind, pools.clone());
        let port = Port::new(relay, limits).expect("a port");
        let stack_pools = StackPools::for_memory(64 << 20).with_receive(pools.small.clone());
        let mut stack_config = StackConfig {
            dad_transmits: 0,
            // Handshakes that are given up are answered by resets, as many as there are.
            resets_per_second: 100_000,
            ..StackConfig::default()
        };
        for (v6, narrow) in [(false, false), (false, true), (true, false), (true, true)] {
            let prefix_len = if v6 { 64 } else { 24 };
            stack_config
                .addresses
                .push(Cidr::new(address(Side::Ours, v6, narrow), prefix_len).expect("valid"));
        }
        let files = DemoFiles::new(&[]).expect("no files").access();
        let memory_max = if kind.tiny_rings { 0 } else { 64 << 20 };
        let kernel_config = KernelConfig { memory_max, ..KernelConfig::default() };
        Bench {
            clock: MonotonicClock::new(),
            node: Node::new(port, stack_config, [7; 32], stack_pools.clone(), sizes),
            kernel: KernelTransport::new(kernel_config, files).expect("an epoll set"),
            pools: [tap_pools.large, tap_pools.small, pools.large, pools.small],
            stack_pools,
            worlds: HashMap::new(),
            wakes: BinaryHeap::new(),
            next_port: FIRST_PORT,
            active: if kind.tiny_rings { ACTIVE_TINY } else { ACTIVE },
            report: Report::default(),
        }
    }

    /// Runs all worlds to their ends, and then until nothing of them is left in the kernel.
    fn run(&mut self, mut plans: VecDeque<Plan>) {
        // Both transports know the time from their last turn.
        self.turn();
        while !plans.is_empty() || !self.worlds.is_empty() {
            for _ in 0..STARTS_PER_TURN {
                if self.worlds.len() >= self.active {
                    break;
                }
                let Some(plan) = plans.pop_front() else { break };
                self.start(plan);
            }
            self.turn();
        }
        let until = self.clock.now() + SETTLE;
        while self.kernel_sockets() + self.node.port.device().in_flight() > 0 && self.clock.now() < until {
            self.turn();
        }
    }

    fn start(&mut self, plan: Plan) {
        let now = self.clock.now();
        let port = self.next_port;
        self.next_port += 1;
        self.node.stack.set_now(now);
        self.node.port.device_mut().add_flow(port, &plan);
        let world = World::start(plan, port, &mut self.node.stack, &mut self.kernel, now);
        self.worlds.insert(port, world);
        self.wakes.push(Reverse((now, port)));
    }

    /// One turn: packets in, ends, packets out; then sleep until something comes.
    fn turn(&mut self) {
        let now = self.clock.now();
        let mut busy = self.node.input(now).expect("the TAP lives").moved;
        self.kernel.turn(now);
        busy |= self.serve(now);
        let output = self.node.output(now).expect("the TAP lives");
        busy |= output.moved || output.left != Left::Nothing;
        busy |= self.node.port.device_mut().flush(now).expect("the TAP lives");
        if !busy && !self.kernel.pending() {
            self.sleep();
        }
    }

    fn serve(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(event) = self.node.stack.poll_event() {
            self.serve_world(event.owner.0, now);
            any = true;
        }
        while let Some(event) = self.kernel.poll_event() {
            debug_assert!(!matches!(event.source, Source::Udp(_)));
            self.serve_world(event.owner.0, now);
            any = true;
        }
        while let Some(Reverse((at, port))) = self.wakes.peek().copied()
            && at <= now
        {
            self.wakes.pop();
            self.serve_world(port, now);
            any = true;
        }
        any
    }

    fn serve_world(&mut self, port: u16, now: Instant) {
        let Some(world) = self.worlds.get_mut(&port) else { return };
        let flow = self.node.port.device().flow_stats(port);
        let (verdict, wake) = world.serve(&mut self.node.stack, &mut self.kernel, flow, now);
        if let Some(verdict) = verdict {
            self.end(port, verdict, now);
        } else if let Some(at) = wake {
            self.wakes.push(Reverse((at, port)));
        }
    }

    fn end(&mut self, port: u16, verdict: Verdict, now: Instant) {
        let Some(mut world) = self.worlds.remove(&port) else { return };
        let flow = self.node.port.device().flow_stats(port);
        let verdict = match verdict {
            Verdict::Fault(what) => {
                let recent = self.node.port.device().recent(port);
                let ends = world.describe(&self.node.stack, &self.kernel, flow);
                Verdict::Fault(format!("{what}\n{ends}\n{recent}"))
            }
            other => other,
        };
        world.release(&mut self.node.stack, &mut self.kernel);
        self.node.port.device_mut().remove_flow(port);
        self.report.add(Entry {
            seed: world.plan.seed,
            verdict,
            bytes: world.received(),
            retransmits: world.retransmits(),
            flow,
            duration: world.age(now),
        });
    }

    fn sleep(&mut self) {
        let now = self.clock.now();
        let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
        let deadlines = [
            self.node.stack.poll_timeout(),
            self.kernel.poll_timeout(),
            self.node.port.device().poll_timeout(),
            wake,
        ];
        // Worlds whose patience is over have no event of their own.
        let longest = Duration::from_secs(1);
        let timeout = deadlines.iter().flatten().min().map_or(longest, |at| (*at - now).min(longest));
        let mut fds = [
            PollFd::new(self.node.port.device().tap(), PollFlags::IN),
            PollFd::new(&self.kernel, PollFlags::IN),
        ];
        if poller::wait(&mut fds, Some(timeout)).expect("poll") == 0 && timeout == longest {
            let ports: Vec<u16> = self.worlds.keys().copied().collect();
            ports.into_iter().for_each(|port| self.serve_world(port, now));
        }
    }

    /// TCP sockets of the kernel in this namespace that somebody, or nobody any more, holds; TIME-WAIT not counted.
    ///
    /// Its `orphan` is no number of this namespace: it counts every namespace of the machine. `inuse` has ours, as an
    /// orphan stays in use until it ends.
    fn kernel_sockets(&self) -> usize {
        let text = std::fs::read_to_string("/proc/thread-self/net/sockstat").expect("sockstat");
        let line = text.lines().find(|line| line.starts_with("TCP:")).expect("TCP");
        let mut words = line.split_whitespace().skip_while(|word| *word != "inuse");
        words.nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// After the last world, and the last timer: nothing is held by anybody.
    fn check_memory(&mut self) {
        let mut now = self.clock.now();
        let end = now + ALL_TIMERS;
        while now < end {
            self.node.stack.handle_timeout(now);
            self.node.output(now).expect("the TAP lives");
            now += Duration::from_millis(100);
        }
        self.report.checksum_drops = self.node.port.stats().rx.software_bad;
        self.report.starved = self.node.port.device().starved();
        let memory = self.node.stack.memory();
        let sockets = self.kernel_sockets();
        let pools = self.pools.each_ref().map(|pool| pool.stats().total - pool.free());
        let held =
            (memory.used, memory.connections, memory.listeners, memory.pages.total - memory.pages.free);
        let datagrams = self.stack_pools.datagrams.stats();
        // The TAP's reader keeps one buffer of each size for the next frame.
        let is_clean = held == (0, 0, 0, 0)
            && datagrams.free == datagrams.total
            && pools.iter().zip([1, 33, 0, 0]).all(|(held, most)| *held <= most)
            && sockets == 0
            && self.kernel.counters().connections == 0;
        if !is_clean {
            let what = format!(
                "memory that nobody gave back: {memory:?}, pools (TAP large and small, ours large and small) {pools:?}, \
                 {sockets} sockets of the kernel, {:?}",
                self.kernel.counters()
            );
            self.report.faults.push(Fault { seed: 0, what });
        }
    }
}
