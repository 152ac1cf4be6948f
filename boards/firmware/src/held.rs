//! What belongs to one core, or to all of them.

use crate::exchange::Several;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::RefCell;
use critical_section::Mutex;

/// A thing with several handles: on a machine with one core nothing is locked for it.
pub(crate) enum Held<T> {
    /// This core's.
    Own(Rc<RefCell<T>>),
    /// All cores', one at a time.
    Shared(Arc<Mutex<RefCell<T>>>, Several),
}

impl<T> Held<T> {
    /// For one core.
    pub(crate) fn own(thing: T) -> Self {
        Held::Own(Rc::new(RefCell::new(thing)))
    }

    /// Lets `work` at it. With several cores the others wait meanwhile, so `work` is short.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        match self {
            Held::Own(own) => work(&mut own.borrow_mut()),
            Held::Shared(shared, _) => critical_section::with(|cs| work(&mut shared.borrow_ref_mut(cs))),
        }
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        match self {
            Held::Own(own) => Held::Own(Rc::clone(own)),
            Held::Shared(shared, several) => Held::Shared(Arc::clone(shared), *several),
        }
    }
}
