//! What is refused, who is told why, and what the log of a node has of it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll::{Cluster, Database, Freshness, OpenError, Options};
use serde_json::Value;

use crate::scene::{Scene, free_ports, path, plimsoll, refused, write_secret};
use crate::waiting::{PATIENCE, until};

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let mut scene = Scene::new(&[1, 1]);
    let file = scene.file();
    let file = path(&file);
    assert!(refused(&["start"]).contains("--table account:hash --table entry"));
    assert!(refused(&["start", "--table", "a:tree"]).contains("`hash` or `ordered`, not `tree`"));
    assert!(refused(&["start", "--table", "a", "--listen", "0.0.0.0:1"]).contains("add --advertise"));
    assert!(refused(&["start", "--table", "a", "--scheme", "gts"]).contains("write a file"));
    let peers = |peers| refused(&["start", "--table", "a", "--node", "1", "--peers", peers]);
    assert!(peers("127.0.0.1:7402").contains("write ID=HOST:PORT"));
    assert!(refused(&["start", "--table", "a", "--listen", "::1:7401"]).contains("stands in brackets"));
    assert!(refused(&["start", "--table", "a", "--listen", "nowhere.invalid:1"]).contains("has no address"));
    assert!(refused(&["start", "--table", "a", "--max-staleness", "0.1ms"]).contains("whole milliseconds"));
    assert!(peers("1=127.0.0.1:7402").contains("two nodes have the number 1"));
    assert!(peers("2=127.0.0.1:7401").contains("both have the address"));
    assert!(refused(&["start", file, "--table", "a"]).contains("cannot be used with"));
    assert!(refused(&["status", "127.0.0.1:9"]).contains("no node describes its cluster"));
    assert!(refused(&["status", "localhost:9"]).contains("no node describes its cluster"));
    assert!(refused(&["start", "/nowhere/cluster.toml"]).contains("/nowhere/cluster.toml"));
    assert!(refused(&["start", file]).contains("--node with one of 1, 2"));
    assert!(refused(&["start", file, "--role", "oracle"]).contains("needs none under dst"));
    assert!(refused(&["start", file, "--node", "7"]).contains("has no node 7, only 1, 2"));
    scene.start(1);
    until("node 1 is up", || std::net::TcpListener::bind(("127.0.0.1", scene.http[0])).err());
    assert!(refused(&["start", file, "--node", "1"]).contains("is node 1 running already?"));

    // Without a secret nothing leaves the machine.
    let open = std::fs::read_to_string(scene.file()).unwrap().replace("secret_file = \"secret\"\n", "");
    let open_file = scene.directory.join("open.toml");
    std::fs::write(&open_file, open.replace("address = \"127.0.0.1", "address = \"192.0.2.1")).unwrap();
    let ports = free_ports(1);
    let listen = std::fs::read_to_string(&open_file).unwrap();
    let listen =
        listen.replace("shards = 1\n", &format!("shards = 1\nlisten = \"127.0.0.1:{}\"\n", ports[0]));
    std::fs::write(&open_file, listen).unwrap();
    let said = refused(&["start", path(&open_file), "--node", "2"]);
    assert!(said.contains("without a secret") && said.contains("at address = 192.0.2.1"), "{said}");
    let http = |address| refused(&["start", "--table", "a", "--http", address]);
    assert!(http("192.0.2.1:1").contains("node 1 can be reached from others at http = 192.0.2.1:1"));
    assert!(http("0.0.0.0:1").contains("nobody can reach http = 0.0.0.0:1"));
    assert!(http("127.0.0.1:7401").contains("give http = 127.0.0.1:7401 another port"));

    // A client that knows another secret, or another version of the file, is told so, where others
    // are let in.
    scene.start(2);
    drop(scene.connect());
    let cluster = Cluster::read(&scene.file()).unwrap();
    let refusal = |cluster: &Cluster| {
        let options = Options { patience: PATIENCE, ..Options::default() };
        Database::connect(cluster, options).err().expect("it is not let in")
    };
    let why = |cluster: &Cluster| {
        let error = refusal(cluster);
        assert!(matches!(error, OpenError::Refused(_)), "{error:?}");
        error.to_string()
    };
    let secret = Some(b"another secret, just as long".to_vec());
    let stranger = why(&Cluster { secret, ..cluster.clone() });
    assert_eq!(stranger, "a node refuses this client: it does not know the secret of the cluster");
    let stranger = refusal(&Cluster { secret: None, ..cluster.clone() });
    assert!(matches!(stranger, OpenError::NoSecret), "{stranger:?}");
    let stranger = why(&Cluster { id: cluster.id ^ 1, ..cluster });
    let another = "it belongs to another cluster, or was given another description of this one";
    assert_eq!(stranger, format!("a node refuses this client: {another}"));
}

/// Says something to a node, hears it out, and tells from which address.
fn stranger(node: SocketAddr, says: &[u8]) -> String {
    #[allow(clippy::disallowed_types)] // A socket of the standard library, for one who does not belong there.
    let mut stream = std::net::TcpStream::connect(node).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(says).unwrap();
    let heard = stream.read_to_end(&mut Vec::new()).expect("the node answers and closes the connection");
    assert!(heard > 0, "it says why");
    stream.local_addr().unwrap().to_string()
}

#[test]
fn a_node_logs_json_that_says_whom_it_has_refused_and_why() {
    let mut scene = Scene::new(&[1]);
    let log = scene.start_with_json_log(1);
    drop(scene.connect());
    let cluster = Cluster::read(&scene.file()).unwrap();
    let node = cluster.nodes[0].address.socket().expect("it is an address");
    let magic = "it does not speak this protocol";
    // A hello of a version that does not exist: its length, its kind, the magic number, the
    // version.
    let version = [&11u32.to_le_bytes()[..], &[1], b"plimsoll", &[0xff, 0xff]].concat();
    let strangers = [
        (stranger(node, b"GET /admin HTTP/1.1\r\n\r\n"), magic),
        (stranger(node, &u32::MAX.to_le_bytes()), magic),
        (stranger(node, &version), "it speaks another version of the protocol"),
    ];
    let secret = Some(b"another secret, just as long".to_vec());
    let options = Options { patience: PATIENCE, ..Options::default() };
    assert!(Database::connect(&Cluster { secret, ..cluster }, options).is_err());

    // Every line that is whole is an object with the same fields.
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines: Vec<Value> = whole.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for line in &lines {
            for field in ["timestamp", "level", "target"] {
                assert!(line[field].is_string(), "{field} of {line}");
            }
            assert!(line["fields"]["message"].is_string(), "the message of {line}");
        }
        lines
    };
    let refused = |line: &Value, why: &str| {
        line["level"] == "WARN"
            && line["fields"]["message"] == format!("handshake came to nothing: refused: {why}")
    };
    for (address, why) in &strangers {
        until("it is logged who was refused, and why", || {
            lines().into_iter().find(|line| refused(line, why) && line["fields"]["with"] == **address)
        });
    }
    until("it is logged that somebody did not know the secret", || {
        lines().into_iter().find(|line| refused(line, "it does not know the secret of the cluster"))
    });
    let lines = lines();
    let up = lines.iter().find(|line| line["fields"]["message"] == "up").expect("it says that it is up");
    let fields = ["cluster", "process", "protocol", "scheme"].map(|field| up["fields"][field].as_str());
    assert_eq!(fields, [Some("bank"), Some("node 1"), Some("occ"), Some("dst")], "{up}");
    assert_eq!((&up["level"], &up["fields"]["shards"]), (&"INFO".into(), &1.into()), "{up}");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("admin"), "what strangers send is in no log: {text}");
}

/// Another file of the same cluster, changed.
fn changed(scene: &Scene, name: &str, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(scene.file()).unwrap();
    assert!(text.contains(from));
    let file = scene.directory.join(name);
    std::fs::write(&file, text.replace(from, to)).unwrap();
    file
}

#[test]
fn what_keeps_nodes_apart_is_said_over_http_and_logged_once() {
    let mut scene = Scene::new(&[1, 2, 1]);
    write_secret(&scene.directory.join("other"), "another secret, just as long");
    let table = "[[table]]\nname = \"account\"\nindex = \"hash\"";
    let other_secret = changed(&scene, "a.toml", "\"secret\"", "\"other\"");
    let other_table = changed(&scene, "b.toml", table, &table.replace("hash", "ordered"));
    let logs = [(1, &scene.file()), (2, &other_secret), (3, &other_table)].map(|(id, file)| {
        let log = scene.directory.join(format!("{id}.log"));
        let mut command = plimsoll(&["start", path(file), "--node", &id.to_string()]);
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        scene.nodes[id - 1] = Some(command.spawn().unwrap());
        log
    });
    let says = |id: usize, path: &str, words: &[&str]| {
        let all = |text: &String| words.iter().all(|word| text.contains(word));
        until(&format!("{path} of node {id} has {words:?}"), || {
            let agent = ureq::Agent::config_builder().http_status_as_error(false).build();
            let url = format!("http://127.0.0.1:{}{path}", scene.http[id - 1]);
            let mut answer = ureq::Agent::from(agent).get(url).call().ok()?;
            let text = answer.body_mut().read_to_string().ok()?;
            (answer.status().as_u16() == 503).then_some(text).filter(all)
        })
    };
    let secret = "it does not know the secret of the cluster; give both the same secret_file";
    says(1, "/ready", &["node 2 refuses this node: ", secret]);
    says(2, "/health", &["cannot join its cluster", secret]);
    let difference = "table \"account\" has index = \"hash\" here and index = \"ordered\" there";
    says(1, "/ready", &["node 3", "another description of this one; ", difference]);
    let back = "table \"account\" has index = \"ordered\" here and index = \"hash\" there";
    says(3, "/health", &["cannot join its cluster", back]);
    // A client of one of them is told the same.
    let cluster = Cluster::read(&other_table).unwrap();
    let options = Options { patience: PATIENCE, ..Options::default() };
    let why = Database::connect(&cluster, options).err().expect("it is not let in").to_string();
    assert!(why.contains(back) || why.contains("secret"), "{why}");
    // Refused every second by two others, and logged once for each of them.
    std::thread::sleep(Duration::from_secs(4));
    let shown = plimsoll(&["status", path(&scene.file())]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("node 3 is refused") && shown.contains(back), "{shown}");
    for log in logs {
        let text = std::fs::read_to_string(log).unwrap();
        for reason in ["it does not know the secret", "it belongs to another cluster"] {
            let lines = text.lines().filter(|line| line.contains(reason)).count();
            assert!(lines <= 4, "{lines} lines: {text}");
        }
    }
}

#[test]
fn silent_callers_of_one_port_leave_both_to_others() {
    let mut scene = Scene::new(&[1]);
    let [listen, http] = free_ports(2)[..] else { panic!("two ports") };
    let at = |port| format!("127.0.0.1:{port}");
    let start = format!(
        "ulimit -n 200; exec {} start --table account --shards 1 --listen {} --http {}",
        env!("CARGO_BIN_EXE_plimsoll"),
        at(listen),
        at(http)
    );
    let mut command = Command::new("sh");
    command.args(["-c", &start]).stdout(Stdio::null()).stderr(Stdio::null());
    scene.nodes[0] = Some(command.spawn().unwrap());
    let place = at(http);
    let cluster = until("the node describes itself", || plimsoll::find(&place, None).ok());
    let health = || {
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
        agent.get(format!("http://{place}/health")).call().map(|answer| answer.status().as_u16())
    };
    let mut held = Vec::new();
    for port in [http, listen, http] {
        for number in 0..183 {
            #[allow(clippy::disallowed_types)] // A socket of the standard library, for one who says nothing.
            let mut stream = std::net::TcpStream::connect(at(port)).unwrap();
            // Every other one says half of something.
            let half: &[u8] = if number % 2 == 0 { b"" } else { b"GET /health HTTP/1.1\r\nHost: x\r\n" };
            let _ = stream.write_all(half);
            held.push(stream);
        }
        assert_eq!(health().expect("it answers"), 200);
        let options = Options { patience: PATIENCE, ..Options::default() };
        let db = Database::connect(&cluster, options.clone()).expect("it is let in");
        // A stale snapshot can be had without a word about it.
        let stale = db.snapshot(Freshness::Stale(Duration::from_millis(500)));
        assert!(stale.is_ok(), "{:?}", stale.err());
        drop(stale);
        let refused =
            |options| Database::connect(&cluster, options).err().expect("it cannot hold").to_string();
        let hour = Options { max_staleness: Duration::from_secs(3600), ..options.clone() };
        assert!(refused(hour).contains("cannot have `max_staleness` 3600s: its cluster decides, and has 1s"));
        assert!(refused(Options { pin: true, ..options.clone() }).contains("`pin`"));
    }
}
