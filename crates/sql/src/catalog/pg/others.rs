//! Relations without rows: what this database has not, and clients look for.

use super::{none, relations};

#[rustfmt::skip]
relations! { PG_CATALOG:
    2609 10041 b'r' "pg_description" none:
        objoid! OID, classoid! OID, objsubid! INT4, description! TEXT;
    3466 10039 b'r' "pg_event_trigger" none:
        oid! OID, evtname! NAME, evtevent! NAME, evtowner! OID, evtfoid! OID, evtenabled! CHAR,
        evttags TEXT_ARRAY;
    2328 10076 b'r' "pg_foreign_data_wrapper" none:
        oid! OID, fdwname! NAME, fdwowner! OID, fdwhandler! OID, fdwvalidator! OID,
        fdwacl ACLITEM_ARRAY, fdwoptions TEXT_ARRAY;
    1417 10078 b'r' "pg_foreign_server" none:
        oid! OID, srvname! NAME, srvowner! OID, srvfdw! OID, srvtype TEXT, srvversion TEXT,
        srvacl ACLITEM_ARRAY, srvoptions TEXT_ARRAY;
    3118 10082 b'r' "pg_foreign_table" none:
        ftrelid! OID, ftserver! OID, ftoptions TEXT_ARRAY;
    6104 10107 b'r' "pg_publication" none:
        oid! OID, pubname! NAME, pubowner! OID, puballtables! BOOL, pubinsert! BOOL,
        pubupdate! BOOL, pubdelete! BOOL, pubtruncate! BOOL, pubviaroot! BOOL;
    6237 10109 b'r' "pg_publication_namespace" none:
        oid! OID, pnpubid! OID, pnnspid! OID;
    6106 10111 b'r' "pg_publication_rel" none:
        oid! OID, prpubid! OID, prrelid! OID, prqual PG_NODE_TREE, prattrs INT2VECTOR;
    12068 12070 b'v' "pg_publication_tables" none:
        pubname NAME, schemaname NAME, tablename NAME, attnames NAME_ARRAY, rowfilter TEXT;
    3596 10092 b'r' "pg_seclabel" none:
        objoid! OID, classoid! OID, objsubid! INT4, provider! TEXT, label! TEXT;
    12099 12101 b'v' "pg_seclabels" none:
        objoid OID, classoid OID, objsubid INT4, objtype TEXT, objnamespace OID, objname TEXT,
        provider TEXT, label TEXT;
    1214 10060 b'r' "pg_shdepend" none:
        dbid! OID, classid! OID, objid! OID, objsubid! INT4, refclassid! OID, refobjid! OID,
        deptype! CHAR;
    2396 10062 b'r' "pg_shdescription" none:
        objoid! OID, classoid! OID, description! TEXT;
    3592 4066 b'r' "pg_shseclabel" none:
        objoid! OID, classoid! OID, provider! TEXT, label! TEXT;
    3381 10031 b'r' "pg_statistic_ext" none:
        oid! OID, stxrelid! OID, stxname! NAME, stxnamespace! OID, stxowner! OID,
        stxstattarget! INT4, stxkeys! INT2VECTOR, stxkind! CHAR_ARRAY, stxexprs PG_NODE_TREE;
    3602 10064 b'r' "pg_ts_config" none:
        oid! OID, cfgname! NAME, cfgnamespace! OID, cfgowner! OID, cfgparser! OID;
    3603 10066 b'r' "pg_ts_config_map" none:
        mapcfg! OID, maptokentype! INT4, mapseqno! INT4, mapdict! OID;
    3600 10068 b'r' "pg_ts_dict" none:
        oid! OID, dictname! NAME, dictnamespace! OID, dictowner! OID, dicttemplate! OID,
        dictinitoption TEXT;
    3601 10070 b'r' "pg_ts_parser" none:
        oid! OID, prsname! NAME, prsnamespace! OID, prsstart! REGPROC, prstoken! REGPROC,
        prsend! REGPROC, prsheadline! REGPROC, prslextype! REGPROC;
    3764 10072 b'r' "pg_ts_template" none:
        oid! OID, tmplname! NAME, tmplnamespace! OID, tmplinit! REGPROC, tmpllexize! REGPROC;
    1418 10080 b'r' "pg_user_mapping" none:
        oid! OID, umuser! OID, umserver! OID, umoptions TEXT_ARRAY;
    12327 12329 b'v' "pg_user_mappings" none:
        umid OID, srvid OID, srvname NAME, umuser OID, usename NAME, umoptions TEXT_ARRAY;
    2611 10005 b'r' "pg_inherits" none:
        inhrelid! OID, inhparent! OID, inhseqno! INT4, inhdetachpending! BOOL;
    12038 12040 b'v' "pg_matviews" none:
        schemaname NAME, matviewname NAME, matviewowner NAME, tablespace NAME, hasindexes BOOL,
        ispopulated BOOL, definition TEXT;
    3350 10099 b'r' "pg_partitioned_table" none:
        partrelid! OID, partstrat! CHAR, partnatts! INT2, partdefid! OID, partattrs! INT2VECTOR,
        partclass! OIDVECTOR, partcollation! OIDVECTOR, partexprs PG_NODE_TREE;
    12018 12020 b'v' "pg_policies" none:
        schemaname NAME, tablename NAME, policyname NAME, permissive TEXT, roles NAME_ARRAY,
        cmd TEXT, qual TEXT, with_check TEXT;
    3256 10084 b'r' "pg_policy" none:
        oid! OID, polname! NAME, polrelid! OID, polcmd! CHAR, polpermissive! BOOL,
        polroles! OID_ARRAY, polqual PG_NODE_TREE, polwithcheck PG_NODE_TREE;
    2618 10035 b'r' "pg_rewrite" none:
        oid! OID, rulename! NAME, ev_class! OID, ev_type! CHAR, ev_enabled! CHAR,
        is_instead! BOOL, ev_qual! PG_NODE_TREE, ev_action! PG_NODE_TREE;
    12023 12025 b'v' "pg_rules" none:
        schemaname NAME, tablename NAME, rulename NAME, definition TEXT;
    2620 10037 b'r' "pg_trigger" none:
        oid! OID, tgrelid! OID, tgparentid! OID, tgname! NAME, tgfoid! OID, tgtype! INT2,
        tgenabled! CHAR, tgisinternal! BOOL, tgconstrrelid! OID, tgconstrindid! OID,
        tgconstraint! OID, tgdeferrable! BOOL, tginitdeferred! BOOL, tgnargs! INT2,
        tgattr! INT2VECTOR, tgargs! BYTEA, tgqual PG_NODE_TREE, tgoldtable NAME, tgnewtable NAME;
}
