// SPDX-License-Identifier: Apache-2.0
/* log.h — one event, one line, with fields: text on a terminal, JSON lines otherwise.
 *
 *   log_warn("sandbox lost", KV("id", s->id), KV_ERR(e));
 *
 * The sink is the only mutable file-scope state in the tree. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
enum log_format { LOG_AUTO, LOG_TEXT, LOG_JSON };

struct secret { /* prints as *** wherever it is logged */
    struct str value;
};

enum log_kind {
    LOG_KV_END,
    LOG_KV_STR,
    LOG_KV_INT,
    LOG_KV_UINT,
    LOG_KV_DOUBLE,
    LOG_KV_BOOL,
    LOG_KV_SECRET,
    LOG_KV_ERR
};

struct log_kv {
    const char *key;
    enum log_kind kind;
    union {
        struct str s;
        int64_t i;
        uint64_t u;
        double d;
        bool b;
        const struct err *e;
    };
};

static inline struct log_kv log_kv_str(const char *k, struct str v)
{
    return (struct log_kv){.key = k, .kind = LOG_KV_STR, .s = v};
}
static inline struct log_kv log_kv_cstr(const char *k, const char *v)
{
    return log_kv_str(k, v ? str_of(v) : STR(""));
}
static inline struct log_kv log_kv_int(const char *k, int64_t v)
{
    return (struct log_kv){.key = k, .kind = LOG_KV_INT, .i = v};
}
static inline struct log_kv log_kv_uint(const char *k, uint64_t v)
{
    return (struct log_kv){.key = k, .kind = LOG_KV_UINT, .u = v};
}
static inline struct log_kv log_kv_double(const char *k, double v)
{
    return (struct log_kv){.key = k, .kind = LOG_KV_DOUBLE, .d = v};
}
static inline struct log_kv log_kv_bool(const char *k, bool v)
{
    return (struct log_kv){.key = k, .kind = LOG_KV_BOOL, .b = v};
}
static inline struct log_kv log_kv_secret(const char *k, struct secret v)
{
    (void)v;
    return (struct log_kv){.key = k, .kind = LOG_KV_SECRET};
}
static inline struct log_kv log_kv_err(const char *k, const struct err *v)
{
    return (struct log_kv){.key = k, .kind = LOG_KV_ERR, .e = v};
}

#define KV(key, value)                                                                             \
    _Generic((value), struct str                                                                   \
             : log_kv_str, char *                                                                  \
             : log_kv_cstr, const char *                                                           \
             : log_kv_cstr, bool                                                                   \
             : log_kv_bool, int                                                                    \
             : log_kv_int, long                                                                    \
             : log_kv_int, long long                                                               \
             : log_kv_int, unsigned                                                                \
             : log_kv_uint, unsigned long                                                          \
             : log_kv_uint, unsigned long long                                                     \
             : log_kv_uint, double                                                                 \
             : log_kv_double, struct secret                                                        \
             : log_kv_secret)(key, value)
#define KV_ERR(e)      log_kv_err("error", e)

#define log_debug(...) LOG_EVENT_(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  LOG_EVENT_(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  LOG_EVENT_(LOG_WARN, __VA_ARGS__)
#define log_error(...) LOG_EVENT_(LOG_ERROR, __VA_ARGS__)
#define LOG_EVENT_(level, msg, ...)                                                                \
    do {                                                                                           \
        if (log_enabled(level))                                                                    \
            log_event(level, msg, (const struct log_kv[]){__VA_ARGS__ __VA_OPT__(, ){0}});         \
    } while (0)

bool log_enabled(enum log_level level);
bool log_is_text(void); /* for people */
void log_event(enum log_level level, const char *msg, const struct log_kv *kv);

/* fd is borrowed. LOG_AUTO asks whether it is a terminal. */
void log_setup(int fd, enum log_level level, enum log_format format);
bool log_level_parse(struct str word, enum log_level *ret_level);
