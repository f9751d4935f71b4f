//! All casts: from, to, where they happen by themselves, function (0: the value stays as it is).

use super::CastContext::{Assignment, Explicit, Implicit};
use super::{Cast, CastMethod};
use crate::types::Oid;

macro_rules! casts {
    ($($from:ident $to:ident $context:ident $function:literal;)*) => {
        /// `pg_cast` as PostgreSQL 15 has it, without those that only heed a modifier.
        pub static CASTS: &[Cast] = &[$(Cast {
            from: Oid::$from,
            to: Oid::$to,
            context: $context,
            method: if $function == 0 { CastMethod::Same } else { CastMethod::Function($function) },
        }),*];
    };
}

#[rustfmt::skip]
casts! {
    BOOL INT4 Explicit 2558;
    BOOL TEXT Assignment 2971;
    BOOL BPCHAR Assignment 2971;
    BOOL VARCHAR Assignment 2971;
    CHAR INT4 Explicit 77;
    CHAR TEXT Implicit 946;
    CHAR BPCHAR Assignment 860;
    CHAR VARCHAR Assignment 946;
    NAME TEXT Implicit 406;
    NAME BPCHAR Assignment 408;
    NAME VARCHAR Assignment 1401;
    INT8 INT2 Assignment 714;
    INT8 INT4 Assignment 480;
    INT8 OID Implicit 1287;
    INT8 FLOAT4 Implicit 652;
    INT8 FLOAT8 Implicit 482;
    INT8 NUMERIC Implicit 1781;
    INT8 REGTYPE Implicit 1287;
    INT2 INT8 Implicit 754;
    INT2 INT4 Implicit 313;
    INT2 OID Implicit 313;
    INT2 FLOAT4 Implicit 236;
    INT2 FLOAT8 Implicit 235;
    INT2 NUMERIC Implicit 1782;
    INT2 REGTYPE Implicit 313;
    INT4 BOOL Explicit 2557;
    INT4 CHAR Explicit 78;
    INT4 INT8 Implicit 481;
    INT4 INT2 Assignment 314;
    INT4 OID Implicit 1287;
    INT4 FLOAT4 Implicit 318;
    INT4 FLOAT8 Implicit 316;
    INT4 NUMERIC Implicit 1740;
    INT4 REGTYPE Implicit 1287;
    TEXT CHAR Assignment 944;
    TEXT NAME Implicit 407;
    TEXT BPCHAR Implicit 0;
    TEXT VARCHAR Implicit 0;
    OID INT8 Assignment 1288;
    OID INT4 Assignment 480;
    OID REGTYPE Implicit 0;
    FLOAT4 INT8 Assignment 653;
    FLOAT4 INT2 Assignment 238;
    FLOAT4 INT4 Assignment 319;
    FLOAT4 FLOAT8 Implicit 311;
    FLOAT4 NUMERIC Assignment 1742;
    FLOAT8 INT8 Assignment 483;
    FLOAT8 INT2 Assignment 237;
    FLOAT8 INT4 Assignment 317;
    FLOAT8 FLOAT4 Assignment 312;
    FLOAT8 NUMERIC Assignment 1743;
    BPCHAR CHAR Assignment 944;
    BPCHAR NAME Implicit 409;
    BPCHAR TEXT Implicit 401;
    BPCHAR VARCHAR Implicit 401;
    VARCHAR CHAR Assignment 944;
    VARCHAR NAME Implicit 1400;
    VARCHAR TEXT Implicit 0;
    VARCHAR BPCHAR Implicit 0;
    DATE TIMESTAMP Implicit 2024;
    DATE TIMESTAMPTZ Implicit 1174;
    TIME INTERVAL Implicit 1370;
    TIME TIMETZ Implicit 2047;
    TIMESTAMP DATE Assignment 2029;
    TIMESTAMP TIME Assignment 1316;
    TIMESTAMP TIMESTAMPTZ Implicit 2028;
    TIMESTAMPTZ DATE Assignment 1178;
    TIMESTAMPTZ TIME Assignment 2019;
    TIMESTAMPTZ TIMESTAMP Assignment 2027;
    TIMESTAMPTZ TIMETZ Assignment 1388;
    INTERVAL TIME Assignment 1419;
    TIMETZ TIME Assignment 2046;
    NUMERIC INT8 Assignment 1779;
    NUMERIC INT2 Assignment 1783;
    NUMERIC INT4 Assignment 1744;
    NUMERIC FLOAT4 Implicit 1745;
    NUMERIC FLOAT8 Implicit 1746;
    REGTYPE INT8 Assignment 1288;
    REGTYPE INT4 Assignment 480;
    REGTYPE OID Implicit 0;
    INT8 REGPROC Implicit 1287;
    INT8 REGPROCEDURE Implicit 1287;
    INT8 REGOPER Implicit 1287;
    INT8 REGCLASS Implicit 1287;
    INT8 REGNAMESPACE Implicit 1287;
    INT8 REGROLE Implicit 1287;
    INT2 REGPROC Implicit 313;
    INT2 REGPROCEDURE Implicit 313;
    INT2 REGOPER Implicit 313;
    INT2 REGCLASS Implicit 313;
    INT2 REGNAMESPACE Implicit 313;
    INT2 REGROLE Implicit 313;
    INT4 REGPROC Implicit 1287;
    INT4 REGPROCEDURE Implicit 1287;
    INT4 REGOPER Implicit 1287;
    INT4 REGCLASS Implicit 1287;
    INT4 REGNAMESPACE Implicit 1287;
    INT4 REGROLE Implicit 1287;
    REGPROC INT8 Assignment 1288;
    REGPROC INT4 Assignment 480;
    REGPROC OID Implicit 0;
    REGPROC REGPROCEDURE Implicit 0;
    TEXT REGCLASS Implicit 1079;
    OID REGPROC Implicit 0;
    OID REGPROCEDURE Implicit 0;
    OID REGOPER Implicit 0;
    OID REGCLASS Implicit 0;
    OID REGNAMESPACE Implicit 0;
    OID REGROLE Implicit 0;
    PG_NODE_TREE TEXT Implicit 0;
    VARCHAR REGCLASS Implicit 1079;
    REGPROCEDURE INT8 Assignment 1288;
    REGPROCEDURE INT4 Assignment 480;
    REGPROCEDURE REGPROC Implicit 0;
    REGPROCEDURE OID Implicit 0;
    REGOPER INT8 Assignment 1288;
    REGOPER INT4 Assignment 480;
    REGOPER OID Implicit 0;
    REGCLASS INT8 Assignment 1288;
    REGCLASS INT4 Assignment 480;
    REGCLASS OID Implicit 0;
    REGNAMESPACE INT8 Assignment 1288;
    REGNAMESPACE INT4 Assignment 480;
    REGNAMESPACE OID Implicit 0;
    REGROLE INT8 Assignment 1288;
    REGROLE INT4 Assignment 480;
    REGROLE OID Implicit 0;
}
