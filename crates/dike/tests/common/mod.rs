//! Starts real databases for tests: each in a directory of its own, on a free port of the loopback
//! interface, ended with the test that started it. They come from Debian's packages and refuse to
//! be root, so a root starts them as `nobody`.

#![allow(dead_code)] // Every test binary uses its part.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plimsoll_dike::chaos::machines::Process;
use plimsoll_dike::config::{Config, Data, Mix};
use plimsoll_dike::control::track::Overall;
use plimsoll_dike::load::LoadError;
use plimsoll_dike::metrics::{Document, Run};
use plimsoll_dike::report::table;
use plimsoll_dike::target::{Connector, Kind};
use plimsoll_dike::{Progress, check, load, run};

/// A database that runs until it is dropped.
pub struct Server {
    kind: Kind,
    directory: PathBuf,
    pub port: u16,
    process: Option<Child>,
    /// Whether it is started with the certificate of [`Server::make_certificate`].
    tls: bool,
}

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

impl Server {
    /// Starts a PostgreSQL.
    pub fn postgres() -> Server {
        let server = Server::in_directory(Kind::Postgresql);
        let initdb = server.program("initdb");
        let directory = server.directory.join("data");
        run(server
            .as_nobody(initdb)
            .args(["--auth=trust", "--username=dike", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&directory));
        server.start()
    }

    /// The same with encryption, and who has signed its certificate.
    pub fn with_tls(mut self) -> (Server, PathBuf) {
        self.kill();
        self.make_certificate();
        self.tls = true;
        self.start_again();
        let authority = self.directory.join("ca.pem");
        (self, authority)
    }

    /// The same with a certificate that has signed itself, made as PostgreSQL's manual says.
    pub fn with_own_certificate(mut self) -> (Server, PathBuf) {
        self.kill();
        let openssl = self.program("openssl");
        let make = "req -new -x509 -days 365 -nodes -text -out server.crt -keyout server.key \
                    -subj /CN=dbhost.yourdomain.com";
        run(self.as_nobody(openssl).args(make.split_whitespace()));
        run(self.as_nobody("/bin/chmod").args(["600", "server.key"]));
        self.tls = true;
        self.start_again();
        let certificate = self.file("server.crt");
        (self, certificate)
    }

    /// A certificate for a user, signed by the authority of [`Server::with_tls`], and its key.
    pub fn certificate_of(&self, user: &str) -> [PathBuf; 2] {
        let openssl = self.program("openssl");
        for arguments in [
            format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout user.key -out user.csr -subj /CN={user}"
            ),
            "x509 -req -in user.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out user.crt -days 2 -extfile names"
                .to_owned(),
        ] {
            run(self.as_nobody(&openssl).args(arguments.split(' ')));
        }
        run(self.as_nobody("/bin/chmod").args(["600", "user.key"]));
        ["user.crt", "user.key"].map(|name| self.file(name))
    }

    /// A file of the server's directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Starts a PostgreSQL again with other rules for who may connect how.
    pub fn admit(&mut self, rules: &str) {
        self.kill();
        std::fs::write(self.file("data/pg_hba.conf"), rules).expect("written");
        self.start_again();
    }

    /// An authority of our own, and a certificate for 127.0.0.1 that it has signed.
    fn make_certificate(&self) {
        let openssl = self.program("openssl");
        let names = "subjectAltName=IP:127.0.0.1";
        std::fs::write(self.directory.join("names"), names).expect("a file");
        for arguments in [
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj /CN=authority -days 2",
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=server",
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile names",
        ] {
            run(self.as_nobody(&openssl).args(arguments.split(' ')));
        }
        run(self.as_nobody("/bin/chmod").args(["600", "server.key"]));
    }

    /// Starts a MariaDB.
    pub fn mariadb() -> Server {
        let server = Server::in_directory(Kind::Mariadb);
        let install = server.program("mariadb-install-db");
        let data = server.directory.join("data");
        run(server
            .as_nobody(install)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]));
        let server = server.start();
        let user = "CREATE DATABASE dike CHARACTER SET utf8mb4; CREATE USER dike@localhost; CREATE USER dike@'127.0.0.1'; \
                    GRANT ALL ON dike.* TO dike@localhost; GRANT ALL ON dike.* TO dike@'127.0.0.1';";
        server.as_root(user);
        server
    }

    /// Has a MariaDB do this as its root.
    pub fn as_root(&self, statements: &str) {
        let mut client = self.as_nobody(self.program("mariadb"));
        let socket = format!("--socket={}", self.directory.join("socket").display());
        run(client.args(["--no-defaults", "--user=root", &socket, "--execute", statements]));
    }

    fn in_directory(kind: Kind) -> Server {
        let directory =
            tempfile::Builder::new().prefix("dike-").tempdir().expect("a temporary directory").keep();
        if is_root() {
            run(Command::new("chown").arg("nobody").arg(&directory));
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        Server { kind, directory, port: port.expect("a free port").port(), process: None, tls: false }
    }

    /// Where a program of the server is.
    fn program(&self, name: &str) -> PathBuf {
        let mut places: Vec<PathBuf> =
            ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from).to_vec();
        if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
            places.extend(versions.flatten().map(|version| version.path().join("bin")));
        }
        let found = places.iter().map(|place| place.join(name)).find(|path| path.exists());
        let package = match self.kind {
            _ if name == "openssl" => "openssl",
            Kind::Postgresql => "postgresql",
            _ => "mariadb-server",
        };
        found.unwrap_or_else(|| {
            panic!("{name} is not installed, and this test needs a real database: apt-get install {package}")
        })
    }

    /// A command that is not run by root, and that ends with the thread that started it.
    fn as_nobody(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if is_root() {
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
        }
        command.arg(program.as_ref()).current_dir(&self.directory);
        // A MariaDB that starts sweeps away the temporary tables of all others with the same
        // directory for them.
        command.env("TMPDIR", &self.directory);
        command
    }

    /// Starts the server and waits until it answers.
    fn start(mut self) -> Server {
        self.start_again();
        self
    }

    /// Starts the server again after [`Server::kill`].
    pub fn start_again(&mut self) {
        let data = self.directory.join("data");
        let mut command = match self.kind {
            Kind::Postgresql => {
                let mut command = self.as_nobody(self.program("postgres"));
                command.arg("-D").arg(&data).args(["-p", &self.port.to_string(), "-h", "127.0.0.1", "-F"]);
                command.arg("-k").arg(&self.directory);
                command.args([
                    "-c",
                    "max_connections=200",
                    "-c",
                    "deadlock_timeout=100ms",
                    "-c",
                    "shared_buffers=64MB",
                ]);
                command
            }
            _ => {
                let mut command = self.as_nobody(self.program("mariadbd"));
                command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
                command.arg(format!("--socket={}", self.directory.join("socket").display()));
                command.arg(format!("--port={}", self.port));
                command.args([
                    "--bind-address=127.0.0.1",
                    "--skip-name-resolve",
                    "--innodb-flush-log-at-trx-commit=0",
                ]);
                command.args(["--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=20"]);
                command
            }
        };
        if self.tls {
            let file = |name: &str| self.directory.join(name).display().to_string();
            let (certificate, key) = (file("server.crt"), file("server.key"));
            if self.file("ca.pem").exists() {
                match self.kind {
                    Kind::Postgresql => command.args(["-c", &format!("ssl_ca_file={}", file("ca.pem"))]),
                    _ => command.arg(format!("--ssl-ca={}", file("ca.pem"))),
                };
            }
            match self.kind {
                Kind::Postgresql => command.args(["-c", "ssl=on"]).args([
                    "-c".to_owned(),
                    format!("ssl_cert_file={certificate}"),
                    "-c".to_owned(),
                    format!("ssl_key_file={key}"),
                ]),
                _ => command.args([format!("--ssl-cert={certificate}"), format!("--ssl-key={key}")]),
            };
        }
        let log = std::fs::File::create(self.directory.join("log")).expect("a log file");
        let process = command.stdout(Stdio::null()).stderr(log).spawn().expect("the server starts");
        self.process = Some(process);
        let begun = Instant::now();
        while !self.answers() {
            let log = || std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "the database does not answer:\n{}", log());
            let ended = self.process.as_mut().and_then(|process| process.try_wait().ok().flatten());
            assert!(ended.is_none(), "the database has ended:\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn answers(&self) -> bool {
        let port = self.port.to_string();
        let mut ping = match self.kind {
            Kind::Postgresql => {
                let mut ping = Command::new(self.program("pg_isready"));
                ping.args(["-q", "-h", "127.0.0.1", "-p", &port, "-U", "dike", "-d", "postgres"]);
                ping
            }
            _ => {
                let mut ping = Command::new(self.program("mariadb-admin"));
                let socket = format!("--socket={}", self.directory.join("socket").display());
                ping.args(["--no-defaults", "--silent", "--user=root", &socket, "ping"]);
                ping
            }
        };
        ping.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// Ends the server at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // PostgreSQL's other processes notice that their parent has gone; this one ends them
            // itself.
            let signal = if self.kind == Kind::Postgresql { "-QUIT" } else { "-KILL" };
            let _ = Command::new("kill").arg(signal).arg(process.id().to_string()).status();
            let _ = process.wait();
        }
        // A schedule may have started another.
        if let Some(pid) = self.pid() {
            let _ = Command::new("kill").args(["-QUIT", &pid.to_string()]).status();
            let begun = Instant::now();
            while self.pid().is_some() && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// The server as a schedule of faults knows it, and what starts it again after it was killed:
    /// for PostgreSQL.
    pub fn as_machine(&self, name: &str) -> Process {
        let (directory, port) = (self.directory.display(), self.port);
        let program = self.program("postgres");
        let nobody = if is_root() { "setpriv --reuid=nobody --regid=nogroup --clear-groups " } else { "" };
        // It does not start over the lock files of one that runs, and a killed one that nobody has
        // waited for is still there.
        let restart = format!(
            "cd {directory} && rm -f data/postmaster.pid .s.PGSQL.* && {{ {nobody}{} -D {directory}/data -p {port} \
             -h 127.0.0.1 -F -k {directory} >>log 2>&1 & }}",
            program.display()
        );
        Process {
            name: name.to_owned(),
            host: "localhost".to_owned(),
            pid_file: Some(format!("{directory}/data/postmaster.pid")),
            restart: Some(restart),
            ..Process::default()
        }
    }

    /// The server's process now, if it runs: a restart has another.
    pub fn pid(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.directory.join("data/postmaster.pid")).ok()?;
        let pid: u32 = text.lines().next()?.trim().parse().ok()?;
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let directory = self.directory.display().to_string();
        String::from_utf8_lossy(&command).contains(&directory).then_some(pid)
    }

    /// A configuration for this server: its databases are small.
    pub fn config(&self, warehouses: u32) -> Config {
        let mut config = Config::default();
        config.target.kind = self.kind;
        config.target.endpoints = vec![format!("127.0.0.1:{}", self.port)];
        config.target.database = if self.kind == Kind::Postgresql { "postgres" } else { "dike" }.to_owned();
        config.data = Data { warehouses, items: 100, customers_per_district: 30, ..Data::default() };
        config.run.terminals = 4;
        config.run.warmup_s = 0;
        config.run.duration_s = 1;
        config.test.duration_s = 1.0;
        config.validate().expect("a valid configuration");
        config
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stdout));
}

/// Connections to what a configuration says.
pub fn connector(config: &Config) -> Connector {
    Connector::new(&config.target, config.workload.select_for_update).expect("no TLS, no files")
}

/// A flag that nobody sets.
pub fn never() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

/// Runs a future on threads of its own.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

/// All nine transactions.
pub fn every_transaction() -> Mix {
    Mix {
        new_order: 30,
        payment: 30,
        order_status: 5,
        delivery: 5,
        stock_level: 10,
        update_item: 5,
        update_stock: 5,
        update_balance: 5,
        select_balance: 5,
        by_terminal: false,
        changes: Vec::new(),
    }
}

/// Loads, or says why not.
pub async fn load_it(config: &Config) -> Result<load::Loaded, LoadError> {
    load::load(config, &connector(config), &never(), Progress::Silent).await
}

/// Loads.
pub async fn loaded(config: &Config) -> load::Loaded {
    load_it(config).await.expect("loaded")
}

/// Runs once.
pub async fn ran(config: &Config) -> Run {
    run::run(config, &connector(config), 1, &never(), Progress::Silent).await.expect("a run")
}

/// Runs for two seconds through a proxy that delays what comes back, and looks at what every such
/// run has to have.
pub async fn ran_through_a_proxy(config: &Config) -> Run {
    let mut config = config.clone();
    let delay = r#"faults = [{ at_s = 0.5, for_s = 1, fault = "network_delay", delay_ms = 5, where = ["ENDPOINT"] }]"#;
    config.chaos =
        toml::from_str(&delay.replace("ENDPOINT", &config.target.endpoints[0])).expect("a schedule");
    config.run.duration_s = 2;
    config.validate().expect("a valid configuration");
    let run = ran(&config).await;
    show(&run);
    assert_eq!(errors(&run), []);
    assert_eq!(run.journal.entries.len(), 4, "{:?}", run.journal);
    assert!(run.checks.iter().all(|check| check.ok), "{:?}", run.checks);
    // Eight tenths of a second of the delay, and four without it.
    let slow: u64 = run.tenths[6..14].iter().sum();
    let fast: u64 = run.tenths[1..5].iter().sum();
    assert!(0 < slow && slow < fast, "{:?}", run.tenths);
    run
}

/// What a run says of the only node: its name, that it holds something, that it does something.
pub fn one_node_was_asked(run: &Run, config: &Config) {
    let [node] = &run.nodes[..] else { panic!("{:?}", run.nodes) };
    assert_eq!(node.node, config.target.endpoints[0]);
    assert!(node.data_bytes.is_some_and(|bytes| bytes > 100_000), "{node:?}");
    let changed = run.summary().throughput_tps;
    assert!(node.operations_per_second.is_some_and(|operations| operations > changed), "{node:?}");
    assert!(run.summary().data_bytes.is_some() && run.summary().operations_per_second.is_some());
}

/// Prints what a run has come to.
pub fn show(run: &Run) {
    println!("{}", table::render(&Document { runs: vec![run.clone()] }, 100));
}

/// Transactions committed while the run measured, by kind.
pub fn committed(run: &Run) -> Vec<(&str, u64)> {
    run.kinds.iter().map(|kind| (kind.name.as_str(), run.sum(&kind.committed))).collect()
}

/// Attempts that failed while the run measured, but for conflicts, by cause.
pub fn errors(run: &Run) -> Vec<(&str, u64)> {
    let counts = run.errors.iter().map(|cause| (cause.name.as_str(), run.sum(&cause.counts)));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// What a control intended and achieved while the run measured.
#[track_caller]
pub fn control(run: &Run, name: &str) -> Overall {
    let control = run.controls.iter().find(|control| control.name == name);
    let names = || run.controls.iter().map(|control| control.name.as_str()).collect::<Vec<_>>();
    let control = control.unwrap_or_else(|| panic!("{name} is not among {:?}", names()));
    control.overall(run.measured()).expect("it was observed")
}

/// Every consistency condition holds.
pub async fn all_hold(config: &Config) {
    let checked = check::check(&connector(config), &config.data).await.expect("checked");
    assert!(check::all_hold(&checked), "{}", check::render(&checked));
}
