// SPDX-License-Identifier: Apache-2.0
/* hash — SHA-256 of a megabyte: in portable C, by the processor's instructions, and by OpenSSL. */
#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/hash_impl.h"
#include "base/mem.h"

#define SIZE   (1u << 20)
#define ROUNDS 5

static void portable(const uint8_t *data)
{
    uint32_t state[8] = {0};

    sha256_blocks_scalar(state, data, SIZE / 64);
}

static void ours(const uint8_t *data)
{
    uint8_t out[SHA256_LEN];

    sha256(str_n(data, SIZE), out);
}

static void openssl(const uint8_t *data)
{
    uint8_t out[EVP_MAX_MD_SIZE];

    EVP_Digest(data, SIZE, out, NULL, EVP_sha256(), NULL);
}

/* Best of several short rounds, so that a neighbour on the core costs little. */
static double mb_per_s(void (*hash)(const uint8_t *data), const uint8_t *data)
{
    double best = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = clock_mono_ns(&clock_system), spent;
        unsigned count = 0;
        do {
            hash(data);
            count++;
            spent = clock_mono_ns(&clock_system) - start;
        } while (spent < NS_PER_S / 10);
        double rate = (double)count * SIZE / 1e6 / ((double)spent / 1e9);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(void)
{
    uint8_t *data = mem_new(SIZE);
    double scalar = mb_per_s(portable, data), mine = mb_per_s(ours, data);
    double peer = mb_per_s(openssl, data);

    printf("  portable C %.0f MB/s, as used %.0f MB/s (%s), OpenSSL %.0f MB/s\n", scalar, mine,
           sha256_ni_usable() ? "SHA instructions" : "portable C", peer);
    printf("bench/hash: SHA-256 %.0f MB/s, %.2fx OpenSSL\n", mine, mine / peer);
    free(data);
    return 0;
}
