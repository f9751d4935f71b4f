//! Schemas, databases, roles, settings: what is there besides tables.

use super::{NULL, Row, Sight, char, int4, none, numbers, oid, relations, text, yes};
use crate::types::{Array, Datum, Oid};

#[rustfmt::skip]
relations! { PG_CATALOG:
    1261 2843 b'r' "pg_auth_members" none:
        roleid! OID, member! OID, grantor! OID, admin_option! BOOL;
    1260 2842 b'r' "pg_authid" role_list:
        oid! OID, rolname! NAME, rolsuper! BOOL, rolinherit! BOOL, rolcreaterole! BOOL,
        rolcreatedb! BOOL, rolcanlogin! BOOL, rolreplication! BOOL, rolbypassrls! BOOL,
        rolconnlimit! INT4, rolpassword TEXT, rolvaliduntil TIMESTAMPTZ;
    12081 12083 b'v' "pg_available_extensions" none:
        name NAME, default_version TEXT, installed_version TEXT, comment TEXT;
    1262 1248 b'r' "pg_database" databases:
        oid! OID, datname! NAME, datdba! OID, encoding! INT4, datlocprovider! CHAR,
        datistemplate! BOOL, datallowconn! BOOL, datconnlimit! INT4, datfrozenxid! XID,
        datminmxid! XID, dattablespace! OID, datcollate! TEXT, datctype! TEXT, daticulocale TEXT,
        datcollversion TEXT, datacl ACLITEM_ARRAY;
    2964 10054 b'r' "pg_db_role_setting" none:
        setdatabase! OID, setrole! OID, setconfig TEXT_ARRAY;
    826 10088 b'r' "pg_default_acl" none:
        oid! OID, defaclrole! OID, defaclnamespace! OID, defaclobjtype! CHAR,
        defaclacl! ACLITEM_ARRAY;
    3079 10074 b'r' "pg_extension" none:
        oid! OID, extname! NAME, extowner! OID, extnamespace! OID, extrelocatable! BOOL,
        extversion! TEXT, extconfig OID_ARRAY, extcondition TEXT_ARRAY;
    12010 12012 b'v' "pg_group" none:
        groname NAME, grosysid OID, grolist OID_ARRAY;
    3394 10090 b'r' "pg_init_privs" none:
        objoid! OID, classoid! OID, objsubid! INT4, privtype! CHAR, initprivs! ACLITEM_ARRAY;
    2995 10023 b'r' "pg_largeobject_metadata" none:
        oid! OID, lomowner! OID, lomacl ACLITEM_ARRAY;
    2615 10047 b'r' "pg_namespace" schemas (Nothing):
        oid! OID, nspname! NAME, nspowner! OID, nspacl ACLITEM_ARRAY;
    6243 10097 b'r' "pg_parameter_acl" none:
        oid! OID, parname! TEXT, paracl ACLITEM_ARRAY;
    12000 12002 b'v' "pg_roles" roles:
        rolname NAME, rolsuper BOOL, rolinherit BOOL, rolcreaterole BOOL, rolcreatedb BOOL,
        rolcanlogin BOOL, rolreplication BOOL, rolconnlimit INT4, rolpassword TEXT,
        rolvaliduntil TIMESTAMPTZ, rolbypassrls BOOL, rolconfig TEXT_ARRAY, oid OID;
    12104 12106 b'v' "pg_settings" settings (Session):
        name TEXT, setting TEXT, unit TEXT, category TEXT, short_desc TEXT, extra_desc TEXT,
        context TEXT, vartype TEXT, source TEXT, min_val TEXT, max_val TEXT, enumvals TEXT_ARRAY,
        boot_val TEXT, reset_val TEXT, sourcefile TEXT, sourceline INT4, pending_restart BOOL;
    12005 12007 b'v' "pg_shadow" users:
        usename NAME, usesysid OID, usecreatedb BOOL, usesuper BOOL, userepl BOOL,
        usebypassrls BOOL, passwd TEXT, valuntil TIMESTAMPTZ, useconfig TEXT_ARRAY;
    1213 10056 b'r' "pg_tablespace" tablespaces (Nothing):
        oid! OID, spcname! NAME, spcowner! OID, spcacl ACLITEM_ARRAY, spcoptions TEXT_ARRAY;
    12014 12016 b'v' "pg_user" users:
        usename NAME, usesysid OID, usecreatedb BOOL, usesuper BOOL, userepl BOOL,
        usebypassrls BOOL, passwd TEXT, valuntil TIMESTAMPTZ, useconfig TEXT_ARRAY;
}

/// `pg_namespace`
fn schemas(_: &Sight<'_>) -> Vec<Row> {
    let row = |(number, name): (u32, &'static str)| {
        let list = match number {
            numbers::PUBLIC => Some("{pg_database_owner=UC/pg_database_owner,=U/pg_database_owner}"),
            numbers::PG_TOAST => None,
            _ => Some("{postgres=UC/postgres,=U/postgres}"),
        };
        let owner = if number == numbers::PUBLIC { numbers::DATABASE_OWNER } else { numbers::OWNER };
        vec![oid(number), text(name), oid(owner), list.map_or(NULL, access_list)]
    };
    numbers::SCHEMAS.into_iter().map(row).collect()
}

/// Who may do what, as `aclitem[]` is written.
fn access_list(list: &str) -> Datum {
    let items = list.trim_matches(['{', '}']).split(',');
    Array::flat(Oid::ACLITEM, items.map(text).collect())
}

/// `pg_database`: the one that the session is in.
fn databases(sight: &Sight<'_>) -> Vec<Row> {
    vec![vec![
        oid(numbers::DATABASE),
        text(sight.session.database()),
        oid(numbers::OWNER),
        int4(6),
        char(b'c'),
        yes(false),
        yes(true),
        int4(-1),
        oid(1),
        oid(1),
        oid(numbers::TABLESPACE),
        text("C"),
        text("C"),
        NULL,
        NULL,
        NULL,
    ]]
}

/// `pg_tablespace`
fn tablespaces(_: &Sight<'_>) -> Vec<Row> {
    let row =
        |(number, name): (u32, &'static str)| vec![oid(number), text(name), oid(numbers::OWNER), NULL, NULL];
    [(numbers::TABLESPACE, "pg_default"), (1664, "pg_global")].into_iter().map(row).collect()
}

/// A role.
struct Role {
    number: u32,
    name: String,
    is_real: bool,
}

/// The owner of all, who the session is, and the role that stands for a database's owner.
fn all_roles(sight: &Sight<'_>) -> Vec<Role> {
    let role = |number: u32, name: &str| Role { number, name: name.to_owned(), is_real: true };
    let mut roles = vec![role(numbers::OWNER, "postgres")];
    if sight.session.user() != "postgres" {
        roles.push(role(numbers::GUEST, sight.session.user()));
    }
    roles.push(Role { is_real: false, ..role(numbers::DATABASE_OWNER, "pg_database_owner") });
    roles
}

/// `pg_authid`
fn role_list(sight: &Sight<'_>) -> Vec<Row> {
    let row = |role: Role| {
        let may = || yes(role.is_real);
        let mut row = vec![oid(role.number), text(role.name.as_str()), may(), yes(true)];
        row.extend([may(), may(), may(), may(), may(), int4(-1), NULL, NULL]);
        row
    };
    all_roles(sight).into_iter().map(row).collect()
}

/// `pg_roles`
fn roles(sight: &Sight<'_>) -> Vec<Row> {
    let row = |role: Role| {
        let may = || yes(role.is_real);
        let mut row = vec![text(role.name.as_str()), may(), yes(true), may(), may(), may(), may()];
        row.extend([int4(-1), text("********"), NULL, may(), NULL, oid(role.number)]);
        row
    };
    all_roles(sight).into_iter().map(row).collect()
}

/// `pg_user`, `pg_shadow`
fn users(sight: &Sight<'_>) -> Vec<Row> {
    let row = |role: Role| {
        let mut row = vec![text(role.name.as_str()), oid(role.number)];
        row.extend([yes(true), yes(true), yes(true), yes(true), text("********"), NULL, NULL]);
        row
    };
    all_roles(sight).into_iter().filter(|role| role.is_real).map(row).collect()
}

/// `pg_settings`
fn settings(sight: &Sight<'_>) -> Vec<Row> {
    let optional = |value: Option<String>| value.map_or(NULL, text);
    let row = |setting: crate::analyze::ShownSetting| {
        let choices = setting
            .choices
            .map(|choices| Array::flat(Oid::TEXT, choices.iter().map(|choice| text(*choice)).collect()));
        let source = if setting.value == setting.default { "default" } else { "session" };
        vec![
            text(setting.name),
            text(setting.value),
            setting.unit.map_or(NULL, text),
            text("Plimsoll"),
            text(setting.about),
            NULL,
            text(setting.context),
            text(setting.kind),
            text(source),
            optional(setting.least),
            optional(setting.greatest),
            choices.unwrap_or(NULL),
            text(setting.default.as_str()),
            text(setting.reset),
            NULL,
            NULL,
            yes(false),
        ]
    };
    sight.session.settings().into_iter().map(row).collect()
}
