// SPDX-License-Identifier: Apache-2.0
/* cert.h — certificates made for a test. */
#pragma once

struct test_cert {
    char certificate[300], key[300]; /* PEM files in test_dir() */
};

/* A fresh P-256 key and a certificate that signs itself, for localhost and 127.0.0.1. name is the
 * common name and the files' name. */
void test_cert_make(const char *name, struct test_cert *ret_cert);
/* The same key, behind a password. */
void test_cert_encrypt_key(const struct test_cert *cert, const char *path);
