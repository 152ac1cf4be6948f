//! Requests per second of a server that answers each with a response of one size.

use super::super::Under;
use super::super::ethernet::PACKET_DMA;
use super::{CoreCycles, TcpServer};
use crate::predict::{Bottleneck, Prediction, Unit};
use crate::units::{Bytes, Nanoseconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a request costs beside the bytes of its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Parsing, the answer's header, logging and the scheduling of the server.
    pub per_request: CoreCycles,
    /// Opening and reading the file; none for an answer without one.
    pub per_file: CoreCycles,
    /// Setting up and closing a connection, its segments included.
    pub per_connection: CoreCycles,
    /// How many requests share a connection.
    pub requests_per_connection: f64,
    /// The size of the response's body.
    pub response: Bytes,
}

impl Requests {
    pub(super) fn check(&self, faults: &mut Under<'_>) {
        let shared = (1.0..=1e9).contains(&self.requests_per_connection);
        faults.require(shared, "requests.requests_per_connection", "1 to 1000000000");
    }

    /// Cycles of one request beside the segments of its response.
    pub(super) fn alone(&self) -> f64 {
        self.per_request.count()
            + self.per_file.count()
            + self.per_connection.count() / self.requests_per_connection
    }

    /// The sum over the response's segments of at most `most`, each costing `segment(payload)`.
    pub(super) fn segments(&self, most: Bytes, segment: impl Fn(Bytes) -> f64) -> f64 {
        let size = self.response.value();
        let full = (size / most.value()).floor();
        let rest = size - full * most.value();
        let last = if rest > 0.0 { segment(Bytes::new(rest)) } else { 0.0 };
        full * segment(most) + last
    }

    /// The rate of `server` when a request costs its cores so many cycles of network and application, and its response so much
    /// time on the line and in the packet DMA.
    pub(super) fn prediction(
        &self,
        (network, application): (f64, f64),
        (line, dma): (Nanoseconds, Nanoseconds),
        server: &TcpServer,
    ) -> Prediction {
        let unit = Unit::RequestsPerSecond;
        let rate = |cores: u8, work: f64| {
            f64::from(cores.min(server.cores)) * server.rate_of_cores().value() / work.max(1.0)
        };
        let work = network + application;
        let parts = rate(server.queues, network).min(rate(server.application_cores, application));
        let core = parts.min(rate(server.cores, work));
        // An empty response takes no time; its rate stays a number.
        let frames = |time: Nanoseconds| 1e9 / time.value().max(1e-3);
        let predicted = core.min(frames(line)).min(frames(dma));
        let limit = |name: &str, rate: f64, explanation: String| Bottleneck {
            name: name.into(),
            rate,
            share: if rate > 0.0 { (predicted / rate).clamp(0.0, 1.0) } else { 1.0 },
            explanation,
        };
        let mut limits = vec![
            limit(
                "cores",
                core,
                format!(
                    "{work:.0} cycles of {}, {network:.0} of them network; cores: {}, queues: {}",
                    server.rate_of_cores(),
                    server.cores,
                    server.queues
                ),
            ),
            limit("Ethernet line", frames(line), format!("{line:.2} for the frames of {}", self.response)),
        ];
        if dma > Nanoseconds::ZERO {
            let text = format!("{dma:.2} for the frames of {}", self.response);
            limits.push(limit(PACKET_DMA, frames(dma), text));
        }
        Prediction::rate(frames(line), predicted, server.spread.value(), unit, limits)
    }
}
