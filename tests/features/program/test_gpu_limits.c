/* What TVM refuses of a GPU program, each limit from both sides: threads, memory, vectors, virtual
 * threads. */
#include "check.h"

#include "prog.h"

#define ELEMENT(type, body)                                                                        \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"" type "\"},"                   \
    "{\"name\": \"E\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"body\": \"" body "\"}]"
#define SUM(body)                                                                                  \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"},"                    \
    "{\"name\": \"E\", \"axis\": [[\"i\", 0, 64]], \"reduce_axis\": [[\"k\", 0, 64]], "            \
    "\"reduce\": \"sum\", \"body\": \"" body "\"}]"
enum { PLAIN, CALL, ON_J, ON_I, WIDE, POW, WITHIN, BEHIND, ROW_SUM, COUNT };
static const char *const task[] = {ELEMENT("float32", "A[i, j] + 1"),
                                   ELEMENT("float32", "call_pure_extern:float32('f', A[i, j])"),
                                   ELEMENT("float32", "if_then_else(j < 60, A[i, j], 0.0)"),
                                   ELEMENT("float32", "if_then_else(i < 60, A[i, j], 0.0)"),
                                   ELEMENT("float64", "float32(A[i, j])"),
                                   ELEMENT("float32", "exp(A[i, j])"),
                                   ELEMENT("float32", "exp(if_then_else(j < 60, A[i, j], 0.0))"),
                                   ELEMENT("float32", "A[i, j] + if_then_else(j < 60, 1.0, 0.0)"),
                                   SUM("A[i, k]"),
                                   SUM("A[i, 0]")};

/* Rows in blocks, 16 threads a row, and vectors of 4 (or 5, with a guard); 8 or 16 virtual threads;
 * a cache of 8 elements for each thread; one of a row for each block, which other threads fill. */
#define ROWS       "[\"AN\", 1, 0, 5]"
#define VECTOR     "[[\"SP\", 1, 1, 64, [4], 1]," ROWS ",[\"AN\", 1, 1, 6],[\"AN\", 1, 2, 2]]"
#define GUARDED    "[[\"SP\", 1, 1, 64, [5], 1]," ROWS ",[\"AN\", 1, 1, 6],[\"AN\", 1, 2, 2]]"
#define VIRTUAL(n) "[[\"SP\", 1, 0, 64, [" #n "], 1]," ROWS ",[\"AN\", 1, 1, 4],[\"AN\", 1, 2, 6]]"
#define SUMMED     "[[\"SP\", 1, 1, 64, [16], 1],[\"AN\", 1, 0, 5],[\"AN\", 1, 2, 4]]"
#define LOCAL                                                                                      \
    "[[\"CHW\", 1, \"local\"],[\"SP\", 2, 1, 64, [8], 1],[\"AN\", 2, 0, 5],[\"AN\", 2, 1, "        \
    "6],[\"CA\", 1, 2, 1]]"
#define SHARED(n)                                                                                  \
    "[[\"CHR\", 0, \"shared\", [1]],[\"SP\", 2, 1, 64, [8], 1],[\"AN\", 2, 0, 5],[\"AN\", 2, 2, "  \
    "6],[\"CA\", 1, 2, 0],"                                                                        \
    "[\"SP\", 1, 1, 64, [" #n "], 1],[\"AN\", 1, 2, 6]]"

/* vector_unit_bytes, max_shared, max_local, max_threads, max_vthread */
typedef struct {
    int vector, shared, local, threads, virtual;
} limits;

TEST(limits_hold) {
    static const struct {
        int task;
        const char *steps;
        limits at;
        const char *why; /* NULL: allowed */
    } tab[] = {
        {PLAIN, VECTOR, {16, 0, 0, 16, 1}, NULL},
        {PLAIN, VECTOR, {16, 0, 0, 15, 1}, "16 threads per block, at most 15"},
        {PLAIN, VECTOR, {15, 0, 0, 16, 1}, "a vector of 16 bytes, at most 15"},
        {POW, VECTOR, {15, 0, 0, 16, 1}, "a vector of 16 bytes, at most 15"},
        {CALL, VECTOR, {15, 0, 0, 16, 1}, NULL}, /* scalar functions make scalar loops */
        {ON_J, VECTOR, {15, 0, 0, 16, 1}, NULL},
        {WITHIN, VECTOR, {15, 0, 0, 16, 1}, NULL},
        {BEHIND, VECTOR, {15, 0, 0, 16, 1}, NULL},
        {ON_I, VECTOR, {15, 0, 0, 16, 1}, "a vector of 16 bytes, at most 15"},
        {WIDE, VECTOR, {32, 0, 0, 16, 1}, NULL},
        {WIDE, VECTOR, {31, 0, 0, 16, 1}, "a vector of 32 bytes, at most 31"},
        {PLAIN, GUARDED, {15, 0, 0, 16, 1}, NULL},
        {PLAIN, VIRTUAL(16), {16, 0, 0, 64, 16}, NULL},
        {PLAIN, VIRTUAL(16), {16, 0, 0, 64, 15}, "16 virtual threads, at most 15"},
        {PLAIN, VIRTUAL(8), {16, 0, 0, 64, 4}, NULL}, /* few are unrolled */
        {ROW_SUM, SUMMED, {16, 0, 0, 64, 16}, NULL},
        {ROW_SUM, SUMMED, {16, 0, 0, 64, 15}, "16 virtual threads, at most 15"},
        {COUNT, SUMMED, {16, 0, 0, 64, 15}, NULL},
        {PLAIN, LOCAL, {16, 0, 32, 8, 1}, NULL},
        {PLAIN, LOCAL, {16, 0, 31, 8, 1}, "32 bytes of local memory, at most 31"},
        {PLAIN, SHARED(8), {16, 256, 0, 8, 1}, NULL},
        {PLAIN, SHARED(8), {16, 255, 0, 8, 1}, "256 bytes of shared memory, at most 255"},
        {PLAIN, SHARED(16), {16, 256, 0, 64, 1}, "threadIdx.x has extents"},
    };
    cd_task_registry *tasks;
    cd_program *p;
    cd_arena a = {0};
    cdmpp_err err = {0};
    assert_ok(prog_tasks(task, sizeof task / sizeof *task, &tasks, &err));
    assert_ok(cd_program_new(&p, &err));
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        const limits *at = &tab[k].at;
        char key[8], hw[120];
        cd_record r;
        cd_rows rows;
        err = (cdmpp_err){0};
        snprintf(key, sizeof key, "%d", tab[k].task);
        snprintf(hw, sizeof hw, "\"cuda\", [-1, %d, 64, %d, %d, %d, %d, 32]", at->vector,
                 at->shared, at->local, at->threads, at->virtual);
        assert_ok(prog_record(&a, key, hw, tab[k].steps, &r, &err));
        const cdmpp_status st =
            cd_program_build(p, cd_task_registry_at(tasks, (size_t)tab[k].task), &r, &rows, &err);
        if (st != (tab[k].why ? CDMPP_EREJECTED : CDMPP_OK) || (st && !strstr(err.msg, tab[k].why)))
            fail_msg("row %zu: %s", k, st ? err.msg : "allowed");
    }
    cd_arena_free(&a);
    cd_program_free(p);
    cd_task_registry_free(tasks);
}

TESTS(NULL, NULL, limits_hold)
