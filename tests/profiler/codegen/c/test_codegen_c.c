/* Generated C against the tasks' definitions: random schedules of small tasks, all compiled in
 * one run of the compiler. Values are small integers, so that sums in any order are equal. */
#include <dlfcn.h>
#include <stdlib.h>

#include "check.h"
#include "interp.h"
#include "prog.h"
#include "randsched.h"
#include "scratch.h"
#include "base/core/core.h"
#include "features/program/program.h"
#include "profiler/codegen/codegen.h"
#include "profiler/codegen/code/code.h"

#define TYPED(name, type, ...)                                                                     \
    "{\"name\": \"" name "\", \"shape\": [" #__VA_ARGS__ "], \"dtype\": \"" type "\"}"
#define IN(name, ...) TYPED(name, "float32", __VA_ARGS__)
#define AXIS(...)     "\"axis\": [" #__VA_ARGS__ "]"

static const char *const text[] = {
    /* matrix product with packed weights, epilogue */
    "\"ops\": [" IN(
        "A", 6,
        8) ", {\"name\": \"B\", \"shape\": [8, 24], \"dtype\": \"float32\", \"layout_free\": true},"
           "{\"name\": \"mm\", \"axis\": [[\"i\", 0, 6], [\"j\", 0, 24]], \"reduce_axis\": "
           "[[\"k\", 0, 8]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"},"
           "{\"name\": \"out\", \"axis\": [[\"i\", 0, 6], [\"j\", 0, 24]], \"body\": \"max(mm[i, "
           "j] + A[i, 0], 0)\"}]",
    /* padding, strided convolution */
    "\"ops\": [" IN("x", 9, 8, 5) "," IN(
        "w", 3, 3,
        5) ", {\"name\": \"pad\", \"axis\": [[\"y\", 0, 11], [\"z\", 0, 10], [\"c\", 0, 5]],"
           "\"body\": \"if_then_else(y >= 1 && y < 10 && z >= 1 && z < 9, x[y - 1, z - 1, c], "
           "0)\"},"
           "{\"name\": \"conv\", \"axis\": [[\"h\", 0, 5], [\"v\", 0, 4], [\"c\", 0, 5]], "
           "\"reduce_axis\": [[\"a\", 0, 3], [\"b\", 0, 3]],"
           "\"reduce\": \"sum\", \"body\": \"pad[h*2 + a, v*2 + b, c]*w[a, b, c]\"}]",
    /* layout transforms, backwards too */
    "\"ops\": [" IN(
        "x", 6,
        4) ", {\"name\": \"f\", \"axis\": [[\"n\", 0, 24]], \"body\": \"x[n // 4, n % 4]*2\"},"
           "{\"name\": \"g\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, 8]], \"body\": \"f[i*8 + j] + "
           "f[23 - i*8 - j]\"}]",
    /* two results of one reduction */
    "\"ops\": [" IN("x", 7,
                    9) ", {\"name\": \"am\", \"axis\": [[\"i\", 0, 7]], \"reduce_axis\": [[\"k\", "
                       "0, 9]], \"reduce\": {\"lhs\": [\"l0\", \"l1\"],"
                       "\"rhs\": [\"r0\", \"r1\"], \"result\": [\"select(l1 >= r1, l0, r0)\", "
                       "\"select(l1 >= r1, l1, r1)\"], \"identity\": [\"-1\", \"-1000.0\"]},"
                       "\"body\": [\"k\", \"x[i, k]*16 - float32(k)\"]}]",
    /* adaptive pooling: the length of a reduction depends on the axis */
    "\"ops\": [" IN("x", 7, 3) ", {\"name\": \"p\", \"axis\": [[\"i\", 0, 3], [\"c\", 0, 3]], "
                               "\"reduce_axis\": [[\"k\", 0, \"((i + 1)*7 + 2) // 3 - i*7 // 3\"]],"
                               "\"reduce\": \"max\", \"body\": \"x[i*7 // 3 + k, c]\"}]",
    /* integers of several lengths, casts, intrinsics without rounding */
    "\"ops\": [" TYPED("x", "int8", 5, 6) "," TYPED(
        "n", "int32",
        6) ", {\"name\": \"s\", \"axis\": [[\"i\", 0, 5], [\"j\", 0, 6]],"
           "\"body\": \"int32(x[i, j])*n[j] + int32(i) // 2 - max(n[j], 1)*n[j]\"}, {\"name\": "
           "\"t\", \"axis\": [[\"i\", 0, 5]], \"reduce_axis\": [[\"k\", 0, 6]],"
           "\"reduce\": \"sum\", \"body\": \"float32(s[i, k])\"}]",
    /* a constant matrix, as in Winograd's convolution */
    "\"ops\": [" IN(
        "d", 4,
        6) ", {\"name\": \"B\", \"axis\": [[\"i\", 0, 4], [\"j\", 0, 4]], \"const_matrix\": true,"
           "\"body\": \"select(i % 4 == 3 && j % 4 == 3, 1.0, select(i % 4 == j, 2.0, select(i == "
           "0, -1.0, 0.0)))\"},"
           "{\"name\": \"m\", \"axis\": [[\"i\", 0, 4], [\"p\", 0, 6]], \"reduce_axis\": [[\"k\", "
           "0, 4]], \"simplify_const\": true, \"reduce\": \"sum\","
           "\"body\": \"d[k, p]*B[k, i]\"}]",
    /* half precision, rows chosen by an index tensor */
    "\"ops\": [" TYPED("x", "float16", 8, 4) "," TYPED(
        "n", "int32", 5) ", {\"name\": \"r\", \"axis\": [[\"i\", 0, 5], [\"j\", 0, 4]],"
                         "\"body\": \"x[min(max(n[i], 0), 7), j] + x[i, j]\"}]",
    /* rows that do not fit the stack */
    "\"ops\": [" IN("x", 3, 9000) ", {\"name\": \"f\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, "
                                  "9000]], \"body\": \"x[i, j]*2\"},"
                                  "{\"name\": \"g\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, 9000]], "
                                  "\"body\": \"f[i, 8999 - j] + f[i, j]\"}]",
    /* booleans, one byte each: no vectors of them */
    "\"ops\": [" TYPED("x", "bool", 5,
                       8) "," IN("y", 5, 8) ", {\"name\": \"f\", \"axis\": [[\"i\", 0, 5], [\"j\", "
                                            "0, 8]], \"body\": \"float32(x[i, j])*2 + y[i, j]\"}]",
    /* an operator and the next one, at one place: no two results of one */
    "\"ops\": [" IN("x", 5, 6) "," TYPED(
        "n", "int32", 5) ", {\"name\": \"f\", \"axis\": [[\"i\", 0, 5], [\"j\", 0, 6]],"
                         "\"body\": \"x[min(max(n[i], 0), 4), j]\"}, {\"name\": \"g\", \"axis\": "
                         "[[\"i\", 0, 5], [\"j\", 0, 6]], \"body\": \"f[i, j]*2 + x[i, j]\"}]",
};
enum { N_TASK = sizeof text / sizeof *text, MOST = 4000 };
/* The last task's first operator in the innermost loop of the second: two stores at one place,
 * neither loop between. Vectors from booleans. */
static const struct {
    size_t task;
    const char *steps;
} fixed[] = {{N_TASK - 1, "[[\"CA\", 2, 3, 1]]"}, {N_TASK - 2, "[[\"AN\", 2, 1, 2]]"}};
/* Schedules whose parallel loops are what they are made for: `parts` of them, 0: something stands
 * beside them. */
static const struct {
    size_t task;
    const char *steps;
    uint32_t parts;
    bool scratch;
} parallel[] = {
    {1, "[[\"AN\", 1, 0, 3], [\"AN\", 3, 0, 3]]", 2, false},
    {1, "[[\"AN\", 3, 0, 3]]", 0, false},
    {8, "[[\"CA\", 1, 2, 0], [\"AN\", 2, 0, 3]]", 1, true},
    {0, "[[\"FU\", 3, [0, 1]], [\"AN\", 3, 0, 3], [\"AN\", 2, 0, 3]]", 2, false},
    {7, "[[\"SP\", 2, 0, 5, [2, 1], 1], [\"AN\", 2, 0, 3], [\"FU\", 2, [1, 2]]]", 1, false}};

typedef struct {
    size_t task;
    cd_codegen_code code;
    bool ok;
} made;

typedef struct {
    cd_task_registry *tasks;
    randsched r;
    cd_program *p;
    made *made;
    size_t n;
    void *lib;
} fixture;

__extension__ typedef _Float16 half;

static void put(void *p, cd_dtype t, int64_t k, double v) {
    switch (cd_expr_dtype_bytes(t)) {
    case 1: ((signed char *)p)[k] = (signed char)v; break;
    case 2: ((half *)p)[k] = (half)v; break;
    default:
        if (cd_expr_dtype_is_float(t)) ((float *)p)[k] = (float)v;
        else ((int *)p)[k] = (int)v;
    }
}

static double get(const void *p, cd_dtype t, int64_t k) {
    if (cd_expr_dtype_bytes(t) == 1) return ((const signed char *)p)[k];
    if (cd_expr_dtype_bytes(t) == 2) return (double)((const half *)p)[k];
    return cd_expr_dtype_is_float(t) ? (double)((const float *)p)[k] : (double)((const int *)p)[k];
}

static const cd_te_op *op_of(const cd_te_dag *d, uint32_t t) { return &d->op[d->tensor_op[t]]; }
static cd_dtype type_of(const cd_te_dag *d, uint32_t t) {
    return op_of(d, t)->dtype[t - op_of(d, t)->first_tensor];
}

/* All tensors of the task by its definition. */
static void define(const cd_te_dag *d, interp *in) {
    *in = (interp){.n_var = d->pool.n_var, .n_mem = d->n_tensor, .budget = 10000000};
    in->var = calloc(in->n_var + 1, sizeof *in->var);
    in->mem = calloc(d->n_tensor, sizeof *in->mem);
    for (uint32_t t = 0; t < d->n_tensor; t++) {
        const cd_te_op *op = op_of(d, t);
        in_mem *m = &in->mem[t];
        m->rank = op->rank;
        for (uint32_t k = 0; k < op->rank; k++) m->ext[k] = op->shape[k];
        const int64_t n = in_count(op->rank, op->shape);
        m->v = calloc((size_t)n, sizeof *m->v);
        for (int64_t k = 0; k < n && op->is_placeholder; k++) {
            const int64_t v = (k * 7 + t * 5 + k * k % 11) % 13 - 5;
            m->v[k] = (double)(type_of(d, t) == CD_BOOL ? v & 1 : v);
        }
    }
    in_define(in, d);
    if (in->why) fail_msg("definition: %s", in->why);
}

static void undefine(const cd_te_dag *d, interp *in) {
    for (uint32_t t = 0; t < d->n_tensor; t++) free(in->mem[t].v);
    free(in->mem);
    free(in->var);
}

static void generate_one(fixture *f, size_t task, cd_record rec) {
    cdmpp_err err = {0};
    cd_nest nest;
    made *m = &f->made[f->n];
    char name[32];
    rec.layout_rewrite = 2;
    snprintf(name, sizeof name, "f%zu", f->n);
    m->task = task;
    assert_ok(cd_program_lower_code(f->p, cd_task_registry_at(f->tasks, task), &rec, &err));
    assert_ok(cd_program_nest(f->p, &nest, &err));
    nest.vector_bytes = 16U << f->n % 3;
    assert_ok(cd_codegen(&nest, CD_DIALECT_C, name, &m->code, &err));
    f->n++;
}

static void compile(fixture *f) {
    FILE *c = fopen(scratch("all.c"), "w");
    char cmd[800];
    assert_non_null(c);
    fputs(cd_codegen_prelude(CD_DIALECT_C), c);
    for (size_t k = 0; k < f->n; k++) fwrite(f->made[k].code.text.p, 1, f->made[k].code.text.n, c);
    fclose(c);
    snprintf(cmd, sizeof cmd, "gcc -O1 -w -Wno-psabi -shared -fPIC -o %s %s -lm", scratch("all.so"),
             scratch("all.c"));
    assert_int_equal(system(cmd), 0);
    f->lib = dlopen(scratch("all.so"), RTLD_NOW);
    assert_non_null(f->lib);
}

typedef void (*entry)(void *const *);
typedef void (*pieces)(void *const *, int, int, int, int);
static entry symbol(void *so, const char *name) {
    union {
        void *p;
        entry f;
    } u = {dlsym(so, name)};
    return u.f;
}

enum { UNITS = 3 };
/* All parts, each in up to four pieces of any length, the last piece first, on units in turns. */
static void in_pieces(void *so, const char *name, const cd_codegen_code *c, void *const *arg) {
    char of[48];
    snprintf(of, sizeof of, "%s_part", name);
    union {
        void *p;
        pieces f;
    } u = {dlsym(so, of)};
    assert_non_null(u.p);
    for (uint32_t p = 0; p < c->n_part; p++) {
        int64_t end = c->part[p].iterations;
        assert_true(end >= 1 && c->part[p].stores >= (double)end);
        for (int piece = 0; end; piece++) {
            const int64_t begin =
                piece < 3 ? (int64_t)(cd_rng_at(p + 1, (uint64_t)(end + piece)) % (uint64_t)end)
                          : 0;
            u.f(arg, (int)p, (piece + (int)p) % UNITS, (int)begin, (int)end);
            end = begin;
        }
    }
}

static void *argument(const cd_te_dag *d, const cd_codegen_code *c, uint32_t k, const interp *in) {
    const uint32_t t = d->arg[k];
    const cd_te_op *op = op_of(d, t);
    const int64_t n = in_count(op->rank, op->shape);
    char *plain = calloc((size_t)n + 1, 8), *p = NULL;
    assert_int_equal(posix_memalign((void **)&p, 64, (size_t)c->buffer[k].bytes + 64), 0);
    memset(p, 0x7b, (size_t)c->buffer[k].bytes + 64);
    for (int64_t e = 0; e < n && op->is_placeholder; e++)
        put(plain, type_of(d, t), e, in->mem[t].v[e]);
    if (op->is_placeholder) cd_codegen_pack(&c->buffer[k], op->rank, op->shape, plain, p);
    free(plain);
    return p;
}

/* Whole, or in pieces where the program has parts. */
static long run_one(fixture *f, size_t number, const interp *truth, bool whole) {
    const made *m = &f->made[number];
    const cd_te_dag *d = cd_task_registry_at(f->tasks, m->task)->dag;
    void *arg[16] = {NULL};
    char name[32];
    long wrong = 0;
    snprintf(name, sizeof name, "f%zu", number);
    for (uint32_t k = 0; k < m->code.n_buffer; k++) {
        if (k < m->code.n_arg) arg[k] = argument(d, &m->code, k, &truth[m->task]);
        else arg[k] = aligned_alloc(64, (size_t)(m->code.buffer[k].bytes * UNITS + 127) / 64 * 64);
    }
    if (whole) symbol(f->lib, name)(arg);
    else in_pieces(f->lib, name, &m->code, arg);
    for (uint32_t k = 0; k < m->code.n_arg; k++) {
        const uint32_t t = d->arg[k];
        const int64_t n = in_count(op_of(d, t)->rank, op_of(d, t)->shape);
        for (int64_t e = 0; e < n && !op_of(d, t)->is_placeholder; e++)
            wrong += get(arg[k], type_of(d, t), e) != truth[m->task].mem[t].v[e];
        for (int b = 0; b < 64; b++) wrong += ((char *)arg[k])[m->code.buffer[k].bytes + b] != 0x7b;
    }
    if (wrong) print_message("task %zu:\n%.*s\n", m->task, (int)m->code.text.n, m->code.text.p);
    for (uint32_t k = 0; k < m->code.n_buffer; k++) free(arg[k]);
    return wrong;
}

TEST(random_schedules) {
    static fixture f;
    const char *rounds = getenv("CDMPP_ROUNDS");
    const int each = rounds ? atoi(rounds) : 8;
    cdmpp_err err = {0};
    interp truth[N_TASK];
    char key[16];
    long packed = 0;
    f.made = calloc(MOST, sizeof *f.made);
    assert_ok(prog_tasks(text, N_TASK, &f.tasks, &err));
    assert_ok(cd_schedule_init(&f.r.s, &err));
    assert_ok(cd_program_new(&f.p, &err));
    f.r.t.open = -1;
    for (size_t k = 0; k < N_TASK; k++) {
        define(cd_task_registry_at(f.tasks, k)->dag, &truth[k]);
        for (int i = 0; i < each && f.n < MOST; i++) {
            f.r.rng = (uint64_t)i * 7919 + k;
            assert_ok(
                rs_make(&f.r, cd_task_registry_at(f.tasks, k)->dag, rs_below(&f.r, 10), &err));
            generate_one(&f, k, rs_record(&f.r));
            for (uint32_t b = 0; b < f.made[f.n - 1].code.n_arg; b++)
                packed += f.made[f.n - 1].code.buffer[b].n_digit > 0;
        }
    }
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++) {
        cd_record one;
        snprintf(key, sizeof key, "%zu", fixed[k].task);
        assert_ok(prog_record(&f.r.a, key, PROG_CPU, fixed[k].steps, &one, &err));
        generate_one(&f, fixed[k].task, one);
    }
    const size_t first = f.n;
    for (size_t k = 0; k < sizeof parallel / sizeof *parallel; k++) {
        cd_record beside;
        snprintf(key, sizeof key, "%zu", parallel[k].task);
        assert_ok(prog_record(&f.r.a, key, PROG_CPU, parallel[k].steps, &beside, &err));
        generate_one(&f, parallel[k].task, beside);
    }
    compile(&f);
    for (size_t k = 0; k < sizeof parallel / sizeof *parallel; k++) {
        const cd_codegen_code *c = &f.made[first + k].code;
        bool scratch = false;
        for (uint32_t b = c->n_arg; b < c->n_buffer; b++) scratch |= c->buffer[b].per_thread;
        assert_true(c->parallel && c->n_part == parallel[k].parts &&
                    scratch == parallel[k].scratch);
    }
    /* the convolution reads 9 columns of 10; it stores each sum once more than it adds */
    assert_int_equal(f.made[first].code.part[0].iterations, 11);
    assert_true(f.made[first].code.part[0].stores == 11 * 9 * 5 &&
                f.made[first].code.part[1].stores == 5 * 4 * 5 * (1 + 9));
    /* a condition was simplified away: what it held still counts */
    assert_true(f.made[first + 4].code.part[0].stores == 3 * 2 * 4);
    long cut = 0;
    for (size_t k = 0; k < f.n; k++) {
        assert_int_equal(run_one(&f, k, truth, true), 0);
        if (f.made[k].code.n_part) assert_int_equal(run_one(&f, k, truth, false), 0);
        cut += f.made[k].code.n_part > 0;
    }
    print_message("%zu programs, %ld parameters packed, %ld with parts\n", f.n, packed, cut);
    assert_true(packed > 0);
    dlclose(f.lib);
    for (size_t k = 0; k < f.n; k++) cd_codegen_code_free(&f.made[k].code);
    for (size_t k = 0; k < N_TASK; k++) undefine(cd_task_registry_at(f.tasks, k)->dag, &truth[k]);
    free(f.made);
    cd_program_free(f.p);
    cd_schedule_free(&f.r.s);
    cd_ast_free(&f.r.t);
    cd_arena_free(&f.r.a);
    cd_task_registry_free(f.tasks);
}

static int count(const cd_codegen_code *c, const char *what) {
    int n = 0;
    for (const char *at = c->text.p; (at = strstr(at, what)); at++) n++;
    return n;
}

/* A vectorised loop is at most eight statements of one register each, with shorter ones for the
 * rest; a longer one is a loop over registers. */
TEST(lengths_of_vectors) {
    static const struct {
        int n;
        uint32_t bytes; /* of a register; 4 floats in 16 */
        int step;       /* of the loop, 0: none */
        int statements;
    } tab[] = {{4, 16, 0, 1},
               {32, 16, 0, 8},
               {31, 16, 0, 7 + 1 + 1},
               {33, 16, 4, 1 + 1},
               {36, 16, 4, 1},
               {64, 32, 0, 8},
               {63, 32, 0, 7 + 1 + 1 + 1},
               {65, 32, 8, 1 + 1},
               {128, 64, 0, 8},
               {129, 64, 16, 1 + 1},
               {112, 64, 0, 7},
               {16, 64, 0, 1},
               {12, 64, 0, 2},
               {142, 64, 16, 1 + 1 + 1 + 1},
               {3, 16, 0, 1 + 1},
               {2, 16, 0, 1}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        char ops[200], loop[32];
        const char *one = ops;
        cd_task_registry *tasks;
        cd_program *p;
        cd_arena a = {0};
        cd_record r;
        cd_nest nest;
        cd_codegen_code c;
        cdmpp_err err = {0};
        snprintf(ops, sizeof ops,
                 "\"ops\": [{\"name\": \"x\", \"shape\": [%d], \"dtype\": \"float32\"}, {\"name\": "
                 "\"y\", \"axis\": [[\"i\", 0, %d]], \"body\": \"x[i]*2\"}]",
                 tab[k].n, tab[k].n);
        assert_ok(prog_tasks(&one, 1, &tasks, &err));
        assert_ok(cd_program_new(&p, &err));
        assert_ok(prog_record(&a, "0", PROG_CPU, "[[\"AN\", 1, 0, 2]]", &r, &err));
        assert_ok(cd_program_lower_code(p, cd_task_registry_at(tasks, 0), &r, &err));
        assert_ok(cd_program_nest(p, &nest, &err));
        nest.vector_bytes = tab[k].bytes;
        assert_ok(cd_codegen(&nest, CD_DIALECT_C, "f", &c, &err));
        snprintf(loop, sizeof loop, " += %d)", tab[k].step);
        const int statements = count(&c, "2.0f"), loops = count(&c, "for (");
        if (statements != tab[k].statements || loops != (tab[k].step > 0) ||
            count(&c, loop) != loops)
            fail_msg("%d in %u:\n%s", tab[k].n, tab[k].bytes, c.text.p);
        cd_codegen_code_free(&c);
        cd_arena_free(&a);
        cd_program_free(p);
        cd_task_registry_free(tasks);
    }
}

TESTS(NULL, NULL, random_schedules, lengths_of_vectors)
