/* Any record on one of the tasks of tests/fuzz/program.tasks.json: an error with
 * a reason, or finite rows and a sound tree, the same ones again when built again.
 * Mutation works on steps, not bytes, so that most inputs reach the schedule. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "features/program/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

static cd_task_registry *tasks;
static cd_program *program;

static void start(void) {
    cdmpp_err err = {0};
    if (tasks) return;
    if (cd_task_registry_new(&tasks, &err) ||
        cd_task_registry_load(tasks, "tests/fuzz/program.tasks.json", &err) ||
        cd_task_registry_bad_count(tasks) || cd_program_new(&program, &err))
        abort();
}

#define MUST(x)                                                                                    \
    if (!(x)) abort()

static void check_rows(const float *row, size_t n) {
    for (size_t i = 0; i < n; i++) MUST(isfinite(row[i]) && !(row[i] == 0.0F && signbit(row[i])));
}

static void check_tree(const cd_rows *r) {
    int32_t next = 0, depth = 0;
    for (uint32_t k = 0; k < r->n_tree; k++) {
        MUST(r->tree[k] == -1 || r->tree[k] == next);
        if (r->tree[k] == -1) continue;
        next++;
    }
    for (uint32_t k = 0; k < r->n_leaf; k++) {
        MUST(r->leaf_node[k] > (k ? r->leaf_node[k - 1] : 0) && r->leaf_node[k] < next);
        MUST(r->leaf_row[k] >= 0 && (uint32_t)r->leaf_row[k] < r->n_row);
        MUST(r->path_ptr[k] <= r->path_ptr[k + 1]);
    }
    (void)depth;
}

/* Errors of the schedule only: nothing here may be a bug of ours in disguise. */
static bool is_expected(cdmpp_status st) {
    return st == CDMPP_EINVALID || st == CDMPP_EUNSUPPORTED || st == CDMPP_EREJECTED ||
           st == CDMPP_ENUMERIC;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_record r;
    cd_rows rows, again;
    start();
    const cd_task *task = NULL;
    if (!cd_record_read(&a, (const char *)data, size, &r, &err))
        task = cd_task_registry_find(tasks, r.workload_key);
    if (task) {
        const cdmpp_status st = cd_program_build(program, task, &r, &rows, &err);
        MUST(!st || (is_expected(st) && err.code == st && err.msg[0]));
        if (!st) {
            const size_t n = (size_t)rows.n_row * CD_N_COL;
            check_rows(rows.row, n);
            check_rows(rows.leaf, (size_t)rows.n_leaf * CD_N_COL);
            check_tree(&rows);
            cd_buf out = {0};
            /* names are made unique in n*n steps */
            if (rows.n_leaf < 64) MUST(!cd_program_print(program, &out, &err) && out.n);
            cd_buf_free(&out);
            float *copy = cd_arena_alloc(&a, n, sizeof *copy);
            MUST(copy);
            memcpy(copy, rows.row, n * sizeof *copy);
            MUST(!cd_program_build(program, task, &r, &again, &err));
            MUST(again.n_row * (size_t)CD_N_COL == n && !memcmp(copy, again.row, n * sizeof *copy));
        }
    }
    cd_arena_free(&a);
    return 0;
}

/* ---- mutation ---- */

static uint32_t below(unsigned *s, uint32_t n) {
    *s = *s * 1664525u + 1013904223u;
    return (*s >> 8) % n;
}

/* Small numbers mostly: positions, lengths, and now and then an extreme. */
static int32_t number(unsigned *s) {
    static const int32_t odd[] = {
        0, 1, 2, 3, 7, 16, 64, 255, 256, 1024, 65536, INT32_MAX, INT32_MAX - 1, 46341};
    return below(s, 4) ? (int32_t)below(s, 12) : odd[below(s, sizeof odd / sizeof *odd)];
}

static void random_list(cd_arena *a, unsigned *s, cd_record_step *t) {
    int32_t *p = cd_arena_alloc(a, 300, sizeof *p);
    const bool run = below(s, 2);
    if (!p) return;
    t->n_list = below(s, 30) ? below(s, 5) : below(s, 300);
    const int32_t from = number(s) % 1000;
    for (uint32_t k = 0; k < t->n_list; k++) p[k] = run ? from + (int32_t)k : number(s);
    t->list = p;
}

static cd_record_step random_step(cd_arena *a, unsigned *s) {
    static const char *const text[] = {"shared",
                                       "local",
                                       "global",
                                       "warp",
                                       "auto_unroll_max_step$16",
                                       "auto_unroll_max_step$2147483647",
                                       "debug_skip_region"};
    cd_record_step t = {.kind = (cd_record_step_kind)below(s, CD_RECORD_STEP_COUNT),
                        .stage = (int32_t)below(s, 8)};
    for (int k = 0; k < 3; k++) t.i[k] = number(s);
    if (t.kind == CD_RECORD_STEP_AN) t.i[1] = (int32_t)below(s, 12);
    if (t.kind == CD_RECORD_STEP_SP || t.kind == CD_RECORD_STEP_FFSP) t.i[2] = (int32_t)below(s, 2);
    random_list(a, s, &t);
    t.s = (cd_str){text[below(s, sizeof text / sizeof *text)], 0};
    t.s.n = strlen(t.s.p);
    return t;
}

static void change(cd_arena *a, unsigned *s, cd_record_step *t) {
    cd_record_step n = random_step(a, s);
    switch (below(s, 5)) {
    case 0: t->stage = n.stage; break;
    case 1: t->i[below(s, 3)] = number(s); break;
    case 2: t->list = n.list, t->n_list = n.n_list; break;
    case 3:
        if (t->n_list && t->n_list < 300) {
            int32_t *p = cd_arena_alloc(a, t->n_list, sizeof *p);
            if (!p) return;
            memcpy(p, t->list, t->n_list * sizeof *p);
            p[below(s, t->n_list)] = number(s);
            t->list = p;
        }
        break;
    default: t->s = n.s; break;
    }
}

static void mutate(cd_arena *a, unsigned *s, cd_record *r) {
    cd_record_step *p = cd_arena_alloc(a, 2 * r->n_step + 2, sizeof *p);
    if (!p) return;
    uint32_t n = r->n_step;
    if (n) memcpy(p, r->step, n * sizeof *p);
    const uint32_t at = below(s, n + 1), with = n ? below(s, n) : 0;
    switch (below(s, 7)) {
    case 0:
    case 1:
        memmove(p + at + 1, p + at, (n - at) * sizeof *p);
        p[at] = n && below(s, 2) ? p[with] : random_step(a, s);
        n++;
        break;
    case 2:
        if (at < n) memmove(p + at, p + at + 1, (--n - at) * sizeof *p);
        break;
    case 3: n = at; break;
    case 4:
        if (below(s, 8) == 0 && n < 2000) {
            memcpy(p + n, p, n * sizeof *p);
            n *= 2;
            break; /* everything twice */
        }          /* fall through */
    default:
        if (n) change(a, s, &p[with]);
    }
    r->step = p;
    r->n_step = n;
    if (below(s, 20) == 0) {
        r->workload_key =
            (cd_str){cd_task_registry_at(tasks, below(s, (uint32_t)cd_task_registry_count(tasks)))
                         ->workload_key,
                     0};
        r->workload_key.n = strlen(r->workload_key.p);
    }
    if (below(s, 20) == 0) r->target = below(s, 2) ? (cd_str){"cuda", 4} : (cd_str){"llvm", 4};
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    cd_arena a = {0};
    cd_buf out = {0};
    cdmpp_err err = {0};
    cd_record r;
    start();
    unsigned s = seed;
    size_t n = 0;
    if (below(&s, 50) && !cd_record_read(&a, (const char *)data, size, &r, &err)) {
        for (uint32_t k = 1 + below(&s, 3); k-- > 0;) mutate(&a, &s, &r);
        if (!cd_record_write(&out, &r, &err) && out.n <= max_size) memcpy(data, out.p, n = out.n);
    }
    cd_buf_free(&out);
    cd_arena_free(&a);
    return n || !LLVMFuzzerMutate ? n : LLVMFuzzerMutate(data, size, max_size);
}
