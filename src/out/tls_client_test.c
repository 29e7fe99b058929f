// SPDX-License-Identifier: Apache-2.0
/* tls_client_test.c — https: and wss: URLs: the HTTP client, and a WebSocket on what was dialled.
 */
#include <stdio.h>

#include "net/listen.h"
#include "net/stream.h"
#include "net/url.h"
#include "net/ws.h"
#include "test/call.h"
#include "test/site.h"
#include "test/test.h"

struct talk {
    struct ws *ws;
    struct buf got;
    int code;
    char why[300];
};

static void on_talk_open(struct ws *ws)
{
    ws_send(ws, WS_TEXT, STR("ping"));
}

static void on_talk_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct talk *t = ws_owner(ws);

    buf_addf(&t->got, "%d:" STR_FMT "|", kind, STR_ARG(data));
    if (str_eq(data, STR("ping")))
        ws_close(ws, WS_NORMAL, STR("bye"));
}

static void on_talk_close(struct ws *ws, int code, struct str reason)
{
    struct talk *t = ws_owner(ws);

    t->ws = NULL;
    t->code = code;
    snprintf(t->why, sizeof t->why, STR_FMT, STR_ARG(reason));
}

static const struct ws_events talk_events = {
    .on_open = on_talk_open, .on_message = on_talk_message, .on_close = on_talk_close};

static void on_dialled(void *owner, struct err *e, struct stream *s)
{
    CHECK_OK(e);
    *(struct stream **)owner = s;
}

/* One WebSocket from its opening to its end. */
static void talk_run(struct talk *t, struct site *site, const char *ca, const char *url)
{
    struct dialer dialer = {.net = site->net, .ca_file = ca};
    struct stream *s = NULL;
    struct dial *d;
    struct url u;

    *t = (struct talk){0};
    buf_init(&t->got, 1000);
    CHECK_OK(url_parse(str_of(url), &u));
    struct dial_target target = {.host = u.host, .port = u.port, .tls = true, .timeout_ms = 10000};
    CHECK_OK(dial_start(&dialer, &target, on_dialled, &s, &d));
    while (!s)
        CHECK_OK(loop_turn(site->loop, 1000));
    CHECK_OK(ws_connect(s, str_of(url), STR(""), NULL, &talk_events, t, &t->ws));
    while (t->ws)
        CHECK_OK(loop_turn(site->loop, 1000));
    dialer_done(&dialer);
}

static struct result get(struct site *site, const char *ca, const char *url, const char *unix_path)
{
    struct call_fix f;

    call_fix_client(&f, site->loop, site->net);
    f.dialer.ca_file = ca;
    struct result r =
        call_run(&f, NULL,
                 &(struct http_call_spec){
                     .method = STR("GET"), .url = str_of(url), .unix_path = str_of(unix_path)});
    http_client_free(f.client);
    dialer_done(&f.dialer);
    return r;
}

static void check_get_refused(struct site *site, const char *ca, const char *url,
                              const char *unix_path, const char *why)
{
    struct result r = get(site, ca, url, unix_path);
    CHECK_ERR(take(&r.error), ERR_UPSTREAM, why);
    CHECK_INT(r.status, 0);
    result_done(&r);
}

static void check_talk_refused(struct site *site, const char *ca, const char *url, const char *why)
{
    struct talk t;

    talk_run(&t, site, ca, url);
    CHECK_INT(t.code, WS_ABNORMAL);
    CHECK_STR(buf_str(&t.got), "");
    CHECK_STR(t.why, why);
    buf_done(&t.got);
}

/* A second way in, under an address that is not in the certificate; gives its URL. */
static void listen_also(struct site *site, const char *address, char *url, size_t size)
{
    int fd;

    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_OK(http_server_listen(site->server, fd));
    CHECK_OK(listen_name(fd, true, url, size));
}

TEST(https_is_got_and_other_names_and_signers_are_refused)
{
    struct site site;
    struct test_cert other;
    char url[64], address[300], name[300];

    site_open(&site, NULL);
    test_cert_make("other", &other);
    snprintf(url, sizeof url, "https://localhost:%d/hello", site.port);
    snprintf(address, sizeof address, "unix:%s/s", test_dir());
    listen_also(&site, address, name, sizeof name);
    struct result r = get(&site, site.cert.certificate, url, "");
    CHECK_OK(r.error);
    CHECK_INT(r.status, 200);
    CHECK_STR(buf_str(&r.body), "hello");
    result_done(&r);
    check_get_refused(&site, site.cert.certificate, "https://example.org/hello", address + 5,
                      "GET https://example.org:443/hello: TLS: the peer's certificate is not "
                      "trusted: hostname mismatch");
    check_get_refused(&site, other.certificate, url, "", "not trusted: self-signed certificate");
    site_close(&site);
}

TEST(wss_is_echoed_and_other_names_and_signers_are_refused)
{
    struct site site;
    struct test_cert other;
    struct talk t;
    char url[64], foreign[100], name[64];

    site_open(&site, NULL);
    test_cert_make("other", &other);
    snprintf(url, sizeof url, "wss://localhost:%d/ws", site.port);
    listen_also(&site, "127.0.0.2:0", name, sizeof name);
    snprintf(foreign, sizeof foreign, "wss%s/ws", name + strlen("https"));
    talk_run(&t, &site, site.cert.certificate, url);
    CHECK_STR(buf_str(&t.got), "1:welcome|1:ping|");
    CHECK_INT(t.code, WS_NORMAL);
    buf_done(&t.got);
    check_talk_refused(&site, site.cert.certificate, foreign,
                       "open WebSocket: TLS: the peer's certificate is not trusted: IP address "
                       "mismatch");
    check_talk_refused(&site, other.certificate, url,
                       "open WebSocket: TLS: the peer's certificate is not trusted: self-signed "
                       "certificate");
    site_close(&site);
}
