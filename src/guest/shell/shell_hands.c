// SPDX-License-Identifier: Apache-2.0
/* shell_hands.c — what a person does at the terminal of a shell: types, presses keys, resizes the
 * window. */
#include <sys/ioctl.h>

#include "guest/shell/shell_inner.h"
#include "guest/shell/shell_keys.h"

#define SIDE_MAX 4096u

static fallible check_running(const struct shell *s)
{
    if (shell_is_running(s))
        return NULL;
    return err_new(ERR_CONFLICT, "no command runs in this shell: start one first");
}

fallible shell_send(struct shell *s, struct str bytes)
{
    TRY(check_running(s));
    if (s->out.len + s->early.len + bytes.len > SHELL_INPUT_MAX)
        return err_new(ERR_LIMIT, "%u bytes of input are unread: the program does not take them",
                       SHELL_INPUT_MAX);
    shell_input(s, bytes);
    return NULL;
}

fallible shell_send_key(struct shell *s, struct str key)
{
    own_done(buf) bytes;

    buf_init(&bytes, 64);
    TRY(check_running(s));
    if (shell_keys_control(key) == 'c') {
        shell_interrupt(s);
        return NULL;
    }
    if (!shell_keys_one(&bytes, key))
        return err_new(ERR_UNPROCESSABLE,
                       "no key '" STR_FMT "': C-x, UP DOWN LEFT RIGHT HOME END PGUP PGDN TAB ESC "
                       "BS ENTER; for text use input",
                       STR_ARG(str_first(key, 40)));
    return shell_send(s, buf_str(&bytes));
}

fallible shell_resize(struct shell *s, unsigned columns, unsigned rows)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

    if (columns < 1 || columns > SIDE_MAX || rows < 1 || rows > SIDE_MAX)
        return err_new(ERR_UNPROCESSABLE, "'columns' and 'rows' must be from 1 to %u", SIDE_MAX);
    if (!term_resize(s->term, columns, rows))
        return err_no_memory();
    s->config.columns = columns;
    s->config.rows = rows;
    if (s->master >= 0)
        ioctl(s->master, TIOCSWINSZ, &size);
    return NULL;
}

struct str shell_command(const struct shell *s)
{
    return shell_is_running(s) || s->command.now == CMD_HELD ? buf_str(&s->held) : STR("");
}
