//! The types there are, by PostgreSQL's object identifiers.
//!
//! The table below is `pg_type` as PostgreSQL 15 has it, restricted to what is here. A type and the
//! array of it share a line, because an array is named by its element's type (`integer[]`). The
//! category and the preference steer the resolution of functions and operators.

/// A type by PostgreSQL's object identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Oid(pub u32);

/// What is known of a type.
#[derive(Debug)]
pub struct Type {
    /// The type.
    pub oid: Oid,
    /// Its name in the catalog, such as `int4`; results are named after it.
    pub name: &'static str,
    /// Its name in SQL, such as `integer`; messages have it.
    pub display: &'static str,
    /// The array of it, [`Oid::NONE`] if there is none.
    pub array: Oid,
    /// Bytes of a value, -1 if they vary.
    pub size: i16,
    /// What implicit casts may stay within: `N` numbers, `S` strings, `D` dates, ...
    pub category: u8,
    /// Whether it is the type to choose of its category.
    pub preferred: bool,
}

macro_rules! types {
    ($($oid:literal $constant:ident $array:literal $name:literal $display:literal $size:literal
        $category:literal $preferred:literal;)*) => {
        impl Oid {
            $(#[doc = concat!("`", $display, "`")]
            pub const $constant: Oid = Oid($oid);)*
        }

        static TYPES: &[Type] = &[
            $(Type {
                oid: Oid($oid),
                name: $name,
                display: $display,
                array: Oid($array),
                size: $size,
                category: $category,
                preferred: $preferred,
            },)*
        ];
    };
}

types! {
    16 BOOL 1000 "bool" "boolean" 1 b'B' true;
    17 BYTEA 1001 "bytea" "bytea" -1 b'U' false;
    18 CHAR 1002 "char" "\"char\"" 1 b'Z' false;
    19 NAME 1003 "name" "name" 64 b'S' false;
    20 INT8 1016 "int8" "bigint" 8 b'N' false;
    21 INT2 1005 "int2" "smallint" 2 b'N' false;
    22 INT2VECTOR 1006 "int2vector" "int2vector" -1 b'A' false;
    23 INT4 1007 "int4" "integer" 4 b'N' false;
    24 REGPROC 1008 "regproc" "regproc" 4 b'N' false;
    25 TEXT 1009 "text" "text" -1 b'S' true;
    26 OID 1028 "oid" "oid" 4 b'N' true;
    28 XID 1011 "xid" "xid" 4 b'U' false;
    29 CID 1012 "cid" "cid" 4 b'U' false;
    30 OIDVECTOR 1013 "oidvector" "oidvector" -1 b'A' false;
    114 JSON 199 "json" "json" -1 b'U' false;
    194 PG_NODE_TREE 0 "pg_node_tree" "pg_node_tree" -1 b'Z' false;
    700 FLOAT4 1021 "float4" "real" 4 b'N' false;
    701 FLOAT8 1022 "float8" "double precision" 8 b'N' true;
    705 UNKNOWN 0 "unknown" "unknown" -2 b'X' false;
    869 INET 1041 "inet" "inet" -1 b'I' true;
    1033 ACLITEM 1034 "aclitem" "aclitem" 12 b'U' false;
    1042 BPCHAR 1014 "bpchar" "character" -1 b'S' false;
    1043 VARCHAR 1015 "varchar" "character varying" -1 b'S' false;
    1082 DATE 1182 "date" "date" 4 b'D' false;
    1083 TIME 1183 "time" "time without time zone" 8 b'D' false;
    1114 TIMESTAMP 1115 "timestamp" "timestamp without time zone" 8 b'D' false;
    1184 TIMESTAMPTZ 1185 "timestamptz" "timestamp with time zone" 8 b'D' true;
    1186 INTERVAL 1187 "interval" "interval" 16 b'T' true;
    1266 TIMETZ 1270 "timetz" "time with time zone" 12 b'D' false;
    1700 NUMERIC 1231 "numeric" "numeric" -1 b'N' false;
    2202 REGPROCEDURE 2207 "regprocedure" "regprocedure" 4 b'N' false;
    2203 REGOPER 2208 "regoper" "regoper" 4 b'N' false;
    2205 REGCLASS 2210 "regclass" "regclass" 4 b'N' false;
    2206 REGTYPE 2211 "regtype" "regtype" 4 b'N' false;
    2249 RECORD 2287 "record" "record" -1 b'P' false;
    2275 CSTRING 1263 "cstring" "cstring" -2 b'P' false;
    2276 ANY 0 "any" "\"any\"" 4 b'P' false;
    2277 ANY_ARRAY 0 "anyarray" "anyarray" -1 b'P' false;
    2278 VOID 0 "void" "void" 4 b'P' false;
    2283 ANY_ELEMENT 0 "anyelement" "anyelement" 4 b'P' false;
    2776 ANY_NONARRAY 0 "anynonarray" "anynonarray" 4 b'P' false;
    2950 UUID 2951 "uuid" "uuid" 16 b'U' false;
    3802 JSONB 3807 "jsonb" "jsonb" -1 b'U' false;
    4089 REGNAMESPACE 4090 "regnamespace" "regnamespace" 4 b'N' false;
    4096 REGROLE 4097 "regrole" "regrole" 4 b'N' false;
    5077 ANY_COMPATIBLE 0 "anycompatible" "anycompatible" 4 b'P' false;
    5078 ANY_COMPATIBLE_ARRAY 0 "anycompatiblearray" "anycompatiblearray" -1 b'P' false;
    5079 ANY_COMPATIBLE_NONARRAY 0 "anycompatiblenonarray" "anycompatiblenonarray" 4 b'P' false;
}

impl Oid {
    /// No type, or one that is still to be found out.
    pub const NONE: Oid = Oid(0);

    /// Rows of an element and its number, where the element's type is that of an argument.
    pub const EXPANDED: Oid = Oid(u32::MAX - Oid::ANY_ELEMENT.0);
    /// The rows of `pg_get_keywords()`.
    pub const KEYWORD_ROW: Oid = Oid(u32::MAX);

    /// `boolean[]`
    pub const BOOL_ARRAY: Oid = Oid(1000);
    /// `"char"[]`
    pub const CHAR_ARRAY: Oid = Oid(1002);
    /// `smallint[]`
    pub const INT2_ARRAY: Oid = Oid(1005);
    /// `oid[]`
    pub const OID_ARRAY: Oid = Oid(1028);
    /// `real[]`
    pub const FLOAT4_ARRAY: Oid = Oid(1021);
    /// `aclitem[]`
    pub const ACLITEM_ARRAY: Oid = Oid(1034);
    /// `regtype[]`
    pub const REGTYPE_ARRAY: Oid = Oid(2211);
    /// `text[]`
    pub const TEXT_ARRAY: Oid = Oid(1009);
    /// `integer[]`
    pub const INT4_ARRAY: Oid = Oid(1007);
    /// `bigint[]`
    pub const INT8_ARRAY: Oid = Oid(1016);
    /// `name[]`
    pub const NAME_ARRAY: Oid = Oid(1003);
    /// `double precision[]`
    pub const FLOAT8_ARRAY: Oid = Oid(1022);
    /// `numeric[]`
    pub const NUMERIC_ARRAY: Oid = Oid(1231);

    /// What is known of this type; nothing of an array, whose element is known.
    pub fn definition(self) -> Option<&'static Type> {
        if self.fields().is_some() {
            return Oid::RECORD.definition();
        }
        TYPES.binary_search_by_key(&self, |row| row.oid).ok().and_then(|place| TYPES.get(place))
    }

    /// The type of an array's elements.
    pub fn element(self) -> Option<Oid> {
        match self {
            Oid::INT2VECTOR => Some(Oid::INT2),
            Oid::OIDVECTOR => Some(Oid::OID),
            _ => TYPES.iter().find(|row| row.array == self && self != Oid::NONE).map(|row| row.oid),
        }
    }

    /// Whether it is an array whose text form has no braces, and whose first element is number 0.
    pub fn is_vector(self) -> bool {
        matches!(self, Oid::INT2VECTOR | Oid::OIDVECTOR)
    }

    /// The type of rows of an element and its number, which `_pg_expandarray()` makes.
    pub fn numbered(element: Oid) -> Oid {
        Oid(u32::MAX - element.0)
    }

    /// The fields of rows of this type, if they are known: such a type is none of PostgreSQL's, and
    /// clients see it as [`Oid::RECORD`].
    pub fn fields(self) -> Option<Vec<(&'static str, Oid)>> {
        match self {
            Oid::KEYWORD_ROW => Some(vec![
                ("word", Oid::TEXT),
                ("catcode", Oid::CHAR),
                ("barelabel", Oid::BOOL),
                ("catdesc", Oid::TEXT),
                ("baredesc", Oid::TEXT),
            ]),
            _ if self.0 > u32::MAX - FIRST_USER => {
                Some(vec![("x", Oid(u32::MAX - self.0)), ("n", Oid::INT4)])
            }
            _ => None,
        }
    }

    /// The type as clients see it.
    pub fn shown(self) -> Oid {
        if self.fields().is_some() { Oid::RECORD } else { self }
    }

    /// Whether its values are identifiers that are shown as the names of what they identify.
    pub fn is_reference(self) -> bool {
        matches!(
            self,
            Oid::REGPROC
                | Oid::REGPROCEDURE
                | Oid::REGOPER
                | Oid::REGCLASS
                | Oid::REGTYPE
                | Oid::REGNAMESPACE
                | Oid::REGROLE
        )
    }

    /// All types but arrays.
    pub fn all() -> impl Iterator<Item = &'static Type> {
        TYPES.iter()
    }

    /// The type of arrays of this type; an array's is its own.
    pub fn array(self) -> Option<Oid> {
        match self.definition() {
            Some(row) if row.array != Oid::NONE => Some(row.array),
            Some(_) => None,
            None => self.element().map(|_| self),
        }
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.element().is_some()
    }

    /// The name that messages have: `integer`, `text[]`.
    pub fn display(self) -> String {
        match (self.definition(), self.element()) {
            (Some(row), _) => row.display.to_owned(),
            (None, Some(element)) => format!("{}[]", element.display()),
            (None, None) => format!("{}", self.0),
        }
    }

    /// The name in the catalog: `int4`, `_text`.
    pub fn catalog_name(self) -> String {
        match (self.definition(), self.element()) {
            (Some(row), _) => row.name.to_owned(),
            (None, Some(element)) => format!("_{}", element.catalog_name()),
            (None, None) => format!("{}", self.0),
        }
    }

    /// The category that implicit casts stay within.
    pub fn category(self) -> u8 {
        self.definition().map_or(if self.is_array() { b'A' } else { b'U' }, |row| row.category)
    }

    /// Whether it is the type to choose of its category.
    pub fn is_preferred(self) -> bool {
        self.definition().is_some_and(|row| row.preferred)
    }

    /// Whether it stands for other types in a function's signature.
    pub fn is_polymorphic(self) -> bool {
        matches!(
            self,
            Oid::ANY
                | Oid::ANY_ELEMENT
                | Oid::ANY_ARRAY
                | Oid::ANY_NONARRAY
                | Oid::ANY_COMPATIBLE
                | Oid::ANY_COMPATIBLE_ARRAY
                | Oid::ANY_COMPATIBLE_NONARRAY
        )
    }

    /// The type of a name in messages.
    pub fn displayed(name: &str) -> Option<Oid> {
        TYPES.iter().find(|row| row.display == name).map(|row| row.oid)
    }

    /// The type of a name in the catalog.
    pub fn named(name: &str) -> Option<Oid> {
        if let Some(element) = name.strip_prefix('_') {
            return Oid::named(element).and_then(Oid::array);
        }
        TYPES.iter().find(|row| row.name == name).map(|row| row.oid)
    }
}

/// The first identifier that is not PostgreSQL's own.
const FIRST_USER: u32 = 16_384;

/// Bytes of a value of this type, -1 if they vary: a column's size in a RowDescription.
pub fn type_size(oid: Oid) -> i16 {
    oid.definition().map_or(-1, |row| row.size)
}
