//! Errors as a client of PostgreSQL sees them.
//!
//! Whatever refuses a statement, be it the grammar, a type or a transaction, says so in a
//! [`SqlError`]: programs branch on its [`SqlState`], people read the rest.

use std::fmt;

/// Five characters that name an error to programs: a class and a condition (SQL standard,
/// PostgreSQL's appendix A).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

macro_rules! states {
    ($($name:ident $code:literal),* $(,)?) => {
        impl SqlState {
            $(#[doc = concat!("`", $code, "`, as PostgreSQL names it.")]
            pub const $name: SqlState = {
                let code: &[u8] = $code.as_bytes();
                SqlState([code[0], code[1], code[2], code[3], code[4]])
            };)*
        }
    };
}

states! {
    FEATURE_NOT_SUPPORTED "0A000",
    PROTOCOL_VIOLATION "08P01",
    NUMERIC_VALUE_OUT_OF_RANGE "22003",
    NULL_VALUE_NOT_ALLOWED "22004",
    INVALID_DATETIME_FORMAT "22007",
    DATETIME_FIELD_OVERFLOW "22008",
    DIVISION_BY_ZERO "22012",
    STRING_DATA_RIGHT_TRUNCATION "22001",
    CHARACTER_NOT_IN_REPERTOIRE "22021",
    INTERNAL_ERROR "XX000",
    DATA_CORRUPTED "XX001",
    AMBIGUOUS_PARAMETER "42P08",
    DATA_EXCEPTION "22000",
    ARRAY_ELEMENT_ERROR "2202E",
    INVALID_ARGUMENT_FOR_LOGARITHM "2201E",
    INVALID_ARGUMENT_FOR_POWER_FUNCTION "2201F",
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET "2201G",
    INVALID_REGULAR_EXPRESSION "2201B",
    INVALID_ROW_COUNT_IN_LIMIT "2201W",
    INVALID_ROW_COUNT_IN_OFFSET "2201X",
    INVALID_TIME_ZONE_DISPLACEMENT "22009",
    INVALID_ESCAPE_SEQUENCE "22025",
    SUBSTRING_ERROR "22011",
    INTERVAL_FIELD_OVERFLOW "22015",
    ARRAY_SUBSCRIPT_ERROR "2202E",
    CARDINALITY_VIOLATION "21000",
    INVALID_PARAMETER_VALUE "22023",
    INVALID_TEXT_REPRESENTATION "22P02",
    INVALID_BINARY_REPRESENTATION "22P03",
    NONSTANDARD_USE_OF_ESCAPE_CHARACTER "22P06",
    ACTIVE_SQL_TRANSACTION "25001",
    IN_FAILED_SQL_TRANSACTION "25P02",
    NO_ACTIVE_SQL_TRANSACTION "25P01",
    INVALID_SQL_STATEMENT_NAME "26000",
    INVALID_AUTHORIZATION_SPECIFICATION "28000",
    INVALID_CURSOR_NAME "34000",
    INVALID_SAVEPOINT_SPECIFICATION "3B001",
    SYNTAX_ERROR "42601",
    INVALID_NAME "42602",
    AMBIGUOUS_FUNCTION "42725",
    UNDEFINED_COLUMN "42703",
    UNDEFINED_FUNCTION "42883",
    UNDEFINED_OBJECT "42704",
    AMBIGUOUS_COLUMN "42702",
    DUPLICATE_COLUMN "42701",
    TOO_MANY_COLUMNS "54011",
    DUPLICATE_TABLE "42P07",
    DUPLICATE_OBJECT "42710",
    INVALID_FOREIGN_KEY "42830",
    OBJECT_IN_USE "55006",
    GENERATED_ALWAYS "428C9",
    DEPENDENT_OBJECTS_STILL_EXIST "2BP01",
    SUCCESSFUL_COMPLETION "00000",
    INVALID_TABLE_DEFINITION "42P16",
    NOT_NULL_VIOLATION "23502",
    FOREIGN_KEY_VIOLATION "23503",
    UNIQUE_VIOLATION "23505",
    CHECK_VIOLATION "23514",
    READ_ONLY_SQL_TRANSACTION "25006",
    SERIALIZATION_FAILURE "40001",
    DISK_FULL "53100",
    BAD_COPY_FILE_FORMAT "22P04",
    INSUFFICIENT_PRIVILEGE "42501",
    DUPLICATE_ALIAS "42712",
    GROUPING_ERROR "42803",
    WINDOWING_ERROR "42P20",
    INVALID_RECURSION "42P19",
    WRONG_OBJECT_TYPE "42809",
    INVALID_COLUMN_REFERENCE "42P10",
    UNDEFINED_SCHEMA "3F000",
    UNTRANSLATABLE_CHARACTER "22P05",
    OUT_OF_MEMORY "53200",
    PROGRAM_LIMIT_EXCEEDED "54000",
    SEQUENCE_GENERATOR_LIMIT_EXCEEDED "2200H",
    TOO_MANY_ARGUMENTS "54023",
    UNDEFINED_PARAMETER "42P02",
    DUPLICATE_CURSOR "42P03",
    DUPLICATE_PREPARED_STATEMENT "42P05",
    UNDEFINED_TABLE "42P01",
    CANNOT_COERCE "42846",
    DATATYPE_MISMATCH "42804",
    INDETERMINATE_DATATYPE "42P18",
    TOO_MANY_CONNECTIONS "53300",
    STATEMENT_TOO_COMPLEX "54001",
    OBJECT_NOT_IN_PREREQUISITE_STATE "55000",
    LOCK_NOT_AVAILABLE "55P03",
    CANT_CHANGE_RUNTIME_PARAM "55P02",
    QUERY_CANCELED "57014",
    ADMIN_SHUTDOWN "57P01",
    CANNOT_CONNECT_NOW "57P03",
}

impl SqlState {
    /// The five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much an error or a notice ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The statement.
    Error,
    /// The session.
    Fatal,
    /// Nothing: something that people may want to know.
    Warning,
    /// Nothing: something that is usual.
    Notice,
}

/// An error or a notice, with the fields of an ErrorResponse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqlError {
    /// What it ends.
    pub severity: Severity,
    /// What programs branch on.
    pub state: SqlState,
    /// One line for people.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1.
    pub position: Option<u32>,
    /// Where in what was being done, such as a line of a COPY.
    pub context: Option<String>,
    /// What it is about.
    pub subject: Option<Box<Subject>>,
}

/// What an error is about, for programs. What is empty is not said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Subject {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// A column of it.
    pub column: String,
    /// A constraint of it.
    pub constraint: String,
}

impl SqlError {
    /// An error that ends the statement.
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError {
            severity: Severity::Error,
            state,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            subject: None,
        }
    }

    /// An error that ends the session.
    pub fn fatal(state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError { severity: Severity::Fatal, ..SqlError::new(state, message) }
    }

    /// The same with more about it.
    pub fn detail(self, detail: impl Into<String>) -> SqlError {
        SqlError { detail: Some(detail.into()), ..self }
    }

    /// The same with what to do.
    pub fn hint(self, hint: impl Into<String>) -> SqlError {
        SqlError { hint: Some(hint.into()), ..self }
    }

    /// The same with what it is about.
    pub fn about(self, subject: Subject) -> SqlError {
        SqlError { subject: Some(Box::new(subject)), ..self }
    }

    /// The same with a place in the statement, in characters from 1. An error that has a place
    /// keeps it: what is deepest knows best.
    pub fn at(self, position: u32) -> SqlError {
        SqlError { position: self.position.or(Some(position)), ..self }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.state.as_str(), self.message)
    }
}

impl std::error::Error for SqlError {}
