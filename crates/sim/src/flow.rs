//! A connection between two hosts with a pattern sent in one direction or both: how to set it up, what came of it.

use crate::apps::{Amount, EndReport, Reader, Writer};
use crate::world::HostId;
use linerate_transport::SocketOptions;
use linerate_wire::units::Instant;

/// Names a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FlowId(pub(crate) usize);

/// How to set up a flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Who connects.
    pub client: HostId,
    /// Who listens.
    pub server: HostId,
    /// Over IPv6 instead of IPv4. Default: no.
    pub ipv6: bool,
    /// The server's port; `None`: 10,000 and the number of the flow.
    pub port: Option<u16>,
    /// When the client connects. Default: at once.
    pub start: Instant,
    /// What the client sends. Default: nothing.
    pub upload: Amount,
    /// What the server sends. Default: nothing.
    pub download: Amount,
    /// How the client reads.
    pub client_reader: Reader,
    /// How the server reads.
    pub server_reader: Reader,
    /// How the client writes.
    pub client_writer: Writer,
    /// How the server writes. One of the two may be [`Writer::Exchange`]; the other end answers, and sends nothing else.
    pub server_writer: Writer,
    /// Settings of the client's socket.
    pub client_options: SocketOptions,
    /// Settings of the server's socket.
    pub server_options: SocketOptions,
}

impl FlowConfig {
    /// A flow between these hosts in which both finish at once, to be filled in.
    pub fn new(client: HostId, server: HostId) -> FlowConfig {
        FlowConfig {
            client,
            server,
            ipv6: false,
            port: None,
            start: Instant::ZERO,
            upload: Amount::Nothing,
            download: Amount::Nothing,
            client_reader: Reader::Eager,
            server_reader: Reader::Eager,
            client_writer: Writer::Eager,
            server_writer: Writer::Eager,
            client_options: SocketOptions::default(),
            server_options: SocketOptions::default(),
        }
    }

    /// The client sends this.
    pub fn upload(client: HostId, server: HostId, amount: Amount) -> FlowConfig {
        FlowConfig { upload: amount, ..FlowConfig::new(client, server) }
    }

    /// The server sends this.
    pub fn download(client: HostId, server: HostId, amount: Amount) -> FlowConfig {
        FlowConfig { download: amount, ..FlowConfig::new(client, server) }
    }

    /// Both send this.
    pub fn both(client: HostId, server: HostId, amount: Amount) -> FlowConfig {
        FlowConfig { upload: amount, download: amount, ..FlowConfig::new(client, server) }
    }
}

/// What came of a flow so far.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlowReport {
    /// The client's end.
    pub client: EndReport,
    /// The server's end.
    pub server: EndReport,
}

impl FlowReport {
    /// Whether both ends are over (or one of them could not begin).
    pub fn is_done(&self) -> bool {
        let over = |end: &EndReport| end.closed.is_some() || end.error.is_some();
        over(&self.client) && over(&self.server) || self.client.error.is_some() || self.server.error.is_some()
    }

    /// Whether all that each end sent came to the other, right and in order, and both ended in order.
    pub fn is_complete(&self) -> bool {
        let done = Some(linerate_transport::CloseReason::Done);
        self.client.closed == done
            && self.server.closed == done
            && self.client.error.is_none()
            && self.server.error.is_none()
            && self.client.bytes_sent == self.server.bytes_received
            && self.server.bytes_sent == self.client.bytes_received
    }

    /// What is wrong, for messages: errors of the ends, bytes that are missing, reasons of ending.
    pub fn verdict(&self) -> Result<(), String> {
        if self.is_complete() {
            return Ok(());
        }
        let end = |name: &str, end: &EndReport, sent: u64| {
            format!(
                "{name}: {} of {sent} bytes received, closed {:?} at {:?}, error {:?}",
                end.bytes_received, end.closed, end.closed_at, end.error
            )
        };
        Err(format!(
            "{}; {}",
            end("client", &self.client, self.server.bytes_sent),
            end("server", &self.server, self.client.bytes_sent)
        ))
    }
}
