"""Options that secure connections; `kgctl.client.net.client_properties` reads them."""

from __future__ import annotations

from broker.security.secret import Secret
from kgctl.client.config.every_client import ClientOptions


class SecurityOptions(ClientOptions, total=False):
    """The options of security as keyword arguments. docs/contexts.md describes them."""

    enable_ssl_certificate_verification: bool | str
    sasl_client_callback_handler_class: str
    sasl_jaas_config: str | Secret
    sasl_login_callback_handler_class: str
    sasl_login_connect_timeout_ms: str | int
    sasl_login_read_timeout_ms: str | int
    sasl_login_retry_backoff_max_ms: str | int
    sasl_login_retry_backoff_ms: str | int
    sasl_mechanism: str
    sasl_mechanisms: str
    sasl_oauthbearer_assertion_algorithm: str | Secret
    sasl_oauthbearer_assertion_claim_aud: str | Secret
    sasl_oauthbearer_assertion_claim_exp_seconds: str | int
    sasl_oauthbearer_assertion_claim_iss: str | Secret
    sasl_oauthbearer_assertion_claim_jti_include: str | int
    sasl_oauthbearer_assertion_claim_nbf_seconds: str | int
    sasl_oauthbearer_assertion_claim_sub: str | Secret
    sasl_oauthbearer_assertion_file: str | Secret
    sasl_oauthbearer_assertion_private_key_file: str | Secret
    sasl_oauthbearer_assertion_private_key_passphrase: str | Secret
    sasl_oauthbearer_assertion_template_file: str | Secret
    sasl_oauthbearer_client_credentials_client_id: str | Secret
    sasl_oauthbearer_client_credentials_client_secret: str | Secret
    sasl_oauthbearer_client_id: str | Secret
    sasl_oauthbearer_client_secret: str | Secret
    sasl_oauthbearer_clock_skew_seconds: str | int
    sasl_oauthbearer_config: str | Secret
    sasl_oauthbearer_expected_audience: str | Secret
    sasl_oauthbearer_expected_issuer: str | Secret
    sasl_oauthbearer_extensions: str | Secret
    sasl_oauthbearer_header_urlencode: str | int
    sasl_oauthbearer_jwks_endpoint_refresh_ms: str | int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: str | int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: str | int
    sasl_oauthbearer_jwks_endpoint_url: str
    sasl_oauthbearer_jwt_retriever_class: str
    sasl_oauthbearer_jwt_validator_class: str
    sasl_oauthbearer_method: str | Secret
    sasl_oauthbearer_scope: str | Secret
    sasl_oauthbearer_scope_claim_name: str | Secret
    sasl_oauthbearer_sub_claim_name: str | Secret
    sasl_oauthbearer_token: str | Secret
    sasl_oauthbearer_token_command: str | Secret
    sasl_oauthbearer_token_endpoint_url: str
    sasl_password: str | Secret
    sasl_username: str | Secret
    security_protocol: str
    ssl_ca_location: str
    ssl_ca_pem: str | Secret
    ssl_certificate_location: str
    ssl_certificate_pem: str | Secret
    ssl_cipher_suites: str | Secret
    ssl_enabled_protocols: str | Secret
    ssl_endpoint_identification_algorithm: str | Secret
    ssl_key_location: str
    ssl_key_password: str | Secret
    ssl_key_pem: str | Secret
    ssl_keymanager_algorithm: str | Secret
    ssl_keystore_certificate_chain: str | Secret
    ssl_keystore_key: str | Secret
    ssl_keystore_location: str
    ssl_keystore_password: str | Secret
    ssl_keystore_type: str
    ssl_protocol: str | Secret
    ssl_provider: str | Secret
    ssl_secure_random_implementation: str | Secret
    ssl_trustmanager_algorithm: str | Secret
    ssl_truststore_certificates: str | Secret
    ssl_truststore_location: str
    ssl_truststore_password: str | Secret
    ssl_truststore_type: str
