// SPDX-License-Identifier: Apache-2.0
/* parse.c — lines "user:first:count" of /etc/subuid, "inside outside count" of a uid_map. */
#include "host/subids/subids.h"

static bool parse_number(struct str s, uint32_t *ret)
{
    uint64_t n;

    if (!str_to_u64(s, &n) || n > UINT32_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}

static bool parse_line(struct str line, struct str name, uint32_t id, uint32_t *ret_first,
                       uint32_t *ret_count)
{
    struct str who, first;
    uint32_t as_number;

    if (!str_cut(&line, ':', &who) || !str_cut(&line, ':', &first) ||
        !parse_number(first, ret_first) || !parse_number(str_trim(line), ret_count))
        return false;
    if (!str_eq(who, name) && !(parse_number(who, &as_number) && as_number == id))
        return false;
    /* 2^32-1 is no id */
    return *ret_count && *ret_first && *ret_count <= UINT32_MAX - *ret_first &&
           (id < *ret_first || id - *ret_first >= *ret_count);
}

bool subids_parse(struct str text, struct str name, uint32_t id, uint32_t *ret_first,
                  uint32_t *ret_count)
{
    uint32_t most = 0, first, count;
    struct str line;

    for (bool more = true; more;) {
        more = str_cut(&text, '\n', &line);
        if (!parse_line(line, name, id, &first, &count) || count <= most)
            continue;
        most = count;
        *ret_first = first;
        *ret_count = count;
    }
    return most > 0;
}

/* Columns are set apart by any number of spaces. */
static bool parse_column(struct str *line, uint32_t *ret)
{
    struct str word;

    *line = str_trim(*line);
    str_cut(line, ' ', &word);
    return parse_number(word, ret);
}

bool subids_has(struct str map, uint32_t first, uint32_t count)
{
    struct str line;

    for (bool more = true; more;) {
        uint32_t from, outside, n;
        more = str_cut(&map, '\n', &line);
        if (parse_column(&line, &from) && parse_column(&line, &outside) &&
            parse_column(&line, &n) && first >= from && n >= count && first - from <= n - count)
            return true;
    }
    return false;
}
