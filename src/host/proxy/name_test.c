// SPDX-License-Identifier: Apache-2.0
/* name_test.c — paths and host names that name sandboxes, and those that do not. */
#include "host/proxy/name.h"

#include "host/proxy/proxy.h"
#include "test/test.h"

TEST(a_path_names_a_sandbox_and_what_of_it)
{
    static const struct {
        struct str path, id, prefix, rest;
        int service;
    } rows[] = {
        {STR_INIT("/sandbox/abc"), STR_INIT("abc"), STR_INIT("/sandbox/abc"), STR_INIT("/"), -1},
        {STR_INIT("/sandbox/abc/"), STR_INIT("abc"), STR_INIT("/sandbox/abc"), STR_INIT("/"), -1},
        {STR_INIT("/sandbox/a-b_c.9/x//y"), STR_INIT("a-b_c.9"), STR_INIT("/sandbox/a-b_c.9"),
         STR_INIT("/x//y"), -1},
        {STR_INIT("//sandbox///abc//x"), STR_INIT("abc"), STR_INIT("//sandbox///abc"),
         STR_INIT("//x"), -1},
        {STR_INIT("/sandbox/abc/vscode"), STR_INIT("abc"), STR_INIT("/sandbox/abc/vscode"),
         STR_INIT("/"), PROXY_VSCODE},
        {STR_INIT("/sandbox/abc/work-2/a/b"), STR_INIT("abc"), STR_INIT("/sandbox/abc/work-2"),
         STR_INIT("/a/b"), PROXY_WORK_2},
        {STR_INIT("/sandbox/abc/work-1/"), STR_INIT("abc"), STR_INIT("/sandbox/abc/work-1"),
         STR_INIT("/"), PROXY_WORK_1},
        {STR_INIT("/sandbox/abc/work-3"), STR_INIT("abc"), STR_INIT("/sandbox/abc"),
         STR_INIT("/work-3"), -1},
        {STR_INIT("/sandbox/abc/vscodex"), STR_INIT("abc"), STR_INIT("/sandbox/abc"),
         STR_INIT("/vscodex"), -1},
        {STR_INIT("/sandbox/abc/vscode/connection_token"), STR_INIT("abc"),
         STR_INIT("/sandbox/abc"), STR_INIT("/vscode/connection_token"), -1},
    };
    struct proxy_name n;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK(name_by_path(rows[i].path, &n));
        CHECK_STR(n.id, rows[i].id);
        CHECK_STR(n.prefix, rows[i].prefix);
        CHECK_STR(n.path, rows[i].rest);
        CHECK_INT(n.service, rows[i].service);
    }
}

TEST(other_paths_name_none)
{
    static const struct str rows[] = {
        STR_INIT(""),
        STR_INIT("/"),
        STR_INIT("/sandbox"),
        STR_INIT("/sandbox/"),
        STR_INIT("/sandbox//"),
        STR_INIT("sandbox/abc"),
        STR_INIT("/sandboxes/abc"),
        STR_INIT("/x/sandbox/abc"),
        STR_INIT("/sandbox/a%62c"),
        STR_INIT("/sandbox/a b"),
        STR_INIT("/sandbox/"
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        STR_INIT("*"),
    };
    struct proxy_name n;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK(!name_by_path(rows[i], &n));
}

TEST(a_host_below_the_domain_names_a_sandbox)
{
    static const struct {
        struct str host, domain, label; /* label empty: none */
    } rows[] = {
        {STR_INIT("abc.run.example"), STR_INIT("run.example"), STR_INIT("abc")},
        {STR_INIT("ABC.Run.Example:8443"), STR_INIT("run.example"), STR_INIT("abc")},
        {STR_INIT("abc.run.example."), STR_INIT("run.example"), STR_INIT("abc")},
        {STR_INIT("vscode-abc.run.example"), STR_INIT("run.example"), STR_INIT("vscode-abc")},
        {STR_INIT("abc-run.example"), STR_INIT("-run.example"), STR_INIT("abc")},
        {STR_INIT("a.b.run.example"), STR_INIT("run.example"), STR_INIT("")},
        {STR_INIT("run.example"), STR_INIT("run.example"), STR_INIT("")},
        {STR_INIT(".run.example"), STR_INIT("run.example"), STR_INIT("")},
        {STR_INIT("abcrun.example"), STR_INIT("run.example"), STR_INIT("")},
        {STR_INIT("-run.example"), STR_INIT("-run.example"), STR_INIT("")},
        {STR_INIT("abc.run.example.evil"), STR_INIT("run.example"), STR_INIT("")},
        {STR_INIT("[::1]:80"), STR_INIT("run.example"), STR_INIT("")},
        {STR_INIT("abc.run.example"), STR_INIT(""), STR_INIT("")},
        {STR_INIT(""), STR_INIT("run.example"), STR_INIT("")},
    };
    char bytes[NAME_ID_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str label = STR("");
        CHECK(name_by_host(rows[i].host, rows[i].domain, bytes, &label) == (rows[i].label.len > 0));
        CHECK_STR(label, rows[i].label);
    }
}

TEST(a_host_is_below_the_domain_whatever_its_label_is)
{
    CHECK(name_is_below(STR("abc.run.example:80"), STR("run.example")));
    CHECK(name_is_below(STR("a.b.Run.Example."), STR("run.example")));
    CHECK(name_is_below(STR(".run.example"), STR("run.example")));
    CHECK(name_is_below(STR("-run.example"), STR("-run.example")));
    CHECK(!name_is_below(STR("run.example:80"), STR("run.example")));
    CHECK(!name_is_below(STR("prerun.example"), STR("run.example")));
    CHECK(!name_is_below(STR("a.run.example"), STR("")));
    CHECK(!name_is_below(STR(""), STR("run.example")));
}

TEST(a_label_splits_into_service_and_id)
{
    struct str id;
    int service;

    CHECK(name_split_label(STR("work-1-abc"), &service, &id));
    CHECK_INT(service, PROXY_WORK_1);
    CHECK_STR(id, "abc");
    CHECK(name_split_label(STR("vscode-abc"), &service, &id));
    CHECK_INT(service, PROXY_VSCODE);
    CHECK(!name_split_label(STR("vscode-"), &service, &id));
    CHECK(!name_split_label(STR("vscodeabc"), &service, &id));
    CHECK(!name_split_label(STR("work-3-abc"), &service, &id));
}

TEST(a_target_with_a_host_must_have_the_one_of_the_header)
{
    static const struct {
        const char *target, *host;
        bool same;
    } rows[] = {
        {"/http://a/", "b", true},
        {"*", "b", true},
        {"httpd:443", "b", true}, /* of CONNECT */
        {"http://a/x", "a", true},
        {"http://a?x", "A", true},
        {"http://A.example:8080", "a.example:8080", true},
        {"http://a:80/", "a", true},
        {"https://a/", "a:443", true},
        {"http://a/", "a:443", false},
        {"http://a:8080/", "a", false},
        {"http://b.domain/", "a.domain", false},
        {"http://a.domain@b.domain/", "a.domain", false},
        {"http://a.domain", "", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        own(err) e = name_check_target(str_of(rows[i].target), str_of(rows[i].host));
        if (!e != rows[i].same)
            FAIL("'%s' at '%s': %s", rows[i].target, rows[i].host, e ? err_text(e) : "taken");
        if (e)
            CHECK_INT(err_code(e), ERR_INVALID);
    }
    CHECK_OK(name_check_target(STR("http://a/"), (struct str){0}));
}

TEST(the_last_path_of_a_cookie_counts)
{
    static const struct {
        struct str cookie, path;
        bool found;
    } rows[] = {
        {STR_INIT("a=b; Path=/"), STR_INIT("/"), true},
        {STR_INIT("a=b;HttpOnly;path = /x ; Secure"), STR_INIT("/x"), true},
        {STR_INIT("a=b; Path=/x; PATH=/y"), STR_INIT("/y"), true},
        {STR_INIT("a=b; Path=/x=y"), STR_INIT("/x=y"), true},
        {STR_INIT("a=b; Path"), STR_INIT(""), true},
        {STR_INIT("path=/x; Secure"), STR_INIT(""), false},
        {STR_INIT("path=/x"), STR_INIT(""), false},
        {STR_INIT("a=b; Pathology=/"), STR_INIT(""), false},
        {STR_INIT(""), STR_INIT(""), false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str path = STR("");
        CHECK(name_cookie_path(rows[i].cookie, &path) == rows[i].found);
        CHECK_STR(path, rows[i].path);
    }
}
