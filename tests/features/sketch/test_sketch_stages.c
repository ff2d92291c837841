/* Tasks of many stages: around every number that was ever the length of an array, an answer, or an
 * error that names the count and the limit; and work that grows about as the stages do. */
#include "made_space.h"
#include "features/schedule/schedule.h"

/* Of n inputs: a sum of what is inlined; of what is not; a chain of sums of what is not; one stage
 * that chooses among all; n results. */
typedef enum { SUM, EXPS, CHAIN, CONCAT, RESULTS, KINDS } kind;

static void put_input(cd_buf *b, uint32_t k) {
    cd_buf_putf(b, "%s{\"name\": \"x%u\", \"shape\": [8], \"dtype\": \"float32\"}", k ? ", " : "",
                k);
}

static void put_stage(cd_buf *b, const char *name, uint32_t k, const char *body) {
    cd_buf_putf(b, ", {\"name\": \"%s%u\", \"axis\": [[\"a\", 0, 8]], \"body\": \"%s\"}", name, k,
                body);
}

/* The sum of r<lo> .. r<hi-1>, as flat as can be. */
static void put_sum(cd_buf *b, uint32_t lo, uint32_t hi) {
    if (hi - lo == 1) {
        cd_buf_putf(b, "r%u[a]", lo);
        return;
    }
    cd_buf_puts(b, "(");
    put_sum(b, lo, lo + (hi - lo) / 2);
    cd_buf_puts(b, " + ");
    put_sum(b, lo + (hi - lo) / 2, hi);
    cd_buf_puts(b, ")");
}

static void put_choice(cd_buf *b, uint32_t lo, uint32_t hi) {
    if (hi - lo == 1) {
        cd_buf_putf(b, "x%u[a - %u]", lo, 8 * lo);
        return;
    }
    const uint32_t mid = lo + (hi - lo) / 2;
    cd_buf_putf(b, "if_then_else(a >= %u, ", 8 * mid);
    put_choice(b, mid, hi);
    cd_buf_puts(b, ", ");
    put_choice(b, lo, mid);
    cd_buf_puts(b, ")");
}

static void put_stages(cd_buf *b, kind what, uint32_t n) {
    char body[80];
    for (uint32_t k = 0; k < n && what != CONCAT; k++) {
        snprintf(body, sizeof body,
                 what == SUM       ? "max(x%u[a], 0.0)"
                 : what == RESULTS ? "x0[a]*%u.0"
                                   : "exp(x%u[a])",
                 k);
        put_stage(b, "r", k, body);
    }
    for (uint32_t k = 1; k < n && what == CHAIN; k++) {
        snprintf(body, sizeof body, "%s%u[a] + r%u[a]", k > 1 ? "s" : "r", k - 1, k);
        put_stage(b, "s", k, body);
    }
    if (what == CONCAT) {
        cd_buf_putf(b, ", {\"name\": \"y\", \"axis\": [[\"a\", 0, %u]], \"body\": \"", 8 * n);
        put_choice(b, 0, n);
        cd_buf_puts(b, "\"}");
    } else if (what == SUM || what == EXPS) {
        cd_buf_puts(b, ", {\"name\": \"y\", \"axis\": [[\"a\", 0, 8]], \"body\": \"");
        put_sum(b, 0, n);
        cd_buf_puts(b, "\"}");
    }
}

static cd_task_registry *task_of(kind what, uint32_t n) {
    cd_buf b = {0};
    cd_task_registry *t;
    cdmpp_err err = {0};
    cd_buf_puts(&b, "\"ops\": [");
    for (uint32_t k = 0; k < (what == RESULTS ? 1 : n); k++) put_input(&b, k);
    put_stages(&b, what, n);
    cd_buf_puts(&b, "]");
    const char *const text[] = {b.p};
    assert_ok(prog_tasks(text, 1, &t, &err));
    cd_buf_free(&b);
    return t;
}

/* Draws, matches, mutates and builds. */
static void use(const cd_task_registry *t, bool gpu) {
    cdmpp_err err = {0};
    cd_program *p;
    cd_rows rows;
    bool exact;
    cd_sketch_space *sp = made_space(t, 0, gpu);
    cd_sketch_sampler *w = made_sampler(sp, 7), *other = made_sampler(sp, 7);
    assert_ok(cd_program_new(&p, &err));
    for (uint64_t i = 0; i < 2; i++) {
        cd_sketch_sample d, again;
        const cdmpp_status st = cd_sketch_sampler_draw(w, i, &d, &err);
        assert_true(!st || st == CDMPP_EREJECTED);
        if (st) continue;
        const cd_record r = made_record(&d);
        assert_ok(cd_program_build(p, cd_task_registry_at(t, 0), &r, &rows, &err));
        assert_ok(cd_sketch_sampler_match(other, &r, &again, &exact, &err));
        assert_true(exact);
        const cdmpp_status changed =
            cd_sketch_sampler_mutate(w, d.choice, d.n_choice, i, &again, &err);
        assert_true(!changed || changed == CDMPP_EREJECTED);
    }
    cd_program_free(p);
    cd_sketch_sampler_free(w);
    cd_sketch_sampler_free(other);
    cd_sketch_space_free(sp);
}

/* 64, 128, 256 and 512 were or are lengths of arrays; stages are n to 3n. */
TEST(around_powers_of_two) {
    static const uint32_t n[] = {1,  2,  31,  32,  33,  43,  63,  64, 65,
                                 85, 86, 127, 128, 129, 255, 256, 257};
    for (kind what = 0; what < KINDS; what++)
        for (size_t i = 0; i < sizeof n / sizeof *n; i++)
            for (int gpu = 0; gpu < 2; gpu++) {
                cd_task_registry *t = task_of(what, n[i]);
                use(t, gpu);
                cd_task_registry_free(t);
            }
}

/* What is inlined into each other more often than an expression may be deep is computed one after
 * the other. */
TEST(longest_chains) {
    cd_buf b = {0};
    cd_task_registry *t;
    cdmpp_err err = {0};
    char body[40] = "max(x0[a], 0.0)";
    cd_buf_puts(&b, "\"ops\": [");
    put_input(&b, 0);
    for (uint32_t k = 0; k < 1500; k++) {
        put_stage(&b, "r", k, body);
        snprintf(body, sizeof body, "max(r%u[a], 0.0)", k);
    }
    cd_buf_puts(&b, "]");
    const char *const text[] = {b.p};
    assert_ok(prog_tasks(text, 1, &t, &err));
    use(t, false);
    cd_task_registry_free(t);
    cd_buf_free(&b);
}

TEST(most_stages) {
    cdmpp_err err = {0};
    cd_sketch_space *sp;
    cd_program *p;
    const cd_record none = {0};
    cd_task_registry *most = task_of(RESULTS, CD_MAX_STAGE - 1),
                     *more = task_of(RESULTS, CD_MAX_STAGE);
    assert_ok(made_space_new(most, 0, false, &sp, &err));
    cd_sketch_space_free(sp);
    assert_status(made_space_new(more, 0, false, &sp, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.msg, "4097 stages, at most 4096");
    assert_ok(cd_program_new(&p, &err));
    assert_ok(cd_program_lower(p, cd_task_registry_at(most, 0), &none, &err));
    assert_status(cd_program_lower(p, cd_task_registry_at(more, 0), &none, &err),
                  CDMPP_EUNSUPPORTED);
    assert_string_equal(err.msg, "4097 stages, at most 4096");
    cd_program_free(p);
    cd_task_registry_free(most);
    cd_task_registry_free(more);
}

static double least_of_five(const cd_task_registry *t) {
    double least = 1e9;
    for (int i = 0; i < 5; i++) {
        const double from = cd_clock_thread();
        use(t, false);
        const double s = cd_clock_thread() - from;
        least = s < least ? s : least;
    }
    return least;
}

/* Of 16 times as many stages, 16 times the work and a logarithm: quadratic would be 256 times.
 * Processor time of this thread, and a bar between, so that a busy machine does not decide. */
TEST(work_grows_as_the_stages) {
    for (kind what = 0; what < KINDS; what++) {
        cd_task_registry *few = task_of(what, 32), *many = task_of(what, 512);
        assert_true(least_of_five(many) < 160 * least_of_five(few));
        cd_task_registry_free(few);
        cd_task_registry_free(many);
    }
}

TESTS(NULL, NULL, around_powers_of_two, longest_chains, most_stages, work_grows_as_the_stages)
