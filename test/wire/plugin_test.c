// SPDX-License-Identifier: Apache-2.0
/* plugin_test.c — --plugins from the outside. The editor in the browser is a stand-in script:
 * neither openvscode-server nor code-server is packaged for Debian. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "net/listen.h"
#include "test/aes.h"
#include "test/program.h"

#define PROGRAM "croft-guest"

static struct str plugins(struct aes *a)
{
    return aes_ask_get(a, "/croft/v1/plugins").body;
}

TEST(plugins_that_cost_nothing_are_there_without_being_named)
{
    struct aes a;

    aes_open_plain(&a, PROGRAM);
    CHECK_STR(plugins(&a), "[{\"name\":\"jupyter\",\"status\":\"ready\",\"error\":null},"
                           "{\"name\":\"agent_skills\",\"status\":\"ready\",\"error\":null}]");
    CHECK_STR(aes_ask_get(&a, "/vscode/connection_token").body, "{\"token\":null}");
    aes_close(&a);
}

TEST(plugin_that_nobody_knows_ends_the_start)
{
    own_done(buf) said;
    char address[300];

    buf_init(&said, 1u << 16);
    snprintf(address, sizeof address, "unix:%s/sock", test_dir());
    CHECK_INT(program_run(ARGS(test_program(PROGRAM), "action-server", address, "--plugins",
                               "jupyter", "telepathy"),
                          &said),
              2);
    CHECK_HAS(buf_str(&said), "Plugin telepathy not found; there are: ");
}

TEST(plugin_left_out_is_missed_in_the_words_of_the_original)
{
    struct aes a;

    aes_open(&a,
             &(struct aes_config){.program = PROGRAM, .args = ARGS("--plugins", "agent_skills")});
    CHECK_STR(plugins(&a), "[{\"name\":\"agent_skills\",\"status\":\"failed\","
                           "\"error\":\"needs 'jupyter': name it in --plugins\"}]");
    struct aes_answer got = aes_try_act(&a, "run_ipython", "'code':'1'");
    CHECK_INT(got.status, 500);
    CHECK_STR(got.body, "{\"detail\":\"Internal server error: JupyterRequirement not found. Unable "
                        "to run IPython action.\"}");
    aes_close(&a);
}

TEST(plugin_skills_are_in_cells_only_when_named)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = PROGRAM, .args = ARGS("--plugins", "jupyter")});
    CHECK_HAS(json_get_str(aes_act(&a, "run_ipython", "'code':'open_file'"), "content", STR("")),
              "NameError");
    aes_close(&a);
}

TEST(plugin_kernel_by_a_name_that_is_not_there_says_so)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = PROGRAM, .env = ARGS("CROFT_KERNEL=cobol")});
    CHECK_STR(plugins(&a),
              "[{\"name\":\"jupyter\",\"status\":\"failed\","
              "\"error\":\"no kernel named 'cobol' is installed\"},"
              "{\"name\":\"agent_skills\",\"status\":\"failed\",\"error\":\"needs 'jupyter', which "
              "failed: no kernel named 'cobol' is installed\"}]");
    struct json *o = aes_act(&a, "run_ipython", "'code':'1'");
    CHECK_STR(json_get_str(o, "observation", STR("")), "error");
    CHECK_HAS(json_get_str(o, "content", STR("")), "no kernel named 'cobol' is installed");
    aes_close(&a);
}

TEST(plugin_kernel_by_name_is_found_dies_and_comes_back)
{
    static const char spec[] = "{\"argv\":[\"python3\",\"-m\",\"ipykernel_launcher\",\"-f\","
                               "\"{connection_file}\"],\"language\":\"python\","
                               "\"display_name\":\"x\",\"env\":{\"MARK\":\"mine\"}}";
    struct aes a;

    if (access("/usr/share/jupyter/kernels/python3/kernel.json", R_OK) != 0)
        SKIP("/usr/bin/python3 has no ipykernel (apt install python3-ipykernel)");
    char path[400];
    snprintf(path, sizeof path, "JUPYTER_PATH=%s/jupyter", test_dir());
    CHECK_INT(mkdirat(test_dir_fd(), "jupyter", 0755), 0);
    CHECK_INT(mkdirat(test_dir_fd(), "jupyter/kernels", 0755), 0);
    CHECK_INT(mkdirat(test_dir_fd(), "jupyter/kernels/mine", 0755), 0);
    own_fd fd = openat(test_dir_fd(), "jupyter/kernels/mine/kernel.json",
                       O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, spec, sizeof spec - 1) == (ssize_t)sizeof spec - 1);
    aes_open(&a, &(struct aes_config){.program = PROGRAM,
                                      .args = ARGS("--plugins", "agent_skills", "jupyter"),
                                      .env = ARGS(path, "CROFT_KERNEL=mine")});
    CHECK_HAS(plugins(&a), "{\"name\":\"agent_skills\",\"status\":\"ready\",\"error\":null}");
    static const struct {
        const char *code, *part;
    } cells[] = {
        {"import os; x = 1; os.environ[\\'MARK\\']", "'mine'"},
        {"from openhands.runtime.plugins.agent_skills.agentskills import *; open_file(\\'/no\\')",
         "not found"},
        {"os._exit(7)", "[Python kernel died: "},
        {"x", "[Python kernel restarted: variables and imports of earlier cells are lost.]"},
        {"import os; os.environ[\\'MARK\\']", "'mine'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        struct json *o = aes_act(&a, "run_ipython", aes_text(&a, "'code':'%s'", cells[i].code));
        CHECK_HAS(json_get_str(o, "content", STR("")), cells[i].part);
    }
    aes_close(&a);
}

/* --- the editor in the browser --- */

static const char *stand_in(const char *name, const char *text)
{
    static char path[300];
    char dir[280];

    snprintf(dir, sizeof dir, "%s/stand-in", test_dir());
    mkdir(dir, 0755);
    snprintf(path, sizeof path, "CROFT_VSCODE=%s/%s", dir, name);
    FILE *f = fopen(strchr(path, '=') + 1, "we");
    CHECK(f && fprintf(f, "#!/bin/sh\n%s\n", text) > 0 && fclose(f) == 0);
    chmod(strchr(path, '=') + 1, 0755);
    return path;
}

static const char editor_script[] =
    "echo \"$@\" > said; pwd >> said; echo ${PASSWORD:-none} >> said\n"
    "echo Web UI available at http://localhost; exec sleep 1000";

static struct str token_of(struct aes *a)
{
    struct json *got = aes_json(a, aes_ask_get(a, "/vscode/connection_token").body);

    return json_get_str(got, "token", STR("(null)"));
}

TEST(plugin_vscode_starts_a_stand_in_with_token_and_port)
{
    struct aes a;
    char port[40];

    snprintf(port, sizeof port, "VSCODE_PORT=%u", test_free_port());
    aes_open(&a,
             &(struct aes_config){.program = PROGRAM,
                                  .args = ARGS("--plugins", "vscode"),
                                  .env = ARGS(port, stand_in("openvscode-server", editor_script),
                                              "RUNTIME_ID=r1", "RUNTIME_URL=http://h/r1/x")});
    CHECK_STR(plugins(&a), "[{\"name\":\"vscode\",\"status\":\"ready\",\"error\":null}]");
    struct str token = token_of(&a);
    CHECK_INT(token.len, 36);
    CHECK_STR(aes_get(&a, "said"),
              aes_text(&a,
                       "--host 0.0.0.0 --connection-token %.*s --port %s --server-base-path "
                       "/r1/vscode --disable-workspace-trust\n%s\nnone\n",
                       STR_ARG(token), strchr(port, '=') + 1, a.dir));
    CHECK_STR(aes_get(&a, ".vscode/settings.json"),
              "{\"workbench.colorTheme\":\"Default Dark Modern\",\"workbench.startupEditor\":"
              "\"none\",\"chat.commandCenter.enabled\":false}\n");
    aes_close(&a);
}

TEST(plugin_vscode_gives_code_server_its_token_as_password)
{
    struct aes a;
    char port[40];

    snprintf(port, sizeof port, "VSCODE_PORT=%u", test_free_port());
    aes_open(&a, &(struct aes_config){.program = PROGRAM,
                                      .args = ARGS("--plugins", "vscode"),
                                      .env = ARGS(port, stand_in("code-server", editor_script))});
    CHECK_STR(aes_get(&a, "said"),
              aes_text(&a,
                       "--auth=password --bind-addr=0.0.0.0:%s --disable-workspace-trust\n%s\n"
                       "%.*s\n",
                       strchr(port, '=') + 1, a.dir, STR_ARG(token_of(&a))));
    aes_close(&a);
}

TEST(plugin_vscode_says_what_is_wrong_and_stops_nothing)
{
    static const char dies[] = "echo no licence >&2; exit 3";
    char port[40], busy[40], url[100];
    int fd;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, url, sizeof url));
    snprintf(port, sizeof port, "VSCODE_PORT=%u", test_free_port());
    snprintf(busy, sizeof busy, "VSCODE_PORT%s", strrchr(url, ':'));
    *strchr(busy, ':') = '=';
    const struct {
        const char *port, *server, *user, *error;
        bool token;
    } rows[] = {
        {"VSCODE_PORT=", "X=", "root", "VSCODE_PORT is '': a port is wanted", false},
        {"VSCODE_PORT=x1", "X=", "root", "VSCODE_PORT is 'x1': a port is wanted", false},
        {busy, "X=", "root", "in use", true},
        {port, "X=", "root", "no openvscode-server and no code-server in this image", true},
        {port, "CROFT_VSCODE=/nowhere/x", "root", "CROFT_VSCODE: run '/nowhere/x': No such", true},
        {port, "", "root", "the server ended with exit status 3: no licence", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct aes a;
        const char *server = *rows[i].server ? rows[i].server : stand_in("dies", dies);
        aes_open(&a, &(struct aes_config){.program = PROGRAM,
                                          .args = ARGS("--plugins", "vscode"),
                                          .env = ARGS(rows[i].port, server)});
        CHECK_HAS(plugins(&a), "\"status\":\"failed\"");
        CHECK_HAS(plugins(&a), rows[i].error);
        CHECK_INT(token_of(&a).len == 36, rows[i].token);
        CHECK_HAS(aes_ask_get(&a, "/alive").body, "ok");
        CHECK(aes_exists(&a, ".vscode/settings.json"));
        aes_close(&a);
    }
    listen_close(fd);
}

TEST(plugin_that_is_never_ready_is_given_up_in_time)
{
    struct aes a;
    char port[40];

    snprintf(port, sizeof port, "VSCODE_PORT=%u", test_free_port());
    aes_open(
        &a, &(struct aes_config){.program = PROGRAM,
                                 .args = ARGS("--plugins", "vscode", "jupyter"),
                                 .env = ARGS(port, stand_in("openvscode-server", "exec sleep 1000"),
                                             "INIT_PLUGIN_TIMEOUT=1")});
    CHECK_HAS(plugins(&a), "{\"name\":\"vscode\",\"status\":\"failed\",\"error\":\"not ready after "
                           "1 s; see INIT_PLUGIN_TIMEOUT\"}");
    CHECK_HAS(plugins(&a), "{\"name\":\"jupyter\",\"status\":\"ready\",\"error\":null}");
    aes_close(&a);
}
