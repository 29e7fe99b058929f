// SPDX-License-Identifier: Apache-2.0
/* image_kit.c — see image_kit.h. */
#include "test/image_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/test.h"

/* $1: where to work. */
static const char make_layer[] =
    "set -e; cd \"$1\"; rm -rf img; mkdir -p img/root/bin img/root/etc img/root/app img/root/tmp "
    "img/root/proc img/root/sys img/root/dev img/root/run img/root/workspace img/root/srv/app; "
    "cd img/root; chmod 1777 tmp; chown 1234:55 srv/app; cp /bin/busybox bin/busybox; "
    "for c in sh cat id sleep nc httpd ls env stat echo; do ln bin/busybox bin/$c; done; "
    "cp -L \"$(command -v bash)\" bin/bash; "
    "for l in $(ldd bin/bash | grep -o '/[^ ]*'); do mkdir -p .${l%/*}; cp -L $l .$l; done; "
    "printf 'root:x:0:0::/root:/bin/sh\\napp:x:1234:55::/srv/app:/bin/sh\\n' >etc/passwd; "
    "printf 'root:x:0:\\nweb:x:55:\\nmore:x:77:app\\n' >etc/group; "
    "echo of-the-image >app/mark; "
    "tar --numeric-owner -cf ../layer.tar .; sha256sum ../layer.tar | cut -d' ' -f1";

void image_kit_import(const char *state, const char *name, const char *config)
{
    own_done(buf) out;
    own_fd here = test_dir_fd(), dir = -1;
    char text[4096], path[300];

    if (access("/bin/busybox", X_OK) < 0)
        SKIP("needs busybox-static");
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS("sh", "-c", make_layer, "sh", test_dir()), &out), 0);
    CHECK_INT(out.len, 65);
    CHECK((dir = openat(here, "img", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
    snprintf(text, sizeof text,
             "{\"architecture\":\"amd64\",\"config\":%s,\"rootfs\":{\"type\":\"layers\","
             "\"diff_ids\":[\"sha256:%.64s\"]}}",
             config, out.p);
    CHECK_OK(fd_replace_file(dir, "config.json", str_of(text), 0644));
    snprintf(text, sizeof text,
             "[{\"Config\":\"config.json\",\"RepoTags\":[\"%s\"],\"Layers\":[\"layer.tar\"]}]",
             name);
    CHECK_OK(fd_replace_file(dir, "manifest.json", str_of(text), 0644));
    snprintf(text, sizeof text,
             "cd '%s/img' && tar -cf ../img.tar manifest.json config.json layer.tar && rm -rf root "
             "layer.tar",
             test_dir());
    CHECK_INT(program_run(ARGS("sh", "-c", text), &out), 0);
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    snprintf(path, sizeof path, "%s/img.tar", test_dir());
    buf_reset(&out);
    if (program_run(ARGS(test_program("croft"), "image", "import", path), &out) != 0)
        FAIL("import: " STR_FMT, STR_ARG(buf_str(&out)));
    CHECK_INT(unlink(path), 0);
}
