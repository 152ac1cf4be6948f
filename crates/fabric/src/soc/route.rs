//! Which bridges lie between a master and a memory.

use super::{Endpoint, Soc};
use std::collections::{BTreeMap, VecDeque};
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
        let (controller, tc) =
            self.transfer_controller(master).ok_or_else(|| RouteError::NoMaster(master.into()))?;
        let memory = self.endpoint(endpoint).ok_or_else(|| RouteError::NoEndpoint(endpoint.into()))?;
        let target = memory.fabric.as_deref().ok_or_else(|| RouteError::Private(endpoint.into()))?;
        let mut via: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        let mut queue = VecDeque::from([controller.fabric.as_str()]);
        while let Some(fabric) = queue.pop_front() {
            if fabric == target {
                return Ok(path(&via, &controller.fabric, target));
            }
            // A master uses its own bridge where it starts; behind that, all that are its own again.
            for name in &tc.bridges {
                let Some(bridge) = self.bridges.get(name.as_str()) else { continue };
                let to = bridge.to.as_str();
                if bridge.from.as_str() == fabric && to != controller.fabric.as_str() && !via.contains_key(to)
                {
                    via.insert(to, (fabric, name.as_str()));
                    queue.push_back(to);
                }
            }
        }
        Err(RouteError::NoWay { master: master.into(), endpoint: endpoint.into() })
    }
}

fn path(via: &BTreeMap<&str, (&str, &str)>, start: &str, target: &str) -> Route {
    let (mut at, mut route) = (target, Vec::new());
    // Each fabric was entered once, so this ends.
    while at != start {
        let Some((from, bridge)) = via.get(at) else { break };
        route.push((*bridge).to_owned());
        at = from;
    }
    route.reverse();
    route
}
