// SPDX-License-Identifier: Apache-2.0
/* name.c — see name.h. */
#include "host/proxy/name.h"

#include "base/own.h"
#include "host/proxy/proxy.h"

static const struct str services[PROXY_SERVICES] = {
    [PROXY_VSCODE] = STR_INIT("vscode"),
    [PROXY_WORK_1] = STR_INIT("work-1"),
    [PROXY_WORK_2] = STR_INIT("work-2"),
};

struct str name_of_service(int service)
{
    return services[service];
}

static bool is_id_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || str_is_digit(c) || c == '-' ||
           c == '_' || c == '.';
}

static struct str skip_slashes(struct str s)
{
    while (s.len && s.p[0] == '/')
        s = str_from(s, 1);
    return s;
}

/* Is word the whole first segment of path, which begins with its slash? */
static bool begins_with(struct str path, struct str word)
{
    return str_starts(str_from(path, 1), word) &&
           (path.len == word.len + 1 || path.p[word.len + 1] == '/');
}

static void take_service(struct str whole, struct proxy_name *n)
{
    if (str_eq(n->path, STR("/vscode/connection_token"))) /* the action server's own */
        return;
    for (int i = 0; i < PROXY_SERVICES; i++) {
        if (!begins_with(n->path, services[i]))
            continue;
        n->service = i;
        n->path = str_from(n->path, services[i].len + 1);
        n->prefix = str_first(whole, whole.len - n->path.len);
        return;
    }
}

/* rest: path, from the id on. */
static bool name_split(struct str path, struct str rest, struct proxy_name *ret_name)
{
    struct proxy_name n = {.service = -1, .id = rest};

    while (rest.len && is_id_char(rest.p[0]))
        rest = str_from(rest, 1);
    n.id.len -= rest.len;
    if (!n.id.len || n.id.len > NAME_ID_MAX || (rest.len && rest.p[0] != '/'))
        return false;
    n.prefix = str_first(path, path.len - rest.len);
    n.path = rest;
    if (rest.len)
        take_service(path, &n);
    if (!n.path.len)
        n.path = STR("/");
    *ret_name = n;
    return true;
}

bool name_by_path(struct str path, struct proxy_name *ret_name)
{
    struct str rest = skip_slashes(path);

    if (!str_starts(path, STR("/")) || !str_starts(rest, STR("sandbox/")))
        return false;
    return name_split(path, skip_slashes(str_from(rest, 8)), ret_name);
}

bool name_by_first(struct str path, struct proxy_name *ret_name)
{
    return str_starts(path, STR("/")) && name_split(path, skip_slashes(path), ret_name);
}

bool name_is_id(struct str word)
{
    size_t n = 0;

    while (n < word.len && word.p[n] >= 'a' && word.p[n] <= 'z')
        n++;
    return n == word.len && n == 16;
}

/* A host without its port and last dot. An address in brackets is not a name of ours. */
static struct str bare_host(struct str host)
{
    ptrdiff_t colon = str_find_char(host, ':');

    if (colon >= 0)
        host = str_first(host, (size_t)colon);
    return str_ends(host, STR(".")) ? str_first(host, host.len - 1) : host;
}

bool name_is_below(struct str host, struct str domain)
{
    bool flat = str_starts(domain, STR("-"));

    host = bare_host(host);
    if (!domain.len || host.len < domain.len + !flat)
        return false;
    size_t n = host.len - domain.len;
    return str_eq_nocase(str_from(host, n), domain) && (flat || host.p[n - 1] == '.');
}

/* Without what the scheme has anyway. */
static struct str without_port(struct str host, bool tls)
{
    struct str port = tls ? STR(":443") : STR(":80");

    return str_ends(host, port) ? str_first(host, host.len - port.len) : host;
}

fallible name_check_target(struct str target, struct str host)
{
    bool tls = str_starts(target, STR("https:"));
    ptrdiff_t at = str_starts(target, STR("http")) ? str_find(target, STR("://")) : -1;

    if (at < 0 || !host.p)
        return NULL;
    struct str own = str_from(target, (size_t)at + 3);
    size_t n = 0;
    while (n < own.len && own.p[n] != '/' && own.p[n] != '?')
        n++;
    own = str_first(own, n);
    if (str_eq_nocase(without_port(own, tls), without_port(host, tls)))
        return NULL;
    return err_new(ERR_INVALID,
                   "the target is at '" STR_FMT "', and Host says '" STR_FMT
                   "': they must be the same",
                   STR_ARG(str_first(own, 80)), STR_ARG(str_first(host, 80)));
}

bool name_by_host(struct str host, struct str domain, char label[NAME_ID_MAX],
                  struct str *ret_label)
{
    if (!name_is_below(host, domain))
        return false;
    host = bare_host(host);
    size_t n = host.len - domain.len - !str_starts(domain, STR("-"));
    if (!n || n > NAME_ID_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = host.p[i];
        if (!is_id_char(c) || c == '.')
            return false;
        label[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    *ret_label = str_n(label, n);
    return true;
}

bool name_split_label(struct str label, int *ret_service, struct str *ret_id)
{
    for (int i = 0; i < PROXY_SERVICES; i++) {
        size_t n = services[i].len;
        if (label.len <= n + 1 || !str_starts(label, services[i]) || label.p[n] != '-')
            continue;
        *ret_service = i;
        *ret_id = str_from(label, n + 1);
        return true;
    }
    return false;
}

bool name_cookie_path(struct str cookie, struct str *ret_path)
{
    struct str one, name;
    bool found = false;

    for (bool more = str_cut(&cookie, ';', &one); more;) { /* behind its name and value */
        more = str_cut(&cookie, ';', &one);
        str_cut(&one, '=', &name);
        if (!str_eq_nocase(str_trim(name), STR("path")))
            continue;
        *ret_path = str_trim(one);
        found = true;
    }
    return found;
}
