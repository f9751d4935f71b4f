//! The bytes of a client, for tests.

#![allow(missing_docs)]

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(u32::try_from(body.len() + 4).expect("it is short").to_be_bytes());
    bytes.extend(body);
    bytes
}

fn cstring(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

pub fn start(minor: u16, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = [[0, 3], minor.to_be_bytes()].concat();
    for (name, value) in parameters {
        body.extend(cstring(name));
        body.extend(cstring(value));
    }
    body.push(0);
    [&u32::try_from(body.len() + 4).expect("it is short").to_be_bytes(), body.as_slice()].concat()
}

pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', &cstring(text))
}

pub fn parse(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let mut body = [cstring(name), cstring(text)].concat();
    body.extend(u16::try_from(types.len()).expect("few").to_be_bytes());
    types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
    message(b'P', &body)
}

pub fn bind(
    portal: &str,
    statement: &str,
    formats: &[u16],
    parameters: &[Option<&[u8]>],
    results: &[u16],
) -> Vec<u8> {
    let mut body = [cstring(portal), cstring(statement)].concat();
    let list = |body: &mut Vec<u8>, formats: &[u16]| {
        body.extend(u16::try_from(formats.len()).expect("few").to_be_bytes());
        formats.iter().for_each(|format| body.extend(format.to_be_bytes()));
    };
    list(&mut body, formats);
    body.extend(u16::try_from(parameters.len()).expect("few").to_be_bytes());
    for parameter in parameters {
        match parameter {
            None => body.extend((-1i32).to_be_bytes()),
            Some(value) => {
                body.extend(u32::try_from(value.len()).expect("short").to_be_bytes());
                body.extend(*value);
            }
        }
    }
    list(&mut body, results);
    message(b'B', &body)
}

pub fn execute(portal: &str, limit: i32) -> Vec<u8> {
    message(b'E', &[cstring(portal), limit.to_be_bytes().to_vec()].concat())
}

pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}
