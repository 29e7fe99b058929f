// SPDX-License-Identifier: Apache-2.0
/* contract.h — what every backend must do, as rows; each backend's file runs them all.
 *
 * A row names the capabilities it is about; a backend that does not claim them has the row skipped,
 * by name. Helpers turn the loop until their answer is there and fail the test after a minute. */
#pragma once

#include "out/dial.h"
#include "sandbox/client/client.h"
#include "sandbox/sandbox.h"
#include "test/test.h"

struct contract {
    struct loop *loop;
    struct net *net;
    struct dialer dialer;
    struct sbx_launcher launcher;
    struct sbx_host host;
    struct sbx_driver *driver;
    unsigned gone;
    unsigned port; /* a program inside is to take, to be reached; 0: any */
    char state_dir[200];
};

struct contract_backend {
    const char *name;
    /* Before the driver is opened: another user, say. NULL: nothing. SKIP where it cannot be. */
    void (*prepare)(struct contract *c);
    void (*finish)(struct contract *c); /* after the driver is closed; NULL: nothing */
};

extern const struct contract_backend contract_native;       /* a launcher, as root */
extern const struct contract_backend contract_native_user;  /* the same, as nobody */
extern const struct contract_backend contract_native_range; /* who has a range of ids */

/* rows.c; X(name, capabilities) */
#define CONTRACT_ROWS(X)                                                                           \
    X(runs_commands, 0)                                                                            \
    X(reads_what_was_written, 0)                                                                   \
    X(edits_files, 0)                                                                              \
    X(keeps_a_shell_between_commands, 0)                                                           \
    X(gives_the_environment_of_the_spec, 0)                                                        \
    X(keeps_the_callers_variables_out, 0)                                                          \
    X(wants_the_session_key, 0)                                                                    \
    X(hides_the_session_key_from_commands, 0)                                                      \
    X(stops_and_starts_again, 0)                                                                   \
    X(ends_its_processes_when_stopped, 0)                                                          \
    X(leaves_nothing_when_removed, SBX_IS_HERE)                                                    \
    X(runs_two_at_once_apart, 0)                                                                   \
    X(refuses_an_id_twice, 0)                                                                      \
    X(refuses_bad_ids, 0)                                                                          \
    X(refuses_what_its_state_forbids, 0)                                                           \
    X(does_one_operation_at_a_time, 0)                                                             \
    X(refuses_by_name_what_it_lacks, 0)                                                            \
    X(tells_when_a_sandbox_dies, SBX_IS_HERE)                                                      \
    X(says_why_it_cannot_start, 0)                                                                 \
    X(leaks_nothing_over_many_lives, 0)                                                            \
    X(shows_a_workspace_of_the_host, SBX_CAN_MOUNT)                                                \
    X(binds_before_the_start, SBX_CAN_BIND)                                                        \
    X(counts_what_it_uses, 0)                                                                      \
    X(tells_and_undoes_what_it_changed, 0)                                                         \
    X(keeps_a_log, SBX_CAN_LOG)                                                                    \
    X(lets_go_of_a_log, SBX_CAN_LOG)                                                               \
    X(reaches_a_port_inside, SBX_CAN_EXPOSE)                                                       \
    X(pauses_and_resumes, SBX_CAN_PAUSE)                                                           \
    X(stops_while_paused, SBX_CAN_PAUSE)                                                           \
    X(forks_a_snapshot, SBX_CAN_SNAPSHOT)                                                          \
    X(keeps_forks_apart, SBX_CAN_SNAPSHOT)                                                         \
    X(forks_a_fork, SBX_CAN_SNAPSHOT)                                                              \
    X(snapshots_what_is_stopped, SBX_CAN_SNAPSHOT)                                                 \
    X(snapshots_what_is_paused, SBX_CAN_SNAPSHOT | SBX_CAN_PAUSE)                                  \
    X(snapshots_one_moment_of_what_runs, SBX_CAN_SNAPSHOT | SBX_CAN_PAUSE)                         \
    X(refuses_snapshots_by_name, SBX_CAN_SNAPSHOT)                                                 \
    X(lists_and_removes_snapshots, SBX_CAN_SNAPSHOT)                                               \
    X(holds_the_memory_limit, SBX_LIMITS_MEMORY)                                                   \
    X(holds_the_process_limit, SBX_LIMITS_PIDS)                                                    \
    X(holds_the_cpu_limit, SBX_LIMITS_CPU)                                                         \
    X(holds_the_open_files_limit, SBX_LIMITS_FILES)                                                \
    X(holds_the_disk_limit, SBX_LIMITS_DISK)                                                       \
    X(claims_a_warm_one, SBX_CAN_CLAIM)                                                            \
    X(starts_a_claimed_one_again, SBX_CAN_CLAIM)                                                   \
    X(claims_only_what_is_warm_and_once, SBX_CAN_CLAIM)                                            \
    X(leaves_a_warm_one_alone, SBX_CAN_CLAIM)                                                      \
    X(stays_warm_when_a_claim_is_refused, SBX_CAN_CLAIM)                                           \
    X(mounts_at_the_claim, SBX_CAN_CLAIM)                                                          \
    X(limits_at_the_claim, SBX_CAN_CLAIM | SBX_LIMITS_PIDS)                                        \
    X(runs_as_the_user_of_the_spec, SBX_CAN_CLAIM | SBX_CAN_USER)                                  \
    X(runs_a_command_as_given, SBX_CAN_CLAIM | SBX_CAN_EXPOSE | SBX_CAN_USER)                      \
    X(tells_how_a_command_ended, SBX_CAN_BIND)                                                     \
    X(starts_where_the_spec_says, SBX_CAN_BIND)                                                    \
    X(lists_what_is_there, SBX_CAN_LIST)                                                           \
    X(hides_the_hosts_files, SBX_HIDES_FILES)                                                      \
    X(hides_the_hosts_processes, SBX_HIDES_PROCESSES)                                              \
    X(hides_the_hosts_network, SBX_HIDES_NETWORK)

#define CONTRACT_DECLARE_(row, caps) void contract_##row(struct contract *c);
CONTRACT_ROWS(CONTRACT_DECLARE_)

void contract_run(const struct contract_backend *b, unsigned caps, void (*row)(struct contract *c));

/* One TEST for each row: contract_native_runs_commands … */
#define CONTRACT_TESTS(id, backend)                                                                \
    static const struct contract_backend *const contract_of_##id = backend;                        \
    CONTRACT_ROWS(CONTRACT_TEST_##id)
#define CONTRACT_TEST(id, row, caps)                                                               \
    TEST(contract_##id##_##row)                                                                    \
    {                                                                                              \
        contract_run(contract_of_##id, caps, contract_##row);                                      \
    }

/* native_test.c: a launcher of whoever we are, and its end. */
void contract_native_fork(struct contract *c);
void contract_native_end(struct contract *c);

/* --- for rows --- */
struct sbx *contract_create(struct contract *c, const struct sbx_spec *spec); /* spec may be NULL */
struct err *contract_start(struct contract *c, struct sbx *s); /* each gives its result */
struct err *contract_claim(struct contract *c, struct sbx *s, const struct sbx_spec *spec);
struct err *contract_stop(struct contract *c, struct sbx *s);
struct err *contract_pause(struct contract *c, struct sbx *s);
struct err *contract_resume(struct contract *c, struct sbx *s);
struct err *contract_remove(struct contract *c, struct sbx *s);
struct err *contract_measure(struct contract *c, struct sbx *s);
struct err *contract_files(struct contract *c, struct sbx *s, enum sbx_files what,
                           const char *text);
struct err *contract_snapshot(struct contract *c, struct sbx *s, const char *name);
/* Names joined by spaces; removing gives "" */
struct err *contract_snapshots(struct contract *c, const char *remove, char *out, size_t size);
struct sbx *contract_started(struct contract *c, const struct sbx_spec *spec);
void contract_end(struct contract *c, struct sbx *s); /* stop if need be, remove */

struct answer {
    enum action_failure failure;
    int http_status, exit_code;
    enum wire_observation_type type;
    char text[4096], suffix[400], error[600]; /* suffix: what is said of a command besides */
};
#define CONTRACT_WRONG_KEY "wrong"
/* Runs a command; key NULL: the one of the spec is not needed. A server that made its own key gets
 * that instead, but for the wrong one. */
struct answer contract_command(struct contract *c, struct sbx *s, const char *key,
                               const char *command);
struct answer contract_action(struct contract *c, struct sbx *s, const struct wire_action *a);
/* Bytes that a GET of a port inside is answered with; empty when it cannot be reached. */
void contract_get(struct contract *c, const struct sbx_address *address, char *out, size_t size);
/* It has so much memory, or so much of a processor, and no more. */
void contract_check_64_mib(struct contract *c, struct sbx *s);
void contract_check_a_tenth(struct contract *c, struct sbx *s);
void contract_turns_until(struct contract *c, const bool *flag);
