//! A contender as it runs: started in a place of its own, ready, and ended by its process id.

use crate::files::Files;
use crate::peers::{HASH, Launch, Peers};
use crate::queues::Queues;
use crate::rows::{Client, Contender};
use anyhow::{Context, Result, bail};
use linerate_lab::measure::cpu;
use linerate_lab::measure::group::Group;
use linerate_lab::measure::place::{Place, SERVER, TAP, Wire};
use std::fs::{File, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time until a server is ready, and until it has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// Programs, files and cores of a run.
#[derive(Debug)]
pub struct Tools {
    /// The `linerate` program.
    pub linerate: PathBuf,
    /// The folder of the floor and of peers that are built here.
    pub built: PathBuf,
    /// Peers from packages.
    pub peers: Peers,
    /// What is served.
    pub files: Files,
    /// Cores of server and client; `None` on a machine with one.
    pub cores: Option<(usize, usize)>,
}

/// A server that runs, and the namespaces that go with it.
#[derive(Debug)]
pub struct Server {
    /// Where it runs.
    pub place: Place,
    /// Name and password of its FTP user.
    pub login: &'static str,
    /// Who it is.
    pub contender: Contender,
    /// `None` where the client's process is the server's, too.
    child: Option<Child>,
    log: PathBuf,
    // Behind `place`, whose end ends what is left in it.
    group: Option<Group>,
}

impl Server {
    /// Starts a contender for a row's client, with `root` to serve, and waits until it is ready.
    pub fn start(contender: Contender, client: Client, root: &Path, tools: &Tools) -> Result<Server> {
        let place = Place::new(wire(contender))?;
        if let Contender::OursMemory(queues) = contender {
            if queues != Queues::One && tools.cores.is_none() {
                bail!("two queues need two cores, and that --unpinned is not given");
            }
            return Ok(Server { place, login: "", contender, child: None, log: PathBuf::new(), group: None });
        }
        let core = tools.cores.map(|(server, _)| server);
        let stores = matches!(client, Client::Ftp { up: true, .. });
        let built = |name: &str| tools.built.join(name).display().to_string();
        let command = match contender {
            Contender::OursMemory(_) => bail!("queues in memory are no process of their own"),
            Contender::OursTap(_)
            | Contender::OursTapTwo
            | Contender::OursTapWith(_)
            | Contender::OursPacket
            | Contender::OursXdp
            | Contender::OursKernel => {
                // Two queues have the client's core, too.
                let core = core.filter(|_| contender != Contender::OursTapTwo);
                let mut command = place.server(core, &tools.linerate.display().to_string());
                ours(&mut command, contender, root, &tools.files.work, stores)?;
                command
            }
            Contender::FloorTap(_) | Contender::FloorPacket | Contender::FloorXdp => {
                let mut command = place.server(core, &built("floor"));
                floor(&mut command, contender, client)?;
                command
            }
            Contender::Smoltcp | Contender::Lwip | Contender::Gvisor => {
                let program = match contender {
                    Contender::Smoltcp => built("smoltcp-peer"),
                    Contender::Lwip => built("lwip/lwip-peer"),
                    _ => built("gvisor-peer"),
                };
                let mut command = place.server(core, &program);
                command.arg(TAP);
                command
            }
            Contender::Iperf3 => {
                let mut command = place.server(core, "iperf3");
                command.arg("-s");
                command
            }
            Contender::Nginx | Contender::Lighttpd | Contender::Vsftpd | Contender::PureFtpd => {
                let Launch { program, args, libraries } =
                    tools.peers.command(contender, root, &tools.files)?;
                let mut command = place.server(core, &program.display().to_string());
                command.args(args).env("LD_LIBRARY_PATH", libraries);
                command
            }
        };
        let log = tools.files.work.join(format!("{}.out", contender.name()));
        let out = File::create(&log)?;
        let group = Group::new();
        let mut command = match &group {
            Some(group) => group.around(&command),
            None => command,
        };
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let login = match contender {
            Contender::Vsftpd => "anonymous:a",
            _ if stores => "bench:bench",
            Contender::PureFtpd => "reader:bench",
            _ => "anonymous:a",
        };
        let mut server = Server { place, login, contender, child: Some(child), log, group };
        server.wait_ready(contender, client)?;
        Ok(server)
    }

    /// Processor seconds that its processes have used.
    pub fn cpu_seconds(&self) -> f64 {
        let counted = self.group.as_ref().and_then(Group::seconds);
        let tree = || self.child.as_ref().map_or(0.0, |child| cpu::of_tree(child.id()));
        counted.unwrap_or_else(tree)
    }

    /// The control group of its processes, where there are groups.
    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Its processes; none where it runs in the client's.
    pub fn processes(&self) -> Vec<u32> {
        self.child.as_ref().map_or(Vec::new(), |child| cpu::tree(child.id()))
    }

    fn wait_ready(&mut self, contender: Contender, client: Client) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        let port = match client {
            Client::Bulk { .. } | Client::Udp { .. } => 5_201,
            Client::Requests { .. } | Client::Latency { .. } | Client::Download { .. } => 80,
            Client::Ftp { .. } => 21,
            Client::Memory { .. } => return Ok(()),
        };
        let Some(child) = &mut self.child else { return Ok(()) };
        let says = wire(contender) != Wire::Kernel || contender == Contender::OursKernel;
        while Instant::now() < end {
            let text = read_to_string(&self.log).unwrap_or_default();
            if let Some(status) = child.try_wait()? {
                bail!("{} ended with {status}: {}", contender.name(), text.trim());
            }
            let ready = if says {
                text.lines().any(|line| line.starts_with("Ready"))
            } else {
                listens(child.id(), port)
            };
            if ready {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!(
            "{} was not ready within {} s: {}",
            contender.name(),
            PATIENCE.as_secs(),
            read_to_string(&self.log).unwrap_or_default().trim()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).output();
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn wire(contender: Contender) -> Wire {
    match contender {
        Contender::OursTap(_)
        | Contender::OursTapTwo
        | Contender::OursTapWith(_)
        | Contender::OursMemory(_)
        | Contender::FloorTap(_) => Wire::Tap,
        Contender::Smoltcp | Contender::Lwip | Contender::Gvisor => Wire::ReadyTap,
        Contender::OursPacket | Contender::FloorPacket | Contender::OursXdp | Contender::FloorXdp => {
            Wire::Veth
        }
        _ => Wire::Kernel,
    }
}

fn ours(command: &mut Command, contender: Contender, root: &Path, work: &Path, stores: bool) -> Result<()> {
    let queues = if contender == Contender::OursTapTwo { "2" } else { "1" };
    command.arg("serve").arg(root).args(["--queues", queues, "--iperf3-port", "5201"]);
    match contender {
        Contender::OursTapWith(setting) => {
            let file = work.join(format!("{setting:?}.toml"));
            std::fs::write(&file, setting.file()).with_context(|| file.display().to_string())?;
            command.args(["--device", &format!("tap:{TAP}")]).arg("--config").arg(file);
        }
        Contender::OursTapTwo => {
            command.args(["--device", &format!("tap:{TAP}"), "--offload", "all"]);
        }
        Contender::OursTap(offload) => {
            let offload = if offload { "all" } else { "none" };
            command.args(["--device", &format!("tap:{TAP}"), "--offload", offload]);
        }
        Contender::OursPacket => {
            command.args(["--device", "packet:veth1", "--address", &format!("{SERVER}/24")]);
        }
        Contender::OursXdp => {
            command.args(["--device", "xdp:veth1", "--address", &format!("{SERVER}/24")]);
        }
        _ => {
            command.args([
                "--device",
                "kernel",
                "--address",
                SERVER,
                "--http-port",
                "80",
                "--ftp-port",
                "21",
            ]);
        }
    }
    if stores {
        command.args(["--ftp-user", &format!("bench:{HASH}"), "--writable", "--user", "nobody"]);
    }
    Ok(())
}

fn floor(command: &mut Command, contender: Contender, client: Client) -> Result<()> {
    match contender {
        Contender::FloorTap(offload) => {
            command.args([format!("tap:{TAP}").as_str(), if offload { "all" } else { "none" }]);
        }
        Contender::FloorXdp => {
            command.args(["xdp:veth1", "all"]);
        }
        _ => {
            command.args(["packet:veth1", "all"]);
        }
    }
    match client {
        Client::Bulk { .. } => command.arg("bulk"),
        Client::Requests { status, body, closing, .. } => command.args([
            "http",
            &status.to_string(),
            &body.to_string(),
            if closing { "close" } else { "keep" },
        ]),
        Client::Latency { body, .. } => command.args(["http", "200", &body.to_string(), "keep"]),
        _ => bail!("the floor does not do {client:?}"),
    };
    Ok(())
}

/// Whether somebody listens on a TCP port in the network namespace of a process.
fn listens(pid: u32, port: u16) -> bool {
    let mark = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|family| {
        let table = read_to_string(format!("/proc/{pid}/net/{family}")).unwrap_or_default();
        table.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().take(4).collect();
            matches!(fields.as_slice(), [_, local, _, "0A"] if local.ends_with(&mark))
        })
    })
}
