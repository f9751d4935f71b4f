//! Types of columns, with few values of each, so that rows meet.

/// A type of columns: its name, what it is compared with as well, and values, few enough to meet.
pub struct Kind {
    pub name: &'static str,
    pub alike: &'static [&'static str],
    pub values: &'static [&'static str],
}

const INTEGERS: &[&str] = &["int2", "int4", "int8"];
const TEXTS: &[&str] = &["text", "varchar"];

/// All of them.
pub const KINDS: &[Kind] = &[
    Kind { name: "int2", alike: INTEGERS, values: &["-32768", "-1", "0", "1", "2", "32767"] },
    Kind { name: "int4", alike: INTEGERS, values: &["-2147483648", "-1", "0", "1", "2", "40000"] },
    Kind { name: "int8", alike: INTEGERS, values: &["-1", "0", "1", "2", "9223372036854775807", "70000"] },
    Kind {
        name: "numeric",
        alike: &["int4"],
        values: &["0", "0.00", "1", "1.0", "-1.5", "100", "1e20", "0.001", "NaN", "Infinity", "-Infinity"],
    },
    Kind { name: "text", alike: TEXTS, values: &["", "a", "A", "aa", "ab", "b", "ä", "a ", " a", "\u{1}"] },
    Kind { name: "varchar(8)", alike: TEXTS, values: &["", "a", "aa", "ab", "b ", "b", "zz"] },
    Kind { name: "char(4)", alike: &["char(2)"], values: &["", "a", "a ", "ab", "b", "a\t"] },
    Kind { name: "name", alike: &["name"], values: &["", "a", "ab", "b"] },
    Kind { name: "bytea", alike: &[], values: &["\\x", "\\x00", "\\x0000", "\\x0001", "\\x61", "\\xff"] },
    Kind { name: "bool", alike: &[], values: &["t", "f"] },
    Kind { name: "date", alike: &["timestamp"], values: &["2024-02-29", "2000-01-01", "infinity"] },
    Kind {
        name: "timestamp",
        alike: &["date"],
        values: &["2024-02-29", "2000-01-01 12:00", "1999-12-31 23:59:59.5", "-infinity"],
    },
    Kind { name: "timestamptz", alike: &[], values: &["2024-02-29 00:00+00", "2000-01-01 12:00+02"] },
    Kind {
        name: "float8",
        alike: &["int4", "float4", "numeric"],
        values: &["0", "-0", "1.5", "NaN", "Infinity", "-Infinity", "1e-300", "-2"],
    },
    Kind { name: "float4", alike: &["float8"], values: &["0", "-0", "1.5", "NaN", "0.1"] },
    Kind { name: "interval", alike: &[], values: &["0", "1 mon", "31 days", "29 days", "-1 day"] },
    Kind { name: "time", alike: &[], values: &["00:00", "12:00", "24:00"] },
    Kind { name: "timetz", alike: &[], values: &["12:00+00", "13:00+01", "12:00+01", "00:00-12"] },
    Kind {
        name: "uuid",
        alike: &[],
        values: &["00000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000001"],
    },
    Kind { name: "oid", alike: &["int4"], values: &["0", "1", "4294967295"] },
    Kind { name: "int4[]", alike: &[], values: &["{}", "{1}", "{1,2}", "{NULL}", "{1,NULL}", "{2}"] },
];
