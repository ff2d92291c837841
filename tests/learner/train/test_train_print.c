/* What is printed of a training of library operators: counts, the check, intervals, and why there
 * are none. */
#include "check.h"
#include "learner/train/train.h"

static char file[77];

static size_t by_entry[] = {3, 0, 4};
static cd_library_op_spread spread[3];

/* Two rows without a latency, seven excluded by the first and the last entry of three, three too
 * many, one row of the check; intervals of two kinds of rows. */
static void made(cd_library_op_model *m, cd_library_op_data *d, cd_library_op_score_row *row,
                 cd_library_op_train_result *l) {
    spread[2].held = CD_LIBRARY_OP_HELD_LARGE; /* none of devices */
    *m = (cd_library_op_model){.spread = spread, .n_spread = 3};
    *d = (cd_library_op_data){.n_line = 22, .n_known = 2};
    d->drop[CD_LIBRARY_OP_DROP_QUESTION] = 2;
    d->drop[CD_LIBRARY_OP_DROP_EXCLUDED] = 7;
    d->excluded = by_entry;
    d->n = 13;
    *row = (cd_library_op_score_row){CD_LIBRARY_OP_CLASS_BMM, "l4", true, false, 0.5, (double)NAN};
    *l = (cd_library_op_train_result){
        .model = m, .file = {.p = file, .n = sizeof file}, .check = {row, 1, 1}, .n_row = 10};
    l->coverage[CD_LIBRARY_OP_HELD_ROW][CD_LIBRARY_OP_CLASS_BMM] =
        (cd_library_op_coverage){8, 6, 4};
    l->coverage[CD_LIBRARY_OP_HELD_LARGE][CD_N_LIBRARY_OP_CLASS] =
        (cd_library_op_coverage){9, 9, 3};
}

static void is(const cd_config *c, const cd_library_op_data *d, cd_library_op_train_result *l,
               const char *want) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    assert_ok(cd_train_print_operators_text(&b, c, d, l, "m.cdmpp", &err));
    assert_string_equal(b.p, want);
    cd_buf_free(&b);
}

TEST(operators_as_text) {
    cd_library_op_model m;
    cd_library_op_data d;
    cd_library_op_score_row row;
    cd_library_op_train_result l;
    cd_config c;
    cdmpp_err err = {0};
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_set(&c, "operators.check=device", &err));
    assert_ok(cd_config_set(&c, "operators.exclude=[t4/linear, t4/add, p4/conv]", &err));
    assert_ok(cd_config_set(&c, "operators.max_rows=99", &err));
    assert_ok(cd_config_set(&c, "operators.seed=5", &err));
    made(&m, &d, &row, &l);
    is(&c, &d, &l,
       "10 of 22 rows trained on, 2 devices\nleft out 2 rows: without a latency\n"
       "left out 3 rows: by operators.exclude, t4/linear\nleft out 4 rows: by operators.exclude, "
       "p4/conv\n"
       "left out 3 rows: more than operators.max_rows, 99 of one operator and device\n\n"
       "check: each device held out in turn (n=1, seed=5)\n\n"
       "| class | device | sizes | n | MAPE % | MAE(log) | median % | bias % | within 20 % | in "
       "interval % |\n| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |\n"
       "| bmm | l4 | all | 1 | 50.0 | 0.405 | 50.0 | +50.0 | 0.0 | - |\n| bmm | **trained on** | "
       "not larger | 1 | 50.0 | 0.405 | 50.0 | +50.0 | 0.0 | - |\n"
       "| bmm | **trained on** | all | 1 | 50.0 | 0.405 | 50.0 | +50.0 | 0.0 | - |\n| **all** | "
       "**trained on** | all | 1 | 50.0 | 0.405 | 50.0 | +50.0 | 0.0 | - |\n\n"
       "\nintervals of level 0.9, each fitted without the rows that it is asked about:\n\n| rows | "
       "class | n | parts | in interval % |\n| --- | --- | --: | --: | --: |\n"
       "| sizes held out | bmm | 8 | 4 | 75.0 |\n| the largest, held out | **all** | 9 | 3 | 100.0 "
       "|\n\n"
       "there is no interval on a device that was not trained on: it takes rows of three "
       "devices\nmodel m.cdmpp, 77 bytes\n");
    l.check.n = 0;
    memset(d.drop, 0, sizeof d.drop);
    d.n = l.n_row;
    memset(l.coverage, 0, sizeof l.coverage);
    l.coverage[CD_LIBRARY_OP_HELD_DEVICE][CD_N_LIBRARY_OP_CLASS] =
        (cd_library_op_coverage){4, 1, 2};
    /* three devices give an interval, though none that is left out of it */
    spread[2].held = CD_LIBRARY_OP_HELD_DEVICE;
    is(&c, &d, &l,
       "10 of 22 rows trained on, 2 devices\n\nintervals of level 0.9, each fitted without the "
       "rows that it is asked about:\n\n"
       "| rows | class | n | parts | in interval % |\n| --- | --- | --: | --: | --: |\n| devices "
       "held out | **all** | 4 | 2 | 25.0 |\n\nmodel m.cdmpp, 77 bytes\n");
    memset(l.coverage, 0, sizeof l.coverage);
    m.n_spread = 0;
    is(&c, &d, &l,
       "10 of 22 rows trained on, 2 devices\nno intervals: too few rows, or "
       "operators.calibration_rows is 0\nmodel m.cdmpp, 77 bytes\n");
    cd_config_free(&c);
}

TEST(operators_as_json) {
    cd_library_op_model m;
    cd_library_op_data d;
    cd_library_op_score_row row[2];
    cd_library_op_train_result l;
    cd_buf b = {0};
    cd_config c;
    cdmpp_err err = {0};
    assert_ok(cd_config_init(&c, &err));
    made(&m, &d, row, &l);
    d.n = l.n_row;
    d.drop[CD_LIBRARY_OP_DROP_EXCLUDED] = 0;
    row[1] = (cd_library_op_score_row){CD_LIBRARY_OP_CLASS_CONV, "t4", true, false, -0.25, 1};
    l.check.n = 2;
    cd_train_print_operators_json(&b, &c, &d, &l, "a \"m\"");
    assert_string_equal(b.p,
                        "{\"schema\":\"cdmpp.train\",\"command\":\"cdmpp-train\",\"model_file\":"
                        "\"a \\\"m\\\"\",\"check\":[[\"bmm\",\"l4\",0.5],[\"conv\",\"t4\",-0.25]],"
                        "\"notes\":[\"left out 2 rows: without a latency\"]}\n");
    cd_buf_free(&b);
    cd_config_free(&c);
}

TESTS(NULL, NULL, operators_as_text, operators_as_json)
