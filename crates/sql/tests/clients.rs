//! Real clients, and the real server beside ours: psql's scripts are played against both, and what
//! it prints has to be the same.

mod common;

use common::postgres::Postgres;
use common::{plimsoll, program, psql, written};

/// Plays a script against both servers, and says where what is printed differs first.
fn difference(postgres: &Postgres, port: u16, arguments: &[&str], script: &str) -> Option<String> {
    let [theirs, ours] = [postgres.port, port].map(|port| written(&psql(port, arguments, script), port));
    let (theirs, ours): (Vec<&str>, Vec<&str>) = (theirs.lines().collect(), ours.lines().collect());
    let first = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    let first = match first {
        None if ours.len() == theirs.len() => return None,
        first => first.unwrap_or(ours.len().min(theirs.len())),
    };
    let part = |lines: &[&str]| {
        lines
            .iter()
            .skip(first.saturating_sub(3))
            .take(12)
            .map(|line| format!("    {line}\n"))
            .collect::<String>()
    };
    Some(format!("{arguments:?}\n  ours:\n{}  PostgreSQL's:\n{}", part(&ours), part(&theirs)))
}

/// Statements and commands of psql in a script; rows for `COPY` are part of their statement.
fn records(script: &str) -> usize {
    let (mut count, mut statement, mut quote) = (0, String::new(), None);
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        if quote.is_none() && line.starts_with('\\') {
            (count, statement) = (count + 1, String::new());
            continue;
        }
        for (at, char) in line.char_indices() {
            let comments = quote.is_none() && line.get(at..).is_some_and(|rest| rest.starts_with("--"));
            if comments {
                break;
            }
            match (quote, char) {
                (None, '\'' | '"') => quote = Some(char),
                (Some(open), _) if open == char => quote = None,
                (None, ';') => {
                    count += usize::from(!statement.trim().is_empty());
                    let text = std::mem::take(&mut statement).trim_start().to_lowercase();
                    if text.starts_with("copy") && text.contains("from stdin") {
                        lines.by_ref().find(|line| *line == "\\.");
                    }
                    continue;
                }
                _ => {}
            }
            statement.push(char);
        }
        statement.push('\n');
    }
    count
}

#[test]
fn psql_prints_what_it_prints_of_postgresql() {
    let Some(postgres) = Postgres::start() else { return };
    let port = plimsoll();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut scripts: Vec<_> = std::fs::read_dir(folder).expect("a folder").flatten().collect();
    scripts.sort_by_key(std::fs::DirEntry::path);
    let (mut differences, mut count) = (Vec::new(), 0);
    for script in scripts {
        let text = std::fs::read_to_string(script.path()).expect("a script");
        count += records(&text);
        let found = difference(&postgres, port, &["-a"], &text);
        differences.extend(found.map(|found| format!("{}: {found}", script.path().display())));
    }
    for arguments in [
        &["-c", "select 1"][..],
        &["-c", "select 1; select 2 as two; selec 3"],
        &["-c", "\\conninfo"],
        &["-Atc", "select 'é', null, 1.5"],
        &["-d", "postgres", "-c", "select current_database(), current_user"],
        &["-v", "VERBOSITY=sqlstate", "-c", "select 1/0"],
        &["-1", "-c", "set geqo = off", "-c", "show geqo", "-c", "select 1/0"],
        &["-v", "x=7", "-c", "\\set", "-c", "\\echo :SERVER_VERSION_NUM"][..2],
    ] {
        differences.extend(difference(&postgres, port, arguments, ""));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(count >= 2000, "{count} records");
}

#[test]
fn pgbench_runs_in_every_mode() {
    let (Some(pgbench), Some(_)) = (program("pgbench"), program("psql")) else {
        eprintln!("NOT RUN: pgbench is not installed (apt-get install postgresql)");
        return;
    };
    let port = plimsoll();
    let script = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(script.path(), "\\set a random(1, 9)\nbegin;\nselect :a + 1;\nend;\n").expect("written");
    for mode in ["simple", "extended", "prepared"] {
        let output = std::process::Command::new(&pgbench)
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string(), "-n", "-c", "2"])
            .args(["-t", "50", "-M", mode, "-f"])
            .arg(script.path())
            .arg("postgres")
            .output()
            .expect("pgbench runs");
        let said = written(&output, port);
        assert!(output.status.success(), "{mode}: {said}");
        assert!(said.contains("number of transactions actually processed: 100/100"), "{mode}: {said}");
        assert!(said.contains("number of failed transactions: 0 "), "{mode}: {said}");
    }
}

/// An index is made while others write, and has an entry for every row and for nothing else.
#[test]
fn an_index_is_made_beside_writers() {
    let (Some(pgbench), Some(_)) = (program("pgbench"), program("psql")) else {
        eprintln!("NOT RUN: pgbench is not installed (apt-get install postgresql)");
        return;
    };
    let port = plimsoll();
    let run = |script: &str| written(&psql(port, &["-At"], script), port);
    run("create table t (id int primary key, n int, m int);
         insert into t select g, g % 50, g from generate_series(1, 3000) g");
    let script = tempfile::NamedTempFile::new().expect("a file");
    let writes = "\\set a random(1, 3000)\n\\set b random(0, 60)\n\
                  update t set n = :b, m = m + 5000 where id = :a;\n\
                  delete from t where id = :a + 1;\n\
                  insert into t values (:a + 1, :b, :a + 1) on conflict do nothing;\n";
    std::fs::write(script.path(), writes).expect("written");
    let mut writers = std::process::Command::new(&pgbench)
        .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string(), "-n", "-c", "4", "-T", "2"])
        .args(["--max-tries", "1000", "-f"])
        .arg(script.path())
        .arg("postgres")
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("pgbench runs");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let made = run(
        "create index t_n on t (n); create unique index t_m on t (m, id); create unique index t_no on t (n)",
    );
    assert!(made.contains("could not create unique index \"t_no\""), "{made}");
    assert!(writers.wait().expect("it ends").success());
    // What an index says of each value is what all rows say.
    let wrong = run("select count(*) from (select n, count(*) as c from t group by n) g
                     where c <> (select count(*) from t where t.n = g.n);
                     select count(*) from t a where not exists
                         (select from t b where b.m = a.m and b.id = a.id and b.n = a.n);
                     select sum((select count(*) from t where t.n = v)) - (select count(*) from t)
                         from generate_series(0, 60) v");
    assert_eq!(wrong, "0\n0\n0\n--\n", "{made}");
}

/// Clients that write the same rows wait for each other, and none is told to try again.
#[test]
fn transactions_over_the_same_rows_all_commit() {
    let (Some(pgbench), Some(_)) = (program("pgbench"), program("psql")) else {
        eprintln!("NOT RUN: pgbench is not installed (apt-get install postgresql)");
        return;
    };
    let port = plimsoll();
    let run = |script: &str| written(&psql(port, &["-At"], script), port);
    run("create table t (id int primary key, n int); insert into t select g, 0 from generate_series(1, 3) g;
         create table log (n int)");
    let script = tempfile::NamedTempFile::new().expect("a file");
    // Rows in any order, so that they wait for each other in circles, too.
    let statements = "\\set a random(1, 3)\n\\set b random(1, 3)\nbegin;\nupdate t set n = n + 1 where id = :a;\n\
                      select 1;\nupdate t set n = n + 1 where id = :b;\ninsert into log values (:a);\nend;\n";
    std::fs::write(script.path(), statements).expect("written");
    for mode in ["simple", "prepared"] {
        let output = std::process::Command::new(&pgbench)
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string(), "-n", "-c", "8"])
            .args(["-t", "100", "-M", mode, "-f"])
            .arg(script.path())
            .arg("postgres")
            .output()
            .expect("pgbench runs");
        let said = written(&output, port);
        assert!(output.status.success(), "{mode}: {said}");
        assert!(said.contains("number of failed transactions: 0 "), "{mode}: {said}");
    }
    assert_eq!(run("select sum(n), (select count(*) from log) from t"), "3200|1600\n--\n");
}

#[test]
fn plans_say_how_rows_are_found() {
    if program("psql").is_none() {
        eprintln!("NOT RUN: psql is not installed (apt-get install postgresql-client)");
        return;
    }
    let port = plimsoll();
    let run = |script: &str| written(&psql(port, &["-Atq"], script), port);
    run("create table t (a int, b int, c text, primary key (a, b)); create index t_c on t (c, b desc);
         insert into t values (1, 2, 'x')");
    let cases = [
        ("select * from t", "Seq Scan on t\n"),
        (
            "select c from t where a = 1 and b in (2, 3)",
            "Index Scan using t_pkey on t\n  Index Cond: (a = 1) AND (b = ANY (2, 3))\n  Filter: ((a = 1) AND ((b = 2) OR (b = 3)))\n",
        ),
        (
            "select c from t where (a, b) in ((1, 2), (1, 3))",
            "Index Scan using t_pkey on t\n  Index Cond: (a = ANY (1, 1)) AND (b = ANY (2, 3))\n  Filter: (((a = 1) AND (b = 2)) OR ((a = 1) AND (b = 3)))\n",
        ),
        (
            "select c from t where (a, b) > (1, 2) order by a, b limit 3",
            "Limit\n  ->  Index Scan using t_pkey on t\n        Index Cond: (a >= 1)\n        Filter: (ROW(a, b) > ROW(1, 2))\n",
        ),
        (
            "select a from t where c = 'x' and b > 7",
            "Index Scan using t_c on t\n  Index Cond: (c = 'x'::text) AND (b > 7)\n  Filter: ((c = 'x'::text) AND (b > 7))\n",
        ),
        (
            "select a, b from t order by a desc, b desc limit 3",
            "Limit\n  ->  Index Scan Backward using t_pkey on t\n",
        ),
        ("select c, b from t order by c, b desc limit 3", "Limit\n  ->  Index Scan using t_c on t\n"),
        ("select b from t order by b", "Sort\n  Sort Key: b\n  ->  Seq Scan on t\n"),
        (
            "select max(c) from t",
            "Aggregate\n  ->  Limit\n        ->  Index Scan Backward using t_c on t\n              Filter: (c IS NOT NULL)\n",
        ),
        (
            "select x.c from t x join t y on y.c || '' = x.c || '' and x.b = y.b + 1",
            "Hash Join\n  Join Filter: (((c || ''::text) = (c || ''::text)) AND (b = (b + 1)))\n  Hash Cond: ((c || ''::text) = (c || ''::text)) AND (b = (b + 1))\n  ->  Seq Scan on t\n  ->  Seq Scan on t\n",
        ),
        (
            "select x.c from t x join t y on y.a = x.b and y.b = 2",
            "Nested Loop\n  Join Filter: ((a = b) AND (b = 2))\n  ->  Seq Scan on t\n  ->  Index Scan using t_pkey on t\n        Index Cond: (a = b) AND (b = 2)\n",
        ),
        (
            "update t set b = b + 1 where a = 1",
            "Update on t\n  ->  Index Scan using t_pkey on t\n        Index Cond: (a = 1)\n        Filter: (a = 1)\n",
        ),
    ];
    for (query, plan) in cases {
        assert_eq!(run(&format!("explain {query};")), format!("{plan}--\n"), "{query}");
    }
    let said = run("explain analyze select * from t where a = 1;");
    assert!(said.contains("Rows: 1\nReads of the store: 1\n") && said.contains("Execution Time: "), "{said}");
}

/// A session of psql that statements are sent to one by one.
struct Conversation {
    child: std::process::Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Conversation {
    fn begin(port: u16) -> Conversation {
        use std::io::BufRead;
        let mut child = std::process::Command::new(program("psql").expect("it is there"))
            .args(["-X", "-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string(), "-Atq", "postgres"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("psql runs");
        let output = child.stdout.take().expect("it is a pipe");
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("psql".to_owned())
            .spawn(move || {
                let lines = std::io::BufReader::new(output).lines().map_while(Result::ok);
                lines.for_each(|line| drop(sender.send(line)));
            })
            .expect("a thread");
        Conversation { child, lines }
    }

    fn send(&mut self, statements: &str) {
        use std::io::Write;
        let input = self.child.stdin.as_mut().expect("it is a pipe");
        writeln!(input, "{statements};\n\\echo :SQLSTATE").expect("psql listens");
    }

    /// The lines up to the state of what was sent last.
    fn hear(&self) -> Vec<String> {
        let mut heard = Vec::new();
        loop {
            let line = self.lines.recv_timeout(std::time::Duration::from_secs(20)).expect("an answer");
            heard.push(line.clone());
            if line.len() == 5 && line.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            {
                return heard;
            }
        }
    }

    fn ask(&mut self, statements: &str) -> Vec<String> {
        self.send(statements);
        self.hear()
    }

    /// Whether nothing is answered for a while.
    fn waits(&self) -> bool {
        self.lines.recv_timeout(std::time::Duration::from_millis(200)).is_err()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn reserved_rows_are_waited_for_skipped_or_refused() {
    if program("psql").is_none() {
        eprintln!("NOT RUN: psql is not installed (apt-get install postgresql-client)");
        return;
    }
    let port = plimsoll();
    let [mut one, mut two] = [Conversation::begin(port), Conversation::begin(port)];
    one.ask("create table t (id int primary key, n int)");
    one.ask("insert into t select g, 0 from generate_series(1, 4) g");
    one.ask("begin");
    assert_eq!(one.ask("select id from t where id = 1 for update"), ["1", "00000"]);
    // Others read, skip the row, or are refused.
    assert_eq!(two.ask("select n from t where id = 1"), ["0", "00000"]);
    assert_eq!(two.ask("select id from t order by id limit 2 for update skip locked"), ["2", "3", "00000"]);
    assert_eq!(two.ask("select id from t where id = 1 for update nowait"), ["55P03"]);
    two.ask("set lock_timeout = '50ms'");
    assert_eq!(two.ask("update t set n = 9 where id = 1"), ["55P03"]);
    two.ask("set lock_timeout = 0");
    // A writer waits, and then sees what the first has written.
    two.send("update t set n = n + 1 where id = 1 returning n");
    assert!(two.waits());
    one.ask("update t set n = 10 where id = 1");
    assert!(two.waits());
    assert_eq!(one.ask("commit"), ["00000"]);
    assert_eq!(two.hear(), ["11", "00000"]);
    // So does one whose block has begun before.
    one.ask("begin");
    one.ask("update t set n = n + 1 where id = 2");
    two.ask("begin");
    assert_eq!(two.ask("select count(*) from t"), ["4", "00000"]);
    two.send("update t set n = n + 1 where id = 2 returning n");
    assert!(two.waits());
    one.ask("commit");
    assert_eq!(two.hear(), ["2", "00000"]);
    assert_eq!(two.ask("commit"), ["00000"]);
    // What a client has seen and is no longer so cannot be taken back.
    two.ask("begin");
    assert_eq!(two.ask("select n from t where id = 3"), ["0", "00000"]);
    one.ask("update t set n = 5 where id = 3");
    let states = [two.ask("update t set n = n + 1 where id = 3"), two.ask("commit")];
    assert!(states.iter().any(|state| *state == ["40001"]), "{states:?}");
    assert_eq!(one.ask("select n from t where id = 3"), ["5", "00000"]);
    // A client that is gone has reserved nothing.
    two.ask("begin");
    two.ask("update t set n = 7 where id = 4");
    one.send("update t set n = n + 1 where id = 4 returning n");
    assert!(one.waits());
    drop(two);
    assert_eq!(one.hear(), ["1", "00000"]);
}

/// A transaction reserves a thousand rows at most. Of what is beyond it leaves nothing behind.
#[test]
fn many_rows_that_were_reserved_are_free_again() {
    if program("psql").is_none() {
        eprintln!("NOT RUN: psql is not installed (apt-get install postgresql-client)");
        return;
    }
    let port = plimsoll();
    let [mut one, mut two] = [Conversation::begin(port), Conversation::begin(port)];
    one.ask("create table t (id int primary key, n int)");
    one.ask("insert into t select g, 0 from generate_series(1, 1100) g");
    let all = "select count(*) from (select id from t for update skip locked) s";
    assert_eq!(two.ask(all), ["1100", "00000"]);
    one.ask("set lock_timeout = '2s'");
    assert_eq!(one.ask("update t set n = 1 where id in (1, 1050)"), ["00000"]);
}
