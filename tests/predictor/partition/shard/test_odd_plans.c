/* Odd plans. */
#include "odd.h"
#include "predictor/partition/shard/shard_plan.h"
#include "tmp.h"

static cdmpp_status plan(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_shard_plan *p = NULL;
    (void)ctx;
    const cdmpp_status st = cd_shard_plan_read_text("p.json", text, n, &p, err);
    if (!st) cd_shard_plan_free(p);
    return st;
}

TEST(files) { odd_all_of_seeds("tests/fuzz/seeds/plan", 2000, plan, NULL); }

/* Where the figures of each device come from. */
static const char head[] =
    "{\"schema\": \"cdmpp.plan\", \"version\": 1, \"network\": \"one\", \"batch\": 1, \"devices\": "
    "[\"cpu0\", \"ocl0\"], \"verdict\": \"v\", \"split\": false, \"exact\": true, \"rho\": 1.5,"
    " \"ceiling\": 1.6, \"predicted_s\": 0.003, \"low_s\": 0.002, \"high_s\": 0.004, "
    "\"no_interval\": null, \"others\": 0.5, \"bound_s\": 0.003, \"measured_s\": null,"
    " \"predicted_gain\": 1.2, \"measured_gain\": null, \"operators\": [], \"copies\": [], "
    "\"baselines\": [], \"sources\": [";
#define MORE                                                                                       \
    ", \"model\": null, \"stand_in\": null, \"stand_in_by\": \"by\", \"guessed\": true, "          \
    "\"stand_in_spread\": 0.1, \"network_cost_spread\": null, \"unlike_share\": null, "            \
    "\"unlike_reasons\": {}}"
static const char one[] =
    "{\"device\": \"cpu0\", \"as\": \"zen5\", \"model\": \"m.cdmpp\", \"default_model\": false, "
    "\"host\": \"h\", \"stand_in\": null, \"stand_in_by\": null, \"guessed\": false,"
    " \"stand_in_spread\": 0, \"network_cost_spread\": 0, \"left\": 0.5, \"unlike_share\": 0.02, "
    "\"unlike_reasons\": {\"dtype\": 0.02, \"later\": 1}}",
                  other[] = "{\"device\": \"ocl0\", \"as\": null" MORE;

static void of_sources(const char *sources, char *buf, size_t size) {
    snprintf(buf, size, "%s%s]}", head, sources);
}

TEST(sources) {
    char text[4096], two[2048];
    snprintf(two, sizeof two, "%s, %s", one, other);
    of_sources(two, text, sizeof text);
    odd_within(text, strlen(text), true, &(odd_range){0, strlen(text)}, plan, NULL);
}

TEST(sources_that_are_wrong) {
    static const struct {
        const char *sources, *words;
        cdmpp_status st;
    } rows[] = {
        {"", "0 entries for 2 devices", CDMPP_ESCHEMA},
        {"{\"device\": \"ocl0\", \"as\": null" MORE ", {\"device\": \"cpu0\", \"as\": null" MORE,
         "expected device cpu0, found ocl0", CDMPP_ESCHEMA},
        {"{\"device\": \"tpu0\", \"as\": null" MORE ", {\"device\": \"cpu0\", \"as\": null" MORE,
         "device tpu0 is not among the plan's", CDMPP_ESCHEMA},
        {"{\"device\": \"cpu0\", \"as\": \"a\\u0000b\"" MORE
         ", {\"device\": \"ocl0\", \"as\": null" MORE,
         "no \\u0000", CDMPP_EPARSE},
        {"{\"device\": \"cpu0\", \"as\": null, \"left\": -1" MORE
         ", {\"device\": \"ocl0\", \"as\": null" MORE,
         "0 or more, found -1", CDMPP_ERANGE},
    };
    char text[4096];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        cdmpp_err err = {0};
        of_sources(rows[k].sources, text, sizeof text);
        assert_status(plan(NULL, text, strlen(text), &err), rows[k].st);
        if (!strstr(err.msg, rows[k].words) ||
            (rows[k].st != CDMPP_EPARSE && !strstr(err.key, "sources")))
            fail_msg("%s: %s: %s", rows[k].words, err.key, err.msg);
    }
}

TEST(devices_that_are_wrong) {
    static const struct {
        const char *devices, *words;
        cdmpp_status st;
    } rows[] = {
        {"\"cpu0\", \"cpu0\"", "two devices are called cpu0", CDMPP_ESCHEMA},
        {"\"cpu0\", \"\"", "device 1 has no name", CDMPP_ESCHEMA},
        {"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
         "devices: expected at most", CDMPP_ERANGE},
    };
    char text[4096];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const char *at = strstr(head, "\"cpu0\"");
        cdmpp_err err = {0};
        snprintf(text, sizeof text, "%.*s%s%s]}", (int)(at - head), head, rows[k].devices,
                 strchr(at, ']'));
        assert_status(plan(NULL, text, strlen(text), &err), rows[k].st);
        if (!strstr(err.msg, rows[k].words)) fail_msg("%s: %s", rows[k].words, err.msg);
    }
}

/* A plan without operators, as text and as a file. */
TEST(from_a_file) {
    char text[4096], two[2048];
    cd_shard_plan *p = NULL;
    cdmpp_err err = {0};
    tmp_dir dir = tmp_make();
    snprintf(two, sizeof two, "%s, %s", one, other);
    of_sources(two, text, sizeof text);
    assert_ok(cd_shard_plan_read(tmp_put(&dir, "p.json", text, strlen(text)), &p, &err));
    cd_shard_plan_free(p);
    assert_status(cd_shard_plan_read(tmp_put(&dir, "q.json", "{}", 2), &p, &err), CDMPP_ESCHEMA);
    assert_null(p);
    char *at = strstr(text, "\"split\": false");
    memcpy(at, "\"split\":  true", 14);
    err = (cdmpp_err){0};
    assert_status(plan(NULL, text, strlen(text), &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "split: the plan says true, its operators say otherwise");
    tmp_remove(&dir);
}

TESTS(NULL, NULL, from_a_file, files, sources, sources_that_are_wrong, devices_that_are_wrong)
