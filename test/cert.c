// SPDX-License-Identifier: Apache-2.0
/* cert.c — see cert.h. */
#include "test/cert.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "test/test.h"

static void add_extension(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    CHECK(e && X509_add_ext(x, e, -1));
    X509_EXTENSION_free(e);
}

static X509 *sign_self(EVP_PKEY *key, const char *name)
{
    X509 *x = X509_new();

    CHECK(x != NULL);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME *subject = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                               0);
    X509_set_issuer_name(x, subject);
    add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(x, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    CHECK(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

static void write_key(EVP_PKEY *key, const char *path, const EVP_CIPHER *cipher)
{
    FILE *f = fopen(path, "w");

    CHECK(f != NULL);
    CHECK(PEM_write_PKCS8PrivateKey(f, key, cipher, cipher ? "secret" : NULL, cipher ? 6 : 0, NULL,
                                    NULL) == 1);
    fclose(f);
}

void test_cert_make(const char *name, struct test_cert *ret_cert)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    CHECK(key != NULL);
    snprintf(ret_cert->certificate, sizeof ret_cert->certificate, "%s/%s.pem", test_dir(), name);
    snprintf(ret_cert->key, sizeof ret_cert->key, "%s/%s.key", test_dir(), name);
    X509 *x = sign_self(key, name);
    FILE *f = fopen(ret_cert->certificate, "w");
    CHECK(f && PEM_write_X509(f, x) == 1);
    fclose(f);
    write_key(key, ret_cert->key, NULL);
    X509_free(x);
    EVP_PKEY_free(key);
}

void test_cert_encrypt_key(const struct test_cert *cert, const char *path)
{
    FILE *f = fopen(cert->key, "r");

    CHECK(f != NULL);
    EVP_PKEY *key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
    fclose(f);
    CHECK(key != NULL);
    write_key(key, path, EVP_aes_256_cbc());
    EVP_PKEY_free(key);
}
