/* Time against size: which dimensions follow it, what is left out, and that a store reads the
 * table. */
#include "check.h"
#include "tmp.h"

#include "base/io/io.h"
#include "features/sketch/sketch.h"
#include "profiler/runtime/single/single.h"
#include "profiler/store/store.h"
#include "profiler/network/zoo/zoo.h"

enum { SIZES = 3 };

typedef struct {
    cd_graph *g;
    cd_workload *w;
    cd_program_select pick;
} net;

/* Tasks with made-up times: k-th of size i takes (k + 1) times (i + 1) ms. */
static void make(net *x, const char *name, int batch, unsigned i) {
    cdmpp_err err = {0};
    const cd_hardware hw = cd_target_hardware(false, 1, 64);
    const cd_workload_options o = {.target = "llvm", .hardware = &hw};
    const cd_zoo_options zo = {.batch = batch};
    assert_ok(cd_zoo_build(name, &zo, &x->g, &err));
    assert_ok(cd_workload_build(x->g, &o, &x->w, &err));
    x->pick.n = x->w->n_task;
    x->pick.task = cd_mem_zalloc(x->pick.n + 1, sizeof *x->pick.task);
    for (uint32_t k = 0; k < x->pick.n; k++)
        x->pick.task[k].item.out.time.median_s = 1e-3 * (k + 1) * (i + 1);
}

static void drop(net *x) {
    cd_mem_free(x->pick.task);
    cd_workload_free(x->w);
    cd_graph_free(x->g);
}

TEST(test_table) {
    static const int batch[SIZES] = {1, 2, 5};
    net x[SIZES] = {{0}};
    cd_op_curve_size size[SIZES];
    cd_op_curve_tally t;
    cd_buf b = {0};
    cdmpp_err err = {0};
    for (unsigned i = 0; i < SIZES; i++) {
        make(&x[i], "dcgan", batch[i], i);
        size[i] = (cd_op_curve_size){x[i].w, &x[i].pick};
    }
    x[1].pick.task[0].status = CDMPP_EBACKEND; /* one point less */
    assert_ok(cd_op_curve_write(&b, "here", size, SIZES, &t, &err));
    assert_int_equal(t.written, 6);
    assert_non_null(strstr(b.p, "dcgan\there\tConvTranspose+Tanh\t-1\t((4, 4), (0, 0))\t((-1, 128, "
                                "32, 32), (128, 3, 4, 4))\t1:6 2:12 5:18\t0\n"));
    assert_non_null(strstr(b.p, "\t1:1 5:3\t0\n"));
    /* and the store has every point */
    tmp_dir d = tmp_make();
    cd_store *s = NULL;
    cd_store_tally tally = {0};
    const cd_store_import how = {.form = CD_STORE_CURVES};
    char path[256], db[256];
    snprintf(path, sizeof path, "%s", tmp_path(&d, "c.tsv"));
    snprintf(db, sizeof db, "%s", tmp_path(&d, "s.db"));
    assert_ok(cd_file_write(path, b.p, b.n, &err));
    assert_ok(cd_store_open(db, true, &s, &err));
    assert_ok(cd_store_import_path(s, path, &how, &tally, &err));
    assert_int_equal(tally.added, 6 * SIZES - 1);
    assert_int_equal(tally.bad, 0);
    cd_store_close(s);
    tmp_remove(&d);
    cd_buf_clear(&b);
    assert_ok(cd_op_curve_write(&b, "here", size, 1, &t, &err)); /* one size is no curve */
    assert_int_equal(t.written, 0);
    assert_int_equal(t.fixed, 6);
    cd_buf_free(&b);
    for (unsigned i = 0; i < SIZES; i++) drop(&x[i]);
}

TEST(test_another_network) {
    net x[2] = {{0}};
    cd_op_curve_tally t;
    cd_buf b = {0};
    cdmpp_err err = {0};
    make(&x[0], "dcgan", 1, 0);
    make(&x[1], "rnn", 1, 1);
    const cd_op_curve_size size[] = {{x[0].w, &x[0].pick}, {x[1].w, &x[1].pick}};
    assert_status(cd_op_curve_write(&b, "here", size, 2, &t, &err), CDMPP_EINVALID);
    cd_buf_free(&b);
    drop(&x[0]);
    drop(&x[1]);
}

TESTS(NULL, NULL, test_table, test_another_network)
