// SPDX-License-Identifier: Apache-2.0
/* name.h — which sandbox, and what of it, a request names by its path or its Host. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define NAME_ID_MAX 64 /* bytes of an id; a label of a host name has 63 */

struct proxy_name {
    struct str id;     /* letters, digits, "-_." */
    int service;       /* enum proxy_service; -1: its server */
    struct str prefix; /* what was taken off the path; empty when named by host */
    struct str path;   /* the rest, with its slash */
};

/* The word of a service in paths and host names. */
struct str name_of_service(int service);
/* "/sandbox/ID/…"; slashes may be repeated. False: it names none. */
bool name_by_path(struct str path, struct proxy_name *ret_name);
/* "/ID/…", as clients build it: any first word, be it an id or not. */
bool name_by_first(struct str path, struct proxy_name *ret_name);
/* Has it the form of a runtime's id, 16 small letters? */
bool name_is_id(struct str word);
/* "LABEL.domain[:port]", without regard to case; gives the label in small letters: an id, or
 * "SERVICE-ID". The caller, which knows the ids, decides. A domain that begins with "-" is joined
 * without a dot. */
bool name_by_host(struct str host, struct str domain, char label[NAME_ID_MAX],
                  struct str *ret_label);
/* A target with a host must have the same as Host: ERR_INVALID. A program in front of us may look
 * at the other one. */
fallible name_check_target(struct str target, struct str host);
/* Is host one of those, whether its label can be an id or not? */
bool name_is_below(struct str host, struct str domain);
/* The value of a cookie's last Path attribute, which is the one that counts. False: none. */
bool name_cookie_path(struct str cookie, struct str *ret_path);
/* Takes "SERVICE-" off a label. False: there is none. */
bool name_split_label(struct str label, int *ret_service, struct str *ret_id);
