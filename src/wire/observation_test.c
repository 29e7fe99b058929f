// SPDX-License-Identifier: Apache-2.0
/* observation_test.c — observations: defaults, messages, old forms, refusals. */
#include "test/wire/kit.h"

TEST(observation_run_is_written_as_the_server_answers)
{
    struct wire_observation o;

    wire_observation_init(&o, WIRE_OBS_RUN);
    o.content = STR("hi");
    o.run.command = STR("echo hi");
    o.run.metadata.exit_code = 0;
    o.run.metadata.username = STR("root");
    o.run.metadata.hostname = STR("vm");
    o.run.metadata.working_dir = STR("/workspace");
    o.run.metadata.py_interpreter_path = STR("/usr/bin/python");
    o.run.metadata.suffix = STR("\n[The command completed with exit code 0.]");
    CHECK_STR(kit_put_observation(&o, JW_WEB),
              "{\"message\":\"Command `echo hi` executed with exit code 0.\","
              "\"observation\":\"run\",\"content\":\"hi\",\"extras\":{\"command\":\"echo hi\","
              "\"metadata\":{\"exit_code\":0,\"pid\":-1,\"username\":\"root\",\"hostname\":"
              "\"vm\",\"working_dir\":\"/workspace\",\"py_interpreter_path\":"
              "\"/usr/bin/python\",\"prefix\":\"\",\"suffix\":\"\\n[The command completed with "
              "exit code 0.]\"},\"hidden\":false},\"success\":true}");
    arena_done(&kit_arena);
}

TEST(observation_python_form_is_json_dumps)
{
    struct wire_observation o;

    wire_observation_init(&o, WIRE_OBS_ERROR);
    o.content = STR("é");
    CHECK_STR(kit_put_observation(&o, JW_PYTHON),
              "{\"message\": \"\\u00e9\", \"observation\": \"error\", \"content\": \"\\u00e9\", "
              "\"extras\": {\"error_id\": \"\"}}");
    arena_done(&kit_arena);
}

/* A fresh struct, and the smallest document, give the same bytes: every default. */
TEST(observation_defaults_are_those_of_the_specification)
{
    static const struct {
        enum wire_observation_type type;
        const char *small, *want;
    } cases[] = {
        {WIRE_OBS_RUN, "'command':''",
         "{\"message\":\"Command `` executed with exit code -1.\",\"observation\":\"run\","
         "\"content\":\"\",\"extras\":{\"command\":\"\",\"metadata\":{\"exit_code\":-1,\"pid\":-1,"
         "\"username\":null,\"hostname\":null,\"working_dir\":null,\"py_interpreter_path\":null,"
         "\"prefix\":\"\",\"suffix\":\"\"},\"hidden\":false},\"success\":false}"},
        {WIRE_OBS_RUN_IPYTHON, "'code':''",
         "{\"message\":\"Code executed in IPython cell.\",\"observation\":\"run_ipython\","
         "\"content\":\"\",\"extras\":{\"code\":\"\",\"image_urls\":null},\"success\":true}"},
        {WIRE_OBS_BROWSE, "'url':'','trigger_by_action':''",
         "{\"message\":\"Visited \",\"observation\":\"browse\",\"content\":\"\",\"extras\":{"
         "\"url\":\"\",\"trigger_by_action\":\"\",\"screenshot\":\"\",\"screenshot_path\":null,"
         "\"set_of_marks\":\"\",\"error\":false,\"goal_image_urls\":[],\"open_pages_urls\":[],"
         "\"active_page_index\":-1,\"dom_object\":{},\"axtree_object\":{},"
         "\"extra_element_properties\":{},\"last_browser_action\":\"\","
         "\"last_browser_action_error\":\"\",\"focused_element_bid\":\"\","
         "\"filter_visible_only\":false}}"},
        {WIRE_OBS_READ, "'path':''",
         "{\"message\":\"I read the file .\",\"observation\":\"read\",\"content\":\"\","
         "\"extras\":{\"path\":\"\",\"impl_source\":\"default\"}}"},
        {WIRE_OBS_WRITE, "'path':''",
         "{\"message\":\"I wrote to the file .\",\"observation\":\"write\",\"content\":\"\","
         "\"extras\":{\"path\":\"\"}}"},
        {WIRE_OBS_EDIT, "",
         "{\"message\":\"I edited the file .\",\"observation\":\"edit\",\"content\":\"\","
         "\"extras\":{\"path\":\"\",\"prev_exist\":false,\"old_content\":null,\"new_content\":"
         "null,\"impl_source\":\"llm_based_edit\",\"diff\":null,\"_diff_cache\":null}}"},
        {WIRE_OBS_ERROR, "",
         "{\"message\":\"\",\"observation\":\"error\",\"content\":\"\",\"extras\":{\"error_id\":"
         "\"\"}}"},
        {WIRE_OBS_DOWNLOAD, "'file_path':''",
         "{\"message\":\"Downloaded the file at location: \",\"observation\":\"download\","
         "\"content\":\"\",\"extras\":{\"file_path\":\"\"}}"},
    };
    unsigned made = 0;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wire_observation o;
        struct str text = arena_printf(&kit_arena, "{'observation':'%s','extras':{%s}}",
                                       wire_observation_name(cases[i].type), cases[i].small);
        wire_observation_init(&o, cases[i].type);
        CHECK_STR(kit_put_observation(&o, JW_WEB), cases[i].want);
        CHECK_STR(kit_out(text.p), cases[i].want);
    }
    for (unsigned i = 0; i < WIRE_OBS_COUNT; i++)
        made += wire_observation_is_sandbox(i);
    CHECK_INT(made, ARRAY_LEN(cases));
    arena_done(&kit_arena);
}

TEST(observation_of_the_controller_comes_back_whole)
{
    static const char *const cases[][2] = {
        {"{'observation':'null','content':'c'}",
         "{\"message\":\"No observation\",\"observation\":\"null\",\"content\":\"c\",\"extras\":"
         "{}}"},
        {"{'observation':'success','content':'c'}",
         "{\"message\":\"c\",\"observation\":\"success\",\"content\":\"c\",\"extras\":{}}"},
        {"{'observation':'user_rejected','content':'c'}",
         "{\"message\":\"c\",\"observation\":\"user_rejected\",\"content\":\"c\",\"extras\":{}}"},
        {"{'observation':'condense','content':'c'}",
         "{\"message\":\"c\",\"observation\":\"condense\",\"content\":\"c\",\"extras\":{}}"},
        {"{'observation':'think','content':'Your thought has been logged.'}",
         "{\"message\":\"Your thought has been logged.\",\"observation\":\"think\",\"content\":"
         "\"Your thought has been logged.\",\"extras\":{}}"},
        {"{'observation':'loop_detection','content':'c'}",
         "{\"message\":\"\",\"observation\":\"loop_detection\",\"content\":\"c\",\"extras\":{}}"},
        {"{'observation':'delegate','content':'','extras':{'outputs':{'x':[1]}}}",
         "{\"message\":\"\",\"observation\":\"delegate\",\"content\":\"\",\"extras\":{\"outputs\":"
         "{\"x\":[1]}}}"},
        {"{'observation':'agent_state_changed','extras':{'agent_state':'running'}}",
         "{\"message\":\"\",\"observation\":\"agent_state_changed\",\"content\":\"\",\"extras\":{"
         "\"agent_state\":\"running\",\"reason\":\"\"}}"},
        {"{'observation':'mcp','content':'c'}",
         "{\"message\":\"c\",\"observation\":\"mcp\",\"content\":\"c\",\"extras\":{\"name\":\"\","
         "\"arguments\":{}}}"},
        {"{'observation':'task_tracking','content':'c'}",
         "{\"message\":\"c\",\"observation\":\"task_tracking\",\"content\":\"c\",\"extras\":{"
         "\"command\":\"\",\"task_list\":[]}}"},
        {"{'observation':'recall','extras':{'recall_type':'knowledge','microagent_knowledge':"
         "[{'zzz':1,'content':'c','trigger':'t','name':'n'}]}}",
         "{\"message\":\"Added microagent knowledge\",\"observation\":\"recall\",\"content\":\"\","
         "\"extras\":{\"recall_type\":\"knowledge\",\"repo_name\":\"\",\"repo_directory\":\"\","
         "\"repo_branch\":\"\",\"repo_instructions\":\"\",\"runtime_hosts\":{},"
         "\"additional_agent_instructions\":\"\",\"date\":\"\",\"custom_secrets_descriptions\":"
         "{},\"conversation_instructions\":\"\",\"working_dir\":\"\",\"microagent_knowledge\":["
         "{\"name\":\"n\",\"trigger\":\"t\",\"content\":\"c\"}]}}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(kit_out(cases[i][0]), cases[i][1]);
    CHECK_HAS(kit_out("{'observation':'recall','extras':{'recall_type':'workspace_context'}}"),
              "\"message\":\"Added workspace context\"");
    arena_done(&kit_arena);
}

TEST(observation_rows_say_what_the_specification_says)
{
    static const struct {
        enum wire_observation_type type;
        const char *doc;
    } cases[] = {
        {WIRE_OBS_NULL, ""},
        {WIRE_OBS_RUN,
         "command: str; metadata: {exit_code: int=-1; pid: int=-1; username: str|null=null; "
         "hostname: str|null=null; working_dir: str|null=null; py_interpreter_path: "
         "str|null=null; prefix: str=\"\"; suffix: str=\"\"}; hidden: bool=false"},
        {WIRE_OBS_RECALL,
         "recall_type: str; repo_name: str=\"\"; repo_directory: str=\"\"; repo_branch: "
         "str=\"\"; repo_instructions: str=\"\"; runtime_hosts: {str:int}={}; "
         "additional_agent_instructions: str=\"\"; date: str=\"\"; custom_secrets_descriptions: "
         "{str:str}={}; conversation_instructions: str=\"\"; working_dir: str=\"\"; "
         "microagent_knowledge: list=[]"},
        {WIRE_OBS_DELEGATE, "outputs: object"},
        {WIRE_OBS_TASK_TRACKING, "command: str=\"\"; task_list: [object]=[]"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;
        buf_init(&b, 4096);
        wire_add_observation_doc(&b, cases[i].type);
        CHECK_STR(kit_keep(&b), cases[i].doc);
    }
    arena_done(&kit_arena);
}

static const struct wire_observation *decoded(const char *text)
{
    static struct wire_observation o;

    CHECK_OK(wire_decode_observation(&kit_arena, kit_quoted(text), &o));
    return &o;
}

TEST(observation_understands_extras_from_before_metadata)
{
    const struct wire_observation *o =
        decoded("{'observation':'run','extras':{'command':'c','exit_code':3,'command_id':9,"
                "'formatted_output_and_error':'x','metadata':{'exit_code':1,'suffix':'s'}}}");

    CHECK_INT(o->run.metadata.exit_code, 3);
    CHECK_INT(o->run.metadata.pid, 9);
    CHECK_STR(o->run.metadata.suffix, "s");
    o = decoded("{'observation':'run','extras':{'command':'c','exit_code':null,'metadata':null}}");
    CHECK_INT(o->run.metadata.exit_code, -1);
    CHECK_STR(kit_out("{'observation':'read','extras':{'path':'/f','exit_code':3,"
                      "'formatted_output_and_error':'x'}}"),
              "{\"message\":\"I read the file /f.\",\"observation\":\"read\",\"content\":\"\","
              "\"extras\":{\"path\":\"/f\",\"impl_source\":\"default\"}}");
    arena_done(&kit_arena);
}

TEST(observation_succeeds_when_the_exit_code_is_zero)
{
    CHECK_HAS(kit_out("{'observation':'run','success':false,'extras':{'command':'c',"
                      "'metadata':{'exit_code':0}}}"),
              "\"success\":true}");
    CHECK_HAS(kit_out("{'observation':'run','success':true,'extras':{'command':'c',"
                      "'metadata':{'exit_code':130}}}"),
              "\"success\":false}");
    CHECK(str_find(kit_out("{'observation':'read','success':true,'extras':{'path':'p'}}"),
                   STR("success")) < 0);
    arena_done(&kit_arena);
}

TEST(observation_carries_trees_of_the_browser)
{
    struct wire_observation o;

    wire_observation_init(&o, WIRE_OBS_BROWSE);
    o.browse.url = STR("http://x/");
    o.browse.open_pages_urls = kit_quoted("['http://x/','é']");
    o.browse.axtree_object = kit_quoted("{'nodes':[{'nodeId':'1'}]}");
    struct str out = kit_put_observation(&o, JW_WEB);
    CHECK_HAS(out, "\"open_pages_urls\":[\"http://x/\",\"é\"]");
    CHECK_HAS(out, "\"axtree_object\":{\"nodes\":[{\"nodeId\":\"1\"}]}");
    CHECK_HAS(out, "\"message\":\"Visited http://x/\"");
    arena_done(&kit_arena);
}

TEST(observation_names_the_field_it_refuses)
{
    static const char *const cases[][2] = {
        {"7", "observation must be a dictionary"},
        {"{}", "field 'observation' is missing"},
        {"{'observation':[]}", "field 'observation' must be a string"},
        {"{'observation':'nope'}", "'nope' is not defined. Available observations: null, run"},
        {"{'observation':'null','content':1}", "field 'content' must be a string, not"},
        {"{'observation':'null','extras':'x'}", "field 'extras' must be an object, not string"},
        {"{'observation':'browse'}", "BrowserOutputObservation.__init__() missing 2 required "
                                     "positional arguments: 'url' and 'trigger_by_action'"},
        {"{'observation':'run','extras':{'command':'c','metadata':[]}}",
         "field 'extras.metadata' must be an object"},
        {"{'observation':'run','extras':{'command':'c','metadata':{'exit_code':'0'}}}",
         "field 'extras.metadata.exit_code' must be an integer, not string"},
        {"{'observation':'run','extras':{'command':'c','exit_code':'0'}}",
         "field 'extras.exit_code' must be an integer"},
        {"{'observation':'run_ipython','extras':{'code':'c','image_urls':[null]}}",
         "field 'extras.image_urls[0]' must be a string, not null"},
        {"{'observation':'recall','extras':{'recall_type':'x'}}",
         "field 'extras.recall_type': 'x' is not a valid RecallType"},
        {"{'observation':'recall','extras':{'recall_type':'knowledge','runtime_hosts':"
         "{'h':'80'}}}",
         "field 'extras.runtime_hosts' must have an integer, not string, under 'h'"},
        {"{'observation':'recall','extras':{'recall_type':'knowledge','microagent_knowledge':"
         "[{'name':'n','trigger':'t','content':'c'},{'name':'n','trigger':'t'}]}}",
         "field 'extras.microagent_knowledge[1].content' is missing"},
        {"{'observation':'recall','extras':{'recall_type':'knowledge','microagent_knowledge':"
         "[{'name':1,'trigger':'t','content':'c'}]}}",
         "field 'extras.microagent_knowledge[0].name' must be a string"},
        {"{'observation':'recall','extras':{'recall_type':'knowledge','microagent_knowledge':"
         "['n']}}",
         "field 'extras.microagent_knowledge[0]' must be an object"},
    };
    struct wire_observation o;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_ERR(wire_decode_observation(&kit_arena, kit_quoted(cases[i][0]), &o), ERR_INVALID,
                  cases[i][1]);
    CHECK_ERR(wire_decode_observation(&kit_arena, NULL, &o), ERR_INVALID, "dictionary");
    arena_done(&kit_arena);
}
