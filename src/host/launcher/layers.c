// SPDX-License-Identifier: Apache-2.0
/* layers.c — see layers.h. */
#include "host/launcher/layers.h"

#include <stdio.h>

#include "base/own.h"
#include "base/str.h"
#include "host/launcher/disk.h"
#include "sandbox/backend.h"

#define AS_ROOT "run croft as root"
#define CGROUPS                                                                                    \
    AS_ROOT ", on a kernel with this control group mounted below /sys/fs/cgroup; or as you, in a " \
            "group of your own: systemd-run --user --scope -p Delegate=yes croft …"

static bool layers_always(const struct box_host *h)
{
    (void)h;
    return true;
}

static const char *by_namespace(const struct box_host *h)
{
    return h->user ? "namespaces owned by a user namespace of yours"
                   : "namespaces owned by the host";
}

static const char *by_filter(const struct box_host *h)
{
    (void)h;
    return "seccomp";
}

static bool has_range(const struct box_host *h)
{
    return !h->user;
}

static const char *by_range(const struct box_host *h)
{
    return h->user ? "none: root inside is you" : "65,536 ids per sandbox, idmapped layers";
}

static bool has_users(const struct box_host *h)
{
    return !h->user || h->sub.count;
}

static const char *by_users(const struct box_host *h)
{
    return h->user ? h->sub.says : "65,536 of them";
}

static bool has_landlock(const struct box_host *h)
{
    return h->landlock > 0;
}

static const char *by_landlock(const struct box_host *h)
{
    return h->landlock >= 6 ? "files, abstract sockets, signals" : h->landlock ? "files" : "none";
}

static bool has_disk(const struct box_host *h)
{
    return disk_mechanism(h, true) != NATIVE_DISK_NONE;
}

#define GROUP(word, controller)                                                                    \
    static bool has_##word(const struct box_host *h)                                               \
    {                                                                                              \
        return cg_has(&h->cg, controller);                                                         \
    }                                                                                              \
    static const char *by_##word(const struct box_host *h)                                         \
    {                                                                                              \
        return cg_mechanism(&h->cg, controller);                                                   \
    }
GROUP(memory, CG_MEMORY)
GROUP(pids, CG_PIDS)
GROUP(cpu, CG_CPU)
GROUP(pause, CG_FREEZER)

const struct layer layers[] = {
    {"files", "a root of its own", layers_always, by_namespace, NULL},
    {"processes", "sees and signals only its own", layers_always, by_namespace, NULL},
    {"network", "loopback and nothing else", layers_always, by_namespace, NULL},
    {"sealed", "root inside can reconfigure nothing", layers_always, by_namespace, NULL},
    {"ids", "root inside is nobody outside", has_range, by_range, AS_ROOT},
    {"users", "root inside, and others beside it", has_users, by_users, SUBIDS_REMEDY},
    {"syscalls", "no mounts, namespaces, modules, bpf, keys, raw sockets", layers_always, by_filter,
     NULL},
    {"landlock", "a second wall around the files", has_landlock, by_landlock,
     "boot a kernel with Landlock among its lsm= (Linux 5.13 or later)"},
    {"memory", "a limit on memory", has_memory, by_memory, CGROUPS},
    {"pids", "a limit on processes", has_pids, by_pids, CGROUPS},
    {"cpu", "a limit on processor time", has_cpu, by_cpu, CGROUPS},
    {"pause", "pause and resume", has_pause, by_pause, CGROUPS},
    {"disk", "a limit on disk space", has_disk, disk_describe,
     AS_ROOT ", with project quotas on the state directory, or /dev/loop-control and mkfs.ext4"},
};
const size_t layers_len = ARRAY_LEN(layers);

static const struct layer *layers_find(struct str name)
{
    for (size_t i = 0; i < layers_len; i++)
        if (str_eq(str_of(layers[i].name), name))
            return &layers[i];
    return NULL;
}

fallible layers_require(const struct box_host *h, struct str names)
{
    struct str name;

    for (bool more = true; more && names.len;) {
        more = str_cut(&names, ',', &name);
        const struct layer *l = layers_find(str_trim(name));
        if (!l)
            return err_new(ERR_INVALID, "'" STR_FMT "' is no layer; 'croft doctor' lists them",
                           STR_ARG(name));
        if (!l->there(h))
            return err_new(ERR_UNSUPPORTED, "layer '%s' (%s) is not to be had here: %s", l->name,
                           l->means, l->remedy);
    }
    return NULL;
}

unsigned layers_caps(const struct box_host *h)
{
    unsigned caps = ~(unsigned)(SBX_CAN_PAUSE | SBX_LIMITS_MEMORY | SBX_LIMITS_PIDS |
                                SBX_LIMITS_CPU | SBX_LIMITS_DISK | SBX_CAN_USER);

    return caps | (has_pause(h) ? SBX_CAN_PAUSE : 0) | (has_memory(h) ? SBX_LIMITS_MEMORY : 0) |
           (has_pids(h) ? SBX_LIMITS_PIDS : 0) | (has_cpu(h) ? SBX_LIMITS_CPU : 0) |
           (has_disk(h) ? SBX_LIMITS_DISK : 0) | (has_users(h) ? SBX_CAN_USER : 0);
}

_Static_assert(ARRAY_LEN(layers) < SBX_LACKS_MAX, "every layer may be missing");
void layers_lacks(const struct box_host *h, struct sbx_lack *ret_lacks)
{
    struct sbx_lack *at = ret_lacks;

    for (size_t i = 0; i < layers_len; i++) {
        if (layers[i].there(h))
            continue;
        *at = (struct sbx_lack){.name = layers[i].name, .remedy = layers[i].remedy};
        snprintf(at->why, sizeof at->why, "%s: %s", layers[i].means, layers[i].how(h));
        at++;
    }
    at->name = NULL;
}
