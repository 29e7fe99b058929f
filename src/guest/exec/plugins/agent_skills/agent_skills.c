// SPDX-License-Identifier: Apache-2.0
/* agent_skills.c — open_file, file_editor and their friends in cells. Their text is
 * guest/jupyter/skills.py; the kernel takes them in before its first cell when this is wanted. */
#include "guest/exec/plugin.h"

static fallible skills_start(struct plugin *p)
{
    plugin_ready(p);
    return NULL;
}

PLG_PLUGIN(agent_skills) = {
    .name = "agent_skills", .needs = "jupyter", .lazy = true, .start = skills_start};
