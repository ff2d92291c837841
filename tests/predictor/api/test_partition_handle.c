/* The public calls give the numbers that cdmpp-partition --json prints, read out of range is an
 * error, and structs of other sizes are handled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "check.h"
#include "cdmpp.h"

#define MODEL "tests/golden/model_v1.cdmpp"
static const char *const model[] = {MODEL}, *const as[] = {"zen5-avx2"};
static cdmpp_err err;

static cdmpp_partition_options options(void) {
    return (cdmpp_partition_options){.size = sizeof(cdmpp_partition_options),
                                     .model = model,
                                     .n_model = 1,
                                     .as = as,
                                     .n_as = 1,
                                     .devices = "cpu0,ocl0",
                                     .input_size = 64,
                                     .trials = 2};
}

static char *json_of(const cdmpp_partition *p, size_t *n) {
    assert_ok(cdmpp_partition_json(p, NULL, 0, n, &err));
    char *text = malloc(*n + 1);
    assert_non_null(text);
    assert_status(cdmpp_partition_json(p, text, *n, n, &err), CDMPP_ERANGE);
    assert_ok(cdmpp_partition_json(p, text, *n + 1, n, &err));
    return text;
}

/* What the command prints behind "result":, read through a pipe; NULL: there is no command in this
 * build. */
static char *command(size_t *n) {
    const char *b = getenv("B");
    char line[512];
    snprintf(line, sizeof line,
             "%s/cdmpp-partition -q --network squeezenet-1.1 --input-size 64 --cost-model " MODEL
             " --as zen5-avx2 --devices cpu0,ocl0 --trials 2 -j1 --json 2>&1",
             b ? b : "build/release");
    FILE *f = popen(line, "r");
    char *text = calloc(1, 4 << 20);
    assert_non_null(text);
    *n = f ? fread(text, 1, (4 << 20) - 1, f) : 0;
    return !f || pclose(f) ? free(text), NULL : text;
}

static const cd_json *member(const cd_json *o, const char *key) {
    const cd_json *v = NULL;
    assert_ok(cd_json_need(o, key, &v, &err));
    return v;
}

static double real_of(const cd_json *o, const char *key) {
    double v;
    assert_ok(cd_json_real(member(o, key), &v, &err));
    return v;
}

static void same_as_command(void **state) {
    (void)state;
    cdmpp_partition *p = NULL;
    cdmpp_partition_total t = {.size = sizeof t};
    const cdmpp_partition_options o = options();
    cd_arena a = {0};
    const cd_json *root;
    size_t n, n_text;
    assert_ok(cdmpp_partition_network("squeezenet-1.1", &o, &p, &err));
    assert_ok(cdmpp_partition_summary(p, &t, &err));
    char *mine = json_of(p, &n), *text = command(&n_text);
    assert_ok(cd_json_parse(&a, mine, n, &root, &err));
    assert_true(real_of(root, "predicted_s") == t.seconds);
    assert_true(real_of(root, "predicted_gain") == t.gain);
    assert_true(real_of(root, "ceiling") == t.ceiling);
    assert_true(t.seconds > 0 && t.alone >= t.seconds && t.gain >= 1);
    if (text) {
        const char *result = strstr(text, "\"result\":");
        assert_non_null(result);
        assert_int_equal(strncmp(result + 9, mine, n), 0);
    } else print_message("no command to compare with\n");
    free(text);
    free(mine);
    cd_arena_free(&a);
    cdmpp_partition_free(p);
}

/* Shards of an operator cover its dimension without holes; the sums of operators are those of the
 * plan up to results that go home. */
static void operators(void **state) {
    (void)state;
    cdmpp_partition *p = NULL;
    cdmpp_partition_total t = {.size = sizeof t};
    const cdmpp_partition_options o = options();
    double sum = 0;
    assert_ok(cdmpp_partition_network("squeezenet-1.1", &o, &p, &err));
    assert_ok(cdmpp_partition_summary(p, &t, &err));
    assert_int_equal(t.n_device, 2);
    assert_string_equal(cdmpp_partition_device(p, 1), "ocl0");
    assert_null(cdmpp_partition_device(p, 2));
    assert_true(cdmpp_partition_alone(p, 0) >= t.alone);
    assert_true(isnan(cdmpp_partition_alone(p, 2)));
    for (size_t i = 0; i < t.n_op; i++) {
        cdmpp_partition_op op = {.size = sizeof op};
        int64_t end = 0;
        assert_ok(cdmpp_partition_operator(p, i, &op, &err));
        assert_int_equal(op.n_shard > 1, op.dim[0] != 0);
        for (size_t k = 0; k < op.n_shard; k++) {
            cdmpp_partition_piece s = {.size = sizeof s};
            assert_ok(cdmpp_partition_shard(p, i, k, &s, &err));
            assert_true(s.device < t.n_device && s.lo == end);
            end = s.hi;
        }
        sum += op.seconds + op.exchange;
    }
    assert_true(sum <= t.seconds * (1 + 1e-9));
    cdmpp_partition_free(p);
}

static void bad_requests(void **state) {
    (void)state;
    cdmpp_partition *p = NULL;
    cdmpp_partition_options o = options();
    cdmpp_partition_total t = {.size = 8};
    cdmpp_partition_op op = {.size = sizeof op};
    cdmpp_partition_piece s = {.size = sizeof s};
    o.size = 4;
    assert_status(cdmpp_partition_network("squeezenet-1.1", &o, &p, &err), CDMPP_EUSAGE);
    o = options();
    o.granules = 1;
    assert_status(cdmpp_partition_network("squeezenet-1.1", &o, &p, &err), CDMPP_EUSAGE);
    o = options();
    o.n_model = 0;
    assert_status(cdmpp_partition_network("squeezenet-1.1", &o, &p, &err), CDMPP_EUSAGE);
    o = options();
    o.devices = "gpu9";
    assert_status(cdmpp_partition_network("squeezenet-1.1", &o, &p, NULL), CDMPP_EUSAGE);
    o = options();
    assert_true(cdmpp_partition_network("nosuch-network", &o, &p, &err) != CDMPP_OK);
    assert_null(p);
    o.whole = 1;
    assert_ok(cdmpp_partition_network("squeezenet-1.1", &o, &p, &err));
    assert_status(cdmpp_partition_summary(p, &t, &err), CDMPP_EUSAGE);
    t.size = sizeof t;
    assert_ok(cdmpp_partition_summary(p, &t, &err));
    assert_false(t.split);
    assert_status(cdmpp_partition_operator(p, t.n_op, &op, &err), CDMPP_ERANGE);
    assert_status(cdmpp_partition_shard(p, 0, 1, &s, &err), CDMPP_ERANGE);
    cdmpp_partition_free(p);
    cdmpp_partition_free(NULL);
}

static int run_suite(void) {
    unsetenv("CDMPP_MODELS");
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_command),
                                       cmocka_unit_test(operators), cmocka_unit_test(bad_requests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

SUITE(.run = run_suite)
