//! The iperf3 client of the crate `serve` as an application of a simulated host.

use linerate_serve::Service as _;
use linerate_serve::iperf3::client::{Client, ClientEvent, Config};
use linerate_serve::testing::MemoryFiles;
use linerate_sim::{App, Context, Instant, Random};
use linerate_transport::Event;

/// 2026-01-02T03:04:05Z.
const WALL_NS: i64 = 1_767_323_045_000_000_000;

/// See the module.
pub struct Iperf3Client {
    config: Config,
    client: Option<Client>,
    /// What it told as it went.
    pub events: Vec<ClientEvent>,
    random: Random,
}

impl Iperf3Client {
    pub fn new(config: Config, random: Random) -> Iperf3Client {
        Iperf3Client { config, client: None, events: Vec::new(), random }
    }

    pub fn client(&self) -> &Client {
        self.client.as_ref().expect("it has begun")
    }

    pub fn is_done(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.outcome().is_some())
    }

    /// The user presses Ctrl-C.
    pub fn interrupt(&mut self, context: &mut Context<'_>) {
        self.act(context, |client, ctx| client.drain(ctx));
    }

    fn act(
        &mut self,
        context: &mut Context<'_>,
        act: impl FnOnce(&mut Client, &mut linerate_serve::Context<'_>),
    ) {
        let Iperf3Client { client: Some(client), events, random, .. } = self else { return };
        let mut random = || random.next_u64();
        let (net, now) = (&mut *context.stack, context.now);
        let (files, random) = (&mut MemoryFiles::new(), &mut random);
        // The two ends have one clock here, as far as jitter goes.
        let wall_ns = WALL_NS + i64::try_from(now.as_nanos()).unwrap_or(0);
        act(client, &mut linerate_serve::Context { net, files, now, turn: None, wall_ns, random });
        events.extend(std::iter::from_fn(|| client.poll_event()));
    }
}

impl App for Iperf3Client {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        self.act(context, |client, ctx| client.handle_event(ctx, event));
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if self.client.is_none() {
            self.client = Some(Client::new(Config { owner: context.owner, ..self.config.clone() }));
            self.act(context, |client, ctx| client.start(ctx).expect("it opens no listener"));
        }
        self.act(context, |client, ctx| {
            if client.poll_timeout().is_some_and(|at| at <= ctx.now) {
                client.handle_timeout(ctx);
            }
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.client.as_ref().map_or(Some(Instant::ZERO), |client| client.poll_timeout())
    }
}
