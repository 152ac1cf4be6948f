//! What each engine tells of itself.

use super::own::HostDevice;
use crate::status::catalogue::Tally;
use crate::status::collect::{Observed, live_pool, pool};
use crate::status::report::{Memory, PoolReport, Traffic};
use linerate_linux::kernel::KernelTransport;
use linerate_stack::Node;
use linerate_transport::{ConnDetail, ConnId, ConnSummary, Owner};

impl<D: HostDevice> Observed for Node<D> {
    fn transport(&self) -> &'static str {
        "own"
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let device = self.port.device_mut().counted();
        let port = self.port.stats();
        vec![
            Tally::of("stack", self.stack.counters()),
            Tally::of("receive", &port.rx),
            Tally::of("transmit", &port.tx),
            Tally::of("device", &device),
        ]
    }

    fn traffic(&mut self) -> Traffic {
        let device = self.port.device_mut().counted();
        Traffic {
            received_bytes: device.rx_bytes,
            sent_bytes: device.tx_bytes,
            received_packets: device.rx_frames,
            sent_packets: device.tx_frames,
            retransmits: self.stack.counters().tcp_retransmits,
            drops: 0,
        }
    }

    fn memory(&self) -> Memory {
        let memory = self.stack.memory();
        Memory {
            limit: memory.limit as u64,
            used: memory.used as u64,
            refused: memory.refused,
            tables: self.stack.table_bytes() as u64,
            ..Memory::default()
        }
    }

    fn pools(&self) -> Vec<PoolReport> {
        let memory = self.stack.memory();
        let receive = self.port.device().pools();
        vec![
            live_pool("large receive buffers", &receive.large),
            live_pool("small receive buffers", &receive.small),
            pool("pages", memory.pages),
            pool("datagram buffers", memory.datagrams),
        ]
    }

    fn survey(&self, visit: &mut dyn FnMut(ConnSummary)) {
        self.stack.survey(visit);
    }

    fn survey_udp(&self, visit: &mut dyn FnMut(Owner, usize)) {
        self.stack.survey_udp(visit);
    }

    fn detail(&self, id: ConnId) -> Option<ConnDetail> {
        self.stack.detail(id)
    }
}

impl Observed for KernelTransport {
    fn transport(&self) -> &'static str {
        "kernel"
    }

    fn tallies(&mut self) -> Vec<Tally> {
        vec![Tally::of("kernel", &self.counters())]
    }

    fn traffic(&mut self) -> Traffic {
        let counters = self.counters();
        Traffic {
            received_bytes: counters.bytes_received,
            sent_bytes: counters.bytes_sent,
            received_packets: counters.datagrams_received,
            sent_packets: counters.datagrams_sent,
            ..Traffic::default()
        }
    }

    fn memory(&self) -> Memory {
        let counters = self.counters();
        Memory {
            limit: self.memory_limit() as u64,
            used: counters.memory,
            refused: counters.buffers_refused,
            ..Memory::default()
        }
    }

    fn pools(&self) -> Vec<PoolReport> {
        Vec::new()
    }

    fn survey(&self, visit: &mut dyn FnMut(ConnSummary)) {
        KernelTransport::survey(self, visit);
    }

    fn detail(&self, id: ConnId) -> Option<ConnDetail> {
        KernelTransport::detail(self, id)
    }
}
