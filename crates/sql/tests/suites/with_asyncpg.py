"""What asyncpg finds, which speaks the binary protocol only and looks types up in the catalog. What
it prints has to be the same of every server."""

import asyncio
import datetime
import decimal
import io
import sys
import uuid

import asyncpg


async def say(label, call):
    try:
        print(label, repr(await call()))
    except asyncpg.PostgresError as error:
        print(label, type(error).__name__, error.sqlstate, error.message)


VALUES = [
    ("bool", True), ("int2", 3), ("int4", -7), ("int8", 2**40), ("float4", 1.5), ("float8", 0.1),
    ("numeric", decimal.Decimal("12.340")), ("text", "it's"), ("varchar(3)", "abc"), ("bytea", b"\x00\xff"),
    ("date", datetime.date(2024, 2, 29)), ("time", datetime.time(12, 34, 56, 789)),
    ("timestamp", datetime.datetime(2024, 2, 29, 12)),
    ("timestamptz", datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)),
    ("interval", datetime.timedelta(days=3, seconds=4)), ("uuid", uuid.UUID(int=5)), ("int4[]", [1, None, 3]),
    ("text[]", ["a,b", 'c"d']), ("int4[]", [[1, 2], [3, 4]]), ("oid", 26), ("name", "n"),
]


async def main():
    connection = await asyncpg.connect(host="127.0.0.1", port=int(sys.argv[1]), user="postgres", database="postgres")
    print(connection.get_server_version().major, connection.get_settings().server_encoding)
    await connection.execute("DROP TABLE IF EXISTS ap")
    for name, value in VALUES:
        await say(name, lambda: connection.fetchval(f"SELECT $1::{name}", value))
    await connection.execute("CREATE TABLE ap (id int PRIMARY KEY, name text NOT NULL, amount numeric, tags text[])")
    await connection.executemany("INSERT INTO ap VALUES ($1, $2, $3, $4)", [(n, f"n{n}", decimal.Decimal(n) / 4, [str(n)]) for n in range(5)])
    await say("rows", lambda: connection.fetch("SELECT * FROM ap WHERE id = ANY($1::int[]) ORDER BY id", [1, 3, 9]))
    await say("status", lambda: connection.execute("UPDATE ap SET name = name || 'x' WHERE id > 2"))
    await say("null", lambda: connection.execute("INSERT INTO ap VALUES (9, NULL)"))
    await say("unique", lambda: connection.execute("INSERT INTO ap VALUES (1, 'x')"))
    await say("zero", lambda: connection.fetchval("SELECT 1 / $1::int", 0))
    await say("table", lambda: connection.fetch("SELECT * FROM nosuch"))
    async with connection.transaction(isolation="serializable"):
        await connection.execute("INSERT INTO ap VALUES (7, 'seven')")
        try:
            async with connection.transaction():
                await connection.execute("INSERT INTO ap VALUES (8, 'eight')")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        cursor = await connection.cursor("SELECT id FROM ap ORDER BY id")
        print([row["id"] for row in await cursor.fetch(3)], [row["id"] for row in await cursor.fetch(9)])
    statement = await connection.prepare("SELECT id, name, amount FROM ap WHERE id > $1 ORDER BY id")
    print(statement.get_parameters(), [(a.name, a.type.name) for a in statement.get_attributes()])
    print(await statement.fetch(3))
    await say("copy", lambda: connection.copy_to_table("ap", source=rows(), columns=["id", "name"], format="csv"))
    records = [(number, f"binary {number}", None) for number in range(300, 305)]
    await say("binary", lambda: connection.copy_records_to_table("ap", records=records, columns=["id", "name", "amount"]))
    out = io.BytesIO()
    query = "SELECT id, name, amount FROM ap WHERE id >= 300 ORDER BY id"
    await say("binary out", lambda: connection.copy_from_query(query, output=out, format="binary"))
    print(out.getvalue())
    await say("count", lambda: connection.fetchval("SELECT count(*) FROM ap"))
    # Types that it does not know by itself.
    await say("row", lambda: connection.fetchval("SELECT row(1, 'a'::text)"))
    await say("vector", lambda: connection.fetchval("SELECT '1 2'::int2vector"))
    await say("class", lambda: connection.fetchval("SELECT 'ap'::regclass::text"))
    await say("rights", lambda: connection.fetchval("SELECT nspacl FROM pg_namespace WHERE nspname = 'pg_catalog'"))
    found, _ = await connection._introspect_types([1034, 22, 1009], 10)
    print(sorted((row["name"], row["kind"], row["elemtype_name"]) for row in found))
    await connection.execute("DROP TABLE ap")
    await say("reset", connection.reset)
    await connection.close()


def rows():
    return __import__("io").BytesIO(b"50,fifty\n51,\"fifty, one\"\n")


asyncio.run(main())
