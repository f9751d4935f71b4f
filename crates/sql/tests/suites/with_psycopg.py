"""What psycopg 3 finds: connecting, types in text and binary, prepared statements, transactions,
COPY, errors, the catalog. What it prints has to be the same of every server."""

import datetime
import decimal
import struct
import sys
import uuid

import psycopg
from psycopg.types import TypeInfo
from psycopg.types.composite import CompositeInfo
from psycopg.types.enum import EnumInfo
from psycopg.types.range import RangeInfo


def say(label, call):
    try:
        print(label, repr(call()))
    except psycopg.Error as error:
        primary = error.diag.message_primary if error.diag.sqlstate else str(error)
        print(label, type(error).__name__, error.sqlstate, primary)


VALUES = [
    True, 7, -(2**40), 1.5, decimal.Decimal("12.340"), "it's", "", None, b"\x00\xff", datetime.date(2024, 2, 29),
    datetime.time(12, 34, 56, 789), datetime.datetime(2024, 2, 29, 12, 34, 56),
    datetime.datetime(2024, 2, 29, 12, 34, 56, tzinfo=datetime.timezone.utc),
    datetime.timedelta(days=3, seconds=4), uuid.UUID(int=5), [1, None, 3], ["a,b", 'c"d'], [[1, 2], [3, 4]],
]


def types(connection):
    for binary in (False, True):
        for value in VALUES:
            mark = "%b" if binary else "%t"
            say(f"{binary} {value!r}", lambda: connection.cursor(binary=binary).execute(f"SELECT {mark}", [value]).fetchone())
    for literal in ("1::int2", "1::int4", "1::int8", "1::oid", "1::float4", "1::float8", "1.50::numeric", "'a'::name",
                    "'a'::char(3)", "'a'::\"char\"", "'1 day'::interval", "'infinity'::date", "'{1,2}'::int2[]", "'{a,NULL}'::text[]"):
        for binary in (False, True):
            say(f"{binary} {literal}", lambda: connection.cursor(binary=binary).execute(f"SELECT {literal}").fetchone())


def statements(connection):
    cursor = connection.cursor()
    for number in range(8):
        cursor.execute("SELECT %s::int + 1, %s::text", [number, str(number)], prepare=True)
    print("prepared", cursor.fetchone())
    cursor.execute("CREATE TABLE p3 (id int PRIMARY KEY, name text NOT NULL, amount numeric(10, 2), at timestamptz)")
    cursor.executemany("INSERT INTO p3 (id, name) VALUES (%s, %s)", [(number, f"n{number}") for number in range(5)])
    print("rowcount", cursor.rowcount)
    say("returning", lambda: cursor.execute("INSERT INTO p3 VALUES (9, 'x', 1.5) RETURNING id, amount").fetchone())
    say("update", lambda: cursor.execute("UPDATE p3 SET amount = id * 1.25 WHERE id < 3").rowcount)
    cursor.execute("SELECT * FROM p3 ORDER BY id")
    print([(column.name, column.type_code, column.precision, column.scale) for column in cursor.description])
    print(cursor.fetchmany(2), cursor.fetchall())
    with connection.pipeline():
        cursor.execute("SELECT 1")
        connection.execute("SELECT 2")
    say("null", lambda: cursor.execute("INSERT INTO p3 VALUES (10, NULL)"))
    say("unique", lambda: cursor.execute("INSERT INTO p3 VALUES (9, 'y')"))
    say("syntax", lambda: cursor.execute("SELEC 1"))
    say("table", lambda: cursor.execute("SELECT * FROM nosuch"))
    say("value", lambda: cursor.execute("SELECT %s::int", ["x"]))
    say("zero", lambda: cursor.execute("SELECT 1 / 0"))


def transactions(connection):
    with connection.transaction():
        connection.execute("INSERT INTO p3 VALUES (20, 'kept')")
        say("inner", lambda: failing(connection))
        connection.execute("INSERT INTO p3 VALUES (22, 'kept')")
    print([row[0] for row in connection.execute("SELECT id FROM p3 WHERE id >= 20 ORDER BY 1")])
    say("level", lambda: connection.execute("SHOW transaction_isolation").fetchone()[0] in ("serializable", "read committed"))


def failing(connection):
    with connection.transaction():
        connection.execute("INSERT INTO p3 VALUES (21, 'lost')")
        connection.execute("SELECT 1 / 0")


def copying(connection):
    cursor = connection.cursor()
    with cursor.copy("COPY p3 (id, name, amount) FROM STDIN") as copy:
        for number in range(100, 105):
            copy.write_row((number, f"tab\t{number}", None if number % 2 else decimal.Decimal(number) / 4))
    with cursor.copy("COPY p3 (id, name, amount) TO STDOUT") as copy:
        rows = sorted(bytes(row) for row in copy)
    print(rows)
    with cursor.copy("COPY p3 (id, name) FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        for number in range(110, 115):
            copy.write_row((number, f"binary {number}"))
    with cursor.copy("COPY (SELECT id, name FROM p3 WHERE id >= 110 ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        print(list(copy.rows()))
    row = struct.pack("!hi4si", 2, 4, b"\0\0\0\x78", -1)
    head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    for broken in (b"", b"PGCOPY\n", head[:12], head, head + row, head + row + b"\xff\xff", head + b"\0\1", head + row[:-2],
                   head + b"\xff\xff" + row, b"x" * 30, head[:11] + b"\0\1\0\0" + bytes(4), head[:11] + b"\0\2\0\0" + bytes(4),
                   head[:15] + b"\xff\xff\xff\xff", head + b"\0\2" + struct.pack("!i", -2), head + struct.pack("!hi2si", 2, 2, b"\0\1", -1),
                   head + struct.pack("!hi6si", 2, 6, bytes(6), -1), head + struct.pack("!hi4si1s", 2, 4, b"\0\0\0\x79", 1, b"\xff")):
        try:
            with connection.transaction():
                with cursor.copy("COPY p3 (id, name) FROM STDIN (FORMAT binary)") as copy:
                    copy.write(broken)
                print(cursor.rowcount)
                raise psycopg.Rollback()
        except psycopg.Error as error:
            print(error.sqlstate, error)
    with cursor.copy("COPY (SELECT 1, 'a') TO STDOUT WITH (FORMAT csv, HEADER)") as copy:
        print([bytes(row) for row in copy])


def catalog(connection):
    for name in ("int4", "text", "timestamptz", "nosuch"):
        say(name, lambda: TypeInfo.fetch(connection, name))
    for info in (CompositeInfo, EnumInfo, RangeInfo):
        say(info.__name__, lambda: info.fetch(connection, "nosuch"))
    say("composite", lambda: [getattr(CompositeInfo.fetch(connection, "p3"), name) for name in ("name", "field_names", "field_types")])
    say("regclass", lambda: connection.execute("SELECT %s::regclass::text, to_regclass(%s)", ["p3", "nosuch"]).fetchone())
    say("columns", lambda: connection.execute(
        "SELECT attname, atttypid::regtype::text, attnotnull FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        ["p3"]).fetchall())


def columns(connection):
    """Of which table's column a result is, and with which modifier: a cast makes it none's."""
    connection.execute("CREATE TABLE p3c (a int, v varchar(12), u varchar, n numeric(8,2), i interval second(2), c char(3))")
    for query in ("SELECT a, v, u, n, i, c FROM p3c", "SELECT a::int, v::varchar(12), u::varchar, n::numeric(8,2), c::char(3) FROM p3c",
                  "SELECT v::text, v::varchar, v::varchar(5), u::text, n::numeric, i::interval, c::bpchar, c::text FROM p3c",
                  "SELECT x.v, y.v::text FROM p3c x, (SELECT v FROM p3c) y", "SELECT DISTINCT v::text, a FROM p3c",
                  "SELECT u::text::varchar, u::varchar::varchar, a::int4::integer, v::varchar::varchar(12) FROM p3c",
                  "UPDATE p3c SET a = 1 RETURNING v, v::text, n, n::numeric"):
        result = connection.execute(query).pgresult
        print(query, [(result.ftable(at) > 0, result.ftablecol(at), result.fmod(at)) for at in range(result.nfields)])
    connection.execute("DROP TABLE p3c")


def main():
    with psycopg.connect(f"host=127.0.0.1 port={sys.argv[1]} user=postgres dbname=postgres", autocommit=True) as connection:
        info = connection.info
        print(info.server_version // 10000, info.encoding, info.timezone, info.parameter_status("integer_datetimes"))
        connection.execute("DROP TABLE IF EXISTS p3")
        for part in (types, statements, transactions, copying, catalog, columns):
            print("--", part.__name__)
            part(connection)
        connection.execute("DROP TABLE p3")


main()
