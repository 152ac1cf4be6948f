//! How the parts of a world are run, and how segments go from one to the next.

use crate::apps::Endpoint;
use crate::capture::Seen;
use crate::journal;
use crate::link::Output;
use crate::nic::Leaving;
use crate::node::{Kind, Node};
use crate::parcel::Parcel;
use crate::recorder::{FlowSample, QueueSample};
use crate::timeline::Pace;
use crate::world::{Direction, HostId, PARTS, World, part};
use linerate_transport::{Owner, Transport};
use linerate_wire::units::Instant;

/// Steps of the parts of the world at one point in time, per node, after which it is said to be in a livelock.
const MAX_STEPS: usize = 20_000;

impl World {
    /// Runs a part of the world.
    pub(crate) fn run_part(&mut self, part: usize) {
        let Some(part) = part.checked_sub(1) else { return self.run_recorder() };
        let index = part / PARTS;
        self.steps += 1;
        if self.steps > MAX_STEPS * self.nodes.len() {
            panic!(
                "{} does not come to rest at {:?}: a livelock (seed {})",
                self.nodes[index].name, self.now, self.seed
            );
        }
        match part % PARTS {
            0 => match self.nodes[index].kind {
                Kind::Host(_) => self.run_host(index),
                Kind::Raw(_) => self.run_raw(index),
            },
            1 => self.run_path(index, Direction::Up),
            _ => self.run_path(index, Direction::Down),
        }
    }

    fn run_recorder(&mut self) {
        let Some((every, _)) = self.recorder.next else { return };
        let at = self.now;
        self.recorder.flows.resize_with(self.flows.len(), Default::default);
        for flow in 0..self.flows.len() {
            let ends = &self.flows[flow];
            let (client, server) = (self.sample(ends.client), self.sample(self.serving(ends)));
            self.recorder.flows[flow].client.extend(client);
            self.recorder.flows[flow].server.extend(server);
        }
        self.recorder.queues.resize_with(self.nodes.len(), Default::default);
        for index in 0..self.nodes.len() {
            self.run_path(index, Direction::Up);
            self.run_path(index, Direction::Down);
        }
        for (node, queues) in self.nodes.iter().zip(&mut self.recorder.queues) {
            for (path, samples) in [&node.up, &node.down].into_iter().zip(queues) {
                let (packets, bytes) = path.queue_len();
                samples.push(QueueSample { at, packets, bytes });
            }
        }
        self.recorder.next = Some((every, at + every));
        self.schedule.set(0, Some(at + every));
    }

    fn sample(&self, (host, owner): (HostId, Owner)) -> Option<FlowSample> {
        let app = self.app::<Endpoint>(host, owner)?;
        let info = self.host(host).home(owner).stack.info(app.conn()?)?;
        Some(FlowSample::new(self.now, &info, app.seen().bytes_received))
    }

    pub(crate) fn run_path(&mut self, index: usize, direction: Direction) {
        self.moved = true;
        let mut output = std::mem::take(&mut self.output);
        let (now, stock) = (self.now, self.stock.clone());
        self.path_mut(index, direction).handle_timeout(now, &stock, &mut output);
        self.distribute(index, direction, &mut output);
        self.output = output;
        self.reschedule_path(index, direction);
        if direction == Direction::Up {
            // A pause holds the interface too.
            self.reschedule_node(index);
        }
    }

    fn run_host(&mut self, index: usize) {
        let now = self.now;
        let mut output = std::mem::take(&mut self.output);
        let capture = &mut self.capture;
        let Node { kind: Kind::Host(host), up, pen, .. } = &mut self.nodes[index] else { return };
        let most = if capture.keeps(index) || pen.writes() { 1 } else { u16::MAX };
        self.moved |= host.run(now, most, |parcel, at| {
            capture.see(index, Seen::Inbound, parcel, |_| at);
            journal::received(pen, parcel, at);
        });
        host.start(now, up, &mut output, |parcel, leaving| {
            let Leaving { at, pace, .. } = leaving;
            let time_of = |part: &Parcel| pace.map_or(at, |pace| pace.at(part, part.first()));
            capture.see(index, Seen::Outbound, parcel, time_of);
            journal::sent(pen, parcel, leaving.from, time_of);
        });
        self.distribute(index, Direction::Up, &mut output);
        self.output = output;
        self.reschedule_path(index, Direction::Up);
        self.reschedule_node(index);
    }

    fn run_raw(&mut self, index: usize) {
        let now = self.now;
        let Node { kind: Kind::Raw(raw), pen, .. } = &mut self.nodes[index] else { return };
        let mut frames = Vec::new();
        self.moved = true;
        while let Some((at, parcel)) = raw.inbound.take_one(now) {
            self.capture.see(index, Seen::Inbound, &parcel, |_| at);
            journal::received(pen, &parcel, at);
            let bytes = parcel.bytes();
            if let Some(peer) = &mut raw.peer {
                peer.handle_frame(now, &bytes, &mut frames);
            }
            if !raw.discards {
                raw.received.push((at, bytes));
            }
        }
        if let Some(peer) = &mut raw.peer
            && peer.poll_timeout().is_some_and(|at| at <= now)
        {
            peer.handle_timeout(now, &mut frames);
        }
        for frame in frames {
            self.transmit_raw(index, frame);
        }
        self.reschedule_node(index);
    }

    /// Sends a frame of a scripted node.
    pub(crate) fn transmit_raw(&mut self, index: usize, frame: Vec<u8>) {
        let Some(parcel) = self.stock.take_bytes(frame) else { return };
        let now = self.now;
        self.capture.see(index, Seen::Outbound, &parcel, |_| now);
        journal::sent(&self.nodes[index].pen, &parcel, now, |_| now);
        let mut output = std::mem::take(&mut self.output);
        self.nodes[index].up.offer(self.now, None, parcel, &mut output);
        self.distribute(index, Direction::Up, &mut output);
        self.output = output;
        self.reschedule_path(index, Direction::Up);
    }

    /// Takes what a path gave out to where it goes.
    fn distribute(&mut self, index: usize, direction: Direction, output: &mut Output) {
        for (at, parcel) in output.back.drain(..) {
            let sender = match direction {
                Direction::Up => Some(index),
                Direction::Down => parcel.addresses().and_then(|(to, _)| self.stations.get(&to).copied()),
            };
            if let Some(sender) = sender {
                self.arrive(sender, at, None, parcel);
            }
        }
        let mut forward = std::mem::take(&mut output.forward);
        for (at, pace, parcel) in forward.drain(..) {
            match direction {
                Direction::Down => self.arrive(index, at, pace, parcel),
                Direction::Up => self.switch(index, at, pace, parcel, output),
            }
        }
        output.forward = forward;
    }

    /// The switch: learns where the sender is, and sends to where the destination is, or to all.
    fn switch(&mut self, from: usize, at: Instant, pace: Option<Pace>, parcel: Parcel, output: &mut Output) {
        let Some((to, source)) = parcel.addresses() else { return };
        let is_group = |mac: [u8; 6]| mac[0] & 1 == 1;
        if self.nodes.len() == 2 {
            // A cable.
            return self.send_down(1 - from, at, pace, parcel, output);
        }
        if !is_group(source) && self.stations.get(&source) != Some(&from) {
            if self.stations.len() >= crate::world::MAX_STATIONS {
                self.stations.clear();
            }
            self.stations.insert(source, from);
        }
        match self.stations.get(&to).copied().filter(|_| !is_group(to)) {
            Some(port) if port == from => {}
            Some(port) => self.send_down(port, at, pace, parcel, output),
            None => {
                for port in (0..self.nodes.len()).filter(|port| *port != from) {
                    self.send_down(port, at, pace, parcel.clone(), output);
                }
            }
        }
    }

    fn send_down(
        &mut self,
        index: usize,
        at: Instant,
        pace: Option<Pace>,
        parcel: Parcel,
        output: &mut Output,
    ) {
        let mut passed = std::mem::take(&mut self.passed);
        self.nodes[index].down.offer(at, pace, parcel, &mut passed);
        for (at, pace, parcel) in passed.forward.drain(..) {
            self.arrive(index, at, pace, parcel);
        }
        output.back.append(&mut passed.back);
        self.passed = passed;
        self.reschedule_path(index, Direction::Down);
    }

    fn arrive(&mut self, index: usize, at: Instant, pace: Option<Pace>, parcel: Parcel) {
        let inbound = self.nodes[index].inbound_for(&parcel);
        match pace {
            Some(pace) => inbound.insert_paced(pace, parcel),
            None => inbound.insert(at, parcel),
        }
        self.reschedule_node(index);
    }

    fn reschedule_path(&mut self, index: usize, direction: Direction) {
        let at = self.path_mut(index, direction).poll_timeout().map(|at| at.max(self.now));
        let part = part(index, if direction == Direction::Up { 1 } else { 2 });
        self.schedule.set(part, at);
    }

    fn reschedule_node(&mut self, index: usize) {
        let now = self.now;
        let node = &self.nodes[index];
        let at = match &node.kind {
            Kind::Host(host) => host.poll_timeout(now, node.up.is_paused()),
            Kind::Raw(raw) => {
                let peer = raw.peer.as_ref().and_then(|peer| peer.poll_timeout());
                [raw.inbound.next(), peer].into_iter().flatten().min()
            }
        };
        self.schedule.set(part(index, 0), at.map(|at| at.max(now)));
    }
}
