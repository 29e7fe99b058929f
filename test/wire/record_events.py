# SPDX-License-Identifier: Apache-2.0
"""Records test/wire/events.txt: python3 record_events.py UPSTREAM > events.txt

UPSTREAM is a checkout of OpenHands 156d0686 (openhands/events, core/schema and llm/metrics.py are
enough). Each document goes through its event_from_dict and event_to_dict; a line with what went in
is followed by a line with what came out, as FastAPI prints it, or by the word "refused".
The version an upstream system message would name by default is left null.
"""
import copy
import json
import random
import sys
import types

import pydantic

sys.path.insert(0, sys.argv[1])


def stub(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module


class Logger:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class ModelResponse(pydantic.BaseModel):
    id: str = ""


if not hasattr(pydantic.BaseModel, "model_dump"):
    pydantic.BaseModel.model_dump = pydantic.BaseModel.dict
stub("litellm", ModelResponse=ModelResponse)
stub("openhands.core.logger", openhands_logger=Logger())
stub("openhands.core.exceptions", LLMMalformedActionError=type("Malformed", (Exception,), {}))
stub("openhands.version", get_version=lambda: None)
stub("openhands.events.stream", EventStream=None, EventStreamSubscriber=None)

from openhands.events.serialization.event import event_from_dict, event_to_dict  # noqa: E402

NASTY = "it's \"q\" \\ \n\t\x00\x1b\x7f é € 日本 😀 \u2028 {x} %s"
RISK = ("security_risk", -1, 2)
THOUGHT = ("thought", "", NASTY)
CONFIRMED = ("confirmation_state", "confirmed", "awaiting_confirmation")
TREE = {"b": [1, 2.5, None, True, {"é": "it's"}], "a": {}, "c": "'\"", "n": -0.0, "e": 1e22}

# name, (field, default or ..., another value)
ACTIONS = {
    "null": [],
    "run": [("command", ..., NASTY), ("is_input", False, True), THOUGHT, ("blocking", False, True),
            ("is_static", False, True), ("cwd", None, "/tmp"), ("hidden", False, True), CONFIRMED,
            RISK],
    "run_ipython": [("code", ..., NASTY), THOUGHT, ("include_extra", True, False), CONFIRMED, RISK,
                    ("kernel_init_code", "", "import os")],
    "read": [("path", ..., "/a b/ç"), ("start", 0, 3), ("end", -1, 9), THOUGHT, RISK,
             ("impl_source", "default", "oh_aci"), ("view_range", None, [1, -1])],
    "write": [("path", ..., "/f"), ("content", ..., NASTY), ("start", 0, 1), ("end", -1, 2),
              THOUGHT, RISK],
    "edit": [("path", ..., "/f"), ("command", "", "str_replace"), ("file_text", None, ""),
             ("old_str", None, NASTY), ("new_str", None, "x"), ("insert_line", None, 0),
             ("content", "", "c"), ("start", 1, 5), ("end", -1, 6), THOUGHT, RISK,
             ("impl_source", "oh_aci", "llm_based_edit")],
    "browse": [("url", ..., "http://x/?a=1&b=2"), THOUGHT, RISK, ("return_axtree", False, True)],
    "browse_interactive": [("browser_actions", ..., 'goto("x")\nnoop(5)'), THOUGHT,
                           ("browsergym_send_msg_to_user", "", "hi"), RISK,
                           ("return_axtree", False, True)],
    "call_tool_mcp": [("name", ..., "fetch"), ("arguments", {}, TREE), THOUGHT, RISK],
    "message": [("content", ..., NASTY), ("file_urls", None, ["f", "é"]),
                ("image_urls", None, ["data:image/png;base64,AA=="]),
                ("wait_for_response", False, True), RISK],
    "system": [("content", ..., "be kind"), ("tools", None, [TREE, 1]),
               ("openhands_version", None, "0.62.0"), ("agent_class", None, "CodeActAgent")],
    "recall": [("recall_type", ..., "knowledge"), ("query", "", "é" * 49 + "xyz"), THOUGHT],
    "think": [THOUGHT],
    "finish": [("final_thought", "", "end"), ("outputs", {}, TREE), THOUGHT],
    "reject": [("outputs", {}, {"reason": "no 'way'", "x": 1}), THOUGHT],
    "delegate": [("agent", ..., "BrowsingAgent"), ("inputs", ..., TREE), THOUGHT],
    "change_agent_state": [("agent_state", ..., "paused"), THOUGHT],
    "condensation_request": [],
    "task_tracking": [("command", "view", "plan"),
                      ("task_list", [], [{"id": 1, "title": "t", "status": "todo"}, {}]), THOUGHT],
    "loop_recovery": [("option", 1, 3)],
}
METADATA = {"exit_code": 7, "pid": 12, "username": "root", "hostname": "vm",
            "working_dir": "/workspace", "py_interpreter_path": "/usr/bin/python",
            "prefix": "[pre]\n", "suffix": "\n[suf]"}
OBSERVATIONS = {
    "null": [], "success": [], "user_rejected": [], "condense": [], "think": [],
    "loop_detection": [],
    "run": [("command", ..., NASTY), ("metadata", None, METADATA), ("hidden", False, True)],
    "run_ipython": [("code", ..., NASTY), ("image_urls", None, ["data:,1", "data:,2"])],
    "browse": [("url", ..., "http://x/"), ("trigger_by_action", ..., "browse"),
               ("screenshot", "", "data:,x"), ("screenshot_path", None, "/s.png"),
               ("set_of_marks", "", "data:,m"), ("error", False, True),
               ("goal_image_urls", [], ["g"]), ("open_pages_urls", [], ["http://x/"]),
               ("active_page_index", -1, 0), ("dom_object", {}, TREE), ("axtree_object", {}, TREE),
               ("extra_element_properties", {}, {"1": {"visibility": 1.0}}),
               ("last_browser_action", "", "noop()"), ("last_browser_action_error", "", "E"),
               ("focused_element_bid", "", "12"), ("filter_visible_only", False, True)],
    "read": [("path", ..., "/f"), ("impl_source", "default", "oh_aci")],
    "write": [("path", ..., "/f")],
    "edit": [("path", "", "/f"), ("prev_exist", False, True), ("old_content", None, NASTY),
             ("new_content", None, ""), ("impl_source", "llm_based_edit", "oh_aci"),
             ("diff", None, "-a\n+b"), ("_diff_cache", None, "cache")],
    "error": [("error_id", "", "E_1")],
    "download": [("file_path", ..., "/w/a.pdf")],
    "delegate": [("outputs", ..., TREE)],
    "agent_state_changed": [("agent_state", ..., "running"), ("reason", "", "because")],
    "recall": [("recall_type", ..., "workspace_context"), ("repo_name", "", "o/r"),
               ("repo_directory", "", "r"), ("repo_branch", "", "main"),
               ("repo_instructions", "", NASTY), ("runtime_hosts", {}, {"http://h": 8080}),
               ("additional_agent_instructions", "", "more"), ("date", "", "2025-11-28"),
               ("custom_secrets_descriptions", {}, {"KEY": "a key"}),
               ("conversation_instructions", "", "talk"), ("working_dir", "", "/workspace"),
               ("microagent_knowledge", [],
                [{"content": "c", "trigger": "t", "name": "n"},
                 {"name": "m", "trigger": "", "content": NASTY}])],
    "mcp": [("name", "", "fetch"), ("arguments", {}, TREE)],
    "task_tracking": [("command", "", "plan"), ("task_list", [], [{"id": 1}])],
}
USAGE = {"model": "m", "prompt_tokens": 1, "completion_tokens": 2, "cache_read_tokens": 3,
         "cache_write_tokens": 4, "context_window": 5, "per_turn_token": 6, "response_id": "r"}
ENVELOPE = {"id": 5, "timestamp": "2025-11-28T23:16:34.123456", "source": "agent",
            "message": "ignored", "cause": 4,
            "tool_call_metadata": {"function_name": "f", "tool_call_id": "c",
                                   "model_response": {"id": "x"}, "total_calls_in_response": 1},
            "llm_metrics": {"accumulated_cost": 0.25, "max_budget_per_task": None,
                            "accumulated_token_usage": USAGE,
                            "costs": [{"model": "m", "cost": 0.25, "timestamp": 1.5}],
                            "response_latencies": [{"model": "m", "latency": 0.5,
                                                    "response_id": "r"}],
                            "token_usages": [USAGE]}}


seen = set()


def record(document):
    line = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    if line in seen:
        return
    seen.add(line)
    try:
        event = event_from_dict(copy.deepcopy(document))
        out = json.dumps(event_to_dict(event), ensure_ascii=False, separators=(",", ":"),
                         allow_nan=False)
    except Exception:  # whatever it is, the request fails
        out = "refused"
    print(line)
    print(out)


def record_type(key, inside, name, fields, rng):
    def make(values, **more):
        document = {key: name, inside: values}
        if key == "observation":
            document["content"] = NASTY
        document.update(more)
        record(document)

    required = {f: v for f, d, v in fields if d is ...}
    everything = {f: v for f, d, v in fields}
    make(required)
    make(everything)
    make(everything, **ENVELOPE)
    for f, d, v in fields:
        make({**required, f: v})
        if d is ...:
            make({k: w for k, w in everything.items() if k != f})
        else:
            make({**required, f: d})
    for _ in range(4):
        some = {f: v for f, d, v in fields if d is ... or rng.random() < 0.5}
        items = list(some.items())
        rng.shuffle(items)
        make(dict(items), source=rng.choice(["agent", "user", "environment"]))


def record_legacy():
    def act(name, args, **more):
        record({"action": name, "args": args, **more})

    def editor(args, **more):
        return {"path": "/f", "translated_ipython_code": f"print(file_editor(**{args!r}))", **more}

    record({"action": "null"})
    record({"action": "null", "observation": "run"})
    record({"observation": "null"})
    record({"action": "nonsense", "args": {}})
    record({"action": 7, "args": {}})
    record({"action": "start", "args": {}})
    record({"observation": "nonsense", "content": ""})
    record({"content": "neither"})
    for source in ("robot", 5, ""):
        act("run", {"command": "ls"}, source=source)
    for state in ("rejected", None):
        act("run", {"command": "ls", "is_confirmed": state})
        act("run", {"command": "ls", "is_confirmed": state, "confirmation_state": "confirmed"})
    act("message", {"content": "c", "images_urls": ["u"]})
    act("message", {"content": "c", "images_urls": None})
    act("run", {"command": "ls", "keep_prompt": True, "task_completed": "true"})
    act("finish", {"task_completed": "partial", "thought": ""})
    for risk in (-1, 0, 1, 2, 3, -2, None, "HIGH", 1.0, True, False, [], 1.5):
        act("run", {"command": "ls", "security_risk": risk})
        act("call_tool_mcp", {"name": "n", "security_risk": risk})
    for timeout in (120, 1.5, 0, None, 1e22):
        for blocking in ({}, {"blocking": True}, {"blocking": False}):
            act("run", {"command": "ls", **blocking}, timeout=timeout)
        act("read", {"path": "/f"}, timeout=timeout)
    act("run", {"command": "ls", "timestamp": "2025-01-01T00:00:00"})
    act("run", {"command": "ls", "timestamp": ""})
    act("run", {"command": "ls", "timestamp": "a"}, timestamp="b")
    act("read", editor({"command": "view", "path": "/other"}))
    act("read", editor({"command": "view", "path": "/it's", "view_range": [1, 5]}))
    act("edit", editor({"command": "create", "path": "/g", "file_text": NASTY}))
    act("edit", editor({"command": "str_replace", "old_str": "a\nb", "new_str": None}))
    act("edit", {"path": "/f", "command": "view", "translated_ipython_code": None})
    act("edit", {"path": "/f", "command": "undo_edit", "translated_ipython_code": ""})
    act("edit", {"path": "/f", "translated_ipython_code": "print(file_editor(**{broken))"})
    act("edit", {"path": "/f", "translated_ipython_code": "print(file_editor(**open('x')))"})
    act("run", {"command": "view", "translated_ipython_code": ""})
    for args in ({"forgotten_event_ids": [1, 2, 5]}, {"forgotten_event_ids": []},
                 {"forgotten_events_start_id": 3, "forgotten_events_end_id": 6},
                 {"forgotten_events_start_id": 6, "forgotten_events_end_id": 3},
                 {"forgotten_event_ids": [1], "summary": "s", "summary_offset": 0},
                 {"forgotten_event_ids": [1], "summary": "", "summary_offset": 0},
                 {"forgotten_event_ids": [1], "forgotten_events_start_id": 3},
                 {"forgotten_event_ids": [1], "forgotten_events_start_id": 1,
                  "forgotten_events_end_id": 2},
                 {"forgotten_event_ids": [1], "summary": "s"},
                 {"forgotten_event_ids": [1], "summary_offset": 1},
                 {"forgotten_events_start_id": 3}, {}):
        act("condensation", args)
    for tasks in ([], [{}], [{}, {}, {}]):
        act("task_tracking", {"task_list": tasks})
    act("reject", {"outputs": {"reason": ""}})
    act("recall", {"recall_type": "whatever", "query": "q" * 51})
    for extras in ({"exit_code": 3}, {"command_id": 9}, {"exit_code": 0, "command_id": 1},
                   {"exit_code": 3, "metadata": METADATA}, {"metadata": {"exit_code": 0}},
                   {"metadata": {"unknown": 1, "suffix": "s"}}, {"metadata": None},
                   {"formatted_output_and_error": "x"}, {"anything": [1]}):
        record({"observation": "run", "content": "c", "extras": {"command": "ls", **extras}})
    record({"observation": "read", "content": "c",
            "extras": {"path": "/f", "formatted_output_and_error": "x"}})
    record({"observation": "recall", "content": "", "extras": {"recall_type": "other"}})
    record({"observation": "recall", "content": "",
            "extras": {"recall_type": "knowledge", "microagent_knowledge": [{"name": "n"}]}})


def main():
    rng = random.Random(1)
    for name, fields in ACTIONS.items():
        record_type("action", "args", name, fields, rng)
    for name, fields in OBSERVATIONS.items():
        record_type("observation", "extras", name, fields, rng)
    record_legacy()


main()
