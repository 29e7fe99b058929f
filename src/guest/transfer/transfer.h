// SPDX-License-Identifier: Apache-2.0
/* transfer.h — files in and out of a sandbox over HTTP: listing, upload, download, and the viewer.
 *
 * Any size in constant memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "guest/zip/zip.h"

struct http_req;
struct router;

struct transfer {
    const char *work_dir; /* absolute; relative paths of a listing start here */
    /* Paths lead nowhere but beneath this directory, links included; NULL: anywhere, as upstream.
     * root_fd is that directory. */
    const char *root;
    int root_fd;
    uid_t uid; /* of files and directories that are made; -1: the server's own */
    gid_t gid;
    struct zip_limits limits; /* of archives that are unpacked */
};

/* POST /upload_file?destination=&recursive=: a form with the part "file", streamed to disk. A zip
 * is unpacked. All or nothing: until the form is whole and the archive checked, everything lies in
 * one hidden directory beside the destination, which is gone when the answer comes. */
fallible transfer_upload_file(struct http_req *req);
/* GET /download_files?path=: a zip of the tree or file, made as it is sent. */
fallible transfer_download_files(struct http_req *req);
void transfer_add_routes(struct router *r, struct transfer *t);

/* The viewer is a server of its own, on loopback, without a key: GET / and GET /view?path=. */
void transfer_add_viewer_routes(struct router *r, struct transfer *t);
