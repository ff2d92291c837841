/* Odd tables of operators. */
#include "features/operators/llm_op.h"
#include "features/operators/operators.h"
#include "odd.h"
#include "tmp.h"

/* All lines; a bad one is told and left out, so what is refused is the file. */
static cdmpp_status library(const char *path, cdmpp_err *err) {
    cd_op_reader *r;
    cd_library_op_record o;
    const char *device;
    CD_TRY(cd_library_op_reader_open(path, &r, err));
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; more;) {
        cdmpp_err why = {0};
        st = cd_library_op_reader_next(r, &o, &device, &more, &why);
        if (st && (why.code != st || !why.msg[0])) abort();
        if (st == CDMPP_ENOMEM) break;
        if (st && !more) *err = why;
    }
    if (st == CDMPP_ENOMEM) st = CD_FAIL(err, ENOMEM, "line");
    cd_op_reader_close(r);
    return st;
}

static cdmpp_status llm(const char *path, cdmpp_err *err) {
    cd_dict names = {0};
    cd_op_reader *r = NULL;
    cd_llm_op_record o;
    const char *device;
    bool no_time;
    cdmpp_status st = cd_llm_op_reader_open(path, &names, &r, err);
    for (bool more = !st; more;) {
        cdmpp_err why = {0};
        st = cd_llm_op_reader_next(r, &o, &device, &more, &no_time, &why);
        if (st && (why.code != st || !why.msg[0])) abort();
        if (st == CDMPP_ENOMEM) break;
        if (st && !more) *err = why;
    }
    if (st == CDMPP_ENOMEM) st = CD_FAIL(err, ENOMEM, "line");
    if (r) cd_op_reader_close(r);
    cd_dict_free(&names);
    return st;
}

TEST(files) {
    tmp_dir dir = tmp_make();
    odd_file f = {tmp_path(&dir, "t.csv"), library};
    odd_file g = {tmp_path(&dir, "u.csv"), llm};
    odd_file h = {tmp_path(&dir, "gpu_metrics.tsv"), llm};
    odd_all_of_seeds("tests/fuzz/seeds/optable", 1000, odd_read_file, &f);
    odd_all_of_seeds("tests/fuzz/seeds/llm_optable", 1000, odd_read_file, &g);
    odd_all_of_seeds("tests/fuzz/seeds/llm_optable", 1000, odd_read_file, &h);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, files)
