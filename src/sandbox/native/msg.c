// SPDX-License-Identifier: Apache-2.0
/* msg.c — the launcher's whole parser; see msg.h. */
#include "sandbox/native/msg.h"

#include <string.h>

#include "base/str.h"

const char *native_disk_word(unsigned disk)
{
    static const char *const words[] = {"none", "project", "tmpfs", "loop"};

    return disk < ARRAY_LEN(words) ? words[disk] : "unknown";
}

static bool msg_terminated(const char *s, size_t size)
{
    return memchr(s, '\0', size) != NULL;
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

bool native_id_ok(const char *id, size_t size)
{
    if (!msg_terminated(id, size) || !id[0] || id[0] == '.' || id[0] == '-')
        return false;
    for (const char *c = id; *c; c++)
        if (!name_char(*c))
            return false;
    return true;
}

/* Every part between slashes is a name: not empty, not "." or "..", no control characters. */
static bool parts_ok(struct str path)
{
    struct str part;

    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.p[i] < 0x20 || path.p[i] == 0x7f)
            return false;
    for (bool more = true; more;) {
        more = str_cut(&path, '/', &part);
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            return false;
    }
    return true;
}

bool native_target_ok(const char *path, size_t size)
{
    return msg_terminated(path, size) && path[0] == '/' && path[1] && parts_ok(str_of(path + 1));
}

static bool source_ok(const char *path)
{
    return msg_terminated(path, NATIVE_PATH_MAX) &&
           (strcmp(path, ".") == 0 || (path[0] != '/' && parts_ok(str_of(path))));
}

static fallible check_mounts(const struct native_request *r)
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &r->mounts[i];
        if (!m->mode)
            continue;
        if (m->mode > NATIVE_OVERLAY)
            return err_new(ERR_INVALID, "mount %u: mode %u is not known", i, m->mode);
        if (!source_ok(m->path))
            return err_new(ERR_INVALID, "mount %u: the source must stay below its root", i);
        if (!native_target_ok(m->target, sizeof m->target))
            return err_new(ERR_INVALID, "mount %u: the target must be absolute and plain", i);
    }
    return NULL;
}

/* A name as registries have them, or an id. */
static bool image_ok(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!name_char(*c) && *c != '/' && *c != ':' && *c != '@' && *c != '+')
            return false;
    return name[0] && name[0] != '-' && name[0] != '/';
}

fallible native_image_check(const char *name)
{
    if (image_ok(name) && strlen(name) < NATIVE_IMAGE_MAX)
        return NULL;
    return err_new(ERR_INVALID, "image '%.100s' is not a name as registries have them", name);
}

static fallible check_image(const struct native_request *r)
{
    bool named = r->op == NATIVE_IMAGE_FIND || r->op == NATIVE_IMAGE_IMPORT ||
                 (r->op == NATIVE_START && r->image == NATIVE_IMAGE_STORED) ||
                 (r->op == NATIVE_CLAIM && r->image_name[0]);

    if (!msg_terminated(r->image_name, sizeof r->image_name))
        return err_new(ERR_INVALID, "the image's name has no end");
    if (named ? !image_ok(r->image_name) : r->image_name[0])
        return err_new(ERR_INVALID,
                       named ? "the image is not a name" : "an image nobody asked for");
    return NULL;
}

static fallible check_start(const struct native_request *r)
{
    if (!native_id_ok(r->hostname, sizeof r->hostname))
        return err_new(ERR_INVALID, "the host name is not a name");
    bool none = r->op == NATIVE_CLAIM || r->flags & NATIVE_WARM;
    if (none ? r->argc || r->envc : r->argc < 1 || r->argc > 4096 || r->envc > 4096)
        return err_new(ERR_INVALID, "%u arguments and %u variables: too few or too many", r->argc,
                       r->envc);
    if (r->network > NATIVE_NET_HOST)
        return err_new(ERR_INVALID, "network %u is not known", r->network);
    return check_mounts(r);
}

static bool needs_snapshot(uint32_t op)
{
    return op == NATIVE_SNAPSHOT || op == NATIVE_SNAPSHOT_REMOVE;
}

fallible native_check(const void *data, size_t size)
{
    const struct native_request *r = data;

    if (size != sizeof *r)
        return err_new(ERR_INVALID, "a request of %zu bytes instead of %zu", size, sizeof *r);
    if (r->magic != NATIVE_MAGIC || r->version != NATIVE_VERSION)
        return err_new(ERR_INVALID, "not a request of version %d", NATIVE_VERSION);
    if (r->op < NATIVE_START || r->op >= NATIVE_OP_END)
        return err_new(ERR_INVALID, "operation %u is not known", r->op);
    if (r->flags & ~(unsigned)NATIVE_FLAGS)
        return err_new(ERR_INVALID, "flags %#x are not known", r->flags);
    if (r->snapshot[0] ? !native_id_ok(r->snapshot, sizeof r->snapshot) : needs_snapshot(r->op))
        return err_new(ERR_INVALID, "the snapshot is not a name");
    TRY(check_image(r));
    bool any = r->op == NATIVE_LIST || r->op == NATIVE_SNAPSHOT_REMOVE ||
               r->op == NATIVE_SNAPSHOT_LIST || r->op == NATIVE_IMAGE_FIND ||
               r->op == NATIVE_IMAGE_IMPORT || r->op == NATIVE_ROOT;
    if (any && !r->id[0])
        return NULL;
    if (r->op == NATIVE_ROOT)
        return err_new(ERR_INVALID, "an id nobody asked for");
    if (!native_id_ok(r->id, sizeof r->id))
        return err_new(ERR_INVALID, "the id is not a name");
    return r->op == NATIVE_START || r->op == NATIVE_CLAIM ? check_start(r) : NULL;
}
