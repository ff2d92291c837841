/* The written 0/1 problems, solved by somebody else: GLPK, where it is. */
#include <stdlib.h>

#include "base/io/io.h"
#include "check.h"
#include "made_part.h"
#include "tmp.h"

static cdmpp_err err;

/* Optimum in seconds; NaN: no solution. */
static double solve(tmp_dir *dir, const char *text, size_t n) {
    char lp[256], out[256], command[700], line[512];
    snprintf(lp, sizeof lp, "%s", tmp_path(dir, "p.lp"));
    snprintf(out, sizeof out, "%s", tmp_path(dir, "p.out"));
    assert_ok(cd_file_write(lp, text, n, &err));
    snprintf(command, sizeof command, "glpsol --lp %s -o %s >/dev/null 2>&1", lp, out);
    if (system(command)) fail_msg("%.*s", (int)n, text);
    double best = (double)NAN;
    bool solved = true;
    FILE *f = fopen(out, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "= ");
        if (!strncmp(line, "Objective:", 10) && at) best = strtod(at + 2, NULL) * 1e-6;
        if (!strncmp(line, "Status:", 7) && !strstr(line, "INTEGER OPTIMAL")) solved = false;
    }
    fclose(f);
    return solved ? best : (double)NAN;
}

static void against_glpk(cd_place_goal goal, uint64_t seed, int graphs, uint32_t most, uint32_t D) {
    static made_part m;
    if (system("glpsol --version >/dev/null 2>&1")) skip();
    int equal = 0, possible = 0;
    tmp_dir dir = tmp_make();
    for (int i = 0; i < graphs; i++) {
        cd_buf b = {0};
        cd_place_plan r;
        mp_make(&m, seed + (uint64_t)i, 2 + (uint32_t)i % (most - 1), D, false, i % 4 != 0);
        for (uint32_t d = 0; d < D; d++) m.device[d].workers = 1;
        const cdmpp_status st = cd_place_solve(&m.p, goal, 0, &r, &err);
        assert_ok(cd_place_lp(&m.p, goal, &b, &err));
        const double best = solve(&dir, b.p, b.n),
                     is = goal == CD_PLACE_SUM ? r.cost.sum_s : r.cost.makespan_s;
        if (st) assert_true(isnan(best));
        else {
            possible++;
            equal += fabs(best - is) <= 1e-6 * is + 1e-15;
            assert_true(best <= is * (1 + 1e-6) + 1e-15);
            if (goal == CD_PLACE_SUM) assert_close(best, is, 1e-6, 1e-15);
        }
        cd_place_plan_free(&r);
        cd_buf_free(&b);
    }
    tmp_remove(&dir);
    print_message("%s: %d of %d equal\n", goal == CD_PLACE_SUM ? "sum" : "makespan", equal,
                  possible);
    assert_true(equal * 10 >= possible * 7);
}

static void sum_by_glpk(void **state) {
    (void)state, against_glpk(CD_PLACE_SUM, 40000, 40, 12, 2),
        against_glpk(CD_PLACE_SUM, 41000, 40, 12, 3);
}
static void span_by_glpk(void **state) {
    (void)state, against_glpk(CD_PLACE_MAKESPAN, 42000, 30, 6, 2);
}

static void text(void **state) {
    (void)state;
    static made_part m;
    cd_buf b = {0};
    mp_make(&m, 5, 4, 2, true, true);
    assert_ok(cd_place_lp(&m.p, CD_PLACE_SUM, &b, &err));
    assert_non_null(strstr(b.p, "Minimize\n obj:"));
    assert_non_null(strstr(b.p, "\nSubject To\n"));
    assert_string_equal(b.p + b.n - 4, "End\n");
    mp_make(&m, 5, MP_OPS, 2, true, true);
    m.p.n_op = 65;
    assert_status(cd_place_lp(&m.p, CD_PLACE_MAKESPAN, &b, &err), CDMPP_ERANGE);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, text, sum_by_glpk, span_by_glpk)
