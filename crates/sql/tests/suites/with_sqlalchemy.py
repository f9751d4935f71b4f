"""What SQLAlchemy's core finds: tables made, filled, read and reflected from the catalog. What it
prints has to be the same of every server."""

import datetime
import decimal
import sys

import sqlalchemy as sa


def say(label, call):
    try:
        print(label, call())
    except sa.exc.DBAPIError as error:
        print(label, type(error).__name__, error.orig.sqlstate, error.orig.diag.message_primary)


engine = sa.create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{sys.argv[1]}/postgres")
metadata = sa.MetaData()
account = sa.Table(
    "sa_account", metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.String(20), nullable=False, server_default="nobody"),
    sa.Column("balance", sa.Numeric(10, 2)), sa.Column("opened", sa.DateTime(timezone=True)),
    sa.Column("active", sa.Boolean), sa.Column("rate", sa.Float), sa.Column("picture", sa.LargeBinary),
    sa.Column("tags", sa.ARRAY(sa.Text)), sa.Column("day", sa.Date),
)
entry = sa.Table(
    "sa_entry", metadata,
    sa.Column("account", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("amount", sa.Numeric(10, 2)),
)
metadata.drop_all(engine)
metadata.create_all(engine)
metadata.create_all(engine)
with engine.begin() as connection:
    connection.execute(account.insert(), [
        {"id": 1, "owner": "Ada", "balance": decimal.Decimal("1.50"), "active": True, "rate": 0.5, "picture": b"\x00", "tags": ["a"]},
        {"id": 2, "owner": "Ben", "balance": None, "active": False, "rate": None, "picture": None, "tags": None},
    ])
    connection.execute(entry.insert(), [{"account": 1, "number": n, "amount": n} for n in range(3)])
with engine.connect() as connection:
    joined = sa.select(account.c.owner, sa.func.sum(entry.c.amount)).join_from(account, entry, account.c.id == entry.c.account)
    print(connection.execute(joined.group_by(account.c.owner)).all())
    print(connection.execute(sa.select(account).order_by(account.c.id)).all())
    print(connection.scalar(sa.select(sa.func.count()).select_from(account).where(account.c.owner.like("A%"))))
    say("unique", lambda: connection.execute(account.insert(), {"id": 1, "owner": "x"}))
    connection.rollback()
    say("returning", lambda: connection.execute(account.update().where(account.c.id == 2).values(day=datetime.date(2024, 2, 29)).returning(account.c.day)).all())
    connection.commit()
inspector = sa.inspect(engine)
say("schemas", inspector.get_schema_names)
say("tables", lambda: sorted(name for name in inspector.get_table_names() if name.startswith("sa_")))
say("views", inspector.get_view_names)
say("sequences", inspector.get_sequence_names)
say("has", lambda: (inspector.has_table("sa_entry"), inspector.has_table("nosuch")))
for table in ("sa_account", "sa_entry"):
    say("columns", lambda: [(c["name"], repr(c["type"]), c["nullable"], c["default"]) for c in inspector.get_columns(table)])
    say("primary", lambda: inspector.get_pk_constraint(table))
    say("foreign", lambda: inspector.get_foreign_keys(table))
    say("indexes", lambda: inspector.get_indexes(table))
    say("unique", lambda: inspector.get_unique_constraints(table))
    say("checks", lambda: inspector.get_check_constraints(table))
    say("comment", lambda: inspector.get_table_comment(table))
    say("options", lambda: inspector.get_table_options(table))
say("enums", inspector.get_enums)
reflected = sa.MetaData()
reflected.reflect(engine, only=["sa_account", "sa_entry"])
for table in reflected.sorted_tables:
    print(table.name, [(column.name, str(column.type), column.primary_key) for column in table.columns])
metadata.drop_all(engine)
