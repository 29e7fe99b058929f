// SPDX-License-Identifier: Apache-2.0
/* resolve_dns.c — one name after the other of the search list, one server after the other. Both
 * kinds of address are asked for at once, and the answer is given when both have come. */
#include "net/resolve_dns.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/rng.h"
#include "loop/loop.h"
#include "net/listen.h"

#define FILE_MAX    (1u << 20)
#define SERVERS_MAX 3u
#define SEARCH_MAX  6u
#define TRIES       2u
#define ANSWER_MAX  1500u

const struct resolve_dns_config resolve_dns_system = {
    .hosts = "/etc/hosts", .servers = "/etc/resolv.conf", .port = 53, .wait_ms = 2500};

struct resolve_dns {
    const struct resolve_dns_config *config;
    struct loop *loop;
    void (*done)(void *owner, struct err *e, const struct resolve_addrs *addrs);
    void *owner;
    struct loop_later found;
    struct loop_io io;
    struct loop_timer timer;
    int fd;
    struct resolve_addrs addrs, servers;
    uint16_t port;
    unsigned server, tries, name;
    unsigned ndots;
    bool answered[2];
    struct str query[2];
    unsigned char bytes[2][DNS_QUERY_MAX];
    struct buf text; /* of resolv.conf */
    struct str search[SEARCH_MAX];
    size_t search_count;
    char host[256];
};

static void dns_ask(struct resolve_dns *r);

static void dns_stop(struct resolve_dns *r)
{
    loop_io_stop(&r->io);
    loop_timer_stop(&r->timer);
    own_close(take_fd(&r->fd));
}

void resolve_dns_cancel(struct resolve_dns *r)
{
    if (!r)
        return;
    dns_stop(r);
    loop_later_cancel(&r->found);
    buf_done(&r->text);
    free(r);
}

static void dns_finish(struct resolve_dns *r, struct err *e)
{
    struct resolve_addrs addrs = r->addrs;
    void (*done)(void *, struct err *, const struct resolve_addrs *) = r->done;
    void *owner = r->owner;

    resolve_dns_cancel(r);
    done(owner, e, e ? NULL : &addrs);
}

static void on_found(struct loop_later *l)
{
    struct resolve_dns *r = container_of(l, struct resolve_dns, found);

    if (r->addrs.count)
        dns_finish(r, NULL);
    else
        dns_ask(r);
}

/* --- files --- */

static bool word_off(struct str *line, struct str *ret_word)
{
    size_t n = 0;

    while (line->len && (line->p[0] == ' ' || line->p[0] == '\t' || line->p[0] == '\r'))
        *line = str_from(*line, 1);
    while (n < line->len && line->p[n] != ' ' && line->p[n] != '\t' && line->p[n] != '\r')
        n++;
    *ret_word = str_first(*line, n);
    *line = str_from(*line, n);
    return n && ret_word->p[0] != '#' && ret_word->p[0] != ';';
}

static void add_numeric(struct resolve_addrs *to, size_t max, struct str text, uint16_t port)
{
    if (to->count < max &&
        addr_numeric(text, port, &to->at[to->count].addr, &to->at[to->count].len))
        to->count++;
}

static bool line_off(struct str *text, struct str *ret_line)
{
    return str_cut(text, '\n', ret_line) || ret_line->len;
}

static void read_hosts(struct resolve_dns *r)
{
    own_done(buf) text;
    struct str line, address, name;

    buf_init(&text, FILE_MAX);
    err_free(fd_read_file(r->config->hosts, &text));
    for (struct str rest = buf_str(&text); line_off(&rest, &line);) {
        bool hit = false;
        word_off(&line, &address);
        while (word_off(&line, &name))
            hit |= str_eq_nocase(name, str_of(r->host));
        if (hit)
            add_numeric(&r->addrs, RESOLVE_MAX, address, r->port);
    }
}

static void read_option(struct resolve_dns *r, struct str word)
{
    uint64_t n;

    if (str_starts(word, STR("ndots:")) && str_to_u64(str_from(word, 6), &n))
        r->ndots = n < 15 ? (unsigned)n : 15;
}

static void read_servers(struct resolve_dns *r)
{
    struct str line, key, word;

    err_free(fd_read_file(r->config->servers, &r->text));
    for (struct str rest = buf_str(&r->text); line_off(&rest, &line);) {
        if (!word_off(&line, &key))
            continue;
        bool search = str_eq(key, STR("search")) || str_eq(key, STR("domain"));
        if (search)
            r->search_count = 0; /* the last line counts */
        while (word_off(&line, &word)) {
            if (search && r->search_count < SEARCH_MAX)
                r->search[r->search_count++] = word;
            else if (str_eq(key, STR("nameserver")))
                add_numeric(&r->servers, SERVERS_MAX, word, r->config->port);
            else if (str_eq(key, STR("options")))
                read_option(r, word);
        }
    }
    if (!r->servers.count)
        add_numeric(&r->servers, SERVERS_MAX, STR("127.0.0.1"), r->config->port);
}

/* --- asking --- */

/* The name of that number; false after the last. A name with enough dots is tried as it is first,
 * another one last, and one that ends in a dot alone. */
static bool make_queries(struct resolve_dns *r)
{
    unsigned dots = 0;
    size_t len = strlen(r->host);
    char name[600];

    for (const char *p = r->host; *p; p++)
        dots += *p == '.';
    size_t searches = r->host[len - 1] == '.' ? 0 : r->search_count;
    size_t whole = dots >= r->ndots ? 0 : searches;
    for (; r->name <= searches; r->name++) {
        struct str search = STR("");
        if (r->name != whole)
            search = r->search[r->name - (r->name > whole)];
        int n = snprintf(name, sizeof name, "%s%s" STR_FMT, r->host, search.len ? "." : "",
                         STR_ARG(str_first(search, DNS_QUERY_MAX)));
        uint16_t id = (uint16_t)rng_u64(rng_system());
        for (int i = 0; i < 2; i++) {
            uint16_t type = i ? DNS_AAAA : DNS_A;
            r->query[i] = str_n(r->bytes[i], dns_query(str_n(name, (size_t)n), (uint16_t)(id + i),
                                                       type, r->bytes[i]));
            r->answered[i] = false;
        }
        if (r->query[0].len)
            return true;
    }
    return false;
}

static void ask_next(struct resolve_dns *r)
{
    dns_stop(r);
    r->server++;
    if (r->server >= r->servers.count) {
        r->server = 0;
        r->tries++;
    }
    if (r->tries < TRIES)
        dns_ask(r);
    else if (r->addrs.count)
        dns_finish(r, NULL);
    else
        dns_finish(r, err_new(ERR_UPSTREAM, "resolve '%s': no name server answers", r->host));
}

static void next_name(struct resolve_dns *r)
{
    dns_stop(r);
    r->name++;
    r->server = r->tries = 0;
    r->query[0].len = 0;
    dns_ask(r);
}

static void on_silence(struct loop_timer *t)
{
    ask_next(container_of(t, struct resolve_dns, timer));
}

static void on_answer(struct loop_io *io)
{
    struct resolve_dns *r = container_of(io, struct resolve_dns, io);
    char bytes[ANSWER_MAX];
    ssize_t n = recv(r->fd, bytes, sizeof bytes, 0);

    if (n < 0) { /* nobody listens there */
        ask_next(r);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (r->answered[i])
            continue;
        enum dns_answer how = dns_read(str_n(bytes, (size_t)n), r->query[i], r->port, &r->addrs);
        if (how == DNS_FAILED) {
            ask_next(r);
            return;
        }
        r->answered[i] |= how == DNS_ANSWERED;
    }
    if (!r->answered[0] || !r->answered[1])
        return;
    if (r->addrs.count)
        dns_finish(r, NULL);
    else
        next_name(r);
}

static fallible send_queries(struct resolve_dns *r)
{
    const struct sockaddr *to = (const struct sockaddr *)&r->servers.at[r->server].addr;

    r->fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->fd < 0 || connect(r->fd, to, r->servers.at[r->server].len) < 0)
        return err_sys("socket");
    for (int i = 0; i < 2; i++)
        if (!r->answered[i] && send(r->fd, r->query[i].p, r->query[i].len, MSG_NOSIGNAL) < 0)
            return err_sys("send");
    return loop_io_start(r->loop, &r->io, r->fd, EPOLLIN, on_answer);
}

/* A server that cannot be reached is as one that does not answer: the timer goes on to the next. */
static void dns_ask(struct resolve_dns *r)
{
    if (!r->query[0].len && !make_queries(r)) {
        dns_finish(r, err_new(ERR_UPSTREAM, "resolve '%s': there is no such name", r->host));
        return;
    }
    struct err *e = send_queries(r);
    loop_timer_start(r->loop, &r->timer, e ? 0 : r->config->wait_ms, on_silence);
    err_free(e);
}

fallible resolve_dns_start(struct loop *loop, const struct resolve_dns_config *config,
                           struct str host, uint16_t port,
                           void (*done)(void *owner, struct err *e,
                                        const struct resolve_addrs *addrs),
                           void *owner, struct resolve_dns **ret_resolve)
{
    if (!host.len || host.len >= sizeof(*ret_resolve)->host || memchr(host.p, '\0', host.len))
        return err_new(ERR_INVALID, "bad host name");
    struct resolve_dns *r = mem_try(sizeof *r);
    if (!r)
        return err_no_memory();
    *r = (struct resolve_dns){.config = config,
                              .loop = loop,
                              .done = done,
                              .owner = owner,
                              .fd = -1,
                              .port = port,
                              .ndots = 1};
    memcpy(r->host, host.p, host.len);
    buf_init(&r->text, FILE_MAX);
    read_hosts(r);
    if (!r->addrs.count)
        read_servers(r);
    loop_later(loop, &r->found, on_found);
    *ret_resolve = r;
    return NULL;
}
