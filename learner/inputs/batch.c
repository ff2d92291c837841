/* Packs programs into a batch: rows or leaves one after another, with offsets, then scaled in
 * place. The room of a batch is bounded before training, so that filling one touches no heap. */
#include "learner/inputs/batch.h"

#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "features/task/task.h"
#include "learner/inputs/batch_internal.h"
#include "learner/inputs/facts_input.h"
#include "learner/inputs/tree_input.h"

/* The same of its steps.
 *
 * The token of a step: its kind as one of CD_RECORD_STEP_COUNT, then its values in the order of the
 * record, cut or filled with zeros. */
static size_t batch_step_width(const cd_batch_spec *s) {
    return (size_t)CD_RECORD_STEP_COUNT + s->values;
}

/* Numbers of iterators and extents of millions stand in the same column. */
static float number(const cd_batch_spec *s, int32_t v) {
    return s->log_values ? (float)copysign(log2(1 + fabs((double)v)), (double)v) : (float)v;
}

static void batch_step_fill(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                            float *x) {
    const size_t w = batch_step_width(s);
    const int32_t *code = v->step + v->step_ptr[program];
    size_t n = (size_t)(v->step_ptr[program + 1] - v->step_ptr[program]);
    cd_step_code step;
    memset(x, 0, s->steps * w * sizeof *x);
    for (size_t k = 0; k < s->steps && cd_step_codes_next(&code, &n, &step); k++, x += w) {
        x[step.kind] = 1;
        for (size_t j = 0; j < step.n && j < s->values; j++)
            x[CD_RECORD_STEP_COUNT + j] = number(s, step.value[j]);
    }
}

/* Columns of facts. Trees do not care for logarithms; what is learned from the same columns later
 * may. */

static float log_s(double seconds) { return (float)log(fmax(seconds, 1e-12)); }

cdmpp_status cd_facts_input_times(cd_facts_set set, const float *facts,
                                  const cd_device_numbers *device, float *out, cdmpp_err *err) {
    cd_analytic_time t;
    CD_TRY(cd_analytic_seconds_of(set, facts, device, &t, err));
    const double third = cd_facts_set_is_gpu(set) ? t.latency_s : t.l3_s;
    const double all[CD_N_ANALYTIC] = {
        t.roofline_s, t.ecm_s, t.sum_s,    t.compute_s,  t.l1_s,
        t.l2_s,       third,   t.memory_s, t.overhead_s, cd_facts_set_is_gpu(set) ? 1 : t.threads};
    for (size_t k = 0; k < CD_N_ANALYTIC; k++) {
        if (!(all[k] >= 0) || !isfinite(all[k]))
            return CD_FAIL(err, ENUMERIC, "an analytic time of %g s", all[k]);
        out[k] = log_s(all[k]);
    }
    return CDMPP_OK;
}

bool cd_facts_input_has(const cd_program_view *v, size_t p) {
    return v->facts && v->analytic && !isnan(v->analytic[p * CD_N_ANALYTIC]);
}

/* ---- columns ---- */
cd_facts_group cd_facts_input_group(const char *name) {
    static const char *const names[CD_N_FACTS_GROUP] = {"traffic", "work",    "cycles",
                                                        "shape",   "threads", "times"};
    int g = 0;
    while (g < CD_N_FACTS_GROUP && strcmp(names[g], name) != 0) g++;
    return (cd_facts_group)g;
}

static cd_facts_group group_of(size_t c) {
    if (c < CD_N_TRAFFIC) return CD_FACTS_TRAFFIC;
    if (c >= CD_FACT_CORE_CYCLES && c <= CD_FACT_CALL_CYCLES) return CD_FACTS_CYCLES;
    if (c >= CD_FACT_REGIONS && c < CD_FACT_INEXACT) return CD_FACTS_THREADS;
    if (c < CD_FACT_WIDTH || c == CD_FACT_INIT_STORES || c == CD_FACT_COPY_STORES)
        return CD_FACTS_WORK;
    return CD_FACTS_SHAPE;
}

/* Does the fact grow with the size of the program? */
static bool counts(size_t c) {
    return c < CD_FACT_WIDTH || c == CD_FACT_INIT_STORES || c == CD_FACT_COPY_STORES;
}

static void relative(const float *fact, unsigned without, float *x) {
    const float work = log2f(fact[CD_FACT_INSTRUCTIONS] + 1),
                lines = log2f(fact[CD_FACT_LINES] + 1);
    for (size_t c = 0; c < CD_N_FACTS; c++) {
        const float own = log2f(fact[c] + 1),
                    value = c == CD_FACT_INSTRUCTIONS || !counts(c) ? own : own - work;
        x[c] = without >> group_of(c) & 1 ? 0 : value;
        if (c < CD_N_TRAFFIC)
            x[CD_N_FACTS + c] = without >> CD_FACTS_TRAFFIC & 1 ? 0
                                : c == CD_FACT_LINES            ? lines
                                                                : own - lines;
    }
}

/* Of GPU programs counts and totals are as they are. */
void cd_facts_input_fill(const cd_program_view *v, size_t p, float *x) {
    const float *fact = v->facts + p * CD_N_FACTS, *t = v->analytic + p * CD_N_ANALYTIC;
    const bool gpu = cd_facts_set_is_gpu(v->facts_set),
               without = v->facts_without >> CD_FACTS_TIMES & 1;
    if (gpu) {
        for (size_t c = 0; c < CD_N_FACTS; c++) x[c] = log2f(fact[c] + 1);
        memset(x + CD_N_FACTS, 0, CD_N_TRAFFIC * sizeof *x);
    } else {
        relative(fact, v->facts_without, x);
    }
    x += CD_N_FACTS + CD_N_TRAFFIC;
    for (size_t k = 0; k < CD_N_ANALYTIC; k++)
        x[k] = without ? 0
               : k == CD_N_PRIOR - 1 || k == CD_N_ANALYTIC - 1 || (gpu && k < CD_N_PRIOR)
                   ? t[k]
                   : t[k] - t[CD_N_PRIOR - 1];
}

/* Columns of a leaf and of a program before scaling: the features of the row, then what loops and
 * the tree around the leaf tell. */

enum { PER_LOOP = 1 + CD_BATCH_KINDS };

size_t cd_batch_token_width(const cd_batch_spec *s) {
    if (s->steps) return batch_step_width(s);
    return !s->tokens ? 0
                      : CD_N_COL + (s->context ? (size_t)CD_BATCH_CONTEXT : 0) +
                            (s->derived ? (size_t)CD_N_DERIVED : 0);
}

/* The program vector loses its last column, the number of the device, and gains
 * log2 of the task's operations and whether they are known. */
static size_t summary_width(const cd_batch_spec *s) {
    return s->program ? cd_tree_input_width(CD_TREE_INPUT_PROGRAM) + 1 : 0;
}

size_t cd_batch_program_width(const cd_batch_spec *s) {
    return summary_width(s) + (s->facts ? (size_t)CD_N_FACTS_COL : 0);
}

size_t cd_batch_leaves(const cd_batch_spec *s, const cd_program_view *v, size_t program) {
    if (s->steps) return s->steps;
    if (s->rows) return (size_t)(v->row_ptr[program + 1] - v->row_ptr[program]);
    return v->leaf_ptr ? (size_t)(v->leaf_ptr[program + 1] - v->leaf_ptr[program]) : 0;
}

static cdmpp_status check_tree(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                               cdmpp_err *err) {
    if (!v->tree_ptr)
        return CD_FAIL(err, EMODEL, "program %zu has no tree, which this network reads", program);
    const size_t beg = (size_t)v->tree_ptr[program], n = (size_t)v->tree_ptr[program + 1] - beg;
    return cd_program_tree_check(v->tree + beg, n, v->leaf_pos + v->leaf_ptr[program],
                                 cd_batch_leaves(s, v, program), err);
}

/* Checked here, once for each program, so that filling and running a network need not. */
cdmpp_status cd_batch_check(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                            cdmpp_err *err) {
    if (s->steps && !v->step_ptr)
        return CD_FAIL(err, EMODEL, "program %zu has no steps, which this network reads", program);
    if (s->tokens && !cd_batch_leaves(s, v, program))
        return CD_FAIL(err, EMODEL, "program %zu has no %s, which this network reads", program,
                       s->rows ? "rows" : "leaves");
    if (s->tree) CD_TRY(check_tree(s, v, program, err));
    if (s->facts && !cd_facts_input_has(v, program))
        return CD_FAIL(err, EMODEL,
                       "program %zu has no facts of its loop nest, which this network reads",
                       program);
    if (s->w_dev && v->device[program] >= s->n_device)
        return CD_FAIL(err, EMODEL, "program %zu ran on device %u of %zu", program,
                       (unsigned)v->device[program], s->n_device);
    return CDMPP_OK;
}

/* ---- context ---- */
static float log2_extent(int64_t e) { return e > 1 ? (float)log2((double)e) : 0; }

static void put_loop(int64_t extent, uint8_t kind, float *x) {
    x[0] = log2_extent(extent);
    if (kind < CD_BATCH_KINDS) x[1 + kind] = 1;
}

/* Depth of leaf `at` of a tree list, and in *shared that of the deepest node above
 * it that was open all the time since the list's place `from` (< 0: none). */
static float depth_at(const int32_t *tree, size_t at, ptrdiff_t from, float *shared) {
    int depth = 0, low = 0;
    for (size_t i = 0; i < at; i++) {
        if ((ptrdiff_t)i == from) low = depth;
        depth += tree[i] < 0 ? -1 : 1;
        if ((ptrdiff_t)i > from && depth < low) low = depth;
    }
    *shared = from < 0 ? 0 : (float)low;
    return (float)depth;
}

static void put_tree_raw(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                         size_t leaf, float *x) {
    const size_t first = (size_t)v->leaf_ptr[program];
    const int32_t *tree = v->tree + v->tree_ptr[program];
    const ptrdiff_t from = leaf > first ? v->leaf_pos[leaf - 1] : -1;
    x[0] = (float)log2(1 + (double)v->leaf_pos[leaf]);
    x[1] = (float)(leaf - first);
    x[2] = (float)cd_batch_leaves(s, v, program);
    x[3] = depth_at(tree, (size_t)v->leaf_pos[leaf], from, &x[4]);
}

/* The blocks of CD_BATCH_CONTEXT in the order of batch.h: loops from the inside, loops from the
 * outside, products by kind, the tree. */
static void put_context(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                        size_t leaf, float *x) {
    const size_t beg = (size_t)v->path_ptr[leaf], n = (size_t)v->path_ptr[leaf + 1] - beg;
    const int64_t *extent = v->path_extent + beg;
    const uint8_t *kind = v->path_kind + beg;
    memset(x, 0, (size_t)CD_BATCH_CONTEXT * sizeof *x);
    for (size_t i = 0; i < CD_BATCH_INNER && i < n; i++)
        put_loop(extent[n - 1 - i], kind[n - 1 - i], x + i * PER_LOOP);
    x += CD_BATCH_INNER * PER_LOOP;
    for (size_t i = 0; i < CD_BATCH_OUTER && i < n; i++)
        put_loop(extent[i], kind[i], x + i * PER_LOOP);
    x += CD_BATCH_OUTER * PER_LOOP;
    for (size_t i = 0; i < n; i++)
        if (kind[i] < CD_BATCH_KINDS) x[kind[i]] += log2_extent(extent[i]);
    put_tree_raw(s, v, program, leaf, x + CD_BATCH_KINDS);
}

/* ---- rows ---- */
void cd_batch_raw_tokens(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                         float *x) {
    const size_t w = cd_batch_token_width(s);
    if (s->steps) {
        batch_step_fill(s, v, program, x);
        return;
    }
    const int64_t *ptr = s->rows ? v->row_ptr : v->leaf_ptr;
    for (size_t l = (size_t)ptr[program]; l < (size_t)ptr[program + 1]; l++, x += w) {
        const float *from = s->rows ? v->row + l * CD_N_COL : cd_program_view_leaf(v, l);
        memcpy(x, from, CD_N_COL * sizeof *x);
        if (s->context) put_context(s, v, program, l, x + CD_N_COL);
        if (s->derived) cd_tree_input_derived(from, x + w - CD_N_DERIVED);
    }
}

/* The device column of the PROGRAM form (its last) is overwritten: a network knows the device by
 * its vector instead. */
static void put_summary(const cd_program_view *v, size_t program, float *x) {
    const size_t beg = (size_t)v->row_ptr[program], n = (size_t)v->row_ptr[program + 1] - beg;
    const size_t w = cd_tree_input_width(CD_TREE_INPUT_PROGRAM);
    const double flop = v->flop ? v->flop[program] : -1;
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, v->row + beg * CD_N_COL, n, 0, x);
    x[w - 1] = flop > 0 ? (float)log2(flop + 1) : 0;
    x[w] = flop > 0;
}

void cd_batch_raw_program(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                          float *x) {
    if (s->program) put_summary(v, program, x);
    if (s->facts) cd_facts_input_fill(v, program, x + summary_width(s));
}

static size_t at(const uint32_t *index, size_t i) { return index ? index[i] : i; }

/* Inner nodes, from the length of the list; one that is no tree is refused later. */
static size_t nodes(const cd_batch_spec *s, const cd_program_view *v, size_t program) {
    const size_t n =
        s->tree && v->tree_ptr ? (size_t)(v->tree_ptr[program + 1] - v->tree_ptr[program]) / 2 : 0;
    const size_t leaves = cd_batch_leaves(s, v, program);
    return n > leaves ? n - leaves : 0;
}

typedef size_t count_fn(const cd_batch_spec *s, const cd_program_view *v, size_t program);

/* Largest count of a program, and the sum of the n largest. The sum of the n largest counts comes
 * from a histogram: sorting a few hundred thousand programs would take longer. */
static cdmpp_status largest(const cd_batch_spec *s, const cd_program_view *v, const uint32_t *index,
                            size_t n_index, size_t n, count_fn *count, size_t *most, size_t *sum,
                            cdmpp_err *err) {
    *most = *sum = 0;
    for (size_t i = 0; i < n_index; i++) {
        const size_t c = count(s, v, at(index, i));
        if (c > *most) *most = c;
        *sum += c;
    }
    if (n >= n_index) return CDMPP_OK; /* all of them: no heap */
    *sum = 0;
    size_t *having = cd_mem_zalloc(*most + 1, sizeof *having);
    if (!having) return CD_FAIL(err, ENOMEM, "histogram of %zu leaves or nodes", *most);
    for (size_t i = 0; i < n_index; i++) having[count(s, v, at(index, i))]++;
    for (size_t c = *most; n > 0; c--) {
        const size_t k = having[c] < n ? having[c] : n;
        *sum += k * c;
        n -= k;
    }
    cd_mem_free(having);
    return CDMPP_OK;
}

cdmpp_status cd_batch_bound(const cd_batch_spec *spec, const cd_program_view *v,
                            const uint32_t *index, size_t n_index, size_t batch, cd_batch_dims *out,
                            cdmpp_err *err) {
    size_t most;
    *out = (cd_batch_dims){.n = batch < n_index ? batch : n_index};
    CD_TRY(largest(spec, v, index, n_index, out->n, cd_batch_leaves, &out->max_leaf, &out->n_tok,
                   err));
    return largest(spec, v, index, n_index, out->n, nodes, &most, &out->n_node, err);
}

static void carve(cd_batch *b) {
    const cd_batch_dims *d = &b->dims;
    b->tok_ptr = cd_slab_take(&b->slab, d->n + 1, sizeof *b->tok_ptr);
    b->tok = cd_slab_floats(&b->slab, b->w_tok ? d->n_tok * b->w_tok : 0);
    b->trips = cd_slab_floats(&b->slab, b->w_tok ? d->n_tok : 0);
    b->pos = cd_slab_take(&b->slab, d->n_tok, sizeof *b->pos);
    b->prog = cd_slab_floats(&b->slab, d->n * b->w_prog);
    b->dev = cd_slab_floats(&b->slab, d->n * b->w_dev);
    b->flop = cd_slab_take(&b->slab, d->n, sizeof *b->flop);
    if (b->has_tree) cd_program_tree_plan(&b->tree, &b->slab, d->n, d->n_tok, d->n_node);
}

cdmpp_status cd_batch_init(cd_batch *b, const cd_batch_spec *spec, const cd_batch_dims *dims,
                           cdmpp_err *err) {
    *b = (cd_batch){.dims = *dims,
                    .w_tok = cd_batch_token_width(spec),
                    .w_prog = cd_batch_program_width(spec),
                    .w_dev = spec->w_dev,
                    .has_tree = spec->tree};
    carve(b);
    CD_TRY(cd_slab_alloc(&b->slab, err));
    carve(b);
    return CDMPP_OK;
}

void cd_batch_free(cd_batch *b) {
    cd_slab_free(&b->slab);
    *b = (cd_batch){0};
}

/* One program behind those that are there. The program is appended behind those that are there; the
 * caller has checked that there is room. */
static void put_program(cd_batch *b, const cd_batch_spec *spec, const cd_program_view *v,
                        size_t program, size_t i) {
    const size_t leaves = b->w_tok ? cd_batch_leaves(spec, v, program) : 0;
    if (leaves) {
        cd_batch_raw_tokens(spec, v, program, b->tok + b->n_tok * b->w_tok);
        for (size_t l = 0; l < leaves; l++)
            b->trips[b->n_tok + l] =
                spec->steps ? 0
                            : (float)cd_tree_input_log_trips(b->tok + (b->n_tok + l) * b->w_tok);
        for (size_t l = 0; l < leaves; l++)
            b->pos[b->n_tok + l] = spec->rows || spec->steps
                                       ? (int32_t)l
                                       : v->leaf_pos[(size_t)v->leaf_ptr[program] + l];
    }
    if (b->w_prog) cd_batch_raw_program(spec, v, program, b->prog + i * b->w_prog);
    if (b->w_dev)
        memcpy(b->dev + i * b->w_dev, spec->device + v->device[program] * b->w_dev,
               b->w_dev * sizeof *b->dev);
    b->flop[i] = v->flop ? v->flop[program] : -1;
    b->n_tok += leaves;
    b->tok_ptr[i + 1] = (uint32_t)b->n_tok;
    if (leaves > b->max_leaf) b->max_leaf = leaves;
}

static cdmpp_status put_tree(cd_batch *b, const cd_batch_spec *spec, const cd_program_view *v,
                             size_t program, cdmpp_err *err) {
    const size_t beg = (size_t)v->tree_ptr[program], n = (size_t)v->tree_ptr[program + 1] - beg;
    return cd_program_tree_add(&b->tree, v->tree + beg, n, v->leaf_pos + v->leaf_ptr[program],
                               cd_batch_leaves(spec, v, program), err);
}

/* Scaling comes last and in one piece, because long loops vectorise. */
cdmpp_status cd_batch_fill(cd_batch *b, const cd_batch_spec *spec, const cd_scalers *s,
                           const cd_program_view *v, const uint32_t *index, size_t n,
                           cdmpp_err *err) {
    b->n = b->n_tok = b->max_leaf = 0;
    if (n > b->dims.n) return CD_FAIL(err, ERANGE, "%zu programs in a batch for %zu", n, b->dims.n);
    b->tok_ptr[0] = 0;
    cd_program_tree_clear(&b->tree);
    for (size_t i = 0; i < n; i++) {
        const size_t p = at(index, i), leaves = b->w_tok ? cd_batch_leaves(spec, v, p) : 0;
        /* around a program of a shuffled batch the kernel maps up to some MB */
        if (i % 16 == 0) cd_spool_rest(v->spool);
        CD_TRY(cd_batch_check(spec, v, p, err));
        if (b->n_tok + leaves > b->dims.n_tok || leaves > b->dims.max_leaf)
            return CD_FAIL(err, ERANGE, "%zu leaves in a batch for %zu, at most %zu a program",
                           b->n_tok + leaves, b->dims.n_tok, b->dims.max_leaf);
        put_program(b, spec, v, p, i);
        if (b->has_tree) CD_TRY(put_tree(b, spec, v, p, err));
    }
    b->n = n;
    if (b->has_tree) cd_program_tree_close(&b->tree);
    cd_scaler_apply(&s->tok, b->tok, b->w_tok ? b->n_tok : 0);
    cd_scaler_apply(&s->trips, b->trips, b->w_tok ? b->n_tok : 0);
    cd_scaler_apply(&s->prog, b->prog, b->w_prog ? n : 0);
    cd_scaler_apply(&s->dev, b->dev, b->w_dev ? n : 0);
    return CDMPP_OK;
}
