// SPDX-License-Identifier: Apache-2.0
/* boot.c — which start of the machine the rows are of. */
#include <stdlib.h>

#include "base/fd.h"
#include "base/mem.h"
#include "host/store/inner.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

STORE_TABLE(meta) = {.name = "meta",
                     .columns = {{"name", STORE_TEXT, true}, {"value", STORE_TEXT, true}}};
#define META (&store_tables_meta)

static fallible read_boot(struct buf *into)
{
    buf_init(into, 128);
    TRY(fd_read_file(BOOT_ID, into));
    while (into->len && into->p[into->len - 1] == '\n')
        into->len--;
    return NULL;
}

struct boot {
    struct buf now;
    bool changed;
    void (*done)(void *arg, bool changed, struct err *e);
    void *arg;
};

static fallible on_boot(void *arg, const struct store_value *values)
{
    struct boot *b = arg;

    b->changed = !str_eq(values[1].text, buf_str(&b->now));
    return NULL;
}

static void boot_end(struct boot *b, struct err *e)
{
    struct boot was = *b;

    buf_done(&b->now);
    free(b);
    was.done(was.arg, !e && was.changed, e);
}

static void on_boot_read(void *arg, struct err *e)
{
    if (e && err_code(e) == ERR_NOT_FOUND) /* a new store */
        err_free(take(&e));
    boot_end(arg, e);
}

void store_boot_changed(struct store *s, void (*done)(void *arg, bool changed, struct err *e),
                        void *arg)
{
    struct boot *b = mem_new(sizeof *b);

    b->done = done;
    b->arg = arg;
    struct err *e = read_boot(&b->now);
    if (e)
        boot_end(b, e);
    else
        store_get(s, META, store_text(STR("boot")), on_boot, on_boot_read, b);
}

void store_note_boot(struct store *s, store_done *done, void *arg)
{
    own_done(buf) now = {0};
    struct err *e = read_boot(&now);

    if (!e) {
        const struct store_field value = {"value", store_text(buf_str(&now))};
        store_put(s, META, store_text(STR("boot")), &value, 1, done, arg);
        return;
    }
    if (done)
        done(arg, e);
    else
        err_free(e);
}
