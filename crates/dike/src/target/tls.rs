//! Encrypted connections: which servers a client trusts, and what it shows of its user.
//!
//! A server's own certificate may be listed in `target.tls_ca`, and is then trusted as it is, as
//! OpenSSL does. PostgreSQL's manual makes such a certificate with `openssl req -x509`: it has
//! signed itself, calls itself an authority, and has its host's name where only old clients look
//! for it. These three objections are dropped if the server shows exactly this certificate and
//! proves that it has the key. The dates of the certificate are checked all the same.
//!
//! Left out: the same for MySQL's protocol, whose driver has a verifier of its own and takes no
//! other. There an authority has to have signed the certificate.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mysql_async::{ClientIdentity, SslOpts};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::{Cause, Failure, Family};
use crate::config::{Target, Tls};

/// What a client trusts and shows; nothing if connections are not encrypted.
pub fn client(target: &Target) -> Result<Option<Arc<ClientConfig>>, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = match target.tls {
        Tls::Off => return Ok(None),
        Tls::Unverified => Verifier::Unverified(provider.clone()),
        Tls::Verify => Verifier::trusting(target, provider.clone())?,
    };
    let said = |error: rustls::Error| Failure::new(Cause::Other, error.to_string());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(said)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    if target.tls_cert.is_empty() {
        return Ok(Some(Arc::new(builder.with_no_client_auth())));
    }
    let chain = certificates("tls_cert", &target.tls_cert)?;
    let wrong = |why: String| Failure::new(Cause::Other, format!("target.tls_key {}: {why}", target.tls_key));
    owner_only(Path::new(&target.tls_key)).map_err(wrong)?;
    let key = PrivateKeyDer::from_pem_file(&target.tls_key).map_err(|error| wrong(error.to_string()))?;
    builder.with_client_auth_cert(chain, key).map(|config| Some(Arc::new(config))).map_err(said)
}

/// The same for MySQL's driver, which reads the files by itself.
pub fn mysql(target: &Target) -> Option<SslOpts> {
    let file = |path: &str| PathBuf::from(path).into();
    let mut options = match target.tls {
        Tls::Off => return None,
        Tls::Unverified => SslOpts::default().with_danger_accept_invalid_certs(true),
        Tls::Verify if target.tls_ca.is_empty() => SslOpts::default(),
        Tls::Verify => {
            SslOpts::default().with_root_certs(vec![file(&target.tls_ca)]).with_disable_built_in_roots(true)
        }
    };
    if !target.tls_cert.is_empty() {
        let identity = ClientIdentity::new(file(&target.tls_cert), file(&target.tls_key));
        options = options.with_client_identity(Some(identity));
    }
    Some(options)
}

/// What to do about a certificate that was refused, if that is why a connection failed.
pub fn remedy(message: &str, family: Family) -> Option<&'static str> {
    let known = [
        (
            "CaUsedAsEndEntity",
            match family {
                Family::Postgres => "name the server's certificate itself as target.tls_ca",
                Family::Mysql => {
                    "it has signed itself, and MySQL's driver wants one that an authority has signed: make \
                     that, or set target.tls = \"unverified\""
                }
            },
        ),
        (
            "UnsupportedCertVersion",
            "it is of X.509's version 1: make it with an extension, such as subjectAltName, or set target.tls \
             = \"unverified\"",
        ),
        ("UnknownIssuer", "name the certificate of its authority as target.tls_ca"),
    ];
    known.into_iter().find(|(word, _)| message.contains(word)).map(|(_, remedy)| remedy)
}

/// The certificates of a file, at least one.
fn certificates(parameter: &str, file: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let wrong = |why: String| Failure::new(Cause::Other, format!("target.{parameter} {file}: {why}"));
    let read = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    let all: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    if all.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    Ok(all)
}

/// Refuses a private key that others than its owner may use; root may share its own with a group,
/// as PostgreSQL's programs have it.
fn owner_only(file: &Path) -> Result<(), String> {
    let metadata = std::fs::metadata(file).map_err(|error| error.to_string())?;
    let allowed = if metadata.uid() == 0 { 0o640 } else { 0o600 };
    match metadata.mode() & 0o777 & !allowed {
        0 => Ok(()),
        _ => Err("others than its owner may use it: `chmod 600` it".to_owned()),
    }
}

/// Which servers are trusted.
#[derive(Debug)]
enum Verifier {
    /// Those whose certificate one of the authorities has signed, or is listed itself.
    Trusted { authorities: Arc<WebPkiServerVerifier>, listed: Vec<CertificateDer<'static>> },
    /// All. A signature by an unknown key proves nothing, so none is looked at.
    Unverified(Arc<CryptoProvider>),
}

impl Verifier {
    fn trusting(target: &Target, provider: Arc<CryptoProvider>) -> Result<Verifier, Failure> {
        let (mut roots, mut listed) = (RootCertStore::empty(), Vec::new());
        if target.tls_ca.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        } else {
            listed = certificates("tls_ca", &target.tls_ca)?;
            for certificate in &listed {
                roots.add(certificate.clone()).map_err(|error| {
                    Failure::new(Cause::Other, format!("target.tls_ca {}: {error}", target.tls_ca))
                })?;
            }
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let authorities = authorities.map_err(|error| Failure::new(Cause::Other, error.to_string()))?;
        Ok(Verifier::Trusted { authorities, listed })
    }
}

/// Whether this objection is moot where the certificate itself is trusted. Validity in time is
/// judged before either of them.
fn is_moot(error: &rustls::Error) -> bool {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.0.to_string() == "CaUsedAsEndEntity"
        }
        rustls::Error::InvalidCertificate(why) => {
            matches!(why, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
        }
        _ => false,
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Verifier::Trusted { authorities, listed } = self else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if is_moot(&error) && listed.contains(end_entity) => {
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self {
            Verifier::Trusted { authorities, .. } => {
                authorities.verify_tls12_signature(message, certificate, signed)
            }
            Verifier::Unverified(_) => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self {
            Verifier::Trusted { authorities, .. } => {
                authorities.verify_tls13_signature(message, certificate, signed)
            }
            Verifier::Unverified(_) => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Verifier::Trusted { authorities, .. } => authorities.supported_verify_schemes(),
            Verifier::Unverified(provider) => provider.signature_verification_algorithms.supported_schemes(),
        }
    }
}
