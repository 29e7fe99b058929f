// SPDX-License-Identifier: Apache-2.0
/* settings_rows.c — one row for each setting; names and defaults of the OpenHands sections are that
 * project's and may not drift. */
#include "host/config/settings.h"

#define OH .foreign = true

static const struct cfg_row rows[] = {
    CFG_STR(settings, log_level, "log.level", "info", "How much to report.", .flag = "log-level",
            .choices = "debug|info|warn|error|off"),
    CFG_STR(settings, log_format, "log.format", "auto",
            "Form of the log: auto is text on a terminal and JSON lines otherwise.",
            .flag = "log-format", .choices = "auto|text|json"),
    CFG_STR(settings, listen, "server.listen", "127.0.0.1:3000",
            "Address and port of the App Server, the Runtime API and the page."),
    CFG_STR(settings, state_dir, "server.state_dir", NULL,
            "Where conversations, sandboxes and keys are kept; by XDG when unset."),
    CFG_STR(
        settings, backend, "server.backend", "native",
        "Where sandboxes are made: here (native), by the server of another machine (remote, see "
        "[sandbox] remote_runtime_api_url), or as plain processes that nothing isolates (local).",
        .flag = "backend", .choices = "native|remote|local"),
    CFG_SECRET(settings, api_key, "server.api_key",
               "Key that clients must show; needed to listen beyond loopback.", .flag = ""),
    CFG_STR(
        settings, domain, "server.domain", NULL,
        "Sandboxes answer at ID.domain instead, on the server's own port or public_url's: a name "
        "without a port, to which all names below it lead too; \"-example.com\" is joined without "
        "a "
        "dot.",
        .flag = ""),
    CFG_UINT(settings, most_starts, "server.most_starts", 10000,
             "Starts that may wait in line; more are told to come back.", .flag = "", .min = 1,
             .max = 100000),
    CFG_UINT(settings, most_sandboxes, "server.most_sandboxes", 8000,
             "Sandboxes at once, warm ones included.", .flag = "", .min = 1, .max = 100000),
    CFG_UINT(settings, warm_recent, "server.warm_recent", 2,
             "Sandboxes kept ready of an image that no [pool] has and that is started again within "
             "warm_recent_for; of four images at most. 0 is none.",
             .flag = "", .max = 64),
    CFG_MS(settings, warm_recent_for, "server.warm_recent_for", "10m",
           "They are kept so long after the last start of it.", .flag = ""),
    CFG_UINT(
        settings, most_waiting, "server.most_waiting", 4096,
        "Requests that may wait for a sandbox to be changed, or for what is known of an image; "
        "more are told to come back.",
        .flag = "", .min = 1, .max = 100000),
    CFG_MS(settings, launcher_wait, "server.launcher_wait", "20s",
           "When the launcher has answered nobody for so long, those who wait for it are told 503, "
           "and others at once, until it does. What it was asked it may still do; work that takes "
           "longer is waited for.",
           .flag = "", .min = 100, .max = 600000),
    CFG_STR(
        settings, public_url, "server.public_url", NULL,
        "How clients reach this server, http:// or https://; the url of a sandbox is then below "
        "it.",
        .flag = ""),
    CFG_STR(settings, registry_prefix, "server.registry_prefix", "localhost/croft",
            "The names of images that clients have built begin so, then '/'; a key without the "
            "scope admin "
            "can build no others, unless this is empty.",
            .flag = ""),
    CFG_BOOL(settings, resume_on_request, "server.resume_on_request", false,
             "A request to a paused sandbox wakes it, instead of being answered 503.", .flag = ""),
    CFG_MS(settings, build_wait, "server.build_wait", "60s",
           "A start whose image is being built is told as starting, waits so long for it, and has "
           "failed then. Clients wait 120 s or more. 0 is not at all: such a start is 503.",
           .flag = "", .max = 600000),
    CFG_SIZE(settings, build_bytes, "server.build_bytes", "8G",
             "Disk for what builds are made of (their contexts, up to 2G each), all together; one "
             "for which there is no room is 429.",
             .flag = "", .min = 1, .max = INT64_MAX),
    CFG_UINT(settings, most_builds, "server.most_builds", 16,
             "Builds that may wait, those included whose context is being sent; one more is 429. "
             "Two are made at a time.",
             .flag = "", .min = 1, .max = 10000),
    CFG_BOOL(settings, rotate_session_key, "server.rotate_session_key", false,
             "A resume answers with a new session key and the old one is refused. OpenHands' V0 "
             "clients keep the old one: with a key of the API beside it, that may act on the "
             "sandbox, it is accepted until the new one is used. Its SDK would be locked out.",
             .flag = ""),

    CFG_SIZE(settings, limits.memory, "limits.memory", "3G",
             "Memory of a sandbox; resource_factor multiplies it. 0 is no limit.", .flag = ""),
    CFG_DOUBLE(settings, limits.cpus, "limits.cpus", 2,
               "Processors of a sandbox; resource_factor multiplies it. 0 is no limit.", .flag = "",
               .max = 4096),
    CFG_UINT(settings, limits.pids, "limits.pids", 4096,
             "Processes and threads of a sandbox. 0 is no limit.", .flag = "", .max = 4194304),
    CFG_SIZE(settings, limits.disk, "limits.disk", "0",
             "What a sandbox may write to its disk; 'croft doctor' says by what means, and without "
             "project quotas a start takes some 10 ms longer. 0 is no limit.",
             .flag = ""),
    CFG_UINT(settings, limits.open_files, "limits.open_files", 0,
             "Files a process of a sandbox may have open. 0 is as the host has it.", .flag = "",
             .max = 1048576),

    CFG_MS(settings, idle.pause_after, "idle.pause_after", "0s",
           "A runtime nobody used so long is paused, where its backend can; a command run as given "
           "uses it as long as it runs. 0 is never.",
           .flag = ""),
    CFG_MS(settings, idle.stop_after, "idle.stop_after", "0s",
           "A runtime nobody used so long is stopped. 0 is never.", .flag = ""),
    CFG_MS(settings, idle.delete_after, "idle.delete_after", "0s",
           "A runtime that nobody used and that did not run for so long, because it is paused, "
           "stopped "
           "or failed, is removed with its files; one that runs never is. 0 is never.",
           .flag = ""),
    CFG_MS(settings, idle.failed_after, "idle.failed_after", "10m",
           "A runtime that could not be started is stopped after so long: until then it can be "
           "looked at and resumed, and counts. 0 is never.",
           .flag = ""),

    CFG_MS(
        settings, idle.max_age, "idle.max_age", "0s",
        "A runtime that has run so long since its start or last resume is paused, in use or not; "
        "OpenHands' own service takes 12h. 0 is never.",
        .flag = ""),

    CFG_SIZE(settings, journal.keep, "journal.keep", "256M",
             "What is kept of the journal, the newest; it has a few kilobytes for each start and "
             "stop. 0 is everything.",
             .flag = "", .max = INT64_MAX),

    CFG_BOOL(settings, telemetry.per_sandbox, "telemetry.per_sandbox", false,
             "/metrics has processor time and memory of each sandbox too, for who shows a key that "
             "may see it: two series each, as measured at the time before.",
             .flag = ""),

    CFG_UINT(settings, tenant.most_runtimes, "tenant.most_runtimes", 0,
             "Live runtimes of a key that was made without a limit of its own. 0 is no limit.",
             .flag = "", .max = 1000000),
    CFG_UINT(settings, tenant.starts_per_minute, "tenant.starts_per_minute", 0,
             "Starts in a minute of a key that was made without a limit of its own. 0 is no limit.",
             .flag = "", .max = 60000),
    CFG_UINT(settings, tenant.most_snapshots, "tenant.most_snapshots", 256,
             "Snapshots of a key, a fork under way being one; one more is 429. Their bytes are not "
             "counted: each may be as large as limits.disk. 0 is no limit.",
             .flag = "", .max = 1000000),
    CFG_UINT(
        settings, tenant.most_builds, "tenant.most_builds", 12,
        "Builds of a key that may wait, those included whose context is being sent: fewer than "
        "server.most_builds, or one key has all places. One more is 429.",
        .flag = "", .min = 1, .max = 10000),
    CFG_UINT(settings, tenant.most_contexts, "tenant.most_contexts", 2,
             "Contexts of builds that a key may be sending at a time; one more is 429.", .flag = "",
             .min = 1, .max = 10000),

    CFG_STR(settings, core.runtime, "core.runtime", "docker", "Sandbox backend.", OH),
    CFG_STR(settings, core.file_store, "core.file_store", "local", "Kind of file store.", OH),
    CFG_STR(settings, core.file_store_path, "core.file_store_path", "~/.openhands",
            "Folder of the file store.", OH),
    CFG_BOOL(settings, core.enable_browser, "core.enable_browser", true,
             "Offer the browser in sandboxes.", OH),
    CFG_STR(settings, core.workspace_base, "core.workspace_base", NULL,
            "Folder of the host that becomes the workspace.", OH),
    CFG_STR(settings, core.workspace_mount_path, "core.workspace_mount_path", NULL,
            "Folder to mount, when it differs from workspace_base.", OH),
    CFG_STR(settings, core.workspace_mount_path_in_sandbox, "core.workspace_mount_path_in_sandbox",
            "/workspace", "Where the workspace appears in a sandbox.", OH),
    CFG_STR(settings, core.workspace_mount_rewrite, "core.workspace_mount_rewrite", NULL,
            "from:to, applied to workspace_base.", OH),
    CFG_BOOL(settings, core.run_as_openhands, "core.run_as_openhands", true,
             "Run as an ordinary user in the sandbox, not as root.", OH),
    CFG_BOOL(settings, core.init_git_in_empty_workspace, "core.init_git_in_empty_workspace", false,
             "Make an empty workspace a git repository.", OH),
    CFG_BOOL(settings, core.debug, "core.debug", false, "Report everything.", OH),
    CFG_UINT(settings, core.max_concurrent_conversations, "core.max_concurrent_conversations", 3,
             "Conversations of one user that may run at once.", OH),
    CFG_UINT(settings, core.conversation_max_age_seconds, "core.conversation_max_age_seconds",
             864000, "Age at which a conversation is closed, in seconds.", OH),
    CFG_UINT(settings, core.client_wait_timeout, "core.client_wait_timeout", 30,
             "How long to wait for a client, in seconds.", OH),
    CFG_STR(settings, core.mcp_host, "core.mcp_host", "localhost:3000",
            "Address of the MCP endpoint as sandboxes see it.", OH),
    CFG_STR(settings, core.git_user_name, "core.git_user_name", "openhands",
            "Name on commits made in a sandbox.", OH),
    CFG_STR(settings, core.git_user_email, "core.git_user_email", "openhands@all-hands.dev",
            "Address on commits made in a sandbox.", OH),
    CFG_SECRET(settings, core.jwt_secret, "core.jwt_secret",
               "Signs session tokens; made and stored when unset.", OH),
    CFG_STR(settings, core.default_agent, "core.default_agent", "CodeActAgent",
            "Agent of a conversation that names none.", OH),
    CFG_UINT(settings, core.max_iterations, "core.max_iterations", 500,
             "Steps after which an agent stops.", OH),
    CFG_STR(settings, core.cache_dir, "core.cache_dir", "/tmp/cache", "Folder for caches.", OH),
    CFG_UINT(settings, core.file_uploads_max_file_size_mb, "core.file_uploads_max_file_size_mb", 0,
             "Largest upload in megabytes; 0 is no limit.", OH),
    CFG_BOOL(settings, core.file_uploads_restrict_file_types,
             "core.file_uploads_restrict_file_types", false,
             "Take uploads of the allowed extensions only.", OH),
    CFG_LIST(settings, core.file_uploads_allowed_extensions, "core.file_uploads_allowed_extensions",
             "['.*']", "Extensions allowed for uploads.", OH),

    CFG_STR(settings, sandbox.remote_runtime_api_url, "sandbox.remote_runtime_api_url",
            "http://localhost:8000", "Runtime API of the remote backend.", OH),
    CFG_STR(settings, sandbox.local_runtime_url, "sandbox.local_runtime_url", "http://localhost",
            "Host name of sandboxes on this machine.", OH),
    CFG_BOOL(settings, sandbox.keep_runtime_alive, "sandbox.keep_runtime_alive", false,
             "Leave a sandbox running when its conversation closes.", OH),
    CFG_BOOL(settings, sandbox.pause_closed_runtimes, "sandbox.pause_closed_runtimes", true,
             "With keep_runtime_alive: pause it instead.", OH),
    CFG_BOOL(settings, sandbox.rm_all_containers, "sandbox.rm_all_containers", false,
             "Closing ends every sandbox with the same name prefix.", OH),
    CFG_SECRET(settings, sandbox.api_key, "sandbox.api_key", "Key of the Runtime API.", OH),
    CFG_STR(settings, sandbox.base_container_image, "sandbox.base_container_image",
            "nikolaik/python-nodejs:python3.12-nodejs22", "Image that runtime images are built on.",
            OH),
    CFG_STR(settings, sandbox.runtime_container_image, "sandbox.runtime_container_image", NULL,
            "Ready image; nothing is built.", OH),
    CFG_INT(settings, sandbox.user_id, "sandbox.user_id", -1,
            "User id in the sandbox; -1 is that of whoever runs croft.", OH),
    CFG_UINT(settings, sandbox.timeout, "sandbox.timeout", 120,
             "Limit of an action that sets none, in seconds.", OH),
    CFG_UINT(settings, sandbox.remote_runtime_init_timeout, "sandbox.remote_runtime_init_timeout",
             180, "How long a remote sandbox may take to start, in seconds.", OH),
    CFG_UINT(settings, sandbox.remote_runtime_api_timeout, "sandbox.remote_runtime_api_timeout",
             180, "Limit of one call of the Runtime API, in seconds.", OH),
    CFG_BOOL(settings, sandbox.remote_runtime_enable_retries,
             "sandbox.remote_runtime_enable_retries", true, "Repeat failed calls.", OH),
    CFG_STR(settings, sandbox.remote_runtime_class, "sandbox.remote_runtime_class", NULL,
            "gvisor or sysbox, for the remote backend.", OH),
    CFG_UINT(settings, sandbox.remote_runtime_resource_factor,
             "sandbox.remote_runtime_resource_factor", 1, "Size of a remote sandbox: 1, 2, 4 or 8.",
             OH),
    CFG_BOOL(settings, sandbox.enable_auto_lint, "sandbox.enable_auto_lint", false,
             "Lint files after each edit.", OH),
    CFG_BOOL(settings, sandbox.use_host_network, "sandbox.use_host_network", false,
             "Share the network of the host.", OH),
    CFG_LIST(settings, sandbox.additional_networks, "sandbox.additional_networks", "[]",
             "Docker networks to join as well.", OH),
    CFG_STR(settings, sandbox.runtime_binding_address, "sandbox.runtime_binding_address", "0.0.0.0",
            "Address of the host that sandbox ports are bound to.", OH),
    CFG_LIST(settings, sandbox.runtime_extra_build_args, "sandbox.runtime_extra_build_args", NULL,
             "Arguments added to an image build.", OH),
    CFG_BOOL(settings, sandbox.initialize_plugins, "sandbox.initialize_plugins", true,
             "Start plugins with the sandbox.", OH),
    CFG_BOOL(settings, sandbox.force_rebuild_runtime, "sandbox.force_rebuild_runtime", false,
             "Build the image even if there is one.", OH),
    CFG_STR(settings, sandbox.runtime_extra_deps, "sandbox.runtime_extra_deps", NULL,
            "Command that installs more into the image.", OH),
    CFG_DICT(settings, sandbox.runtime_startup_env_vars, "sandbox.runtime_startup_env_vars", "{}",
             "Variables set in every sandbox.", OH),
    CFG_STR(settings, sandbox.browsergym_eval_env, "sandbox.browsergym_eval_env", NULL,
            "Environment of a BrowserGym evaluation.", OH),
    CFG_STR(settings, sandbox.platform, "sandbox.platform", NULL,
            "Platform of images, such as linux/amd64.", OH),
    CFG_UINT(settings, sandbox.close_delay, "sandbox.close_delay", 3600,
             "Idle time after which a session is closed, in seconds.", OH),
    CFG_BOOL(settings, sandbox.enable_gpu, "sandbox.enable_gpu", false, "Offer the GPUs.", OH),
    CFG_STR(settings, sandbox.cuda_visible_devices, "sandbox.cuda_visible_devices", NULL,
            "Which GPUs, by id, with commas between.", OH),
    CFG_DICT(settings, sandbox.docker_runtime_kwargs, "sandbox.docker_runtime_kwargs", NULL,
             "More settings for docker to create a sandbox with.", OH),
    CFG_STR(settings, sandbox.selected_repo, "sandbox.selected_repo", NULL,
            "Repository to clone first.", OH),
    CFG_LIST(settings, sandbox.trusted_dirs, "sandbox.trusted_dirs", "[]",
             "Folders the command line may work in without asking.", OH),
    CFG_ROW_(CFG_TYPE_UINT, settings, sandbox.vscode_port, "sandbox.vscode_port", NULL,
             "Port of the editor; any free one when unset.", .max = 65535, OH),
    CFG_STR(settings, sandbox.volumes, "sandbox.volumes", NULL,
            "host:sandbox[:mode] mounts, with commas between.", OH),

    CFG_BOOL(settings, security.confirmation_mode, "security.confirmation_mode", false,
             "Ask before each action.", OH),
    CFG_STR(settings, security.security_analyzer, "security.security_analyzer", NULL,
            "What judges the risk of an action.", OH),

    CFG_STR(settings, kubernetes.namespace, "kubernetes.namespace", "default", "Namespace.", OH),
    CFG_STR(settings, kubernetes.ingress_domain, "kubernetes.ingress_domain", "localhost",
            "Domain of ingress resources.", OH),
    CFG_STR(settings, kubernetes.pvc_storage_size, "kubernetes.pvc_storage_size", "2Gi",
            "Size of a volume claim.", OH),
    CFG_STR(settings, kubernetes.pvc_storage_class, "kubernetes.pvc_storage_class", NULL,
            "Storage class of a volume claim.", OH),
    CFG_STR(settings, kubernetes.resource_cpu_request, "kubernetes.resource_cpu_request", "1",
            "CPUs a pod asks for.", OH),
    CFG_STR(settings, kubernetes.resource_memory_request, "kubernetes.resource_memory_request",
            "1Gi", "Memory a pod asks for.", OH),
    CFG_STR(settings, kubernetes.resource_memory_limit, "kubernetes.resource_memory_limit", "2Gi",
            "Memory a pod may use.", OH),
    CFG_STR(settings, kubernetes.image_pull_secret, "kubernetes.image_pull_secret", NULL,
            "Name of the secret for a private registry.", OH),
    CFG_STR(settings, kubernetes.ingress_tls_secret, "kubernetes.ingress_tls_secret", NULL,
            "Name of the TLS secret of the ingress.", OH),
    CFG_STR(settings, kubernetes.node_selector_key, "kubernetes.node_selector_key", NULL,
            "Label that nodes must have.", OH),
    CFG_STR(settings, kubernetes.node_selector_val, "kubernetes.node_selector_val", NULL,
            "Value of that label.", OH),
    CFG_STR(settings, kubernetes.tolerations_yaml, "kubernetes.tolerations_yaml", NULL,
            "Tolerations of a pod, as YAML.", OH),
    CFG_BOOL(settings, kubernetes.privileged, "kubernetes.privileged", false,
             "Run pods privileged.", OH),
};

static const struct cfg_row pool_rows[] = {
    CFG_STR(settings_pool, image, "image", "host", "Image of the sandboxes kept ready."),
    CFG_UINT(settings_pool, target, "target", 2, "Sandboxes kept ready.", .max = 10000),
    CFG_UINT(settings_pool, ceiling, "ceiling", 0,
             "Most that target may be raised to while the server runs; 0 is target.", .max = 10000),
    CFG_LIST(settings_pool, command, "command", NULL,
             "Command that clients are told to start them with."),
    CFG_DICT(settings_pool, environment, "environment", NULL,
             "Variables that clients are told to start them with."),
    CFG_STR(settings_pool, working_dir, "working_dir", NULL,
            "Directory that clients are told to start them in."),
    CFG_INT(settings_pool, run_as_user, "run_as_user", -1,
            "User id that clients are told to ask for; -1 is none.", .min = -1, .max = 65535),
    CFG_INT(settings_pool, run_as_group, "run_as_group", -1,
            "Group id that clients are told to ask for; -1 is none.", .min = -1, .max = 65535),
    CFG_INT(settings_pool, fs_group, "fs_group", -1,
            "Group of files that clients are told to ask for; -1 is none.", .min = -1,
            .max = 65535),
};

static const struct cfg_row mount_rows[] = {
    CFG_STR(settings_mount, path, "path", NULL,
            "A directory of this machine that sandboxes may mount, or parts of it. Taken over by "
            "a launcher when it starts: with sandboxes alive, a change comes with the next."),
    CFG_LIST(settings_mount, modes, "modes", "['ro', 'overlay']",
             "How: ro, overlay (copy-on-write), apply (and changes of an overlay may be put into "
             "the directory), rw (the directory itself)."),
    CFG_LIST(settings_mount, keys, "keys", "[]",
             "Names of keys that may; empty is every key with the scope 'mount'."),
};

const struct cfg_family settings_families[] = {
    {"mount", mount_rows, ARRAY_LEN(mount_rows), sizeof(struct settings_mount), SETTINGS_MOUNTS},
    {"pool", pool_rows, ARRAY_LEN(pool_rows), sizeof(struct settings_pool), SETTINGS_POOLS},
};
const size_t settings_family_count = ARRAY_LEN(settings_families);

struct cfg_table settings_table(struct settings *s)
{
    return (struct cfg_table){rows, ARRAY_LEN(rows), s};
}
