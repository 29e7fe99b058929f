// SPDX-License-Identifier: Apache-2.0
/* settings.h — every setting of the host program, and where it may come from.
 *
 * Later wins: built-in, /etc/croft/croft.toml, $XDG_CONFIG_HOME/croft/croft.toml, the file named by
 * --config, environment, flags. A config.toml in the working directory is read only when --config
 * names it: a cloned repository must not configure the program that is to contain it. */
#pragma once

#include "base/cfg_family.h"

struct settings_core { /* OpenHands' [core]; variables are the bare names */
    struct str runtime, file_store, file_store_path, cache_dir;
    struct str workspace_base, workspace_mount_path, workspace_mount_path_in_sandbox,
        workspace_mount_rewrite;
    bool enable_browser, run_as_openhands, init_git_in_empty_workspace, debug;
    struct str default_agent, mcp_host, git_user_name, git_user_email, jwt_secret;
    uint64_t max_iterations, max_concurrent_conversations, conversation_max_age_seconds,
        client_wait_timeout, file_uploads_max_file_size_mb;
    bool file_uploads_restrict_file_types;
    struct json *file_uploads_allowed_extensions;
};

struct settings_sandbox {
    struct str remote_runtime_api_url, local_runtime_url, api_key, base_container_image,
        runtime_container_image, remote_runtime_class, runtime_binding_address, runtime_extra_deps,
        browsergym_eval_env, platform, cuda_visible_devices, selected_repo, volumes;
    bool keep_runtime_alive, pause_closed_runtimes, rm_all_containers,
        remote_runtime_enable_retries, enable_auto_lint, use_host_network, initialize_plugins,
        force_rebuild_runtime, enable_gpu;
    int64_t user_id; /* -1: whoever runs croft */
    uint64_t timeout, remote_runtime_init_timeout, remote_runtime_api_timeout,
        remote_runtime_resource_factor, close_delay, vscode_port; /* seconds; port 0: any */
    struct json *additional_networks, *runtime_extra_build_args, *runtime_startup_env_vars,
        *docker_runtime_kwargs, *trusted_dirs;
    struct json *env; /* SANDBOX_ENV_<X>=v as an object {X: v}; not a row */
};

struct settings_security {
    bool confirmation_mode;
    struct str security_analyzer;
};

struct settings_kubernetes {
    struct str namespace, ingress_domain, pvc_storage_size, pvc_storage_class, resource_cpu_request,
        resource_memory_request, resource_memory_limit, image_pull_secret, ingress_tls_secret,
        node_selector_key, node_selector_val, tolerations_yaml;
    bool privileged;
};

struct settings_limits { /* of a sandbox of resource_factor 1; 0: none */
    uint64_t memory, disk, pids, open_files;
    double cpus;
};

struct settings_idle { /* milliseconds; 0: never */
    uint64_t pause_after, stop_after, delete_after, failed_after, max_age;
};

struct settings_journal {
    uint64_t keep; /* bytes; 0: everything */
};

struct settings_telemetry {
    bool per_sandbox;
};

struct settings_tenant { /* of keys that were made without; 0: no limit */
    uint64_t most_runtimes, starts_per_minute;
    uint64_t most_snapshots; /* of every key; 0: no limit */
    uint64_t most_builds;    /* of every key, that wait or are being sent */
    uint64_t most_contexts;  /* of these: that are being sent */
};

struct settings_pool { /* [pool.NAME] */
    struct str name;
    struct str image, working_dir;
    struct json *command, *environment; /* array, object; NULL: not set */
    uint64_t target, ceiling;
    int64_t run_as_user, run_as_group, fs_group; /* -1: not set */
};
#define SETTINGS_POOLS 64

enum { /* what sandboxes may do with a directory; bits */
       SETTINGS_RO = 1 << 0,
       SETTINGS_OVERLAY = 1 << 1,
       SETTINGS_APPLY = 1 << 2, /* changes of an overlay may be taken over */
       SETTINGS_RW = 1 << 3,
};
struct settings_mount { /* [mount.NAME] */
    struct str name;
    struct str path;           /* absolute */
    struct json *modes, *keys; /* arrays of strings; keys empty: all that have the scope */
    unsigned may;              /* modes as bits */
};
#define SETTINGS_DOMAIN     253 /* characters a name has at most */
#define SETTINGS_MOUNTS     15
#define SETTINGS_MOUNT_PATH 255

struct settings {
    struct str log_level, log_format;
    struct str listen, state_dir; /* state_dir unset: by XDG, see settings_state_dir */
    struct str backend;           /* of the sandboxes of a server */
    struct str api_key;           /* asked for on every face; needed off loopback */
    struct str domain;            /* sandboxes answer at ID.domain too; unset: not */
    uint64_t most_starts;         /* that wait in line */
    uint64_t warm_recent;         /* sandboxes of an image that no pool has */
    uint64_t warm_recent_for;     /* ms after its last start */
    uint64_t most_sandboxes;      /* at once, warm ones included */
    uint64_t most_waiting;        /* requests that wait for the backend */
    uint64_t launcher_wait;       /* ms, for one that answers nobody */
    struct str public_url;        /* how clients reach us; sandboxes are then below it */
    struct str registry_prefix;   /* where clients tell us to put images they built */
    bool resume_on_request;       /* a request to a paused sandbox wakes it */
    bool rotate_session_key;      /* at resume */
    uint64_t build_wait;          /* ms that a start waits for its image */
    uint64_t build_bytes;         /* of contexts */
    uint64_t most_builds;         /* that wait or are being sent */
    struct settings_limits limits;
    struct settings_idle idle;
    struct settings_journal journal;
    struct settings_telemetry telemetry;
    struct settings_tenant tenant;
    struct settings_pool *pools; /* pool_count of them; not rows */
    size_t pool_count;
    struct settings_mount *mounts; /* mount_count of them; not rows */
    size_t mount_count;
    struct settings_core core;
    struct settings_sandbox sandbox;
    struct settings_security security;
    struct settings_kubernetes kubernetes;
};

/* The rows, for --help and the man page; into is set. */
struct cfg_table settings_table(struct settings *s);
extern const struct cfg_family settings_families[];
extern const size_t settings_family_count;

struct settings_loaded {
    struct arena arena; /* owns everything below */
    struct settings *settings;
    struct cfg_table tables[2];
    struct cfg cfg;
    struct json *files; /* array: the names of the files read, in order */
};

/* Defaults and flags: what fails here was typed wrongly. options, which may be NULL, are the flags
 * of the calling command and are filled too. What is left in argv are the arguments. Whatever comes
 * out of it, settings_loaded_done() ends it. */
fallible settings_begin(struct settings_loaded *l, struct settings *s,
                        const struct cfg_table *options, int *argc, char **argv);
/* Everything else; config_file is what --config named, or not set. */
fallible settings_load(struct settings_loaded *l, struct str config_file, const char *const *envp);
void settings_loaded_done(struct settings_loaded *l);

/* One file by its name: .yaml and .yml are YAML, .json is JSON, anything else TOML. */
fallible settings_load_file(struct settings_loaded *l, const char *path);
/* server.state_dir, or $XDG_STATE_HOME/croft, ~/.local/state/croft, /var/lib/croft for root. */
fallible settings_state_dir(const struct settings *s, struct arena *a, const char *const *envp,
                            bool root, struct str *ret_path);
