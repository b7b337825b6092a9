"""Certificates of servers that parts are sent to: which are trusted, and why one is not."""

from __future__ import annotations

import ssl
from pathlib import Path

from stepscope.tables.errors import UsageError

_EXPIRED, _NAME, _IP = 10, 62, 64
"""Codes of X509_verify_cert. Source: openssl/x509_vfy.h."""
NO_TLS = "WRONG_VERSION_NUMBER"


def context(ca_file: Path | None) -> ssl.SSLContext:
    """What an https connection is checked against: the authorities of this host, or those in a file instead.

    Raises:
        UsageError: the file has no certificate.
    """
    try:
        return ssl.create_default_context(cafile=str(ca_file) if ca_file is not None else None)
    except (OSError, ValueError) as error:
        raise UsageError(f"--ca-file {ca_file}: {_plain(error)}; expected a file with certificates (PEM)") from error


def check_own(certificate: Path) -> None:
    """Raise UsageError unless a file has a certificate to serve with, and its private key."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, password=lambda: "")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--certificate {certificate}: {_plain(error)}; expected a file (PEM) with the private key, without a "
            "password, and the certificates from the server's own on"
        ) from error


def is_final(error: ssl.SSLError) -> bool:
    """Whether another try would end the same way."""
    return isinstance(error, ssl.SSLCertVerificationError) or error.reason == NO_TLS


def why(error: ssl.SSLError) -> str:
    """Why no connection was made, and what to do."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        no_tls = error.reason == NO_TLS
        return "the server there does not speak TLS; is it http://?" if no_tls else f"TLS failed: {error.reason}"
    said = error.verify_message.rstrip(".")
    if error.verify_code == _EXPIRED:
        return f"the server's {said}: it needs a new one"
    if error.verify_code in (_NAME, _IP):
        return f"the server has another name in its certificate ({said}); expected the name that the certificate has"
    return f"the server's certificate is not trusted ({said}); if it is from your own authority: --ca-file FILE"


def _plain(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
