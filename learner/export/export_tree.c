/* A booster as TreeEnsembleRegressor of ai.onnx.ml, and its scores as ln seconds. */
#include "learner/export/export_internal.h"

/* The attributes of all nodes, one array each. */
typedef struct {
    size_t n_node, n_leaf;
    int64_t *tree, *id, *column, *yes, *no, *missing_yes, *leaf_tree, *leaf_id, *leaf_target;
    const char **mode;
    float *cut, *leaf;
    cd_arena arena;
} table;

static bool start(table *t, size_t n) {
    int64_t **each[] = {&t->tree,        &t->id,        &t->column,  &t->yes,        &t->no,
                        &t->missing_yes, &t->leaf_tree, &t->leaf_id, &t->leaf_target};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (!(*each[k] = cd_arena_alloc(&t->arena, n, sizeof **each[k]))) return false;
    t->mode = cd_arena_alloc(&t->arena, n, sizeof *t->mode);
    t->cut = cd_arena_alloc(&t->arena, n, sizeof *t->cut);
    t->leaf = cd_arena_alloc(&t->arena, n, sizeof *t->leaf);
    return t->mode && t->cut && t->leaf;
}

/* Node `from` of the forest, node `id` of tree k. */
static void put(table *t, const cd_tree_inference_node *node, size_t from, size_t root, size_t k) {
    const cd_tree_inference_node *n = &node[from];
    const size_t i = t->n_node++, id = from - root;
    const bool leaf = n->kid[0] == from;
    t->tree[i] = (int64_t)k;
    t->id[i] = (int64_t)id;
    t->column[i] = leaf ? 0 : (int64_t)(n->column & ~CD_TREE_INFERENCE_MISSING_RIGHT);
    t->yes[i] = leaf ? 0 : (int64_t)(n->kid[0] - root);
    t->no[i] = leaf ? 0 : (int64_t)(n->kid[1] - root);
    t->missing_yes[i] = !leaf && !(n->column & CD_TREE_INFERENCE_MISSING_RIGHT);
    t->mode[i] = leaf ? "LEAF" : "BRANCH_LT";
    t->cut[i] = leaf ? 0 : n->cut;
    if (!leaf) return;
    t->leaf_tree[t->n_leaf] = (int64_t)k;
    t->leaf_id[t->n_leaf] = (int64_t)id;
    t->leaf_target[t->n_leaf] = 0;
    t->leaf[t->n_leaf++] = n->cut;
}

/* The names that the operator's definition has. */
static void attributes(cd_onnx_writer *f, const table *t, float base) {
    const size_t n = t->n_node, m = t->n_leaf;
    cd_onnx_writer_attr_ints(f, "nodes_treeids", t->tree, n);
    cd_onnx_writer_attr_ints(f, "nodes_nodeids", t->id, n);
    cd_onnx_writer_attr_ints(f, "nodes_featureids", t->column, n);
    cd_onnx_writer_attr_texts(f, "nodes_modes", t->mode, n);
    cd_onnx_writer_attr_floats(f, "nodes_values", t->cut, n);
    cd_onnx_writer_attr_ints(f, "nodes_truenodeids", t->yes, n);
    cd_onnx_writer_attr_ints(f, "nodes_falsenodeids", t->no, n);
    cd_onnx_writer_attr_ints(f, "nodes_missing_value_tracks_true", t->missing_yes, n);
    cd_onnx_writer_attr_ints(f, "target_treeids", t->leaf_tree, m);
    cd_onnx_writer_attr_ints(f, "target_nodeids", t->leaf_id, m);
    cd_onnx_writer_attr_ints(f, "target_ids", t->leaf_target, m);
    cd_onnx_writer_attr_floats(f, "target_weights", t->leaf, m);
    cd_onnx_writer_attr_floats(f, "base_values", &base, 1);
    cd_onnx_writer_attr_int(f, "n_targets", 1);
    cd_onnx_writer_attr_text(f, "aggregate_function", "SUM");
    cd_onnx_writer_attr_text(f, "post_transform", "NONE");
}

/* Scores of a matrix, double (height, 1). */
static cdmpp_status scores(cd_export *x, const cd_tree_inference_view *forest, const char *matrix,
                           const char **out, cdmpp_err *err) {
    table t = {0};
    const cdmpp_status st = start(&t, forest->n_node + 1)
                                ? CDMPP_OK
                                : CD_FAIL(err, ENOMEM, "table of %zu nodes", forest->n_node);
    for (size_t k = 0; !st && k < forest->n_tree; k++) {
        const size_t end = k + 1 < forest->n_tree ? forest->root[k + 1] : forest->n_node;
        for (size_t i = forest->root[k]; i < end; i++) put(&t, forest->node, i, forest->root[k], k);
    }
    if (!st) {
        attributes(&x->f, &t, forest->base);
        x->f.ml = "ai.onnx.ml";
        const char *score = CD_ONNX_WRITER_NODE(&x->f, "TreeEnsembleRegressor", matrix);
        x->f.ml = NULL;
        *out = cd_export_cast(x, score, CD_ONNX_F64);
    }
    cd_arena_free(&t.arena);
    return st;
}

/* ---- to seconds, as in learner/model/member.c ---- */
static const char *with(cd_export *x, const char *op, const char *a, double b) {
    return CD_ONNX_WRITER_NODE(&x->f, op, a, cd_onnx_writer_double(&x->f, b));
}

static const char *log_sum(cd_export *x, const char *v) {
    return cd_export_over(x, "ReduceLogSumExp", v, 0);
}

/* The same formulas as combine() and answer() in learner/model/member.c. */
cdmpp_status cd_export_trees(cd_export *x, const cd_member *e, const char **log_s, cdmpp_err *err) {
    const cd_tree_inference *trees = cd_xgb_tree_inference(e->gbt);
    const cd_tree_inference_view forest =
        trees ? cd_tree_inference_view_of(trees) : (cd_tree_inference_view){0};
    const cd_tree_input_form form = cd_member_form(e->kind);
    const char *score, *offset = NULL, *level = NULL;
    if (e->facts != CD_FACTS_USE_NONE)
        return CD_FAIL(err, EUNSUPPORTED,
                       "members %s read facts of loop nests (train.facts); a graph of feature rows "
                       "cannot hold it",
                       cd_member_name(e->kind));
    if (!forest.n_tree)
        return CD_FAIL(err, EUNSUPPORTED, "trees of another kind than numerical regression");
    CD_TRY(scores(x, &forest, cd_export_matrix(x, form), &score, err));
    if (cd_member_has_level(e)) {
        offset = with(x, "Add", with(x, "Mul", cd_export_log_trips(x), e->slope), e->bias);
        level = log_sum(x, offset);
    }
    if (!level) *log_s = with(x, "Add", score, e->bias);
    else if (e->objective == CD_OBJECTIVE_PACK_SUM) {
        const char *p = with(x, "Div", cd_export_sum(x, score, 0), 2 * CD_OBJECTIVE_KNEE);
        *log_s =
            CD_ONNX_WRITER_NODE(&x->f, "Add", with(x, "Add", level, e->shift),
                                with(x, "Mul", CD_ONNX_WRITER_NODE(&x->f, "Asinh", p), -e->scale));
    } else {
        *log_s = log_sum(x, CD_ONNX_WRITER_NODE(&x->f, "Add", score,
                                                form == CD_TREE_INPUT_ROWS ? offset : level));
        if (e->objective == CD_OBJECTIVE_RANK)
            *log_s = with(x, "Add", with(x, "Mul", *log_s, e->scale), e->shift);
    }
    return CDMPP_OK;
}
