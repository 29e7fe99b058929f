// SPDX-License-Identifier: Apache-2.0
/* setup.c — see setup.h. A JSON string is a Python string: no quoting of our own. */
#include "guest/jupyter/setup.h"

#include "base/json.h"
#include "guest/jupyter/embed.h"

static void put_literal(struct buf *code, struct str text)
{
    struct jw w;

    jw_init(&w, code, 0); /* not JW_ASCII: Python would not join its surrogates */
    jw_str(&w, NULL, text);
}

void setup_put_first(struct buf *code, bool magics, bool skills)
{
    if (magics)
        buf_add_cstr(code, "%colors nocolor\n");
    buf_add_cstr(code, "exec(compile(");
    put_literal(code, embed_setup());
    buf_addf(code, ", '<setup>', 'exec'), {'ipython': %s, 'target': globals(), 'skills': ",
             magics ? "True" : "False");
    put_literal(code, skills ? embed_skills() : STR(""));
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
