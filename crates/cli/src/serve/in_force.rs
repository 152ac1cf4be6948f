//! The settings of a running server: what is in force, which is not all that was read last.

use crate::settings::Settings;

/// What the server began with, and what was read since.
pub struct InForce {
    /// Of these, what cannot change while running is in force.
    started: Settings,
    /// Of these the rest.
    current: Settings,
}

impl InForce {
    /// The server begins with these.
    pub fn new(started: Settings) -> InForce {
        InForce { current: started.clone(), started }
    }

    /// Those in force that can change while running.
    pub fn current(&self) -> &Settings {
        &self.current
    }

    /// Names of settings that `new` would have otherwise than they are in force, and that wait for the next start.
    pub fn pending(&self, new: &Settings) -> Vec<&'static str> {
        new.fixed_differences(&self.started)
    }

    /// What can change of them has changed.
    pub fn take(&mut self, new: Settings) {
        self.current = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn settings(args: &[&str]) -> Settings {
        let line = ["linerate", "serve", "--device", "kernel"].iter().chain(args);
        let Command::Serve(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("it says serve")
        };
        Settings::load(&args).unwrap()
    }

    #[test]
    fn what_waits_for_the_next_start_is_named_until_it_is_taken_back() {
        let mut in_force = InForce::new(settings(&["/a"]));
        let steps: [(&[&str], &[&str]); 5] = [
            (&["/b"], &["dir"]),
            (&["/b"], &["dir"]),
            (&["/b", "--memory", "8MiB", "--writable", "--ftp-user=a:b"], &["dir", "memory"]),
            (&["/a", "--memory", "8MiB"], &["memory"]),
            (&["/a"], &[]),
        ];
        for (args, pending) in steps {
            let new = settings(args);
            assert_eq!(in_force.pending(&new), pending, "{args:?}");
            in_force.take(new);
            assert_eq!(in_force.current().writable, args.contains(&"--writable"));
        }
    }
}
