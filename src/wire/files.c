// SPDX-License-Identifier: Apache-2.0
/* files.c — see files.h. */
#include "wire/files.h"

static bool is_plain(struct str path)
{
    struct str part;

    if (path.len < 2 || path.len > 4095 || path.p[0] != '/' || memchr(path.p, '\0', path.len))
        return false;
    path = str_from(path, 1);
    for (bool more = true; more;) {
        more = str_cut(&path, '/', &part);
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            return false;
    }
    return true;
}

fallible wire_decode_files(const struct json *body, struct wire_files *ret_files)
{
    int64_t offset = 0, limit = WIRE_PAGE;
    struct wire_files f = {0};
    size_t at = 0;

    if (body->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "the body: wanted an object");
    TRY(json_take_int(body, "offset", 0, INT32_MAX, &offset));
    TRY(json_take_int(body, "limit", 1, WIRE_PAGE_MOST, &limit));
    TRY(json_take_bool(body, "force", &f.force));
    f.offset = (uint64_t)offset;
    f.limit = (uint64_t)limit;
    const struct json *paths = json_get(body, STR("paths"));
    if (paths && paths->type != JSON_NULL)
        f.paths = paths;
    if (f.paths && (paths->type != JSON_ARRAY || paths->count > WIRE_PATHS_MOST || !paths->count))
        return err_new(ERR_UNPROCESSABLE, "paths: wanted 1 to %d absolute paths in the sandbox",
                       WIRE_PATHS_MOST);
    for (const struct json *p = f.paths ? paths->first : NULL; p; p = p->next, at++)
        if (p->type != JSON_STR || !is_plain(p->s))
            return err_new(ERR_UNPROCESSABLE, "paths[%zu]: wanted an absolute, plain path", at);
    *ret_files = f;
    return NULL;
}

void wire_put_files(struct jw *w, const struct wire_files *files)
{
    JW_OBJECT(w, NULL) {
        jw_uint(w, "offset", files->offset);
        jw_uint(w, "limit", files->limit);
        jw_bool(w, "force", files->force);
        if (files->paths)
            jw_value(w, "paths", files->paths);
    }
}
