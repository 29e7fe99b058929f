// SPDX-License-Identifier: Apache-2.0
/* setup.c — see setup.h. A JSON string is a Python string: no quoting of our own. */
#include "guest/jupyter/setup.h"

#include "base/embed.h"
#include "base/json.h"

#define EMBED_MAX (1u << 20)

EMBED(jupyter_setup, "src/guest/jupyter/setup.py");
EMBED(jupyter_skills, "src/guest/jupyter/skills.py");

static void put_literal(struct buf *code, struct str text)
{
    struct jw w;

    jw_init(&w, code, 0); /* not JW_ASCII: Python would not join its surrogates */
    jw_str(&w, NULL, text);
}

static void put_embedded(struct buf *code, struct str packed)
{
    own_done(buf) text;

    buf_init(&text, EMBED_MAX);
    struct err *e = inflate_all(packed, &text);
    if (e)
        code->no_memory = true; /* these bytes are our own: nothing else can be wrong */
    err_free(e);
    put_literal(code, buf_str(&text));
}

void setup_put_first(struct buf *code, bool magics, bool skills)
{
    if (magics)
        buf_add_cstr(code, "%colors nocolor\n");
    buf_add_cstr(code, "exec(compile(");
    put_embedded(code, EMBEDDED(jupyter_setup));
    buf_addf(code, ", '<setup>', 'exec'), {'ipython': %s, 'target': globals(), 'skills': ",
             magics ? "True" : "False");
    if (skills)
        put_embedded(code, EMBEDDED(jupyter_skills));
    else
        put_literal(code, STR(""));
    buf_add_cstr(code, "})\nimport sys; print(sys.executable)");
}

void setup_put_chdir(struct buf *code, struct str cwd)
{
    buf_add_cstr(code, "import os; os.chdir(");
    put_literal(code, cwd);
    buf_add_cstr(code, ")");
}

struct str setup_interpreter(struct str printed)
{
    struct str s = str_trim(printed), line = {NULL, 0};

    while (str_cut(&s, '\n', &line) || line.len)
        if (!s.len)
            break;
    return str_trim(line);
}
