// SPDX-License-Identifier: Apache-2.0
/* url_test.c — what is read, what is refused, and that encoding can be undone. */
#include "net/url.h"

#include "test/test.h"

struct good {
    const char *text, *scheme, *userinfo, *host;
    unsigned port;
    const char *path, *query, *fragment;
};

static const struct good good[] = {
    {"http://h", "http", NULL, "h", 80, "/", "", ""},
    {"http://h/", "http", NULL, "h", 80, "/", "", ""},
    {"HTTP://h/", "http", NULL, "h", 80, "/", "", ""},
    {"https://h", "https", NULL, "h", 443, "/", "", ""},
    {"ws://h/s", "ws", NULL, "h", 80, "/s", "", ""},
    {"wss://h:8443/s", "wss", NULL, "h", 8443, "/s", "", ""},
    {"http://h:1", "http", NULL, "h", 1, "/", "", ""},
    {"http://h:65535/", "http", NULL, "h", 65535, "/", "", ""},
    {"http://example.com./a", "http", NULL, "example.com.", 80, "/a", "", ""},
    {"http://a_b-c.d~e/", "http", NULL, "a_b-c.d~e", 80, "/", "", ""},
    {"http://127.0.0.1:3000/x", "http", NULL, "127.0.0.1", 3000, "/x", "", ""},
    {"http://255.255.255.255/", "http", NULL, "255.255.255.255", 80, "/", "", ""},
    {"http://1.2.3.4.com/", "http", NULL, "1.2.3.4.com", 80, "/", "", ""},
    {"http://4chan.example/", "http", NULL, "4chan.example", 80, "/", "", ""},
    {"http://[::1]/", "http", NULL, "::1", 80, "/", "", ""},
    {"http://[::1]:8080", "http", NULL, "::1", 8080, "/", "", ""},
    {"http://[2001:db8::7]/p?q", "http", NULL, "2001:db8::7", 80, "/p", "q", ""},
    {"http://[::ffff:1.2.3.4]/", "http", NULL, "::ffff:1.2.3.4", 80, "/", "", ""},
    {"http://u@h/", "http", "u", "h", 80, "/", "", ""},
    {"http://u:p@h:1/", "http", "u:p", "h", 1, "/", "", ""},
    {"http://u%40x:p%3a@h/", "http", "u%40x:p%3a", "h", 80, "/", "", ""},
    {"http://u:p@[::1]:9/", "http", "u:p", "::1", 9, "/", "", ""},
    {"http://@h/", "http", "", "h", 80, "/", "", ""},
    {"http://h?q=1", "http", NULL, "h", 80, "/", "q=1", ""},
    {"http://h#f", "http", NULL, "h", 80, "/", "", "f"},
    {"http://h/a/b?c=d&e=f#g", "http", NULL, "h", 80, "/a/b", "c=d&e=f", "g"},
    {"http://h/?a[]=1&b=/?:@", "http", NULL, "h", 80, "/", "a[]=1&b=/?:@", ""},
    {"http://h/a%20b", "http", NULL, "h", 80, "/a%20b", "", ""},
    {"http://h/a%00b", "http", NULL, "h", 80, "/a%00b", "", ""},
    {"http://h//x//", "http", NULL, "h", 80, "//x//", "", ""},
    {"http://h/../..", "http", NULL, "h", 80, "/../..", "", ""},
    {"http://h/a:b@c;d=1,2!$&'()*+", "http", NULL, "h", 80, "/a:b@c;d=1,2!$&'()*+", "", ""},
    {"http://h/?#", "http", NULL, "h", 80, "/", "", ""},
    {"http://h/#a?b", "http", NULL, "h", 80, "/", "", "a?b"},
    {"unix:/run/croft.sock", "unix", NULL, "/run/croft.sock", 0, "/", "", ""},
    {"unix:///run/croft.sock", "unix", NULL, "/run/croft.sock", 0, "/", "", ""},
    {"unix:/run/croft.sock:/a/b?c=d", "unix", NULL, "/run/croft.sock", 0, "/a/b", "c=d", ""},
    {"unix:/run/x@1+2,3=4.sock:/", "unix", NULL, "/run/x@1+2,3=4.sock", 0, "/", "", ""},
};

struct bad {
    const char *text, *why;
};

static const struct bad bad[] = {
    {"", "no scheme"},
    {"h", "no scheme"},
    {"/path", "no scheme"},
    {"//h/", "no scheme"},
    {":", "scheme"},
    {"h:80", "scheme"},
    {"ftp://h/", "scheme"},
    {"httpx://h/", "scheme"},
    {" http://h/", "scheme"},
    {"javascript:alert(1)", "scheme"},
    {"file:///etc/passwd", "scheme"},
    {"http:", "'//'"},
    {"http:/h", "'//'"},
    {"http:h", "'//'"},
    {"http:\\\\h", "'//'"},
    {"http://", "no host"},
    {"http:///p", "no host"},
    {"http://:80/", "no host"},
    {"http://u@/", "no host"},
    {"http://?q", "no host"},
    {"http://h:/", "port"},
    {"http://h:0/", "port"},
    {"http://h:65536/", "port"},
    {"http://h:000080/", "port"},
    {"http://h:+80/", "port"},
    {"http://h:80x/", "port"},
    {"http://h:80:81/", "port"},
    {"http://h: 80/", "port"},
    {"http://a..b/", "empty label"},
    {"http://.a/", "empty label"},
    {"http://./", "empty label"},
    {"http://a b/", "0x20"},
    {"http://a%2eb/", "0x25"},
    {"http://a\\b/", "0x5c"},
    {"http://h\\@evil/", "0x5c"},
    {"http://a@b@c/", "0x40"},
    {"http://h\xc3\xa4/", "0xc3"},
    {"http://a\tb/", "0x09"},
    {"http://127.1/", "IPv4"},
    {"http://1.2.3.4.5/", "IPv4"},
    {"http://1.2.3.256/", "IPv4"},
    {"http://1.2.3.04/", "IPv4"},
    {"http://1.2.3.4./", "IPv4"},
    {"http://2130706433/", "IPv4"},
    {"http://0x7f.1/", "IPv4"},
    {"http://a.0x7f000001/", "IPv4"},
    {"http://[/", "']'"},
    {"http://[]/", "IPv6"},
    {"http://[::1/", "']'"},
    {"http://[1.2.3.4]/", "IPv6"},
    {"http://[::1%25eth0]/", "IPv6"},
    {"http://[:::1]/", "IPv6"},
    {"http://[::1]x/", "']'"},
    {"http://[::1]:/", "port"},
    {"http://::1/", "no host"},
    {"http://u ser@h/", "user"},
    {"http://u%4@h/", "escape"},
    {"http://h/a b", "path"},
    {"http://h/%", "escape"},
    {"http://h/%4", "escape"},
    {"http://h/%zz", "escape"},
    {"http://h/\r\nX: y", "path"},
    {"http://h/\x7f", "path"},
    {"http://h/\xc3\xa4", "path"},
    {"http://h/a\\b", "path"},
    {"http://h/a[b", "path"},
    {"http://h/?a b", "query"},
    {"http://h/?\n", "query"},
    {"http://h/?%g0", "escape"},
    {"http://h/#a#b", "fragment"},
    {"http://h/#\x01", "fragment"},
    {"unix:", "absolute"},
    {"unix:/", "absolute"},
    {"unix:run/x.sock", "absolute"},
    {"unix://run/x.sock", "absolute"},
    {"unix:/run/x.sock:", "begin with '/'"},
    {"unix:/run/x.sock:80", "begin with '/'"},
    {"unix:/run/x%20.sock", "socket"},
    {"unix:/run/x.sock?q", "socket"},
    {"unix:/run/x y", "socket"},
};

TEST(urls_are_cut_into_their_parts)
{
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        const struct good *g = &good[i];
        struct url u;
        CHECK_OK(url_parse(str_of(g->text), &u));
        CHECK_STR(u.scheme, g->scheme);
        CHECK_INT(u.userinfo.p != NULL, g->userinfo != NULL);
        CHECK_STR(u.userinfo, str_of(g->userinfo));
        CHECK_STR(u.host, g->host);
        CHECK_INT(u.port, g->port);
        CHECK_STR(u.path, g->path);
        CHECK_STR(u.query, g->query);
        CHECK_STR(u.fragment, g->fragment);
    }
}

TEST(bad_urls_are_refused_with_the_reason)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct url u = {.port = 7};
        struct err *e = url_parse(str_of(bad[i].text), &u);
        if (!e)
            FAIL("'%s' was accepted", bad[i].text);
        CHECK_ERR(e, ERR_INVALID, bad[i].why);
        CHECK_INT(u.port, 7); /* written only on success */
    }
}

TEST(a_nul_inside_a_url_is_refused)
{
    struct url u;

    CHECK_ERR(url_parse(STR("http://h\0.evil/"), &u), ERR_INVALID, "0x00");
    CHECK_ERR(url_parse(STR("http://[::1\0]/"), &u), ERR_INVALID, "IPv6");
    CHECK_ERR(url_parse(STR("unix:/run/x\0.sock"), &u), ERR_INVALID, "socket");
}

TEST(hosts_and_socket_paths_have_a_limit)
{
    char text[400] = "http://";
    struct url u;

    memset(text + 7, 'a', 63);
    CHECK_OK(url_parse(str_n(text, 70), &u));
    text[70] = 'a';
    CHECK_ERR(url_parse(str_n(text, 71), &u), ERR_INVALID, "label");
    for (size_t i = 7; i < 7 + 255; i++)
        text[i] = i % 2 ? 'a' : '.';
    CHECK_ERR(url_parse(str_n(text, 7 + 255), &u), ERR_INVALID, "too long");
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < 6; i++)
        text[i] = "unix:/"[i];
    CHECK_OK(url_parse(str_n(text, 5 + URL_MAX_SOCKET), &u));
    CHECK_ERR(url_parse(str_n(text, 5 + URL_MAX_SOCKET + 1), &u), ERR_INVALID, "at most 107");
}

TEST(host_and_target_are_put_together_again)
{
    static const char *const rows[][2] = {
        {"http://h:80", "h|h:80|/"},
        {"https://h:80/a?b=c#d", "h:80|h:80|/a?b=c"},
        {"wss://h", "h|h:443|/"},
        {"ws://[::1]:81/", "[::1]:81|[::1]:81|/"},
        {"unix:/run/s:/a?b", "localhost|localhost|/a?b"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        own_done(buf) got;
        struct url u;
        buf_init(&got, 1000);
        CHECK_OK(url_parse(str_of(rows[i][0]), &u));
        url_put_host(&got, &u, false);
        buf_add_char(&got, '|');
        url_put_host(&got, &u, true);
        buf_add_char(&got, '|');
        url_put_target(&got, &u);
        CHECK_STR(buf_str(&got), rows[i][1]);
    }
}

TEST(a_refused_url_is_not_repeated_since_it_may_hold_a_password)
{
    struct url u;
    own(err) e = url_parse(STR("http://me:hunter2@h:0/"), &u);

    CHECK(e != NULL);
    CHECK(strstr(err_text(e), "hunter2") == NULL);
}

TEST(decoding_undoes_escapes_and_refuses_bad_ones)
{
    struct arena a;
    struct str s;

    arena_init(&a, 1 << 16);
    CHECK_OK(url_decode(&a, STR("plain+x"), false, &s));
    CHECK_STR(s, "plain+x");
    CHECK_OK(url_decode(&a, STR("a+b%2Bc%20d%e4%C3%a4"), true, &s));
    CHECK_STR(s, "a b+c d\xe4\xc3\xa4");
    CHECK_OK(url_decode(&a, STR(""), true, &s));
    CHECK_STR(s, "");
    CHECK_OK(url_decode(&a, STR("%2525"), false, &s));
    CHECK_STR(s, "%25");
    CHECK_ERR(url_decode(&a, STR("%"), false, &s), ERR_INVALID, "escape");
    CHECK_ERR(url_decode(&a, STR("a%4"), false, &s), ERR_INVALID, "escape");
    CHECK_ERR(url_decode(&a, STR("%4x"), false, &s), ERR_INVALID, "escape");
    CHECK_ERR(url_decode(&a, STR("%x4"), false, &s), ERR_INVALID, "escape");
    CHECK_ERR(url_decode(&a, STR("x%00"), false, &s), ERR_INVALID, "%00");
    CHECK_ERR(url_decode(&a, STR("x\0y"), false, &s), ERR_INVALID, "NUL");
    arena_done(&a);
}

TEST(every_byte_survives_encoding)
{
    char all[255];
    struct arena a;
    struct buf b;
    struct str back;

    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)(i + 1);
    arena_init(&a, 1 << 16);
    buf_init(&b, 1 << 16);
    url_encode(&b, str_n(all, sizeof all), false);
    CHECK(str_find_char(buf_str(&b), '/') < 0);
    CHECK_OK(url_decode(&a, buf_str(&b), true, &back));
    CHECK_STR(back, str_n(all, sizeof all));
    buf_reset(&b);
    url_encode(&b, STR("a b/c\xc3\xa4~_-.+"), true);
    CHECK_STR(buf_str(&b), "a%20b/c%C3%A4~_-.%2B");
    buf_done(&b);
    arena_done(&a);
}

TEST(queries_keep_order_and_duplicates)
{
    struct arena a;
    struct url_param *p;
    size_t n;

    arena_init(&a, 1 << 16);
    CHECK_OK(url_parse_query(&a, STR("b=1&a=x+y%26&&b=2&flag&=v&e=&x=1=2&"), &p, &n));
    CHECK_INT(n, 7);
    CHECK_STR(p[0].name, "b");
    CHECK_STR(p[0].value, "1");
    CHECK_STR(p[1].value, "x y&");
    CHECK_STR(p[2].value, "2");
    CHECK_STR(p[3].name, "flag");
    CHECK_STR(p[3].value, "");
    CHECK_STR(p[4].name, "");
    CHECK_STR(p[4].value, "v");
    CHECK_STR(p[5].value, "");
    CHECK_STR(p[6].value, "1=2");
    CHECK_OK(url_parse_query(&a, STR(""), &p, &n));
    CHECK_INT(n, 0);
    CHECK_ERR(url_parse_query(&a, STR("a=%"), &p, &n), ERR_INVALID, "escape");
    arena_done(&a);
}

TEST(a_query_has_a_limit_of_parameters)
{
    char text[4u * (URL_MAX_PARAMS + 1)];
    struct arena a;
    struct url_param *p;
    size_t n;

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "a=1&"[i % 4];
    arena_init(&a, 1 << 16);
    CHECK_OK(url_parse_query(&a, str_n(text, sizeof text - 4), &p, &n));
    CHECK_INT(n, URL_MAX_PARAMS);
    CHECK_ERR(url_parse_query(&a, str_n(text, sizeof text), &p, &n), ERR_INVALID, "at most 200");
    arena_done(&a);
}

TEST(no_memory_for_a_query_is_an_error_of_that_query)
{
    struct arena a;
    struct url_param *p;
    size_t n;

    arena_init(&a, 1 << 16);
    fault_at(1);
    CHECK_ERR(url_parse_query(&a, STR("a=%20"), &p, &n), ERR_NO_MEMORY, "memory");
    arena_done(&a);
}
