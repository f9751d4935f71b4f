//! A server that speaks PostgreSQL's protocol and does nothing: every query by key finds one row,
//! every change meets one. It knows TPC-C's columns by their names.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plimsoll_dike::config::Data;
use plimsoll_dike::target::write_numeric;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Types by PostgreSQL's numbers.
const INT4: u32 = 23;
const INT8: u32 = 20;
const TEXT: u32 = 25;
const NUMERIC: u32 = 1700;
const TIMESTAMP: u32 = 1114;

/// Answers whoever connects, for ever, and counts statements.
pub async fn serve(listener: TcpListener, statements: Arc<AtomicU64>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let statements = Arc::clone(&statements);
        // A connection that breaks is the client's business.
        tokio::spawn(async move {
            let _ = Connection { stream, prepared: HashMap::new(), statements }.answer().await;
        });
    }
}

struct Connection {
    stream: TcpStream,
    prepared: HashMap<Vec<u8>, Prepared>,
    statements: Arc<AtomicU64>,
}

/// What is answered to a prepared statement.
struct Prepared {
    described: Vec<u8>,
    executed: Vec<u8>,
}

impl Connection {
    async fn answer(mut self) -> std::io::Result<()> {
        // The startup message has no tag.
        let length = self.stream.read_u32().await?;
        let mut startup = vec![0; length.saturating_sub(4) as usize];
        self.stream.read_exact(&mut startup).await?;
        let mut out = Vec::new();
        message(&mut out, b'R', &0u32.to_be_bytes());
        message(&mut out, b'K', &[0; 8]);
        message(&mut out, b'Z', b"I");
        let mut heard: Vec<u8> = Vec::new();
        let mut bound = Vec::new();
        loop {
            self.stream.write_all(&out).await?;
            out.clear();
            if self.stream.read_buf(&mut heard).await? == 0 {
                return Ok(());
            }
            let mut at = 0;
            while let Some(end) = end_of_message(&heard[at..]) {
                let (tag, body) = (heard[at], &heard[at + 5..at + end]);
                match tag {
                    b'Q' => simple(&mut out, &text(body)),
                    b'P' => {
                        let mut parts = body.splitn(3, |&byte| byte == 0);
                        let name = parts.next().unwrap_or_default().to_vec();
                        let sql = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
                        self.prepared.insert(name, prepared(&sql));
                        message(&mut out, b'1', b"");
                    }
                    b'D' => {
                        let name = body[1..].split(|&byte| byte == 0).next().unwrap_or_default();
                        out.extend_from_slice(&self.prepared[name].described);
                    }
                    b'B' => {
                        let name = body.split(|&byte| byte == 0).nth(1).unwrap_or_default();
                        bound = name.to_vec();
                        message(&mut out, b'2', b"");
                    }
                    b'E' => {
                        self.statements.fetch_add(1, Relaxed);
                        out.extend_from_slice(&self.prepared[&bound].executed);
                    }
                    b'C' => message(&mut out, b'3', b""),
                    b'S' => message(&mut out, b'Z', b"I"),
                    b'X' => return Ok(()),
                    _ => {}
                }
                at += end;
            }
            heard.drain(..at);
        }
    }
}

/// Where the first message ends, if all of it is there.
fn end_of_message(heard: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(heard.get(1..5)?.try_into().ok()?) as usize;
    (heard.len() > length).then_some(length + 1)
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

/// A text without parameters: what the client asks before a run, and the borders of transactions.
fn simple(out: &mut Vec<u8>, sql: &str) {
    let data = Data::default();
    let rows: Vec<Vec<String>> = match sql {
        sql if sql.contains("pg_class") => {
            vec![vec!["dike_data".to_owned(), "Made by plimsoll dike, number 0".to_owned()]]
        }
        sql if sql.contains("p_value") => [
            ("warehouses", data.warehouses.to_string()),
            ("items", data.items.to_string()),
            ("customers_per_district", data.customers_per_district.to_string()),
            ("district_skew", data.district_skew.to_string()),
            ("seed", data.seed.to_string()),
            ("state", "loaded".to_owned()),
        ]
        .map(|(name, value)| vec![name.to_owned(), value])
        .to_vec(),
        sql if sql.contains("dike_unit") => vec![vec![(data.warehouses + 1).to_string()]],
        sql if sql.contains("version()") => vec![vec!["stub 0".to_owned()]],
        _ => Vec::new(),
    };
    if let Some(first) = rows.first() {
        message(out, b'T', &described(&vec![TEXT; first.len()]));
    }
    for row in &rows {
        let mut body = (row.len() as u16).to_be_bytes().to_vec();
        for value in row {
            body.extend_from_slice(&(value.len() as u32).to_be_bytes());
            body.extend_from_slice(value.as_bytes());
        }
        message(out, b'D', &body);
    }
    message(out, b'C', b"SELECT\0");
    message(out, b'Z', b"I");
}

fn prepared(sql: &str) -> Prepared {
    let parameters = parameters(sql);
    let mut body = (parameters.len() as u16).to_be_bytes().to_vec();
    parameters.iter().for_each(|parameter| body.extend_from_slice(&parameter.to_be_bytes()));
    let (mut described_, mut executed) = (Vec::new(), Vec::new());
    message(&mut described_, b't', &body);
    match sql.strip_prefix("SELECT ").and_then(|rest| rest.split_once(" FROM")) {
        Some((columns, _)) => {
            // A comma within brackets separates nothing.
            let columns: Vec<u32> = match columns.contains('(') {
                true => vec![if columns.contains("COUNT") { INT8 } else { NUMERIC }],
                false => columns.split(", ").map(type_of).collect(),
            };
            message(&mut described_, b'T', &described(&columns));
            message(&mut executed, b'D', &row(&columns));
            message(&mut executed, b'C', b"SELECT 1\0");
        }
        None => {
            message(&mut described_, b'n', b"");
            let tag: &[u8] = match sql.split(' ').next() {
                Some("INSERT") => b"INSERT 0 1\0",
                Some("DELETE") => b"DELETE 1\0",
                _ => b"UPDATE 1\0",
            };
            message(&mut executed, b'C', tag);
        }
    }
    Prepared { described: described_, executed }
}

/// The description of columns of these types.
fn described(columns: &[u32]) -> Vec<u8> {
    let mut body = (columns.len() as u16).to_be_bytes().to_vec();
    for column in columns {
        body.extend_from_slice(b"c\0\0\0\0\0\0\0");
        body.extend_from_slice(&column.to_be_bytes());
        body.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1]);
    }
    body
}

/// A row with some value of each type.
fn row(columns: &[u32]) -> Vec<u8> {
    let mut body = (columns.len() as u16).to_be_bytes().to_vec();
    for &column in columns {
        let value: &[u8] = match column {
            INT4 => &[0, 0, 0, 50],
            INT8 | TIMESTAMP => &[0, 0, 0, 0, 0, 0, 0, 50],
            NUMERIC => {
                write_numeric(&mut |part| body.extend_from_slice(part), 12, 2);
                continue;
            }
            _ => b"GC and some more",
        };
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
    body
}

/// The types of the parameters: that of the column that each is for.
fn parameters(sql: &str) -> Vec<u32> {
    if let Some((head, values)) = sql.split_once(" VALUES ") {
        let columns = head.split_once('(').map_or("", |(_, columns)| columns.trim_end_matches(')'));
        let columns: Vec<u32> = columns.split(", ").map(type_of).collect();
        return columns.iter().copied().cycle().take(values.matches('$').count()).collect();
    }
    let mut column = "";
    let mut parameters = Vec::new();
    for word in sql.split([' ', ',', '(', ')']) {
        if word.starts_with('$') {
            parameters.push(type_of(column));
        } else if word.contains('_') {
            column = word;
        }
    }
    parameters
}

fn type_of(column: &str) -> u32 {
    let ends = |ends: &[&str]| ends.iter().any(|end| column.ends_with(end));
    if ends(&["_entry_d", "_delivery_d", "h_date"]) {
        TIMESTAMP
    } else if ends(&["_amount", "_ytd", "_balance", "_tax", "_discount", "_price", "_credit_lim", "_payment"])
    {
        NUMERIC
    } else if ends(&["_id", "_quantity", "_cnt", "_local", "_number"]) {
        INT4
    } else {
        TEXT
    }
}
