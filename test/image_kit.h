// SPDX-License-Identifier: Apache-2.0
/* image_kit.h — a small real image: this machine's bash and busybox, as `docker save` writes one.
 */
#pragma once

/* Imports it into a state directory under a name. config: of the image, JSON. It has users app
 * (1234, group web 55, home /srv/app) and none beside root, and a directory /app with a file of
 * root's. SKIPs where busybox is missing; skips nothing else. */
void image_kit_import(const char *state, const char *name, const char *config);
