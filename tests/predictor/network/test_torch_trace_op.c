/* What a row of a trace runs: operators that a run of one network does not have, shapes that are
 * odd. */
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/network/network_internal.h"

/* Shapes with blanks between; "x" between dimensions, "-": a number, "*" behind one: not in one run
 * of memory, "b": of one byte. */
static void shape_of(const char *s, size_t n, cd_torch_trace_shape *out) {
    *out = (cd_torch_trace_shape){.bytes = *s == '-' ? 0 : 4};
    for (const char *p = s; *s != '-' && p < s + n;) {
        char *end;
        out->d[out->n++] = strtoll(p, &end, 10);
        if (*end == '*') out->strided = true, end++;
        if (*end == 'b') out->bytes = 1, end++;
        p = end + (*end == 'x');
    }
}

/* "F linear 1 8 4 16" for each task: phase, operator, b m n k. */
static void tasks_of(const char *verb, const char *in, const char *result, const char *flags,
                     cd_buf *out) {
    cd_torch_trace_op r = {.kind = "call_function",
                           .verb = verb,
                           .name = "n",
                           .dtype = CD_LIBRARY_OP_DTYPE_F32,
                           .real = true};
    cd_torch_trace_task task[CD_TORCH_TRACE_TASKS];
    double share[3] = {0};
    cd_buf_clear(out);
    for (const char *s = in; *s; s += strcspn(s, " "), s += *s == ' ') {
        if (r.n_in < CD_TORCH_TRACE_INPUTS) shape_of(s, strcspn(s, " "), &r.in[r.n_in]);
        r.in_gradient |= strchr(flags, 'a') ? 1u << r.n_in : 0;
        r.n_in++;
    }
    if (strchr(flags, '0')) r.in_gradient = 2;
    shape_of(result, strlen(result), &r.out);
    r.training = r.gradient = strchr(flags, 't') != NULL;
    r.vocabulary = strchr(flags, 'v') ? 50 : 0;
    const uint32_t n = cd_torch_trace_tasks(&r, task);
    for (uint32_t i = 0; i < n; i++) {
        const cd_library_op_record *q = &task[i].question;
        cd_buf_putf(out, "%s%c ", i ? ", " : "", "FBU"[task[i].phase]);
        if (task[i].kind == CD_NODE_LIBRARY)
            cd_buf_putf(out, "%s %s %g %g %g %g", task[i].op, cd_library_op_kind_name(q->kind),
                        q->b, q->m, q->n, q->k);
        else cd_buf_puts(out, task[i].kind == CD_NODE_FREE ? "free" : "unknown");
        share[task[i].phase] += task[i].share;
    }
    /* the time of a phase is dealt out, all of it */
    for (uint32_t i = 0; i < n; i++) assert_close(share[task[i].phase], 1, 1e-9, 0);
}

TEST(rows) {
    /* flags: t training, a gradients of all operands, 0 of the second one only, v a table of 50
     * words */
    static const struct {
        const char *verb, *in, *out, *flags, *want;
    } of[] = {
        {"linear", "8x16 4x16", "8x4", "", "F linear linear 1 8 4 16"},
        {"addmm", "8x16", "8x4", "ta",
         "F linear linear 1 8 4 16, B linear linear 1 8 16 4, B linear linear 1 4 16 8, B bias "
         "mulu 1 4 4 1, U weights add 1 4 16 1, U weights add 1 1 4 1"},
        {"matmul", "8x16 16x4", "8x4", "ta",
         "F linear linear 1 8 4 16, B linear linear 1 8 16 4, B linear linear 1 4 16 8, B bias "
         "mulu 1 4 4 1, U weights add 1 4 16 1, U weights add 1 1 4 1"},
        {"matmul", "8x16", "8x4", "ta",
         "F linear linear 1 8 4 16, B linear linear 1 8 16 4, B linear linear 1 4 16 8, B bias "
         "mulu 1 4 4 1, U weights add 1 4 16 1, U weights add 1 1 4 1"},
        {"matmul", "2x8x16 16x4", "2x8x4", "", "F linear linear 1 16 4 16"},
        {"bmm", "2x8x16 2x16x4", "2x8x4", "ta",
         "F bmm bmm 2 8 4 16, B bmm bmm 2 8 16 4, B bmm bmm 2 16 4 8"},
        {"bmm", "2x8x16 2x16x4", "2x8x4", "t0", "F bmm bmm 2 8 4 16, B bmm bmm 2 16 4 8"},
        {"bmm", "2x8x16 2x16x4", "4", "", "F bmm bmm 1 1 4 16"},
        {"matmul", "2x3x8x16* 2x3x16x4*", "2x3x8x4", "",
         "F bmm bmm 6 8 4 16, F copy mulu 1 192 4 1, F copy mulu 1 96 4 1"},
        {"mul", "2x8 2x8", "2x8", "ta", "F mul mul 1 2 8 1, B mul mul 1 2 8 1, B mul mul 1 2 8 1"},
        {"mul", "2x8 -", "2x8", "ta", "F mulu mulu 1 2 8 1, B mulu mulu 1 2 8 1"},
        {"mul", "2x8 1", "2x8", "", "F mulu mulu 1 2 8 1"},
        {"mul", "1 2x8", "2x8", "", "F mulu mulu 1 2 8 1"},
        {"mul", "- 2x8", "2x8", "", "F mulu mulu 1 2 8 1"},
        {"div", "2x8 2x8", "2x8", "ta", "F div div 1 2 8 1, B mul mul 1 2 8 1, B mul mul 1 2 8 1"},
        {"pow", "2x8 -", "2x8", "ta",
         "F powu powu 1 2 8 1, B powu powu 1 2 8 1, B mulu mulu 1 2 8 1, B mul mul 1 2 8 1"},
        {"pow", "2x8 2x8", "2x8", "ta",
         "F pow pow 1 2 8 1, B powu powu 1 2 8 1, B mulu mulu 1 2 8 1, B mul mul 1 2 8 1"},
        {"add", "2x8 -", "2x8", "ta", "F addu addu 1 2 8 1, B free"},
        {"relu", "2x8", "2x8", "ta", "F relu relu 1 2 8 1, B mul mul 1 2 8 1"},
        {"max", "2x8 2x8", "2x8", "ta",
         "F max mulu 1 3 8 1, B max mulu 1 2 8 1, B max mulu 1 2 8 1, B max mulu 1 4 8 1, B max "
         "mulu 1 2 8 1, B max mulu 1 3 8 1"},
        {"mean", "2x8", "2", "ta", "F mean mulu 1 5 2 1, B mean mulu 1 5 2 1"},
        {"zeros", "", "2x8", "ta", "F zeros mulu 1 1 8 1, B free"},
        {"zeros", "", "", "", "F zeros mulu 1 1 1 1"},
        {"to", "2x8", "2x8", "", "F free"},
        {"to", "2x8b", "2x8", "ta", "F to mulu 1 2 8 1, B to mulu 1 2 8 1"},
        {"to", "", "2x8", "", "F to mulu 1 1 8 1"},
        {"reshape", "2x8*", "16", "ta", "F reshape mulu 1 1 16 1, B reshape mulu 1 1 16 1"},
        {"reshape", "2x8*", "16*", "", "F free"},
        {"reshape", "", "16", "", "F free"},
        {"getitem", "2x8", "8", "", "F free"},
        {"getitem", "2x8 -", "8", "", "F free"},
        {"getitem", "2x8 3", "3x8", "ta", "F getitem mulu 1 3 8 1, B getitem mulu 1 3 8 1"},
        {"where", "2x8b 2x8 2x8", "2x8", "", "F where mulu 1 4 8 1"},
        {"cat", "2x8 2x8 2x8 2x8 2x8 2x8 2x8 2x8 2x8 2x8", "20x8", "", "F cat mulu 1 20 8 1"},
        {"dropout", "2x8", "2x8", "ta",
         "F dropout mulu 1 3 8 1, B dropout mulu 1 2 8 1, B dropout mulu 1 2 8 1, B mul mul 1 2 8 "
         "1"},
        {"dropout", "2x8", "2x8", "", "F free"},
        {"embedding", "2x8", "2x8x4", "tav",
         "F embedding mulu 1 16 4 1, B embedding mulu 1 25 4 1, B embedding mulu 1 16 4 1, U "
         "weights add 1 50 4 1"},
        {"embedding", "2x8", "2x8x4", "ta",
         "F embedding mulu 1 16 4 1, B embedding mulu 1 8 4 1, B embedding mulu 1 16 4 1, U "
         "weights add 1 16 4 1"},
        {"layer_norm", "2x8", "2x8", "ta",
         "F ln ln 1 2 8 1, B mul mul 1 2 8 1, U weights add 1 1 8 1, U weights add 1 1 8 1"},
        {"softmax", "2x8", "2x8", "ta",
         "F softmax softmax 1 2 8 1, B mul mul 1 2 8 1, B softmax softmax 1 2 8 1"},
        {"view", "2x8", "16", "ta", "F free, B free"},
        {"setitem", "2x8", "2x8", "", "F unknown"},
        {"nosuch", "2x8", "2x8", "", "F unknown"},
        {"nosuch", "2x8", "-", "", "F free"},
        {"mul", "2x8 2x8", "0x8", "ta", "F free"},
        {"mul", "2x8 2x8", "-", "ta", "F free, B free"},
    };
    cd_buf got = {0};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        tasks_of(of[k].verb, of[k].in, of[k].out, of[k].flags, &got);
        if (strcmp(got.p, of[k].want) != 0)
            fail_msg("%s (%s) -> %s, %s: %s", of[k].verb, of[k].in, of[k].out, of[k].flags, got.p);
    }
    cd_buf_free(&got);
}

TESTS(NULL, NULL, rows)
