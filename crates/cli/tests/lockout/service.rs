//! A server of `linerate-serve` as an application of a simulated host.

use linerate_serve::{Context, Service};
use linerate_sim::App;
use linerate_transport::{Event, FileDone, FileOp, Files, Owner};
use linerate_wire::units::Instant;

/// No files: the servers' memory files need none.
struct NoFiles;

impl Files for NoFiles {
    fn submit(&mut self, _owner: Owner, _tag: u64, op: FileOp) -> Result<(), FileOp> {
        Err(op)
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        None
    }
}

type Make = Box<dyn FnOnce(Owner) -> Box<dyn Service>>;

/// See the module.
pub struct ServiceApp {
    make: Option<Make>,
    service: Option<Box<dyn Service>>,
    random: u64,
}

impl ServiceApp {
    /// The server that `make` makes for its owner.
    pub fn new(make: impl FnOnce(Owner) -> Box<dyn Service> + 'static) -> ServiceApp {
        ServiceApp { make: Some(Box::new(make)), service: None, random: 1 }
    }

    fn with(
        &mut self,
        context: &mut linerate_sim::Context<'_>,
        act: impl FnOnce(&mut dyn Service, &mut Context<'_>),
    ) {
        let state = &mut self.random;
        let mut random = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *state >> 16
        };
        let mut ctx = Context {
            net: context.stack,
            files: &mut NoFiles,
            now: context.now,
            turn: None,
            wall_ns: 1_767_323_045_000_000_000,
            random: &mut random,
        };
        if let Some(service) = &mut self.service {
            act(&mut **service, &mut ctx);
        }
    }
}

impl App for ServiceApp {
    fn handle_event(&mut self, context: &mut linerate_sim::Context<'_>, event: Event) {
        self.with(context, |service, ctx| service.handle_event(ctx, event));
    }

    fn handle_timeout(&mut self, context: &mut linerate_sim::Context<'_>) {
        if let Some(make) = self.make.take() {
            self.service = Some(make(context.owner));
            return self.with(context, |service, ctx| service.start(ctx).expect("the port is free"));
        }
        self.with(context, |service, ctx| service.handle_timeout(ctx));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.service {
            Some(service) => service.poll_timeout(),
            None => Some(Instant::ZERO),
        }
    }
}
