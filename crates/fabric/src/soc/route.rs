//! Which bridges lie between a master and a memory.

use super::{Endpoint, Soc};
use std::fmt;

/// The bridges on the way from a fabric to a memory, in order.
pub type Route = Vec<String>;

/// Why there is no way from a master to a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// The chip has no transfer controller of this name.
    NoMaster(String),
    /// The chip has no memory of this name.
    NoEndpoint(String),
    /// The memory is on no fabric: only its own core reaches it.
    Private(String),
    /// The bridges that the master may use do not lead there.
    NoWay {
        /// The transfer controller.
        master: String,
        /// The memory.
        endpoint: String,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMaster(name) => write!(f, "no transfer controller is named {name:?}"),
            Self::NoEndpoint(name) => write!(f, "no memory is named {name:?}"),
            Self::Private(name) => write!(f, "no fabric reaches {name:?}"),
            Self::NoWay { master, endpoint } => {
                write!(f, "the bridges of {master:?} do not lead to {endpoint:?}")
            }
        }
    }
}

impl std::error::Error for RouteError {}

impl Soc {
    /// The memory of this name; "l2.1" is the second of those named "l2".
    pub fn endpoint(&self, name: &str) -> Option<&Endpoint> {
        let (kind, index) = name.split_once('.').unwrap_or((name, "0"));
        let found = self.endpoints.get(kind)?;
        (index.parse::<u32>().ok()? < found.count).then_some(&**found)
    }

    /// The fewest bridges from a transfer controller to a memory.
    ///
    /// # Errors
    /// When one of the two does not exist or no bridges join them.
    pub fn route(&self, master: &str, endpoint: &str) -> Result<Route, RouteError> {
        Ok(self.way(master, endpoint)?.into_iter().map(str::to_owned).collect())
    }

    /// The memories whose controllers requests pass on their way to this one.
    pub(crate) fn in_front_of<'a>(&'a self, memory: &'a Endpoint) -> Vec<(&'a str, &'a Endpoint)> {
        let mut passed: Vec<(&str, &Endpoint)> = Vec::new();
        let mut next = memory.behind.as_deref();
        // A loaded chip has no circle; no chain is longer than its memories.
        while let Some(name) = next.filter(|_| passed.len() < self.endpoints.len()) {
            let Some(front) = self.endpoints.get(name) else { break };
            passed.push((name, front));
            next = front.behind.as_deref();
        }
        passed
    }

    /// As [`Self::route`], by the names that the chip has.
    pub(crate) fn way(&self, master: &str, endpoint: &str) -> Result<Vec<&str>, RouteError> {
        let (controller, tc) =
            self.transfer_controller(master).ok_or_else(|| RouteError::NoMaster(master.into()))?;
        let memory = self.endpoint(endpoint).ok_or_else(|| RouteError::NoEndpoint(endpoint.into()))?;
        let target = memory.fabric.as_deref().ok_or_else(|| RouteError::Private(endpoint.into()))?;
        // Each fabric with the one before it and the bridge between them, in the order in which they were reached.
        let mut via: Vec<(&str, usize, &str)> = vec![(controller.fabric.as_str(), 0, "")];
        let mut at = 0;
        while let Some(&(fabric, ..)) = via.get(at) {
            if fabric == target {
                return Ok(path(&via, at));
            }
            // A master uses its own bridge where it starts; behind that, all that are its own again.
            for name in &tc.bridges {
                let Some(bridge) = self.bridges.get(name.as_str()) else { continue };
                let to = bridge.to.as_str();
                if bridge.from.as_str() == fabric && via.iter().all(|(known, ..)| *known != to) {
                    via.push((to, at, name.as_str()));
                }
            }
            at += 1;
        }
        Err(RouteError::NoWay { master: master.into(), endpoint: endpoint.into() })
    }
}

/// The bridges to the fabric at this place, in order.
fn path<'a>(via: &[(&'a str, usize, &'a str)], mut at: usize) -> Vec<&'a str> {
    let mut route = Vec::new();
    // Each fabric was reached from one before it, so this ends.
    while let Some((_, before, bridge)) = via.get(at).filter(|_| at > 0) {
        route.push(*bridge);
        at = *before;
    }
    route.reverse();
    route
}
