// SPDX-License-Identifier: Apache-2.0
/* keys.c — keys in memory, as their rows are; a key is accepted once its row is on disk. */
#include "host/keys/keys.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "host/keys/inner.h"
#include "loop/loop.h"

#define SECRET_SHORT 16
#define SECRET_MOST  512

STORE_TABLE(api_keys) = {.name = "api_keys",
                         .columns = {{"name", STORE_TEXT, true},
                                     {"hash", STORE_BLOB, true},
                                     {"scopes", STORE_INT, true},
                                     {"most_runtimes", STORE_INT, true},
                                     {"starts_per_minute", STORE_INT, true},
                                     {"made_ms", STORE_INT, true},
                                     {"revoked_ms", STORE_INT, true},
                                     {"tenant", STORE_TEXT, false}}, /* NULL: its own */
                         .indexes = {{{"hash"}, true}, {{"made_ms"}, false}}};
#define TABLE (&store_tables_api_keys)

static struct str hash_of(const struct key_entry *e)
{
    return str_n(e->hash, sizeof e->hash);
}

static uint64_t now_ms(const struct keys *k)
{
    return clock_wall_ns(loop_clock(store_loop(k->store))) / NS_PER_MS;
}

static void entry_link(struct keys *k, struct key_entry *e)
{
    e->keys = k;
    list_add(&k->all, &e->link);
    map_put(&k->by_name, str_of(e->key.name), e);
    k->count++;
}

static void entry_ready(struct keys *k, struct key_entry *e)
{
    e->ready = k->any = true;
    if (!e->key.revoked_ms)
        map_put(&k->by_hash, hash_of(e), e);
}

static void entry_drop(struct keys *k, struct key_entry *e)
{
    list_del(&e->link);
    map_del(&k->by_name, str_of(e->key.name));
    k->count--;
    free(e);
}

/* --- loading --- */

static fallible on_row(void *arg, const struct store_value *v)
{
    struct keys *k = arg;

    if (v[7].text.len >= KEY_NAME_SIZE || v[0].text.len >= KEY_NAME_SIZE ||
        v[1].text.len != SHA256_LEN)
        return err_new(ERR_CORRUPT, "table api_keys: the row '" STR_FMT "' is damaged",
                       STR_ARG(str_first(v[0].text, KEY_NAME_SIZE)));
    struct key_entry *e = mem_new(sizeof *e);
    memcpy(e->key.name, v[0].text.p, v[0].text.len);
    memcpy(e->hash, v[1].text.p, SHA256_LEN);
    e->key.scopes = (unsigned)v[2].i;
    e->key.most_runtimes = (uint32_t)v[3].i;
    e->key.starts_per_minute = (uint32_t)v[4].i;
    e->key.made_ms = (uint64_t)v[5].i;
    e->key.revoked_ms = (uint64_t)v[6].i;
    if (v[7].type == STORE_TEXT)
        memcpy(e->key.of, v[7].text.p, v[7].text.len);
    entry_link(k, e);
    entry_ready(k, e);
    return NULL;
}

static void on_loaded(void *arg, struct err *e)
{
    struct keys *k = arg;

    k->load_done(k->load_arg, e ? err_wrap(e, "load the keys") : NULL);
}

struct keys *keys_new(struct store *s)
{
    struct keys *k = mem_new(sizeof *k);

    k->store = s;
    map_init(&k->by_name);
    map_init(&k->by_hash);
    list_init(&k->all);
    k->open.key = (struct key){.name = "default", .scopes = KEY_ALL};
    return k;
}

void keys_load(struct keys *k, store_done *done, void *arg)
{
    const struct store_query oldest_first = {.table = TABLE, .index = &TABLE->indexes[1]};

    k->load_done = done;
    k->load_arg = arg;
    store_find(k->store, &oldest_first, on_row, on_loaded, k);
}

void keys_free(struct keys *k)
{
    if (!k)
        return;
    LIST_EACH(e, &k->all, struct key_entry, link)
        free(e);
    map_done(&k->by_name);
    map_done(&k->by_hash);
    free(k);
}

/* --- finding --- */

bool keys_any(const struct keys *k)
{
    return k->any;
}

/* The time of the look-up depends on the digest alone, and a digest does not lead to a secret. */
static struct key_entry *keys_find_secret(const struct keys *k, struct str secret)
{
    uint8_t hash[SHA256_LEN];

    sha256(secret, hash);
    struct key_entry *e = map_get(&k->by_hash, str_n(hash, sizeof hash));
    return e && hash_equal(hash_of(e), str_n(hash, sizeof hash)) ? e : NULL;
}

const struct key *keys_find(const struct keys *k, struct str secret)
{
    const struct key_entry *e =
        secret.len && secret.len <= SECRET_MOST ? keys_find_secret(k, secret) : NULL;

    return e ? &e->key : NULL;
}

const struct key *keys_find_name(const struct keys *k, struct str name)
{
    const struct key_entry *e = map_get(&k->by_name, name);

    return e && e->ready ? &e->key : NULL;
}

void keys_list(const struct keys *k, void (*fn)(void *arg, const struct key *key), void *arg)
{
    LIST_EACH(e, &k->all, struct key_entry, link) {
        if (e->ready)
            fn(arg, &e->key);
    }
}

/* --- making and ending --- */

static bool is_name(const char *name)
{
    size_t n = strnlen(name, KEY_NAME_SIZE);

    if (!n || n == KEY_NAME_SIZE || name[0] == '.' || name[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++) {
        char low = (char)(name[i] | 0x20);
        if (!(low >= 'a' && low <= 'z') && !str_is_digit(name[i]) && !strchr("-_.", name[i]))
            return false;
    }
    return true;
}

static fallible check_new(const struct keys *k, const struct key *want)
{
    if (!is_name(want->name))
        return err_new(
            ERR_UNPROCESSABLE,
            "name: wanted 1 to %d letters, digits, '-', '_' or '.', with a letter, digit "
            "or '_' first",
            KEY_NAME_SIZE - 1);
    if (!want->scopes || (want->scopes & ~(unsigned)KEY_ALL))
        return err_new(ERR_UNPROCESSABLE, "scopes: wanted some of admin, runtime, read, mount");
    if (map_get(&k->by_name, str_of(want->name)))
        return err_new(
            ERR_CONFLICT,
            "name: there is or was a key '%s', and its runtimes are of that name: choose "
            "another",
            want->name);
    if (!k->any && !(want->scopes & KEY_ADMIN))
        return err_new(
            ERR_UNPROCESSABLE,
            "scopes: the first key must have 'admin': once there is a key, nobody without "
            "one can make another");
    if (k->count >= KEYS_MOST)
        return err_new(ERR_LIMIT,
                       "there are %d keys, revoked ones included, which is the most that one "
                       "server keeps: use one that there is (croft token ls), or begin another "
                       "server with a state directory of its own",
                       KEYS_MOST);
    return NULL;
}

static void write_entry(struct keys *k, const struct key_entry *e, store_done *done, void *arg)
{
    const struct store_field fields[] = {
        {"hash", store_blob(hash_of(e))},
        {"scopes", store_int((int64_t)e->key.scopes)},
        {"most_runtimes", store_int((int64_t)e->key.most_runtimes)},
        {"starts_per_minute", store_int(e->key.starts_per_minute)},
        {"made_ms", store_int((int64_t)e->key.made_ms)},
        {"revoked_ms", store_int((int64_t)e->key.revoked_ms)},
        {"tenant", e->key.of[0] ? store_text(str_of(e->key.of)) : store_null()},
    };

    store_put(k->store, TABLE, store_text(str_of(e->key.name)), fields, ARRAY_LEN(fields), done,
              arg);
}

static void on_created(void *arg, struct err *err)
{
    struct key_entry *e = arg;
    struct keys *k = e->keys;
    store_done *done = e->done;
    void *to = e->arg;

    if (err)
        entry_drop(k, e);
    else
        entry_ready(k, e);
    if (done)
        done(to, err);
    else
        err_free(err);
}

/* A key made from a key belongs to the same tenant as that one. */
static fallible find_tenant(const struct keys *k, const struct key *want, char ret[KEY_NAME_SIZE])
{
    const struct key *of = want->of[0] ? keys_find_name(k, str_of(want->of)) : NULL;

    ret[0] = '\0';
    if (!want->of[0])
        return NULL;
    if (!of)
        return err_new(ERR_UNPROCESSABLE, "of: there is no key '%s'", want->of);
    if (of->revoked_ms)
        return err_new(ERR_UNPROCESSABLE, "of: key '%s' was revoked", want->of);
    if (want->scopes & ~keys_grants(of->scopes))
        return err_new(ERR_UNPROCESSABLE,
                       "scopes: a key of '%s' has no more scopes than that one has", want->of);
    snprintf(ret, KEY_NAME_SIZE, "%s", key_tenant(of));
    return NULL;
}

fallible keys_create(struct keys *k, const struct key *want, char secret[KEY_SECRET_SIZE],
                     store_done *done, void *arg)
{
    char tenant[KEY_NAME_SIZE];

    TRY(check_new(k, want));
    TRY(find_tenant(k, want, tenant));
    struct key_entry *e = mem_try(sizeof *e);
    if (!e)
        return err_no_memory();
    memcpy(secret, "croft_", 6);
    rng_token(rng_system(), secret + 6, 44); /* 43 of 62 letters: 256 bits */
    sha256(str_of(secret), e->hash);
    e->key = *want;
    memcpy(e->key.of, tenant, sizeof tenant);
    e->key.made_ms = now_ms(k);
    e->key.revoked_ms = 0;
    e->done = done;
    e->arg = arg;
    entry_link(k, e);
    write_entry(k, e, on_created, e);
    return NULL;
}

fallible keys_revoke(struct keys *k, struct str name, store_done *done, void *arg)
{
    struct key_entry *e = map_get(&k->by_name, name);

    if (!e || !e->ready)
        return err_new(ERR_NOT_FOUND, "there is no key '" STR_FMT "'",
                       STR_ARG(str_first(name, KEY_NAME_SIZE)));
    if (!e->key.revoked_ms)
        e->key.revoked_ms = now_ms(k);
    map_del(&k->by_hash, hash_of(e));
    write_entry(k, e, done, arg); /* should this fail it is revoked here only: ask again */
    return NULL;
}

fallible keys_check_last(const struct keys *k, struct str name)
{
    const struct key_entry *e = map_get(&k->by_name, name);

    if (!e || !e->ready || e->key.revoked_ms || !(e->key.scopes & KEY_ADMIN))
        return NULL;
    LIST_EACH(other, &k->all, struct key_entry, link)
        if (other != e && other->ready && !other->key.revoked_ms && (other->key.scopes & KEY_ADMIN))
            return NULL;
    return err_new(ERR_CONFLICT,
                   "key '%s' is the last with the scope 'admin': without it nobody can make or "
                   "revoke keys while the server runs; make another first, or force it "
                   "('croft token rm --force', ?force=true)",
                   e->key.name);
}

static fallible check_secret(struct str secret)
{
    bool bad = !secret.len || secret.len > SECRET_MOST;

    for (size_t i = 0; i < secret.len && !bad; i++)
        bad = secret.p[i] <= ' ' || secret.p[i] > '~';
    if (bad)
        return err_new(ERR_INVALID, "wanted 1 to %d visible ASCII characters without spaces",
                       SECRET_MOST);
    return NULL;
}

/* A revoked secret stays revoked, though a file may still have it. */
static bool was_revoked(const struct keys *k, const uint8_t hash[SHA256_LEN])
{
    LIST_EACH(e, &k->all, struct key_entry, link)
        if (e->key.revoked_ms && memcmp(e->hash, hash, SHA256_LEN) == 0) {
            log_warn("the first key (CROFT_API_KEY, --api-key-file) was revoked and stays so: give "
                     "it a new secret",
                     KV("key", (const char *)e->key.name));
            return true;
        }
    return false;
}

fallible keys_ensure(struct keys *k, const char *name, struct str secret, unsigned scopes)
{
    uint8_t hash[SHA256_LEN];
    struct key_entry *e = map_get(&k->by_name, str_of(name));

    TRY_WRAP(check_secret(secret), "secret of key '%s'", name);
    if (!is_name(name))
        return err_new(ERR_INVALID, "'%s' is no name for a key", name);
    if (secret.len < SECRET_SHORT)
        log_warn("the API key is short enough to be guessed", KV("key", name));
    sha256(secret, hash);
    const struct key_entry *other = keys_find_secret(k, secret);
    if (other && other != e)
        return err_new(ERR_CONFLICT, "key '%s' has this secret already", other->key.name);
    if ((e && e == other && e->key.scopes == scopes) || was_revoked(k, hash))
        return NULL;
    if (!e) {
        e = mem_new(sizeof *e);
        snprintf(e->key.name, sizeof e->key.name, "%s", name);
        e->key.made_ms = now_ms(k);
        entry_link(k, e);
    }
    map_del(&k->by_hash, hash_of(e));
    memcpy(e->hash, hash, sizeof hash);
    e->key.scopes = scopes;
    e->key.revoked_ms = 0;
    entry_ready(k, e);
    write_entry(k, e, NULL, NULL);
    return NULL;
}

/* --- quotas --- */

void keys_set_defaults(struct keys *k, uint32_t most_runtimes, uint32_t starts_per_minute)
{
    k->most_runtimes = most_runtimes;
    k->starts_per_minute = starts_per_minute;
}

static uint64_t gap_ns(const struct keys *k, const struct key *key)
{
    uint32_t starts = key->starts_per_minute ? key->starts_per_minute : k->starts_per_minute;

    return starts ? 60 * NS_PER_S / starts : 0;
}

/* Quotas are a tenant's, and with it of the key it began with, be that revoked. */
static struct key_entry *keys_payer(const struct keys *k, const struct key *key)
{
    struct key_entry *of = key->of[0] ? map_get(&k->by_name, str_of(key->of)) : NULL;

    return of ? of : container_of(key, struct key_entry, key);
}

/* A burst of as many as a minute may have, then one every n-th part of it. */
static fallible keys_pace(const struct keys *k, struct key_entry *e)
{
    uint64_t now = loop_now_ns(store_loop(k->store)), gap = gap_ns(k, &e->key);

    if (!gap)
        return NULL;
    if (e->paced_ns > now + 60 * NS_PER_S - gap) {
        uint64_t wait_ns = e->paced_ns - now - (60 * NS_PER_S - gap);
        unsigned wait_s = (unsigned)((wait_ns + NS_PER_S - 1) / NS_PER_S);
        struct err *why = err_new(
            ERR_LIMIT, "key '%s' has used up its limit starts_per_minute, %llu: try again in %u s",
            e->key.name, (unsigned long long)(60 * NS_PER_S / gap), wait_s);
        return err_again(why, wait_s);
    }
    e->paced_ns = (e->paced_ns > now ? e->paced_ns : now) + gap;
    return NULL;
}

fallible keys_admit(struct keys *k, const struct key *key, unsigned live_runtimes)
{
    struct key_entry *e = keys_payer(k, key);
    uint32_t most = e->key.most_runtimes ? e->key.most_runtimes : k->most_runtimes;

    if (most && live_runtimes >= most) {
        struct err *why = err_new(ERR_LIMIT,
                                  "key '%s' has %u runtimes, paused and failed ones too, and its "
                                  "limit most_runtimes is %u: stop one first",
                                  e->key.name, live_runtimes, most);
        return err_again(why, 10); /* when one ends is theirs to say */
    }
    return keys_pace(k, e);
}

fallible keys_admit_again(struct keys *k, struct str tenant)
{
    struct key_entry *e = map_get(&k->by_name, tenant);

    return keys_pace(k, e ? e : &k->open);
}

void keys_give_back(struct keys *k, const struct key *key)
{
    struct key_entry *e = keys_payer(k, key);
    uint64_t gap = gap_ns(k, &e->key);

    e->paced_ns -= e->paced_ns > gap ? gap : e->paced_ns;
}
