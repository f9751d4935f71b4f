//! What PostgreSQL 15's catalogs say of the types there are here, and of the functions that those
//! name for their forms. Some clients look for these functions' names; none of them can be called.

/// A row of `pg_type`, but for what is the same for all types here.
pub struct BuiltinType {
    /// Its identifier.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// Bytes of a value, -1 if they vary.
    pub size: i16,
    /// Whether PostgreSQL passes values and not pointers.
    pub by_value: bool,
    /// `b` of a base type, `p` of a pseudo-type.
    pub kind: u8,
    /// What implicit casts stay within.
    pub category: u8,
    /// Whether it is the type to choose of its category.
    pub preferred: bool,
    /// The type of elements, 0 if there are none.
    pub element: u32,
    /// The type of arrays of it.
    pub array: u32,
    /// Subscripts; text in and out; binary in and out; modifiers in and out; statistics.
    pub functions: [u32; 8],
    /// How PostgreSQL aligns values.
    pub align: u8,
    /// How PostgreSQL keeps long values.
    pub storage: u8,
    /// The collation of its values, 0 if they have none.
    pub collation: u32,
}

/// A function that reads or writes a type's forms.
pub struct FormFunction {
    /// Its identifier.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments.
    pub arguments: &'static [u32],
    /// The type of its result.
    pub result: u32,
    /// `i`, `s` or `v`, as `pg_proc` has it.
    pub volatility: u8,
    /// Whether its result is NULL as soon as an argument is.
    pub strict: bool,
}

macro_rules! types {
    ($($oid:literal $name:literal $size:literal $by_value:literal $kind:literal $category:literal
        $preferred:literal $element:literal $array:literal [$($function:literal)*] $align:literal
        $storage:literal $collation:literal;)*) => {
        /// By identifier.
        pub static TYPES: &[BuiltinType] = &[$(BuiltinType {
            oid: $oid,
            name: $name,
            size: $size,
            by_value: $by_value,
            kind: $kind,
            category: $category,
            preferred: $preferred,
            element: $element,
            array: $array,
            functions: [$($function),*],
            align: $align,
            storage: $storage,
            collation: $collation,
        }),*];
    };
}

macro_rules! functions {
    ($($oid:literal $name:literal ($($argument:literal)*) $result:literal $volatility:literal
        $strict:literal;)*) => {
        /// By identifier.
        pub static FORM_FUNCTIONS: &[FormFunction] = &[$(FormFunction {
            oid: $oid,
            name: $name,
            arguments: &[$($argument),*],
            result: $result,
            volatility: $volatility,
            strict: $strict,
        }),*];
    };
}

/// The type of an identifier.
pub fn builtin_type(oid: u32) -> Option<&'static BuiltinType> {
    TYPES.binary_search_by_key(&oid, |row| row.oid).ok().and_then(|place| TYPES.get(place))
}

/// The function of an identifier.
pub fn form_function(oid: u32) -> Option<&'static FormFunction> {
    let place = FORM_FUNCTIONS.binary_search_by_key(&oid, |row| row.oid).ok();
    place.and_then(|place| FORM_FUNCTIONS.get(place))
}

#[rustfmt::skip]
types! {
    16 "bool" 1 true b'b' b'B' true 0 1000 [0 1242 1243 2436 2437 0 0 0] b'c' b'p' 0;
    17 "bytea" -1 false b'b' b'U' false 0 1001 [0 1244 31 2412 2413 0 0 0] b'i' b'x' 0;
    18 "char" 1 true b'b' b'Z' false 0 1002 [0 1245 33 2434 2435 0 0 0] b'c' b'p' 0;
    19 "name" 64 false b'b' b'S' false 18 1003 [6180 34 35 2422 2423 0 0 0] b'c' b'p' 950;
    20 "int8" 8 true b'b' b'N' false 0 1016 [0 460 461 2408 2409 0 0 0] b'd' b'p' 0;
    21 "int2" 2 true b'b' b'N' false 0 1005 [0 38 39 2404 2405 0 0 0] b's' b'p' 0;
    22 "int2vector" -1 false b'b' b'A' false 21 1006 [6179 40 41 2410 2411 0 0 0] b'i' b'p' 0;
    23 "int4" 4 true b'b' b'N' false 0 1007 [0 42 43 2406 2407 0 0 0] b'i' b'p' 0;
    24 "regproc" 4 true b'b' b'N' false 0 1008 [0 44 45 2444 2445 0 0 0] b'i' b'p' 0;
    25 "text" -1 false b'b' b'S' true 0 1009 [0 46 47 2414 2415 0 0 0] b'i' b'x' 100;
    26 "oid" 4 true b'b' b'N' true 0 1028 [0 1798 1799 2418 2419 0 0 0] b'i' b'p' 0;
    28 "xid" 4 true b'b' b'U' false 0 1011 [0 50 51 2440 2441 0 0 0] b'i' b'p' 0;
    29 "cid" 4 true b'b' b'U' false 0 1012 [0 52 53 2442 2443 0 0 0] b'i' b'p' 0;
    30 "oidvector" -1 false b'b' b'A' false 26 1013 [6179 54 55 2420 2421 0 0 0] b'i' b'p' 0;
    114 "json" -1 false b'b' b'U' false 0 199 [0 321 322 323 324 0 0 0] b'i' b'x' 0;
    194 "pg_node_tree" -1 false b'b' b'Z' false 0 0 [0 195 196 197 198 0 0 0] b'i' b'x' 100;
    199 "_json" -1 false b'b' b'A' false 114 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    700 "float4" 4 true b'b' b'N' false 0 1021 [0 200 201 2424 2425 0 0 0] b'i' b'p' 0;
    701 "float8" 8 true b'b' b'N' true 0 1022 [0 214 215 2426 2427 0 0 0] b'd' b'p' 0;
    705 "unknown" -2 false b'p' b'X' false 0 0 [0 109 110 2416 2417 0 0 0] b'c' b'p' 0;
    869 "inet" -1 false b'b' b'I' true 0 1041 [0 910 911 2496 2497 0 0 0] b'i' b'm' 0;
    1000 "_bool" -1 false b'b' b'A' false 16 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1001 "_bytea" -1 false b'b' b'A' false 17 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1002 "_char" -1 false b'b' b'A' false 18 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1003 "_name" -1 false b'b' b'A' false 19 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 950;
    1005 "_int2" -1 false b'b' b'A' false 21 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1006 "_int2vector" -1 false b'b' b'A' false 22 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1007 "_int4" -1 false b'b' b'A' false 23 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1008 "_regproc" -1 false b'b' b'A' false 24 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1009 "_text" -1 false b'b' b'A' false 25 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 100;
    1011 "_xid" -1 false b'b' b'A' false 28 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1012 "_cid" -1 false b'b' b'A' false 29 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1013 "_oidvector" -1 false b'b' b'A' false 30 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1014 "_bpchar" -1 false b'b' b'A' false 1042 0 [6179 750 751 2400 2401 2913 2914 3816] b'i' b'x' 100;
    1015 "_varchar" -1 false b'b' b'A' false 1043 0 [6179 750 751 2400 2401 2915 2916 3816] b'i' b'x' 100;
    1016 "_int8" -1 false b'b' b'A' false 20 0 [6179 750 751 2400 2401 0 0 3816] b'd' b'x' 0;
    1021 "_float4" -1 false b'b' b'A' false 700 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1022 "_float8" -1 false b'b' b'A' false 701 0 [6179 750 751 2400 2401 0 0 3816] b'd' b'x' 0;
    1028 "_oid" -1 false b'b' b'A' false 26 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1033 "aclitem" 12 false b'b' b'U' false 0 1034 [0 1031 1032 0 0 0 0 0] b'i' b'p' 0;
    1034 "_aclitem" -1 false b'b' b'A' false 1033 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1041 "_inet" -1 false b'b' b'A' false 869 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1042 "bpchar" -1 false b'b' b'S' false 0 1014 [0 1044 1045 2430 2431 2913 2914 0] b'i' b'x' 100;
    1043 "varchar" -1 false b'b' b'S' false 0 1015 [0 1046 1047 2432 2433 2915 2916 0] b'i' b'x' 100;
    1082 "date" 4 true b'b' b'D' false 0 1182 [0 1084 1085 2468 2469 0 0 0] b'i' b'p' 0;
    1083 "time" 8 true b'b' b'D' false 0 1183 [0 1143 1144 2470 2471 2909 2910 0] b'd' b'p' 0;
    1114 "timestamp" 8 true b'b' b'D' false 0 1115 [0 1312 1313 2474 2475 2905 2906 0] b'd' b'p' 0;
    1115 "_timestamp" -1 false b'b' b'A' false 1114 0 [6179 750 751 2400 2401 2905 2906 3816] b'd' b'x' 0;
    1182 "_date" -1 false b'b' b'A' false 1082 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1183 "_time" -1 false b'b' b'A' false 1083 0 [6179 750 751 2400 2401 2909 2910 3816] b'd' b'x' 0;
    1184 "timestamptz" 8 true b'b' b'D' true 0 1185 [0 1150 1151 2476 2477 2907 2908 0] b'd' b'p' 0;
    1185 "_timestamptz" -1 false b'b' b'A' false 1184 0 [6179 750 751 2400 2401 2907 2908 3816] b'd' b'x' 0;
    1186 "interval" 16 false b'b' b'T' true 0 1187 [0 1160 1161 2478 2479 2903 2904 0] b'd' b'p' 0;
    1187 "_interval" -1 false b'b' b'A' false 1186 0 [6179 750 751 2400 2401 2903 2904 3816] b'd' b'x' 0;
    1231 "_numeric" -1 false b'b' b'A' false 1700 0 [6179 750 751 2400 2401 2917 2918 3816] b'i' b'x' 0;
    1263 "_cstring" -1 false b'b' b'A' false 2275 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    1266 "timetz" 12 false b'b' b'D' false 0 1270 [0 1350 1351 2472 2473 2911 2912 0] b'd' b'p' 0;
    1270 "_timetz" -1 false b'b' b'A' false 1266 0 [6179 750 751 2400 2401 2911 2912 3816] b'd' b'x' 0;
    1700 "numeric" -1 false b'b' b'N' false 0 1231 [0 1701 1702 2460 2461 2917 2918 0] b'i' b'm' 0;
    2202 "regprocedure" 4 true b'b' b'N' false 0 2207 [0 2212 2213 2446 2447 0 0 0] b'i' b'p' 0;
    2203 "regoper" 4 true b'b' b'N' false 0 2208 [0 2214 2215 2448 2449 0 0 0] b'i' b'p' 0;
    2205 "regclass" 4 true b'b' b'N' false 0 2210 [0 2218 2219 2452 2453 0 0 0] b'i' b'p' 0;
    2206 "regtype" 4 true b'b' b'N' false 0 2211 [0 2220 2221 2454 2455 0 0 0] b'i' b'p' 0;
    2207 "_regprocedure" -1 false b'b' b'A' false 2202 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    2208 "_regoper" -1 false b'b' b'A' false 2203 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    2210 "_regclass" -1 false b'b' b'A' false 2205 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    2211 "_regtype" -1 false b'b' b'A' false 2206 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    2249 "record" -1 false b'p' b'P' false 0 2287 [0 2290 2291 2402 2403 0 0 0] b'd' b'x' 0;
    2275 "cstring" -2 false b'p' b'P' false 0 1263 [0 2292 2293 2500 2501 0 0 0] b'c' b'p' 0;
    2276 "any" 4 true b'p' b'P' false 0 0 [0 2294 2295 0 0 0 0 0] b'i' b'p' 0;
    2277 "anyarray" -1 false b'p' b'P' false 0 0 [0 2296 2297 2502 2503 0 0 0] b'd' b'x' 0;
    2278 "void" 4 true b'p' b'P' false 0 0 [0 2298 2299 3120 3121 0 0 0] b'i' b'p' 0;
    2283 "anyelement" 4 true b'p' b'P' false 0 0 [0 2312 2313 0 0 0 0 0] b'i' b'p' 0;
    2287 "_record" -1 false b'p' b'P' false 2249 0 [6179 750 751 2400 2401 0 0 3816] b'd' b'x' 0;
    2776 "anynonarray" 4 true b'p' b'P' false 0 0 [0 2777 2778 0 0 0 0 0] b'i' b'p' 0;
    2950 "uuid" 16 false b'b' b'U' false 0 2951 [0 2952 2953 2961 2962 0 0 0] b'c' b'p' 0;
    2951 "_uuid" -1 false b'b' b'A' false 2950 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    3802 "jsonb" -1 false b'b' b'U' false 0 3807 [6098 3806 3804 3805 3803 0 0 0] b'i' b'x' 0;
    3807 "_jsonb" -1 false b'b' b'A' false 3802 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    4089 "regnamespace" 4 true b'b' b'N' false 0 4090 [0 4084 4085 4087 4088 0 0 0] b'i' b'p' 0;
    4090 "_regnamespace" -1 false b'b' b'A' false 4089 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    4096 "regrole" 4 true b'b' b'N' false 0 4097 [0 4098 4092 4094 4095 0 0 0] b'i' b'p' 0;
    4097 "_regrole" -1 false b'b' b'A' false 4096 0 [6179 750 751 2400 2401 0 0 3816] b'i' b'x' 0;
    5077 "anycompatible" 4 true b'p' b'P' false 0 0 [0 5086 5087 0 0 0 0 0] b'i' b'p' 0;
    5078 "anycompatiblearray" -1 false b'p' b'P' false 0 0 [0 5088 5089 5090 5091 0 0 0] b'd' b'x' 0;
    5079 "anycompatiblenonarray" 4 true b'p' b'P' false 0 0 [0 5092 5093 0 0 0 0 0] b'i' b'p' 0;
}

#[rustfmt::skip]
functions! {
    31 "byteaout" (17) 2275 b'i' true;
    33 "charout" (18) 2275 b'i' true;
    34 "namein" (2275) 19 b'i' true;
    35 "nameout" (19) 2275 b'i' true;
    38 "int2in" (2275) 21 b'i' true;
    39 "int2out" (21) 2275 b'i' true;
    40 "int2vectorin" (2275) 22 b'i' true;
    41 "int2vectorout" (22) 2275 b'i' true;
    42 "int4in" (2275) 23 b'i' true;
    43 "int4out" (23) 2275 b'i' true;
    44 "regprocin" (2275) 24 b's' true;
    45 "regprocout" (24) 2275 b's' true;
    46 "textin" (2275) 25 b'i' true;
    47 "textout" (25) 2275 b'i' true;
    50 "xidin" (2275) 28 b'i' true;
    51 "xidout" (28) 2275 b'i' true;
    52 "cidin" (2275) 29 b'i' true;
    53 "cidout" (29) 2275 b'i' true;
    54 "oidvectorin" (2275) 30 b'i' true;
    55 "oidvectorout" (30) 2275 b'i' true;
    109 "unknownin" (2275) 705 b'i' true;
    110 "unknownout" (705) 2275 b'i' true;
    195 "pg_node_tree_in" (2275) 194 b'i' true;
    196 "pg_node_tree_out" (194) 2275 b'i' true;
    197 "pg_node_tree_recv" (2281) 194 b's' true;
    198 "pg_node_tree_send" (194) 17 b's' true;
    200 "float4in" (2275) 700 b'i' true;
    201 "float4out" (700) 2275 b'i' true;
    214 "float8in" (2275) 701 b'i' true;
    215 "float8out" (701) 2275 b'i' true;
    321 "json_in" (2275) 114 b'i' true;
    322 "json_out" (114) 2275 b'i' true;
    323 "json_recv" (2281) 114 b'i' true;
    324 "json_send" (114) 17 b'i' true;
    460 "int8in" (2275) 20 b'i' true;
    461 "int8out" (20) 2275 b'i' true;
    750 "array_in" (2275 26 23) 2277 b's' true;
    751 "array_out" (2277) 2275 b's' true;
    910 "inet_in" (2275) 869 b'i' true;
    911 "inet_out" (869) 2275 b'i' true;
    1031 "aclitemin" (2275) 1033 b's' true;
    1032 "aclitemout" (1033) 2275 b's' true;
    1044 "bpcharin" (2275 26 23) 1042 b'i' true;
    1045 "bpcharout" (1042) 2275 b'i' true;
    1046 "varcharin" (2275 26 23) 1043 b'i' true;
    1047 "varcharout" (1043) 2275 b'i' true;
    1084 "date_in" (2275) 1082 b's' true;
    1085 "date_out" (1082) 2275 b's' true;
    1143 "time_in" (2275 26 23) 1083 b's' true;
    1144 "time_out" (1083) 2275 b'i' true;
    1150 "timestamptz_in" (2275 26 23) 1184 b's' true;
    1151 "timestamptz_out" (1184) 2275 b's' true;
    1160 "interval_in" (2275 26 23) 1186 b's' true;
    1161 "interval_out" (1186) 2275 b's' true;
    1242 "boolin" (2275) 16 b'i' true;
    1243 "boolout" (16) 2275 b'i' true;
    1244 "byteain" (2275) 17 b'i' true;
    1245 "charin" (2275) 18 b'i' true;
    1312 "timestamp_in" (2275 26 23) 1114 b's' true;
    1313 "timestamp_out" (1114) 2275 b's' true;
    1350 "timetz_in" (2275 26 23) 1266 b's' true;
    1351 "timetz_out" (1266) 2275 b'i' true;
    1701 "numeric_in" (2275 26 23) 1700 b'i' true;
    1702 "numeric_out" (1700) 2275 b'i' true;
    1798 "oidin" (2275) 26 b'i' true;
    1799 "oidout" (26) 2275 b'i' true;
    2212 "regprocedurein" (2275) 2202 b's' true;
    2213 "regprocedureout" (2202) 2275 b's' true;
    2214 "regoperin" (2275) 2203 b's' true;
    2215 "regoperout" (2203) 2275 b's' true;
    2218 "regclassin" (2275) 2205 b's' true;
    2219 "regclassout" (2205) 2275 b's' true;
    2220 "regtypein" (2275) 2206 b's' true;
    2221 "regtypeout" (2206) 2275 b's' true;
    2290 "record_in" (2275 26 23) 2249 b's' true;
    2291 "record_out" (2249) 2275 b's' true;
    2292 "cstring_in" (2275) 2275 b'i' true;
    2293 "cstring_out" (2275) 2275 b'i' true;
    2294 "any_in" (2275) 2276 b'i' true;
    2295 "any_out" (2276) 2275 b'i' true;
    2296 "anyarray_in" (2275) 2277 b'i' true;
    2297 "anyarray_out" (2277) 2275 b's' true;
    2298 "void_in" (2275) 2278 b'i' true;
    2299 "void_out" (2278) 2275 b'i' true;
    2312 "anyelement_in" (2275) 2283 b'i' true;
    2313 "anyelement_out" (2283) 2275 b'i' true;
    2400 "array_recv" (2281 26 23) 2277 b's' true;
    2401 "array_send" (2277) 17 b's' true;
    2402 "record_recv" (2281 26 23) 2249 b's' true;
    2403 "record_send" (2249) 17 b's' true;
    2404 "int2recv" (2281) 21 b'i' true;
    2405 "int2send" (21) 17 b'i' true;
    2406 "int4recv" (2281) 23 b'i' true;
    2407 "int4send" (23) 17 b'i' true;
    2408 "int8recv" (2281) 20 b'i' true;
    2409 "int8send" (20) 17 b'i' true;
    2410 "int2vectorrecv" (2281) 22 b'i' true;
    2411 "int2vectorsend" (22) 17 b'i' true;
    2412 "bytearecv" (2281) 17 b'i' true;
    2413 "byteasend" (17) 17 b'i' true;
    2414 "textrecv" (2281) 25 b's' true;
    2415 "textsend" (25) 17 b's' true;
    2416 "unknownrecv" (2281) 705 b'i' true;
    2417 "unknownsend" (705) 17 b'i' true;
    2418 "oidrecv" (2281) 26 b'i' true;
    2419 "oidsend" (26) 17 b'i' true;
    2420 "oidvectorrecv" (2281) 30 b'i' true;
    2421 "oidvectorsend" (30) 17 b'i' true;
    2422 "namerecv" (2281) 19 b's' true;
    2423 "namesend" (19) 17 b's' true;
    2424 "float4recv" (2281) 700 b'i' true;
    2425 "float4send" (700) 17 b'i' true;
    2426 "float8recv" (2281) 701 b'i' true;
    2427 "float8send" (701) 17 b'i' true;
    2430 "bpcharrecv" (2281 26 23) 1042 b's' true;
    2431 "bpcharsend" (1042) 17 b's' true;
    2432 "varcharrecv" (2281 26 23) 1043 b's' true;
    2433 "varcharsend" (1043) 17 b's' true;
    2434 "charrecv" (2281) 18 b'i' true;
    2435 "charsend" (18) 17 b'i' true;
    2436 "boolrecv" (2281) 16 b'i' true;
    2437 "boolsend" (16) 17 b'i' true;
    2440 "xidrecv" (2281) 28 b'i' true;
    2441 "xidsend" (28) 17 b'i' true;
    2442 "cidrecv" (2281) 29 b'i' true;
    2443 "cidsend" (29) 17 b'i' true;
    2444 "regprocrecv" (2281) 24 b'i' true;
    2445 "regprocsend" (24) 17 b'i' true;
    2446 "regprocedurerecv" (2281) 2202 b'i' true;
    2447 "regproceduresend" (2202) 17 b'i' true;
    2448 "regoperrecv" (2281) 2203 b'i' true;
    2449 "regopersend" (2203) 17 b'i' true;
    2452 "regclassrecv" (2281) 2205 b'i' true;
    2453 "regclasssend" (2205) 17 b'i' true;
    2454 "regtyperecv" (2281) 2206 b'i' true;
    2455 "regtypesend" (2206) 17 b'i' true;
    2460 "numeric_recv" (2281 26 23) 1700 b'i' true;
    2461 "numeric_send" (1700) 17 b'i' true;
    2468 "date_recv" (2281) 1082 b'i' true;
    2469 "date_send" (1082) 17 b'i' true;
    2470 "time_recv" (2281 26 23) 1083 b'i' true;
    2471 "time_send" (1083) 17 b'i' true;
    2472 "timetz_recv" (2281 26 23) 1266 b'i' true;
    2473 "timetz_send" (1266) 17 b'i' true;
    2474 "timestamp_recv" (2281 26 23) 1114 b'i' true;
    2475 "timestamp_send" (1114) 17 b'i' true;
    2476 "timestamptz_recv" (2281 26 23) 1184 b'i' true;
    2477 "timestamptz_send" (1184) 17 b'i' true;
    2478 "interval_recv" (2281 26 23) 1186 b'i' true;
    2479 "interval_send" (1186) 17 b'i' true;
    2496 "inet_recv" (2281) 869 b'i' true;
    2497 "inet_send" (869) 17 b'i' true;
    2500 "cstring_recv" (2281) 2275 b's' true;
    2501 "cstring_send" (2275) 17 b's' true;
    2502 "anyarray_recv" (2281) 2277 b's' true;
    2503 "anyarray_send" (2277) 17 b's' true;
    2777 "anynonarray_in" (2275) 2776 b'i' true;
    2778 "anynonarray_out" (2776) 2275 b'i' true;
    2903 "intervaltypmodin" (1263) 23 b'i' true;
    2904 "intervaltypmodout" (23) 2275 b'i' true;
    2905 "timestamptypmodin" (1263) 23 b'i' true;
    2906 "timestamptypmodout" (23) 2275 b'i' true;
    2907 "timestamptztypmodin" (1263) 23 b'i' true;
    2908 "timestamptztypmodout" (23) 2275 b'i' true;
    2909 "timetypmodin" (1263) 23 b'i' true;
    2910 "timetypmodout" (23) 2275 b'i' true;
    2911 "timetztypmodin" (1263) 23 b'i' true;
    2912 "timetztypmodout" (23) 2275 b'i' true;
    2913 "bpchartypmodin" (1263) 23 b'i' true;
    2914 "bpchartypmodout" (23) 2275 b'i' true;
    2915 "varchartypmodin" (1263) 23 b'i' true;
    2916 "varchartypmodout" (23) 2275 b'i' true;
    2917 "numerictypmodin" (1263) 23 b'i' true;
    2918 "numerictypmodout" (23) 2275 b'i' true;
    2952 "uuid_in" (2275) 2950 b'i' true;
    2953 "uuid_out" (2950) 2275 b'i' true;
    2961 "uuid_recv" (2281) 2950 b'i' true;
    2962 "uuid_send" (2950) 17 b'i' true;
    3120 "void_recv" (2281) 2278 b'i' true;
    3121 "void_send" (2278) 17 b'i' true;
    3803 "jsonb_send" (3802) 17 b'i' true;
    3804 "jsonb_out" (3802) 2275 b'i' true;
    3805 "jsonb_recv" (2281) 3802 b'i' true;
    3806 "jsonb_in" (2275) 3802 b'i' true;
    3816 "array_typanalyze" (2281) 16 b's' true;
    4084 "regnamespacein" (2275) 4089 b's' true;
    4085 "regnamespaceout" (4089) 2275 b's' true;
    4087 "regnamespacerecv" (2281) 4089 b'i' true;
    4088 "regnamespacesend" (4089) 17 b'i' true;
    4092 "regroleout" (4096) 2275 b's' true;
    4094 "regrolerecv" (2281) 4096 b'i' true;
    4095 "regrolesend" (4096) 17 b'i' true;
    4098 "regrolein" (2275) 4096 b's' true;
    5086 "anycompatible_in" (2275) 5077 b'i' true;
    5087 "anycompatible_out" (5077) 2275 b'i' true;
    5088 "anycompatiblearray_in" (2275) 5078 b'i' true;
    5089 "anycompatiblearray_out" (5078) 2275 b's' true;
    5090 "anycompatiblearray_recv" (2281) 5078 b's' true;
    5091 "anycompatiblearray_send" (5078) 17 b's' true;
    5092 "anycompatiblenonarray_in" (2275) 5079 b'i' true;
    5093 "anycompatiblenonarray_out" (5079) 2275 b'i' true;
    6098 "jsonb_subscript_handler" (2281) 2281 b'i' true;
    6179 "array_subscript_handler" (2281) 2281 b'i' true;
    6180 "raw_array_subscript_handler" (2281) 2281 b'i' true;
}
