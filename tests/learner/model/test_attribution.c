/* Shares: laws of Shapley values, and that the parts of a time sum to it, for every kind of
 * member. */
#include "learner/model/model.h"
#include "check.h"

#include <string.h>

#include "features/program/program.h"
#include "learner/train/train.h"
#include "learner/model/model_internal.h"
#include "made_model.h"

static tmp_dir dir;
static cd_task_registry *tasks;
static char h5[256];

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=one", "llvm -model=two"};
    cdmpp_err err = {0};
    dir = tmp_make();
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st)
        st = made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 2, h5, &err);
    return st != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

/* v(S) = sum of the players' own, plus 6 where 0 and 2 meet: 3 for each. */
TEST(exact_values) {
    static const double own[] = {1, 2, 4, 0};
    double value[16], phi[4];
    for (size_t set = 0; set < 16; set++) {
        value[set] = (set & 5) == 5 ? 6 : 0;
        for (size_t r = 0; r < 4; r++) value[set] += set >> r & 1 ? own[r] : 0;
    }
    cd_attribution_exact(value, 4, phi);
    for (size_t r = 0; r < 4; r++) assert_close(phi[r], own[r] + (r % 2 ? 0 : 3), 1e-14, 1e-14);
}

/* n rows, each a leaf below a loop of its own, of one program of the training set, with other trip
 * counts. */
enum { MOST = 70 };
typedef struct {
    cd_program_view view;
    float row[MOST * CD_N_COL];
    const float *leaf_x[MOST];
    int64_t row_ptr[2], leaf_ptr[2], tree_ptr[2], path_ptr[MOST + 1], path_extent[MOST];
    int32_t leaf_pos[MOST], leaf_node[MOST], tree[4 * MOST + 2], leaf_row[MOST];
    uint8_t path_kind[MOST];
    uint32_t device[1];
} many;

static void make_many(many *m, const cd_rows *from, size_t n, uint32_t device) {
    int32_t *t = m->tree;
    memset(m, 0, sizeof *m);
    *t++ = 0;
    for (size_t l = 0; l < n; l++) {
        float *x = m->row + l * CD_N_COL;
        memcpy(x, from->row + l % from->n_row * CD_N_COL, CD_N_COL * sizeof *x);
        x[CD_COL_OUTER_PROD] -= (float)(l % 5);
        m->leaf_x[l] = x;
        m->leaf_row[l] = (int32_t)l;
        m->leaf_pos[l] = (int32_t)(t + 1 - m->tree);
        m->leaf_node[l] = (int32_t)(2 * l + 2);
        m->path_extent[l] = 8;
        m->path_ptr[l + 1] = (int64_t)l + 1;
        *t++ = (int32_t)(2 * l + 1);
        *t++ = m->leaf_node[l];
        *t++ = -1;
        *t++ = -1;
    }
    *t++ = -1;
    m->row_ptr[1] = m->leaf_ptr[1] = (int64_t)n;
    m->tree_ptr[1] = t - m->tree;
    m->device[0] = device;
    m->view = (cd_program_view){.n = 1,
                                .row = m->row,
                                .row_ptr = m->row_ptr,
                                .leaf_ptr = m->leaf_ptr,
                                .leaf_x = m->leaf_x,
                                .leaf_pos = m->leaf_pos,
                                .leaf_node = m->leaf_node,
                                .path_ptr = m->path_ptr,
                                .path_extent = m->path_extent,
                                .path_kind = m->path_kind,
                                .tree_ptr = m->tree_ptr,
                                .tree = m->tree,
                                .device = m->device};
}

static void check_shares(const cd_model *m, const cd_program_view *v, const int32_t *leaf_row) {
    cdmpp_err err = {0};
    double row[MOST], leaf[MOST], sum_row = 0, sum_leaf = 0;
    const size_t n_row = (size_t)v->row_ptr[1], n_leaf = (size_t)v->leaf_ptr[1];
    assert_ok(cd_attribution_shares(m, v, leaf_row, row, leaf, &err));
    for (size_t l = 0; l < n_leaf; l++) sum_leaf += leaf[l];
    for (size_t r = 0; r < n_row; r++) {
        double of = 0;
        for (size_t l = 0; l < n_leaf; l++) of += leaf_row[l] == (int32_t)r ? leaf[l] : 0;
        assert_true(row[r] >= 0);
        assert_close(row[r], of, 1e-12, 1e-15);
        sum_row += row[r];
    }
    assert_close(sum_row, 1, 1e-12, 0);
    assert_close(sum_leaf, 1, 1e-12, 0);
}

/* 3, 9 and 70 rows: exact, drawn and alone; both devices. */
static void check_model(const cd_model *m) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_buf b = {0};
    cd_program *p;
    cd_record r;
    cd_rows rows;
    static many made;
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 37, "llvm -model=one", 1, 0);
    assert_ok(cd_program_new(&p, &err));
    assert_ok(cd_record_read(&a, b.p, b.n, &r, &err));
    assert_ok(cd_program_build(p, cd_task_registry_at(tasks, 0), &r, &rows, &err));
    for (uint32_t device = 0; device < 2; device++) {
        static const size_t size[] = {1, 3, 9, 70};
        for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
            make_many(&made, &rows, size[k], device);
            check_shares(m, &made.view, made.leaf_row);
        }
    }
    cd_program_free(p);
    cd_arena_free(&a);
    cd_buf_free(&b);
}

static void check_config(const char *const *set, int n) {
    cdmpp_err err = {0};
    cd_model *m;
    const char *all[20] = {"train.rounds=5",      "fit.epochs=2",     "net.width=16",
                           "net.ff=16",           "net.embed=8",      "net.head_width=8",
                           "net.decoder_width=8", "net.side_width=8", "net.device=false"};
    int k = 9;
    for (int i = 0; i < n; i++) all[k++] = set[i];
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    assert_ok(made_learn(h5, all, k, path, &err));
    assert_ok(cd_model_load(path, &m, &err));
    check_model(m);
    cd_model_free(m);
}

#define CHECK(...)                                                                                 \
    check_config((const char *const[]){__VA_ARGS__},                                               \
                 (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

TEST(trees) {
    CHECK("model.members=[rows]", "model.folds=2");
    CHECK("model.members=[program]");
    CHECK("model.members=[sums]");
    CHECK("model.members=[rows]", "train.objective=rank");
    CHECK("model.members=[rows]", "train.objective=pack_sum");
    CHECK("model.members=[rows, program]");
}

TEST(networks) {
    CHECK("model.members=[mlp]");
    CHECK("model.members=[transformer]");
    CHECK("model.members=[transformer]", "net.head=pool", "net.layers=1");
    CHECK("model.members=[transformer]", "net.tokens=leaves", "net.context=true");
    CHECK("model.members=[transformer]", "net.tokens=leaves", "net.head=flatten",
          "net.program=true");
    CHECK("model.members=[lstm]");
}

TEST(refuses) {
    cdmpp_err err = {0};
    cd_model *m;
    static many made;
    static float row[2 * CD_N_COL];
    double of_row[2], of_leaf[2];
    const cd_rows rows = {.n_row = 2, .row = row};
    make_many(&made, &rows, 2, 0);
    assert_ok(cd_model_load("tests/golden/model_v1.cdmpp", &m, &err));
    check_shares(m, &made.view, made.leaf_row);
    made.leaf_row[1] = 0;
    assert_status(cd_attribution_shares(m, &made.view, made.leaf_row, of_row, of_leaf, &err),
                  CDMPP_EMODEL);
    made.view.leaf_ptr = NULL;
    assert_status(cd_attribution_shares(m, &made.view, made.leaf_row, of_row, of_leaf, &err),
                  CDMPP_EMODEL);
    assert_false(cd_model_middle(m, row));
    cd_model_free(m);
}

TESTS(setup, teardown, exact_values, trees, networks, refuses)
