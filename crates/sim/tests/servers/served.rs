//! A server of the crate `serve` as an application of a simulated host, with files in memory.

use linerate_serve::testing::MemoryFiles;
use linerate_serve::{Context as ServeContext, Service};
use linerate_sim::{App, Context, Instant, Random};
use linerate_transport::{Event, Files as _, Owner};

/// 2026-01-02T03:04:05Z.
const WALL_NS: i64 = 1_767_323_045_000_000_000;

/// How a server is made, when its owner is known.
type Make = Box<dyn Fn(Owner) -> Box<dyn Service>>;

/// See the module.
pub struct Served {
    make: Make,
    service: Option<Box<dyn Service>>,
    pub files: MemoryFiles,
    random: Random,
}

impl Served {
    pub fn new(
        files: MemoryFiles,
        random: Random,
        make: impl Fn(Owner) -> Box<dyn Service> + 'static,
    ) -> Served {
        Served { make: Box::new(make), service: None, files, random }
    }

    /// The server stops.
    pub fn drain(&mut self, context: &mut Context<'_>) {
        self.act(context, |service, ctx| service.drain(ctx));
    }

    /// Lets the server act, and then on what came of its files.
    fn act(&mut self, context: &mut Context<'_>, act: impl FnOnce(&mut dyn Service, &mut ServeContext<'_>)) {
        let Served { service: Some(service), files, random, .. } = self else { return };
        let mut random = || random.next_u64();
        let mut with = |files: &mut MemoryFiles,
                        act: &mut dyn FnMut(&mut dyn Service, &mut ServeContext<'_>)| {
            let (net, now) = (&mut *context.stack, context.now);
            let random = &mut random;
            act(&mut **service, &mut ServeContext { net, files, now, turn: None, wall_ns: WALL_NS, random });
        };
        let mut act = Some(act);
        with(files, &mut |service, ctx| {
            if let Some(act) = act.take() {
                act(service, ctx);
            }
        });
        while let Some(done) = files.poll_done() {
            let mut done = Some(done);
            with(files, &mut |service, ctx| {
                if let Some(done) = done.take() {
                    service.handle_file(ctx, done);
                }
            });
        }
    }
}

impl App for Served {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        self.act(context, |service, ctx| service.handle_event(ctx, event));
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if self.service.is_none() {
            self.service = Some((self.make)(context.owner));
            self.act(context, |service, ctx| service.start(ctx).expect("the port is free"));
        }
        self.act(context, |service, ctx| {
            if service.poll_timeout().is_some_and(|at| at <= ctx.now) {
                service.handle_timeout(ctx);
            }
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.service.as_ref().map_or(Some(Instant::ZERO), |service| service.poll_timeout())
    }
}
