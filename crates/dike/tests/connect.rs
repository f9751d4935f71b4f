//! How users prove who they are, and servers: passwords, certificates, plugins, on a real
//! PostgreSQL and a real MariaDB.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use common::{Server, block_on, connector};
use plimsoll_dike::config::{Config, Tls};
use plimsoll_dike::target::Connector;

const PASSWORD: &str = "hunter2 is: a \\ secret";

/// Whether a connection can be made; if not, why.
async fn connected(config: &Config) -> Result<(), String> {
    let connector = Connector::new(&config.target, true).map_err(|failure| failure.to_string())?;
    let refused = |failure: plimsoll_dike::target::Failure| failure.to_string();
    connector.connect(0).await.map_err(refused)?.text_value("SELECT 1").await.map_err(refused)?;
    Ok(())
}

#[track_caller]
fn refused(result: Result<(), String>, why: &str) {
    let said = result.expect_err("refused");
    assert!(said.contains(why) && !said.contains("hunter2"), "{said}");
}

#[test]
fn a_server_with_the_certificate_of_postgresqls_manual_is_trusted_if_it_is_named() {
    let (server, certificate) = Server::postgres().with_own_certificate();
    block_on(async {
        let mut config = server.config(1);
        config.target.tls = Tls::Verify;
        refused(connected(&config).await, "name the server's certificate itself as target.tls_ca");
        config.target.tls_ca = certificate.display().to_string();
        assert_eq!(connected(&config).await, Ok(()));
        let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let mut session = connector(&config).connect(0).await.expect("connected");
        assert_eq!(session.text_value(encrypted).await.as_deref(), Ok("t"));
        // One that looks alike is another one.
        let (_other, certificate) = Server::postgres().with_own_certificate();
        config.target.tls_ca = certificate.display().to_string();
        refused(connected(&config).await, "certificate");
        config.target.tls_ca = String::new();
        config.target.tls = Tls::Unverified;
        assert_eq!(connected(&config).await, Ok(()));
        let mut session = connector(&config).connect(0).await.expect("connected");
        assert_eq!(session.text_value(encrypted).await.as_deref(), Ok("t"));
        // No certificate, another file, no file.
        config.target.tls = Tls::Verify;
        config.target.tls_ca = server.file("server.key").display().to_string();
        refused(connected(&config).await, "there is no certificate in it");
        config.target.tls_ca = "/nowhere/ca.pem".to_owned();
        refused(connected(&config).await, "target.tls_ca /nowhere/ca.pem: ");
    });
}

#[test]
fn a_mariadb_that_has_signed_its_own_certificate_is_refused_with_a_way_out() {
    let (server, certificate) = Server::mariadb().with_own_certificate();
    block_on(async {
        let mut config = server.config(1);
        config.target.tls = Tls::Verify;
        config.target.tls_ca = certificate.display().to_string();
        refused(connected(&config).await, "or set target.tls = \"unverified\"");
        config.target.tls_ca = String::new();
        config.target.tls = Tls::Unverified;
        let mut session = connector(&config).connect(0).await.expect("connected");
        let cipher = session.text("SHOW STATUS LIKE 'Ssl_cipher'").await.expect("a status");
        assert!(cipher[0][1].as_ref().is_some_and(|cipher| !cipher.is_empty()), "{cipher:?}");
    });
}

/// Connects with a certificate of the user's, with none, and with a key that others may read.
async fn shows_a_certificate(server: &Server, config: &mut Config, none: &str) {
    let [certificate, key] = server.certificate_of("dike");
    for tls in [Tls::Verify, Tls::Unverified] {
        config.target.tls = tls;
        let authority =
            if tls == Tls::Verify { server.file("ca.pem").display().to_string() } else { String::new() };
        config.target.tls_ca = authority;
        (config.target.tls_cert, config.target.tls_key) = (String::new(), String::new());
        refused(connected(config).await, none);
        config.target.tls_cert = certificate.display().to_string();
        config.target.tls_key = key.display().to_string();
        assert_eq!(connected(config).await, Ok(()), "{tls:?}");
    }
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("set");
    refused(connected(config).await, "others than its owner may use it: `chmod 600` it");
}

#[test]
fn a_user_may_show_a_certificate() {
    let (mut server, _) = Server::postgres().with_tls();
    server.admit("hostssl all all 127.0.0.1/32 cert\n");
    block_on(shows_a_certificate(&server, &mut server.config(1), "certificate"));
    let (server, _) = Server::mariadb().with_tls();
    server.as_root("ALTER USER dike@'127.0.0.1' REQUIRE X509; ALTER USER dike@localhost REQUIRE X509;");
    block_on(shows_a_certificate(&server, &mut server.config(1), "Access denied"));
}

#[test]
fn every_plugin_of_a_mariadb_admits_its_users_or_refuses_them_with_a_sentence() {
    let server = Server::mariadb();
    server.as_root(
        "INSTALL SONAME 'auth_ed25519'; CREATE USER modern IDENTIFIED VIA ed25519 USING PASSWORD('pw'); \
         CREATE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('pw'); \
         CREATE USER old IDENTIFIED VIA mysql_old_password USING '6f8c114b58f2ce9e'; \
         CREATE USER socket IDENTIFIED VIA unix_socket; \
         INSTALL SONAME 'auth_pam'; CREATE USER pam IDENTIFIED VIA pam; \
         GRANT ALL ON dike.* TO modern; GRANT ALL ON dike.* TO native; GRANT ALL ON dike.* TO old;",
    );
    block_on(async {
        let mut config = server.config(1);
        let mut as_user = |user: &str, password: &str| {
            config.target.user = user.to_owned();
            config.target.password = password.into();
            config.clone()
        };
        for user in ["modern", "native"] {
            assert_eq!(connected(&as_user(user, "pw")).await, Ok(()), "{user}");
            refused(connected(&as_user(user, "hunter2")).await, "Access denied");
            refused(connected(&as_user(user, "")).await, "Access denied");
        }
        for user in ["old", "socket", "pam", "nobody at all"] {
            for password in ["pw", ""] {
                let said = connected(&as_user(user, password)).await.expect_err(user);
                assert!(said.contains("127.0.0.1:"), "{user}: {said}");
            }
        }
        refused(connected(&as_user("native", &"hunter2".repeat(40))).await, "set target.tls");
    });
}

/// Connects as the environment says.
#[test]
#[ignore = "a child process: `a_password_may_come_from_the_environment` starts it"]
fn connects_as_the_environment_says() {
    let mut config = Config::default();
    config.target.endpoints = vec![std::env::var("TEST_ENDPOINT").expect("an endpoint")];
    config.target.database = "postgres".to_owned();
    let result = block_on(connected(&config));
    println!("{result:?}");
    assert_eq!(result, Ok(()));
}

#[test]
fn a_password_may_come_from_the_environment() {
    let mut server = Server::postgres();
    block_on(async {
        let mut session = connector(&server.config(1)).connect(0).await.expect("connected");
        let set = format!("ALTER ROLE dike PASSWORD '{PASSWORD}'");
        session.text(&set).await.expect("set");
    });
    server.admit("host all all 127.0.0.1/32 scram-sha-256\n");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("passwords");
    let line = PASSWORD.replace('\\', "\\\\").replace(':', "\\:");
    std::fs::write(&file, format!("127.0.0.1:1:*:*:wrong\n127.0.0.1:{}:*:dike:{line}\n", server.port))
        .expect("written");
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
    let connect = |name: &str, value: &std::ffi::OsStr| -> Output {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--ignored", "--exact", "connects_as_the_environment_says", "--nocapture"]);
        command.env("TEST_ENDPOINT", format!("127.0.0.1:{}", server.port)).env("HOME", directory.path());
        command.env_remove("DIKE_PASSWORD").env_remove("PGPASSFILE").env(name, value);
        command.output().expect("it starts")
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let output = connect("DIKE_PASSWORD", PASSWORD.as_ref());
    assert!(output.status.success(), "{}", said(&output));
    mode(0o600);
    let output = connect("PGPASSFILE", file.as_os_str());
    assert!(output.status.success(), "{}", said(&output));
    mode(0o644);
    let output = connect("PGPASSFILE", file.as_os_str());
    assert!(!output.status.success() && said(&output).contains("`chmod 600` it"), "{}", said(&output));
    for (name, value) in [("OTHER", ""), ("DIKE_PASSWORD", "hunter3 is wrong")] {
        let output = connect(name, value.as_ref());
        assert!(!output.status.success() && said(&output).contains("password"), "{}", said(&output));
        assert!(!said(&output).contains("hunter"), "{}", said(&output));
    }
}
