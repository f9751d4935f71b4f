//! Where faults happen and samples come from: hosts, and processes on them.
//!
//! ```toml
//! [[machines.hosts]]
//! name = "n1"
//! ssh = "root@10.0.0.1"                # reached by ssh
//!
//! [[machines.hosts]]
//! name = "n2"
//! hook = "/opt/chaos/on-n2"            # reached by a command of the user
//!
//! [[machines.processes]]
//! name = "db-1"
//! host = "n1"                          # "localhost" if absent
//! pid_file = "/var/lib/db/db.pid"
//! restart = "systemctl restart db"
//! ```
//!
//! This machine is known as `localhost` without being declared. A command for a host is a text for
//! the POSIX shell: here it is handed to `sh -c`, by ssh to the login shell of the other end, as
//! `exec sh -c '...'`.
//!
//! Left out: login shells that do not quote as the POSIX shell does (csh, fish).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The host that is always there: this machine.
pub const LOCALHOST: &str = "localhost";

/// Hosts, processes, and how to reach them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machines {
    /// How hosts with `ssh` are reached.
    pub ssh: Ssh,
    /// The hosts. `localhost` need not be listed.
    pub hosts: Vec<Host>,
    /// The processes that faults are aimed at and samples are taken of.
    pub processes: Vec<Process>,
}

/// The ssh client and its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ssh {
    /// The program. Default: `ssh`.
    pub program: String,
    /// Its options, before the host. Default: never ask for a password, give up connecting after 5
    /// s, and take a silent connection for dead after 15 s.
    pub options: Vec<String>,
}

impl Default for Ssh {
    fn default() -> Ssh {
        let options = ["BatchMode=yes", "ConnectTimeout=5", "ServerAliveInterval=5", "ServerAliveCountMax=3"];
        let options = options.iter().flat_map(|option| ["-o".to_owned(), (*option).to_owned()]).collect();
        Ssh { program: "ssh".to_owned(), options }
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// What it is called in schedules, samples and charts.
    pub name: String,
    /// `user@host` as ssh takes it. Absent: it is this machine, if it is called `localhost`, or
    /// only its hook reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// A command run *here* that puts faults in place and undoes them: network faults and custom
    /// ones, and all others if there is no `ssh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// What shuts the host down, run there. Default: `shutdown -h now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<String>,
    /// What brings it back after a shutdown, run *here* (the command of a hypervisor, a cloud, a
    /// remote console).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_on: Option<String>,
}

/// A process of the database, with all its descendants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// What it is called in schedules, samples and charts.
    pub name: String,
    /// The name of its host. Default: `localhost`.
    #[serde(default = "localhost")]
    pub host: String,
    /// Its process id. Exactly one of `pid`, `pid_file` and `pids_from` is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// A file on its host whose first word is the process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_file: Option<String>,
    /// A command on its host that prints process ids, such as `pgrep -x postgres`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids_from: Option<String>,
    /// What starts it again after it was killed, run on its host. It has to return; the server it
    /// starts need not be detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
    /// It hands out the timestamps of the database, alone or as one of several.
    #[serde(default)]
    pub timestamp_source: bool,
}

fn localhost() -> String {
    LOCALHOST.to_owned()
}

/// What is wrong with the description of the machines, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineError {
    /// Two hosts or two processes have this name.
    NameTwice(String),
    /// A host or process has no name.
    NoName,
    /// There is no way to this host.
    Unreachable(String),
    /// This process is on a host that is not described.
    UnknownHost {
        /// The process.
        process: String,
        /// Its host.
        host: String,
    },
    /// This process has none, or more than one, of `pid`, `pid_file` and `pids_from`.
    NotOneWayToPid(String),
    /// This target of ssh would be taken for an option.
    OptionAsTarget(String),
}

impl std::fmt::Display for MachineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MachineError::NameTwice(name) => write!(f, "{name} is the name of two hosts or of two processes"),
            MachineError::NoName => write!(f, "every host and every process needs a name"),
            MachineError::Unreachable(host) => {
                write!(
                    f,
                    "host {host} cannot be reached: give it `ssh` or `hook` (this machine is {LOCALHOST})"
                )
            }
            MachineError::UnknownHost { process, host } => {
                write!(f, "process {process} is on host {host}, which is not described")
            }
            MachineError::NotOneWayToPid(process) => {
                write!(f, "process {process} needs exactly one of `pid`, `pid_file` and `pids_from`")
            }
            MachineError::OptionAsTarget(target) => {
                write!(f, "{target} would be an option of ssh, not a host")
            }
        }
    }
}

impl std::error::Error for MachineError {}

impl Machines {
    /// What is wrong with the description, if anything.
    pub fn check(&self) -> Result<(), MachineError> {
        let names = |names: Vec<&String>| {
            let mut seen = BTreeSet::new();
            match names.into_iter().find(|name| name.is_empty() || !seen.insert(*name)) {
                Some(name) if name.is_empty() => Err(MachineError::NoName),
                Some(name) => Err(MachineError::NameTwice(name.clone())),
                None => Ok(()),
            }
        };
        names(self.hosts.iter().map(|host| &host.name).collect())?;
        names(self.processes.iter().map(|process| &process.name).collect())?;
        for host in &self.hosts {
            if let Some(target) = host.ssh.as_ref().filter(|target| target.starts_with('-')) {
                return Err(MachineError::OptionAsTarget(target.clone()));
            }
            if host.ssh.is_none() && host.hook.is_none() && !host.is_local() {
                return Err(MachineError::Unreachable(host.name.clone()));
            }
        }
        for process in &self.processes {
            if self.host(&process.host).is_none() {
                let (process, host) = (process.name.clone(), process.host.clone());
                return Err(MachineError::UnknownHost { process, host });
            }
            let ways = [process.pid.is_some(), process.pid_file.is_some(), process.pids_from.is_some()];
            if ways.iter().filter(|way| **way).count() != 1 {
                return Err(MachineError::NotOneWayToPid(process.name.clone()));
            }
        }
        Ok(())
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<Host> {
        let local = || (name == LOCALHOST).then(|| Host { name: localhost(), ..Host::default() });
        self.hosts.iter().find(|host| host.name == name).cloned().or_else(local)
    }

    /// The process of this name.
    pub fn process(&self, name: &str) -> Option<&Process> {
        self.processes.iter().find(|process| process.name == name)
    }
}

impl Host {
    /// It is the machine Dike runs on.
    pub fn is_local(&self) -> bool {
        self.name == LOCALHOST && self.ssh.is_none()
    }

    /// How Dike itself gets a command to it, if it can.
    pub(crate) fn shell(&self, ssh: &Ssh) -> Option<Shell> {
        if self.is_local() {
            return Some(Shell { prefix: Vec::new() });
        }
        let target = self.ssh.clone()?;
        let mut prefix = vec![ssh.program.clone()];
        prefix.extend(ssh.options.iter().cloned());
        prefix.push(target);
        Some(Shell { prefix })
    }
}

/// A way to run a text in a POSIX shell, here or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shell {
    /// The ssh client, its options and its target; empty for this machine.
    prefix: Vec<String>,
}

impl Shell {
    /// On this machine.
    pub(crate) const HERE: Shell = Shell { prefix: Vec::new() };

    /// The program and the arguments that run this text.
    pub(crate) fn command(&self, script: &str) -> Vec<String> {
        let mut words = self.prefix.clone();
        if words.is_empty() {
            words.extend(["sh", "-c", script].map(str::to_owned));
        } else {
            words.push(format!("exec sh -c {}", quote(script)));
        }
        words
    }

    /// What a user types to run this text.
    pub(crate) fn typed(&self, script: &str) -> String {
        match self.words() {
            None => script.to_owned(),
            Some(reach) => format!("{reach} {}", quote(script)),
        }
    }

    /// The ssh client, its options and its target as words of a shell; nothing for this machine.
    pub(crate) fn words(&self) -> Option<String> {
        let words: Vec<String> = self.prefix.iter().map(|word| quote(word)).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// One word of the shell that means exactly this text.
pub(crate) fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@,+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn machines(text: &str) -> Machines {
        toml::from_str(text).expect("the description is read")
    }

    #[test]
    fn this_machine_is_known_without_being_described() {
        let host = Machines::default().host(LOCALHOST).expect("localhost is there");
        assert!(host.is_local());
        assert_eq!(Machines::default().host("n1"), None);
        assert_eq!(host.shell(&Ssh::default()).unwrap().command("true"), ["sh", "-c", "true"]);
    }

    #[test]
    fn ssh_gets_its_options_the_target_and_one_quoted_text() {
        let machines = machines(
            r#"
            ssh = { program = "/bin/my-ssh", options = ["-p", "22"] }
            hosts = [{ name = "n1", ssh = "root@10.0.0.1" }]
            "#,
        );
        let shell = machines.host("n1").unwrap().shell(&machines.ssh).unwrap();
        let words = shell.command("echo 'a b'");
        assert_eq!(words, ["/bin/my-ssh", "-p", "22", "root@10.0.0.1", r"exec sh -c 'echo '\''a b'\'''"]);
        assert_eq!(shell.typed("kill 7"), "/bin/my-ssh -p 22 root@10.0.0.1 'kill 7'");
    }

    #[test]
    fn contradictions_are_refused_with_a_sentence() {
        let cases = [
            (r#"hosts = [{ name = "a", hook = "h" }, { name = "a", hook = "h" }]"#, "two hosts"),
            (r#"hosts = [{ name = "", hook = "h" }]"#, "needs a name"),
            (r#"hosts = [{ name = "a" }]"#, "cannot be reached"),
            (r#"hosts = [{ name = "a", ssh = "-oProxyCommand=x" }]"#, "option of ssh"),
            (r#"processes = [{ name = "p", host = "a", pid = 7 }]"#, "not described"),
            (r#"processes = [{ name = "p" }]"#, "exactly one"),
            (r#"processes = [{ name = "p", pid = 7, pid_file = "f" }]"#, "exactly one"),
        ];
        for (text, part) in cases {
            let problem = machines(text).check().expect_err(text).to_string();
            assert!(problem.contains(part), "{text}: {problem}");
        }
        assert!(toml::from_str::<Machines>("hosts = [{ name = \"a\", shh = \"b\" }]").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_quoted_text_is_one_word_with_the_same_meaning(text in "[^\0]{0,40}") {
            let script = format!("printf %s {}", quote(&text));
            let words = Shell { prefix: Vec::new() }.command(&script);
            let output = Command::new(&words[0]).args(&words[1..]).output().expect("sh runs");
            prop_assert_eq!(output.stdout, text.as_bytes());
        }
    }
}
