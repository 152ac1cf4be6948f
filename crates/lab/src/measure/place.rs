//! Where a contender serves: network namespaces of our own, removed with the value.

use super::group;
use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Address of every server.
pub const SERVER: &str = "192.168.1.4";
/// Name of the TAP device.
pub const TAP: &str = "lrtap0";

const PREFIX: &str = "lrlab-";

static NEXT: AtomicU32 = AtomicU32::new(0);
/// The run is being ended: no more namespaces are made.
static ENDING: AtomicBool = AtomicBool::new(false);

/// A network namespace.
#[derive(Debug)]
struct Namespace(String);

impl Namespace {
    fn new() -> Result<Namespace> {
        if is_ending() {
            bail!("interrupted");
        }
        if !rustix::process::geteuid().is_root() {
            bail!("network namespaces need root");
        }
        let name = own_name();
        run(Command::new("ip").args(["netns", "add", &name]))?;
        let namespace = Namespace(name);
        namespace.run("ip link set lo up")?;
        // The machine's default would decide figures otherwise; BBR paces by its own clock. Reno is on every kernel.
        namespace.run(
            "sysctl -qw net.ipv4.tcp_congestion_control=reno net.ipv4.ip_local_port_range='1024 65000'",
        )?;
        Ok(namespace)
    }

    fn run(&self, line: &str) -> Result<String> {
        let mut command = Command::new("ip");
        run(command.args(["netns", "exec", &self.0, "sh", "-c", line]))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What a server left behind: the namespace is ours, and so is all that runs in it.
        let left = Command::new("ip").args(["netns", "pids", &self.0]).output();
        let left = left.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        for pid in left.unwrap_or_default().split_whitespace() {
            let _ = Command::new("kill").args(["-KILL", pid]).output();
        }
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

/// Namespaces that client and server run in.
#[derive(Debug)]
pub struct Place {
    client: Namespace,
    server: Option<Namespace>,
}

/// What lies between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// A TAP that the server makes.
    Tap,
    /// A TAP that is there before, as other stacks want it.
    ReadyTap,
    /// A veth pair; the server has the address itself.
    Veth,
    /// A veth pair with a server on kernel sockets.
    Kernel,
}

impl Place {
    /// Makes one.
    pub fn new(wire: Wire) -> Result<Place> {
        let mut place = Place { client: Namespace::new()?, server: None };
        match wire {
            Wire::Tap => {}
            Wire::ReadyTap => {
                place.client.run(&format!(
                    "ip tuntap add dev {TAP} mode tap && ip link set {TAP} txqueuelen 16384 up && \
                     ip addr add 192.168.1.1/24 dev {TAP}"
                ))?;
            }
            Wire::Veth | Wire::Kernel => {
                let server = Namespace::new()?;
                place.client.run(&format!(
                    "ip link add veth0 type veth peer name veth1 netns {} && \
                     ip addr add 192.168.1.1/24 dev veth0 && ip link set veth0 up",
                    server.0
                ))?;
                server.run("ip link set veth1 up")?;
                if wire == Wire::Kernel {
                    server.run(&format!("ip addr add {SERVER}/24 dev veth1"))?;
                }
                place.server = Some(server);
            }
        }
        Ok(place)
    }

    /// The names of the namespaces of clients and of the server, as `ip netns` has them; none where it shares that of clients.
    pub fn names(&self) -> (&str, Option<&str>) {
        (&self.client.0, self.server.as_ref().map(|server| server.0.as_str()))
    }

    /// Gives both ends of a veth pair this MTU; a TAP device that a server makes has the server's.
    pub fn set_mtu(&self, mtu: u16) -> Result<()> {
        let Some(server) = &self.server else { return Ok(()) };
        self.client.run(&format!("ip link set veth0 mtu {mtu}"))?;
        server.run(&format!("ip link set veth1 mtu {mtu}")).map(drop)
    }

    /// What the clients' kernel may leave undone in what it sends over a veth pair. A TAP device tells it that when `serve` sets
    /// its offloads; a packet socket cannot, and gets what the interface at the other end lets through. Needs ethtool.
    pub fn leave_undone(&self, sums: bool, super_segments: bool) -> Result<()> {
        if self.server.is_none() {
            return Ok(());
        }
        let word = |is_on| if is_on { "on" } else { "off" };
        let (sums, super_segments) = (word(sums), word(super_segments));
        self.client.run(&format!("ethtool -K veth0 tx {sums} tso {super_segments}")).map(drop)
    }

    /// A command where clients run, on a core if one is given.
    pub fn client(&self, core: Option<usize>, program: &str) -> Command {
        command(&self.client, core, program)
    }

    /// A command where the server runs.
    pub fn server(&self, core: Option<usize>, program: &str) -> Command {
        command(self.server.as_ref().unwrap_or(&self.client), core, program)
    }
}

fn command(namespace: &Namespace, core: Option<usize>, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace.0]);
    if let Some(core) = core {
        command.args(["taskset", "-c", &core.to_string()]);
    }
    command.arg(program).stdin(Stdio::null());
    command
}

/// Runs a command that must succeed; returns what it printed.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let said = if err.trim().is_empty() { out.trim() } else { err.trim() };
        bail!("{} ended with {}: {said}", program(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The program of a command, without what puts it into a namespace and on a core.
fn program(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let mut rest = words.as_slice();
    while let ["ip", "netns", "exec", ..] | ["taskset", ..] =
        rest.iter().map(String::as_str).collect::<Vec<_>>()[..]
    {
        rest = &rest[if rest[0] == "ip" { 4 } else { 3 }..];
    }
    rest.iter().take(4).cloned().collect::<Vec<_>>().join(" ")
}

/// What the names of all begin with that this process makes.
fn own_prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// A name for something that [`end`] removes: a namespace, or a folder among the temporary files.
pub(super) fn own_name() -> String {
    format!("{}{}", own_prefix(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether namespaces can be made and these programs be run, before an experiment that needs them begins. Removes what an earlier
/// run could not.
pub fn ready(programs: &[&str]) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("network namespaces need root");
    }
    sweep().context("network namespaces need iproute2")?;
    for program in programs {
        let found = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        found.with_context(|| format!("this experiment needs {program}, which cannot be started"))?;
    }
    Ok(())
}

/// Whether the run is being ended.
pub(super) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// Ends what runs in the namespaces of this process, and removes them, its control groups and its temporary files; no more are made.
pub fn end() {
    ENDING.store(true, Ordering::SeqCst);
    let own = own_prefix();
    // Nobody can be told any more what goes wrong; the next run removes what is left.
    let names = names().unwrap_or_default();
    names.into_iter().filter(|name| name.starts_with(&own)).for_each(|name| drop(Namespace(name)));
    group::end();
    for left in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        if left.file_name().to_string_lossy().starts_with(&own) {
            let _ = std::fs::remove_dir_all(left.path());
        }
    }
}

/// Removes namespaces and control groups whose run is over and could not.
pub fn sweep() -> Result<()> {
    for name in names()? {
        let mut parts = name.trim_start_matches(PREFIX).split('-');
        let alive = parts.next().is_some_and(|pid| std::path::Path::new("/proc").join(pid).exists());
        if !alive {
            drop(Namespace(name));
        }
    }
    group::sweep();
    Ok(())
}

/// Namespaces of runs that there are.
pub fn names() -> Result<Vec<String>> {
    let list = run(Command::new("ip").args(["netns", "list"]))?;
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| name.starts_with(PREFIX)).map(str::to_owned).collect())
}
