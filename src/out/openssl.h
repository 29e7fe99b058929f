// SPDX-License-Identifier: Apache-2.0
/* openssl.h — OpenSSL, loaded when TLS is first wanted.
 *
 * Linked, it would be relocated at every start of croft: 0.3 ms and 0.4 MB of every process that
 * never speaks TLS. Functions are called by their own names; one that is not in the list below does
 * not link. Include this instead of OpenSSL's own headers. */
#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/err.h"

// clang-format off
#define OPENSSL_FUNCTIONS(F) \
    F(BIO_clear_flags) F(BIO_free) F(BIO_get_data) F(BIO_meth_free) F(BIO_meth_new) \
    F(BIO_meth_set_ctrl) F(BIO_meth_set_read) F(BIO_meth_set_write) F(BIO_new) F(BIO_new_file) \
    F(BIO_set_data) F(BIO_set_flags) F(BIO_set_init) F(ERR_clear_error) F(ERR_peek_error) \
    F(ERR_reason_error_string) F(EVP_PKEY_free) F(OPENSSL_init_ssl) F(PEM_read_bio_PrivateKey) \
    F(SSL_CTX_ctrl) F(SSL_CTX_free) F(SSL_CTX_get0_certificate) F(SSL_CTX_load_verify_file) \
    F(SSL_CTX_new) F(SSL_CTX_set_cipher_list) F(SSL_CTX_set_default_passwd_cb) \
    F(SSL_CTX_set_default_passwd_cb_userdata) F(SSL_CTX_set_default_verify_paths) \
    F(SSL_CTX_set_options) F(SSL_CTX_set_verify) F(SSL_CTX_use_PrivateKey) \
    F(SSL_CTX_use_certificate_chain_file) F(SSL_ctrl) F(SSL_free) F(SSL_get0_param) \
    F(SSL_get_error) F(SSL_get_verify_result) F(SSL_is_init_finished) F(SSL_new) F(SSL_read_ex) \
    F(SSL_set1_host) F(SSL_set_accept_state) F(SSL_set_bio) F(SSL_set_connect_state) \
    F(SSL_set_default_read_buffer_len) F(SSL_set_hostflags) F(SSL_set_read_ahead) \
    F(SSL_shutdown) F(SSL_write_ex) F(TLS_client_method) F(TLS_server_method) \
    F(X509_VERIFY_PARAM_set1_ip_asc) F(X509_check_private_key) F(X509_verify_cert_error_string)
// clang-format on

struct openssl {
#define OPENSSL_SLOT(name) __typeof__(name) *name;
    OPENSSL_FUNCTIONS(OPENSSL_SLOT)
#undef OPENSSL_SLOT
};

/* The library as loaded by this process, once for all its users. */
extern struct openssl openssl;
fallible openssl_load(void);

#define BIO_clear_flags                        openssl.BIO_clear_flags
#define BIO_free                               openssl.BIO_free
#define BIO_get_data                           openssl.BIO_get_data
#define BIO_meth_free                          openssl.BIO_meth_free
#define BIO_meth_new                           openssl.BIO_meth_new
#define BIO_meth_set_ctrl                      openssl.BIO_meth_set_ctrl
#define BIO_meth_set_read                      openssl.BIO_meth_set_read
#define BIO_meth_set_write                     openssl.BIO_meth_set_write
#define BIO_new                                openssl.BIO_new
#define BIO_new_file                           openssl.BIO_new_file
#define BIO_set_data                           openssl.BIO_set_data
#define BIO_set_flags                          openssl.BIO_set_flags
#define BIO_set_init                           openssl.BIO_set_init
#define ERR_clear_error                        openssl.ERR_clear_error
#define ERR_peek_error                         openssl.ERR_peek_error
#define ERR_reason_error_string                openssl.ERR_reason_error_string
#define EVP_PKEY_free                          openssl.EVP_PKEY_free
#define OPENSSL_init_ssl                       openssl.OPENSSL_init_ssl
#define PEM_read_bio_PrivateKey                openssl.PEM_read_bio_PrivateKey
#define SSL_CTX_ctrl                           openssl.SSL_CTX_ctrl
#define SSL_CTX_free                           openssl.SSL_CTX_free
#define SSL_CTX_get0_certificate               openssl.SSL_CTX_get0_certificate
#define SSL_CTX_load_verify_file               openssl.SSL_CTX_load_verify_file
#define SSL_CTX_new                            openssl.SSL_CTX_new
#define SSL_CTX_set_cipher_list                openssl.SSL_CTX_set_cipher_list
#define SSL_CTX_set_default_passwd_cb          openssl.SSL_CTX_set_default_passwd_cb
#define SSL_CTX_set_default_passwd_cb_userdata openssl.SSL_CTX_set_default_passwd_cb_userdata
#define SSL_CTX_set_default_verify_paths       openssl.SSL_CTX_set_default_verify_paths
#define SSL_CTX_set_options                    openssl.SSL_CTX_set_options
#define SSL_CTX_set_verify                     openssl.SSL_CTX_set_verify
#define SSL_CTX_use_PrivateKey                 openssl.SSL_CTX_use_PrivateKey
#define SSL_CTX_use_certificate_chain_file     openssl.SSL_CTX_use_certificate_chain_file
#define SSL_ctrl                               openssl.SSL_ctrl
#define SSL_free                               openssl.SSL_free
#define SSL_get0_param                         openssl.SSL_get0_param
#define SSL_get_error                          openssl.SSL_get_error
#define SSL_get_verify_result                  openssl.SSL_get_verify_result
#define SSL_is_init_finished                   openssl.SSL_is_init_finished
#define SSL_new                                openssl.SSL_new
#define SSL_read_ex                            openssl.SSL_read_ex
#define SSL_set1_host                          openssl.SSL_set1_host
#define SSL_set_accept_state                   openssl.SSL_set_accept_state
#define SSL_set_bio                            openssl.SSL_set_bio
#define SSL_set_connect_state                  openssl.SSL_set_connect_state
#define SSL_set_default_read_buffer_len        openssl.SSL_set_default_read_buffer_len
#define SSL_set_hostflags                      openssl.SSL_set_hostflags
#define SSL_set_read_ahead                     openssl.SSL_set_read_ahead
#define SSL_shutdown                           openssl.SSL_shutdown
#define SSL_write_ex                           openssl.SSL_write_ex
#define TLS_client_method                      openssl.TLS_client_method
#define TLS_server_method                      openssl.TLS_server_method
#define X509_VERIFY_PARAM_set1_ip_asc          openssl.X509_VERIFY_PARAM_set1_ip_asc
#define X509_check_private_key                 openssl.X509_check_private_key
#define X509_verify_cert_error_string          openssl.X509_verify_cert_error_string
