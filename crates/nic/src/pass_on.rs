//! Methods of [`Device`](crate::Device) and [`QueuePair`](crate::QueuePair) that a wrapper leaves to what it wraps.

#[doc(hidden)]
pub use linerate_wire::units::Instant;

/// In an implementation of [`Device`](crate::Device) or [`QueuePair`](crate::QueuePair): passes these methods on to a field.
/// `all of Device` are those of the whole trait, with those that it may get later.
///
/// ```
/// use linerate_nic::{Device, QueuePair, pass_on};
///
/// struct Wrapper<D> {
///     device: D,
/// }
///
/// impl<D: Device> Device for Wrapper<D> {
///     pass_on!(device: all of Device);
/// }
///
/// impl<D: QueuePair> QueuePair for Wrapper<D> {
///     pass_on!(device: enabled, receive, transmit, poll_completion, arm, poll_timeout);
/// }
/// ```
#[macro_export]
macro_rules! pass_on {
    ($field:tt: all of Device) => {
        $crate::pass_on!($field: mac, mtu, capabilities, enable, link, set_filter, queues, set_steering);
    };
    ($field:tt: all of QueuePair) => {
        $crate::pass_on!($field: enabled, receive, transmit, poll_completion, arm, waiting, arm_for, most_counted, poll_timeout, set_pacing);
    };
    ($field:tt: $($method:ident),+) => {
        $($crate::pass_on!(@$method $field);)+
    };

    (@mac $field:tt) => {
        fn mac(&self) -> $crate::MacAddr {
            $crate::Device::mac(&self.$field)
        }
    };
    (@mtu $field:tt) => {
        fn mtu(&self) -> usize {
            $crate::Device::mtu(&self.$field)
        }
    };
    (@capabilities $field:tt) => {
        fn capabilities(&self) -> $crate::Capabilities {
            $crate::Device::capabilities(&self.$field)
        }
    };
    (@enable $field:tt) => {
        fn enable(&mut self, wanted: $crate::Capabilities) -> ::core::result::Result<(), $crate::DeviceError> {
            $crate::Device::enable(&mut self.$field, wanted)
        }
    };
    (@link $field:tt) => {
        #[inline]
        fn link(&self) -> $crate::LinkState {
            $crate::Device::link(&self.$field)
        }
    };
    (@set_filter $field:tt) => {
        fn set_filter(&mut self, filter: &$crate::Filter<'_>) -> ::core::result::Result<(), $crate::DeviceError> {
            $crate::Device::set_filter(&mut self.$field, filter)
        }
    };
    (@queues $field:tt) => {
        fn queues(&self) -> usize {
            $crate::Device::queues(&self.$field)
        }
    };
    (@set_steering $field:tt) => {
        fn set_steering(&mut self, steering: &$crate::Steering<'_>) -> ::core::result::Result<(), $crate::DeviceError> {
            $crate::Device::set_steering(&mut self.$field, steering)
        }
    };

    (@enabled $field:tt) => {
        #[inline]
        fn enabled(&self) -> $crate::Capabilities {
            $crate::QueuePair::enabled(&self.$field)
        }
    };
    (@receive $field:tt) => {
        #[inline]
        fn receive(
            &mut self,
            now: $crate::pass_on::Instant,
            batch: &mut $crate::RxBatch,
        ) -> ::core::result::Result<usize, $crate::DeviceError> {
            $crate::QueuePair::receive(&mut self.$field, now, batch)
        }
    };
    (@transmit $field:tt) => {
        #[inline]
        fn transmit(
            &mut self,
            now: $crate::pass_on::Instant,
            queue: &mut $crate::TxQueue,
        ) -> ::core::result::Result<usize, $crate::DeviceError> {
            $crate::QueuePair::transmit(&mut self.$field, now, queue)
        }
    };
    (@poll_completion $field:tt) => {
        #[inline]
        fn poll_completion(&mut self) -> Option<$crate::TxToken> {
            $crate::QueuePair::poll_completion(&mut self.$field)
        }
    };
    (@arm $field:tt) => {
        #[inline]
        fn arm(&mut self, now: $crate::pass_on::Instant) -> bool {
            $crate::QueuePair::arm(&mut self.$field, now)
        }
    };
    (@waiting $field:tt) => {
        fn waiting(&mut self) -> u32 {
            $crate::QueuePair::waiting(&mut self.$field)
        }
    };
    (@arm_for $field:tt) => {
        fn arm_for(&mut self, now: $crate::pass_on::Instant, frames: u32) -> Option<bool> {
            $crate::QueuePair::arm_for(&mut self.$field, now, frames)
        }
    };
    (@most_counted $field:tt) => {
        fn most_counted(&self) -> Option<u32> {
            $crate::QueuePair::most_counted(&self.$field)
        }
    };
    (@poll_timeout $field:tt) => {
        #[inline]
        fn poll_timeout(&self) -> Option<$crate::pass_on::Instant> {
            $crate::QueuePair::poll_timeout(&self.$field)
        }
    };
    (@set_pacing $field:tt) => {
        fn set_pacing(&mut self, pacing: $crate::PacingConfig) -> ::core::result::Result<(), $crate::DeviceError> {
            $crate::QueuePair::set_pacing(&mut self.$field, pacing)
        }
    };
}
