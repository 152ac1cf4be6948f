//! How the emulated interface reaches somebody.

use super::{Board, Interface, ending};
use crate::shell;
use anyhow::Result;
use std::process::Command;

/// The other end of the board's cable; gone when it is dropped.
pub enum Network {
    /// A TAP in a namespace that was made for it.
    Namespace(String),
    /// Ports of this machine, forwarded by the emulator: no root, no FTP data.
    Forwarded,
}

/// The client's address, as in seed 002.
pub const CLIENT: &str = "192.168.1.100/24";
const CLIENT6: &str = "fe80::64/64";
/// The client's end of the cable.
pub const TAP: &str = "board0";
/// Ports of this machine and of the board.
const FORWARDED: [(u16, u16); 2] = [(8080, 80), (5201, 5201)];

impl Network {
    /// A namespace with a TAP in it, which a signal that ends this command removes with all that runs inside.
    pub fn in_namespace(board: &str) -> Result<Network> {
        let network = Network::unwatched(board)?;
        if let Network::Namespace(name) = &network {
            ending::clears(name)?;
        }
        Ok(network)
    }

    /// The same for who looks after signals.
    pub fn unwatched(board: &str) -> Result<Network> {
        let name = format!("linerate-{board}-{}", std::process::id());
        let ip = |args: &[&str]| shell::output(Command::new("ip").args(args)).map(|_| ());
        ip(&["netns", "add", &name])?;
        // From here on it is removed whatever happens.
        let network = Network::Namespace(name.clone());
        let inside = |args: &[&str]| ip(&[&["-n", &name], args].concat());
        inside(&["link", "set", "lo", "up"])?;
        inside(&["tuntap", "add", "dev", TAP, "mode", "tap"])?;
        inside(&["addr", "add", CLIENT, "dev", TAP])?;
        inside(&["link", "set", TAP, "up"])?;
        // One that is not looked for first, which takes the kernel a second or two.
        inside(&["addr", "add", CLIENT6, "dev", TAP, "nodad"])?;
        Ok(network)
    }

    /// Ports of this machine.
    pub fn forwarded(_: &Board) -> Network {
        Network::Forwarded
    }

    /// A command that runs at the client's end.
    pub fn command(&self, program: &str) -> Command {
        match self {
            Network::Forwarded => Command::new(program),
            Network::Namespace(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name, program]);
                command
            }
        }
    }

    /// The emulator's options.
    pub fn options(&self, board: &Board) -> Vec<String> {
        let end = self.end(board);
        match board.interface {
            Interface::Soldered(model) => vec!["-nic".to_owned(), format!("{end},model={model}")],
            Interface::Plugged(model) => {
                let device = format!("{model},netdev=cable");
                vec!["-netdev".to_owned(), format!("{end},id=cable"), "-device".to_owned(), device]
            }
        }
    }

    /// The end of the cable that is not the board's.
    fn end(&self, board: &Board) -> String {
        match self {
            Network::Namespace(_) => format!("tap,ifname={TAP},script=no,downscript=no"),
            Network::Forwarded => {
                let address = board.address;
                let forward =
                    |(here, there): (u16, u16)| format!(",hostfwd=tcp:127.0.0.1:{here}-{address}:{there}");
                let forwards: String = FORWARDED.into_iter().map(forward).collect();
                format!("user,net=192.168.1.0/24,host=192.168.1.1{forwards}")
            }
        }
    }

    /// Lines to paste.
    pub fn examples(&self, board: &Board) -> String {
        let address = board.address;
        let (user, password) = board.user;
        match self {
            Network::Namespace(name) => format!(
                "  sudo ip netns exec {name} bash     # a shell at the other end of the cable; there:\n  \
                 ping {address}\n  \
                 curl http://{address}/stats\n  \
                 iperf3 -c {address}                # and with -R, -u -b 50M, -P 4\n  \
                 curl -T FILE ftp://{user}:{password}@{address}/ram/\n"
            ),
            Network::Forwarded => {
                let [(http, _), (iperf3, _)] = FORWARDED;
                format!(
                    "  curl http://127.0.0.1:{http}/stats\n  iperf3 -c 127.0.0.1 -p {iperf3}             # and with -R\n\n\
                     Without root there is no FTP, no UDP and no ping: ports are forwarded one by one."
                )
            }
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Network::Namespace(name) = self
            && let Err(error) = ending::remove(name)
        {
            eprintln!("the namespace {name} stays: {error:#}");
        }
    }
}
