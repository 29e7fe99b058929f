// SPDX-License-Identifier: Apache-2.0
/* req.c — what handlers ask of a request. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/server_inner.h"

struct str http_req_header(const struct http_req *req, struct str name)
{
    return http_header_get(&req->head, name);
}

struct str http_req_id(const struct http_req *req)
{
    return req->id.p ? req->id : http_req_header(req, STR("x-request-id"));
}

struct str http_req_param(const struct http_req *req, const char *name)
{
    for (size_t i = 0; i < req->param_count; i++)
        if (str_eq(req->params[i].name, str_of(name)))
            return req->params[i].value;
    return (struct str){NULL, 0};
}

struct str http_req_query(struct http_req *req, const char *name)
{
    struct url_param *params;
    size_t count;
    struct err *e = url_parse_query(&req->arena, req->query, &params, &count);

    if (e) {
        err_free(e);
        return (struct str){NULL, 0};
    }
    for (size_t i = 0; i < count; i++)
        if (str_eq(params[i].name, str_of(name)))
            return params[i].value;
    return (struct str){NULL, 0};
}

fallible http_req_json(struct http_req *req, struct json **ret_body)
{
    struct err *e = json_parse(&req->arena, req->body, NULL, ret_body);

    if (e && err_code(e) == ERR_INVALID)
        return err_wrap(err_recode(e, ERR_UNPROCESSABLE), "the body is not JSON");
    return e;
}

struct str http_req_peer(struct http_req *req)
{
    struct conn *c = request_of(req)->conn;
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    char host[INET6_ADDRSTRLEN] = "";

    if (!c || getpeername(stream_fd(c->stream), (struct sockaddr *)&addr, &len) < 0)
        return STR("gone");
    if (addr.ss_family == AF_INET) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&addr;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        return arena_printf(&req->arena, "%s:%u", host, ntohs(v4->sin_port));
    }
    if (addr.ss_family == AF_INET6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addr;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        return arena_printf(&req->arena, "[%s]:%u", host, ntohs(v6->sin6_port));
    }
    return STR("unix");
}
