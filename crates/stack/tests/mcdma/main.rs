//! Stacks over the driver for MCDMA rings and the model of its hardware (`linerate-nic`'s tests): transfers byte by byte, whatever
//! the hardware does.

mod cores;
#[path = "../../../nic/tests/mcdma/model/mod.rs"]
mod model;
mod transfers;
mod untrue;
mod world;

use core::time::Duration;
use linerate_nic::mcdma::{Control, Interrupt, Queue, Settings, open};
use linerate_nic::{Capabilities, Device as _, MacAddr, Pool, QueuePair as _};
use linerate_wire::units::Instant;
use model::{Board, DESCRIPTORS, DESCRIPTORS_LEN};
