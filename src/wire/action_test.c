// SPDX-License-Identifier: Apache-2.0
/* action_test.c — actions: defaults, messages, old forms, refusals. */
#include <math.h>

#include "test/wire/kit.h"

TEST(action_is_written_as_the_client_sends_it)
{
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_RUN);
    a.run.command = STR("ls");
    a.envelope.id = (struct wire_opt_int){true, 5};
    a.envelope.source = STR("agent");
    a.has_timeout = true;
    a.timeout_s = 120;
    CHECK_STR(kit_put_action(&a, JW_WEB),
              "{\"id\":5,\"source\":\"agent\",\"message\":\"Running command: ls\","
              "\"action\":\"run\",\"args\":{\"command\":\"ls\",\"is_input\":false,\"thought\":"
              "\"\",\"blocking\":false,\"is_static\":false,\"cwd\":null,\"hidden\":false,"
              "\"confirmation_state\":\"confirmed\",\"security_risk\":-1},\"timeout\":120.0}");
    CHECK_HAS(kit_put_action(&a, JW_PYTHON), "{\"id\": 5, \"source\": \"agent\", \"message\": ");
    arena_done(&kit_arena);
}

/* The table of the specification, word by word. */
TEST(action_rows_say_what_the_specification_says)
{
    static const char *const docs[WIRE_ACT_COUNT] = {
        [WIRE_ACT_NULL] = "",
        [WIRE_ACT_RUN] = "command: str; is_input: bool=false; thought: str=\"\"; blocking: "
                         "bool=false; is_static: bool=false; cwd: str|null=null; hidden: "
                         "bool=false; confirmation_state: str=\"confirmed\"; security_risk: int=-1",
        [WIRE_ACT_RUN_IPYTHON] =
            "code: str; thought: str=\"\"; include_extra: bool=true; confirmation_state: "
            "str=\"confirmed\"; security_risk: int=-1; kernel_init_code: str=\"\"",
        [WIRE_ACT_READ] = "path: str; start: int=0; end: int=-1; thought: str=\"\"; "
                          "security_risk: int=-1; impl_source: str=\"default\"; view_range: "
                          "list|null=null",
        [WIRE_ACT_WRITE] = "path: str; content: str; start: int=0; end: int=-1; thought: "
                           "str=\"\"; security_risk: int=-1",
        [WIRE_ACT_EDIT] = "path: str; command: str=\"\"; file_text: str|null=null; old_str: "
                          "str|null=null; new_str: str|null=null; insert_line: int|null=null; "
                          "content: str=\"\"; start: int=1; end: int=-1; thought: str=\"\"; "
                          "security_risk: int=-1; impl_source: str=\"oh_aci\"",
        [WIRE_ACT_BROWSE] =
            "url: str; thought: str=\"\"; security_risk: int=-1; return_axtree: bool=false",
        [WIRE_ACT_BROWSE_INTERACTIVE] =
            "browser_actions: str; thought: str=\"\"; browsergym_send_msg_to_user: str=\"\"; "
            "security_risk: int=-1; return_axtree: bool=false",
        [WIRE_ACT_CALL_TOOL_MCP] =
            "name: str; arguments: object={}; thought: str=\"\"; security_risk: int=-1",
        [WIRE_ACT_MESSAGE] = "content: str; file_urls: [str]|null=null; image_urls: "
                             "[str]|null=null; wait_for_response: bool=false; security_risk: "
                             "int=-1",
        [WIRE_ACT_SYSTEM] = "content: str; tools: list|null=null; openhands_version: "
                            "str|null=null; agent_class: str|null=null",
        [WIRE_ACT_RECALL] = "recall_type: str; query: str=\"\"; thought: str=\"\"",
        [WIRE_ACT_THINK] = "thought: str=\"\"",
        [WIRE_ACT_FINISH] = "final_thought: str=\"\"; outputs: object={}; thought: str=\"\"",
        [WIRE_ACT_REJECT] = "outputs: object={}; thought: str=\"\"",
        [WIRE_ACT_DELEGATE] = "agent: str; inputs: object; thought: str=\"\"",
        [WIRE_ACT_CHANGE_AGENT_STATE] = "agent_state: str; thought: str=\"\"",
        [WIRE_ACT_CONDENSATION] =
            "forgotten_event_ids: [int]|null=null; forgotten_events_start_id: int|null=null; "
            "forgotten_events_end_id: int|null=null; summary: str|null=null; summary_offset: "
            "int|null=null",
        [WIRE_ACT_CONDENSATION_REQUEST] = "",
        [WIRE_ACT_TASK_TRACKING] =
            "command: str=\"view\"; task_list: [object]=[]; thought: str=\"\"",
        [WIRE_ACT_LOOP_RECOVERY] = "option: int=1",
    };

    for (unsigned i = 0; i < WIRE_ACT_COUNT; i++) {
        struct buf b;
        buf_init(&b, 4096);
        wire_add_action_doc(&b, i);
        CHECK_STR(kit_keep(&b), docs[i]);
    }
    arena_done(&kit_arena);
}

TEST(action_message_says_what_it_does)
{
    static const char *const cases[][2] = {
        {"{'action':'null'}", "No action"},
        {"{'action':'run','args':{'command':'a {b}\\n'}}", "Running command: a {b}\\n"},
        {"{'action':'run_ipython','args':{'code':'1+1'}}",
         "Running Python code interactively: 1+1"},
        {"{'action':'read','args':{'path':'/é'}}", "Reading file: /é"},
        {"{'action':'write','args':{'path':'/f','content':'c'}}", "Writing file: /f"},
        {"{'action':'edit','args':{'path':'/f'}}", ""},
        {"{'action':'browse','args':{'url':'u'}}", "I am browsing the URL: u"},
        {"{'action':'browse_interactive','args':{'browser_actions':'noop()'}}",
         "I am interacting with the browser:\\n```\\nnoop()\\n```"},
        {"{'action':'call_tool_mcp','args':{'name':'n','arguments':{'a':[true,null,1.0,'x']}}}",
         "I am interacting with the MCP server with name:\\n```\\nn\\n```\\nand arguments:\\n"
         "```\\n{'a': [True, None, 1.0, 'x']}\\n```"},
        {"{'action':'message','args':{'content':'hi'}}", "hi"},
        {"{'action':'system','args':{'content':'be kind'}}", "be kind"},
        {"{'action':'recall','args':{'recall_type':'knowledge','query':"
         "'éééééééééé0123456789012345678901234567890123456789xyz'}}",
         "Retrieving content for: éééééééééé0123456789012345678901234567890123456789"},
        {"{'action':'think','args':{'thought':'t'}}", "I am thinking...: t"},
        {"{'action':'think'}", "I am thinking...: "},
        {"{'action':'finish'}", "All done! What's next on the agenda?"},
        {"{'action':'finish','args':{'thought':'bye'}}", "bye"},
        {"{'action':'reject'}", "Task is rejected by the agent."},
        {"{'action':'reject','args':{'outputs':{'reason':'no'}}}",
         "Task is rejected by the agent. Reason: no"},
        {"{'action':'delegate','args':{'agent':'A','inputs':{}}}",
         "I'm asking A for help with this task."},
        {"{'action':'change_agent_state','args':{'agent_state':'paused'}}",
         "Agent state changed to paused"},
        {"{'action':'condensation','args':{'forgotten_event_ids':[3,1]}}",
         "Condenser is dropping the events: [3, 1]."},
        {"{'action':'condensation','args':{'forgotten_events_start_id':-1,"
         "'forgotten_events_end_id':2}}",
         "Condenser is dropping the events: [-1, 0, 1, 2]."},
        {"{'action':'condensation','args':{'forgotten_events_start_id':9223372036854775807,"
         "'forgotten_events_end_id':9223372036854775807}}",
         "Condenser is dropping the events: [9223372036854775807]."},
        {"{'action':'condensation','args':{'forgotten_event_ids':[],'summary':'s',"
         "'summary_offset':4}}",
         "Summary: s"},
        {"{'action':'condensation_request'}",
         "Requesting a condensation of the conversation history."},
        {"{'action':'task_tracking'}", "Clearing the task list."},
        {"{'action':'task_tracking','args':{'task_list':[{}]}}", "Managing 1 task item."},
        {"{'action':'task_tracking','args':{'task_list':[{},{}]}}", "Managing 2 task items."},
        {"{'action':'loop_recovery'}", ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str want = arena_printf(&kit_arena, "{\"message\":\"%s\",", cases[i][1]);
        CHECK_STR(str_first(kit_out(cases[i][0]), want.len), want);
    }
    arena_done(&kit_arena);
}

static const struct wire_action *decoded(const char *text)
{
    static struct wire_action a;

    CHECK_OK(wire_decode_action(&kit_arena, kit_quoted(text), &a));
    return &a;
}

TEST(action_fills_its_struct)
{
    const struct wire_action *a = decoded(
        "{'action':'run','timeout':1.5,'args':{'command':'c','is_input':true,'cwd':'','hidden':"
        "true,'blocking':true,'thought':'t','confirmation_state':'rejected','security_risk':2}}");

    CHECK_INT(a->type, WIRE_ACT_RUN);
    CHECK(a->has_timeout && a->timeout_s == 1.5);
    CHECK(a->run.is_input && a->run.hidden && a->run.blocking && !a->run.is_static);
    CHECK(a->run.cwd.p != NULL);
    CHECK_STR(a->run.confirmation_state, "rejected");
    CHECK_INT(a->run.security_risk, WIRE_RISK_HIGH);
    a = decoded("{'action':'edit','args':{'path':'/f','insert_line':0,'old_str':'','start':2.0}}");
    CHECK(a->edit.insert_line && a->edit.insert_line->i == 0);
    CHECK(a->edit.old_str.p && !a->edit.new_str.p);
    CHECK_INT(a->edit.start, 2);
    CHECK_INT(a->edit.end, -1);
    CHECK_STR(a->edit.impl_source, "oh_aci");
    a = decoded(
        "{'action':'edit','args':{'path':'/f','insert_line':'2'}}"); /* the editor judges it */
    CHECK_STR(a->edit.insert_line->s, "2");
    a = decoded("{'action':'read','args':{'path':'/f','view_range':[1,'x',null]}}");
    CHECK_INT(a->read.view_range->count, 3);
    CHECK(!a->has_timeout);
    a = decoded("{'action':'think','args':{'thought':'t','extra':1}}");
    CHECK_INT(a->args->count, 1);
    arena_done(&kit_arena);
}

TEST(action_of_a_sandbox_is_one_of_seven)
{
    unsigned n = 0;
    enum wire_action_type type;

    for (unsigned i = 0; i < WIRE_ACT_COUNT; i++) {
        n += wire_action_is_runnable(i);
        CHECK(wire_action_find(str_of(wire_action_name(i)), &type));
        CHECK_INT(type, i);
    }
    CHECK_INT(n, 7);
    CHECK(!wire_action_is_runnable(WIRE_ACT_CALL_TOOL_MCP));
    CHECK(!wire_action_find(STR("send_pr"), &type));
    CHECK(!wire_action_find(STR(""), &type));
}

TEST(action_ignores_arguments_it_does_not_know)
{
    CHECK_STR(kit_out("{'action':'browse','args':{'zzz':1,'url':'u','is_confirmed':'x',"
                      "'keep_prompt':true,'images_urls':[]}}"),
              "{\"message\":\"I am browsing the URL: u\",\"action\":\"browse\",\"args\":{"
              "\"url\":\"u\",\"thought\":\"\",\"security_risk\":-1,\"return_axtree\":false}}");
    arena_done(&kit_arena);
}

TEST(action_takes_null_for_the_default_of_an_optional_field)
{
    const struct wire_action *a =
        decoded("{'action':'run','args':{'command':'c','thought':null,'is_input':null,"
                "'confirmation_state':null}}");

    CHECK_STR(a->run.thought, "");
    CHECK_STR(a->run.confirmation_state, "confirmed");
    CHECK(!a->run.is_input);
    arena_done(&kit_arena);
}

TEST(action_understands_old_streams)
{
    const struct wire_action *a =
        decoded("{'action':'run','args':{'command':'c','is_confirmed':'rejected'}}");

    CHECK_STR(a->run.confirmation_state, "rejected");
    a = decoded("{'action':'run','args':{'command':'c','is_confirmed':null,"
                "'confirmation_state':'rejected'}}");
    CHECK_STR(a->run.confirmation_state, "rejected");
    CHECK_HAS(kit_out("{'action':'message','args':{'content':'c','images_urls':['u']}}"),
              "\"image_urls\":[\"u\"]");
    a = decoded("{'action':'run','args':{'command':'c','timestamp':'t'}}");
    CHECK_STR(a->envelope.timestamp, "t");
    a = decoded("{'action':'run','timestamp':'s','args':{'command':'c','timestamp':'t'}}");
    CHECK_STR(a->envelope.timestamp, "s");
    /* a hard timeout makes blocking what args say, or false */
    a = decoded("{'action':'run','timeout':9,'args':{'command':'c'}}");
    CHECK(!a->run.blocking && a->timeout_s == 9);
    a = decoded("{'action':'run','timeout':9,'args':{'command':'c','blocking':true}}");
    CHECK(a->run.blocking);
    arena_done(&kit_arena);
}

TEST(action_reads_an_editor_call_out_of_python_code)
{
    static const struct {
        const char *type, *code, *part;
    } cases[] = {
        {"edit", "print(file_editor(**{'path': '/new', 'command': 'create'}))",
         "{\"path\":\"/new\",\"command\":\"create\","},
        {"edit", "print(file_editor(**{'command': 'view'}))",
         "{\"path\":\"/old\",\"command\":\"\""},
        {"read", "print(file_editor(**{'command': 'view', 'view_range': [1, 2]}))",
         "\"view_range\":[1,2]"},
        {"edit", "print(file_editor(**{'old_str': 'it\\\\'s\\\\n', 'insert_line': None}))",
         "\"old_str\":\"it's\\n\",\"new_str\":null,\"insert_line\":null"},
        {"edit", "print(file_editor(**{'command': oops}))", "\"command\":\"undo_edit\""},
        {"edit", "print(file_editor(**[1, 2]))", "\"command\":\"undo_edit\""},
        {"edit", "print(file_editor(**{'path': '/new'}", "\"path\":\"/old\""},
        {"edit", "print(file_editor(**))", "\"path\":\"/old\""},
        {"edit", "", "\"path\":\"/old\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str out = {0};
        struct str text = arena_printf(&kit_arena,
                                       "{\"action\":\"%s\",\"args\":{\"path\":\"/old\","
                                       "\"command\":\"undo_edit\","
                                       "\"translated_ipython_code\":\"%s\"}}",
                                       cases[i].type, cases[i].code);
        CHECK_OK(kit_pass(kit_tree(text), JW_WEB, &out));
        CHECK_HAS(out, cases[i].part);
    }
    arena_done(&kit_arena);
}

TEST(action_keeps_a_risk_and_drops_what_is_none)
{
    static const struct {
        const char *text;
        int64_t risk;
    } cases[] = {{"-1", -1},
                 {"0", 0},
                 {"1", 1},
                 {"2", 2},
                 {"2.0", 2},
                 {"true", 1},
                 {"false", 0},
                 {"3", -1},
                 {"-2", -1},
                 {"'HIGH'", -1},
                 {"[]", -1},
                 {"1.5", -1},
                 {"1e300", -1},
                 {"null", WIRE_RISK_NULL},
                 {"99999999999999999999", -1}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str text =
            arena_printf(&kit_arena, "{'action':'run','args':{'command':'c','security_risk':%s}}",
                         cases[i].text);
        CHECK_INT(decoded(text.p)->run.security_risk, cases[i].risk);
    }
    CHECK(str_find(kit_out("{'action':'run','args':{'command':'c','security_risk':null}}"),
                   STR("security_risk")) < 0);
    arena_done(&kit_arena);
}

TEST(action_names_the_field_it_refuses)
{
    static const char *const cases[][2] = {
        {"[]", "action must be a dictionary"},
        {"{}", "field 'action' is missing"},
        {"{'action':7}", "field 'action' must be a string, not"},
        {"{'action':'nope'}", "'nope' is not defined. Available actions: null, run, run_ipython"},
        {"{'action':'pause'}", "'pause' is not defined"},
        {"{'action':'a\\n\\u001b'}", "field 'action': 'a\\n\\x1b' is not defined"},
        {"{'action':'0123456789012345678901234567890123456789012345678901234567éé9'}",
         "'0123456789012345678901234567890123456789012345678901234567éé'... is not defined"},
        {"{'action':'run','args':[]}", "field 'args' must be an object, not array"},
        {"{'action':'run'}", "'run' has the wrong arguments: CmdRunAction.__init__() missing 1 "
                             "required positional argument: 'command'"},
        {"{'action':'write','args':{}}", "FileWriteAction.__init__() missing 2 required "
                                         "positional arguments: 'path' and 'content'"},
        {"{'action':'delegate'}", "'agent' and 'inputs'"},
        {"{'action':'run','args':{'command':null}}",
         "field 'args.command' must be a string, not null"},
        {"{'action':'run','args':{'command':['a']}}",
         "field 'args.command' must be a string, not array"},
        {"{'action':'run','args':{'command':'c','is_input':'true'}}",
         "field 'args.is_input' must be true or false, not string"},
        {"{'action':'run','args':{'command':'c','cwd':1}}", "'args.cwd' must be a string"},
        {"{'action':'read','args':{'path':'p','start':'1'}}",
         "'args.start' must be an integer, not string"},
        {"{'action':'read','args':{'path':'p','end':1.5}}", "'args.end' must be an integer"},
        {"{'action':'read','args':{'path':'p','end':99999999999999999999}}", "'args.end'"},
        {"{'action':'read','args':{'path':'p','view_range':'1-2'}}",
         "'args.view_range' must be an array"},
        {"{'action':'edit','args':{'path':'p','insert_line':true}}",
         "'args.insert_line' must be an integer"},
        {"{'action':'message','args':{'content':'c','image_urls':['a',1]}}",
         "'args.image_urls[1]' must be a string"},
        {"{'action':'call_tool_mcp','args':{'name':'n','arguments':[]}}",
         "'args.arguments' must be an object"},
        {"{'action':'task_tracking','args':{'task_list':[{},[]]}}",
         "'args.task_list[1]' must be an object"},
        {"{'action':'run','args':{'command':'c'},'timeout':'5'}",
         "field 'timeout' must be a number, not string"},
        {"{'action':'condensation'}", "Invalid configuration of the optional fields."},
        {"{'action':'condensation','args':{'forgotten_events_start_id':0,"
         "'forgotten_events_end_id':1000000}}",
         "field 'args.forgotten_events_end_id'"},
        {"{'action':'condensation','args':{'forgotten_events_start_id':-9223372036854775808,"
         "'forgotten_events_end_id':9223372036854775807}}",
         "field 'args.forgotten_events_end_id'"},
    };
    struct wire_action a = {.type = WIRE_ACT_THINK};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_ERR(wire_decode_action(&kit_arena, kit_quoted(cases[i][0]), &a), ERR_INVALID,
                  cases[i][1]);
    CHECK_INT(a.type, WIRE_ACT_THINK); /* not touched */
    CHECK_ERR(wire_decode_action(&kit_arena, NULL, &a), ERR_INVALID, "must be a dictionary");
    arena_done(&kit_arena);
}

TEST(action_refuses_a_timeout_that_is_no_number)
{
    struct wire_action a;
    struct json *event = kit_quoted("{'action':'null','timeout':1.0}");

    json_get(event, STR("timeout"))->d = (double)INFINITY;
    CHECK_ERR(wire_decode_action(&kit_arena, event, &a), ERR_INVALID, "'timeout'");
    arena_done(&kit_arena);
}
