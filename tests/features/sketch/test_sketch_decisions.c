/* Laws of choices: what makes a schedule makes it again, and moves lead from schedules to
 * schedules. */
#include "check.h"
#include "made_space.h"

enum { MOVES = 40 };

/* Its choices make the draft again, on another sampler. */
static void check_again(room *r, const cd_sketch_sample *d) {
    cdmpp_err err = {0};
    cd_sketch_sample again;
    assert_int_equal(d->choice[0].kind, CD_SKETCH_CHOICE_SKETCH);
    for (uint32_t k = 0; k < d->n_choice; k++)
        assert_true(d->choice[k].pick < d->choice[k].n &&
                    d->choice[k].kind < CD_SKETCH_CHOICE_KINDS);
    made_text(d, &r->one);
    assert_ok(cd_sketch_sampler_make(r->other, d->choice, d->n_choice, &again, &err));
    made_text(&again, &r->two);
    assert_string_equal(r->one.p, r->two.p);
    assert_int_equal(again.n_choice, d->n_choice);
    assert_memory_equal(again.choice, d->choice, d->n_choice * sizeof *d->choice);
}

/* Threads and virtual threads of a tiled program: levels 1 and 0 of the splits into five. */
static void gpu_loops(const cd_sketch_sample *d, int64_t *virtual, int64_t *threads) {
    *virtual = *threads = 1;
    for (uint32_t k = 0; k < d->n_step; k++) {
        if (d->step[k].kind != CD_RECORD_STEP_SP || d->step[k].n_list != 4) continue;
        *virtual *= d->step[k].list[0];
        *threads *= d->step[k].list[1];
    }
}

/* What is refused is so for a reason that the whole schedule shows. */
static void check_refused(room *r, const cd_sketch_sample *d) {
    cdmpp_err err = {0};
    cd_sketch_sample whole;
    int64_t virtual, threads;
    assert_int_equal(d->n_step, 0);
    if (cd_sketch_sampler_make(r->other, d->choice, d->n_choice, &whole, &err)) return;
    gpu_loops(&whole, &virtual, &threads);
    assert_true(virtual > 8 || threads < 32);
}

static void test_make(void **state) {
    for (int gpu = 0; gpu < 2; gpu++)
        for (size_t task = 0; task < MADE_SPACES; task++) {
            room r = open_room(*state, task, gpu);
            cdmpp_err err = {0};
            cd_sketch_sample d;
            for (uint64_t i = 0; i < MOVES; i++) {
                if (cd_sketch_sampler_draw(r.w, i, &d, &err)) check_refused(&r, &d);
                else check_again(&r, &d);
            }
            close_room(&r);
        }
}

/* Picks are taken modulo, decisions without a choice take option 0, strange choices are passed
 * over. */
static void test_make_any(void **state) {
    room r = open_room(*state, MADE_MM_RELU, false);
    cdmpp_err err = {0};
    cd_sketch_sample d;
    cd_sketch_choices kept = {0};
    assert_ok(cd_sketch_sampler_make(r.w, NULL, 0, &d, &err));
    for (uint32_t k = 0; k < d.n_choice; k++) assert_int_equal(d.choice[k].pick, 0);
    check_again(&r, &d);
    uint64_t i = 0;
    while (cd_sketch_sampler_draw(r.w, i, &d, &err)) i++;
    made_keep(&d, &kept);
    made_text(&d, &r.one);
    for (uint32_t k = 0; k < kept.n; k++) kept.p[k].pick += kept.p[k].n;
    assert_ok(cd_sketch_sampler_make(r.w, kept.p, kept.n, &d, &err));
    made_text(&d, &r.two);
    assert_string_equal(r.one.p, r.two.p);
    for (uint32_t k = 0; k < kept.n; k++)
        kept.p[k] = (cd_sketch_choice){.pick = UINT32_MAX, .kind = UINT16_MAX, .at = UINT16_MAX};
    assert_ok(cd_sketch_sampler_make(r.w, kept.p, kept.n, &d, &err));
    for (uint32_t k = 0; k < d.n_choice; k++) assert_int_equal(d.choice[k].pick, 0);
    cd_sketch_choices_free(&kept);
    close_room(&r);
}

static bool has_options(const cd_sketch_sample *d) {
    for (uint32_t k = 1; k < d->n_choice; k++)
        if (d->choice[k].n > 1) return true;
    return false;
}

static void test_mutate(void **state) {
    for (int gpu = 0; gpu < 2; gpu++)
        for (size_t task = 0; task < MADE_MANY_SUMS; task++) {
            room r = open_room(*state, task, gpu);
            cdmpp_err err = {0};
            cd_sketch_sample d;
            cd_sketch_choices at = {0};
            uint64_t i = 0;
            size_t moved = 0;
            while (cd_sketch_sampler_draw(r.w, i, &d, &err) || !has_options(&d)) i++;
            made_keep(&d, &at);
            for (i = 0; i < MOVES; i++) {
                made_text(&d, &r.one);
                const cdmpp_status st = cd_sketch_sampler_mutate(r.w, at.p, at.n, i, &d, &err);
                if (st) {
                    assert_int_equal(st, CDMPP_EREJECTED);
                    assert_ok(cd_sketch_sampler_make(r.w, at.p, at.n, &d, &err));
                    continue;
                }
                assert_int_equal(d.choice[0].pick, at.p[0].pick);
                made_text(&d, &r.two);
                moved += strcmp(r.one.p, r.two.p) != 0;
                check_again(&r, &d);
                made_keep(&d, &at);
            }
            if (moved <= MOVES / 4)
                fail_msg("task %zu, gpu %d: %zu of %d mutations changed something", task, gpu,
                         moved, MOVES);
            cd_sketch_choices_free(&at);
            close_room(&r);
        }
}

/* Many mutations of one draft: tiles about nine times in ten, each by a factor between two levels
 * of one split. */
static void test_mutation_kinds(void **state) {
    room r = open_room(*state, MADE_MM_RELU, false);
    cdmpp_err err = {0};
    cd_sketch_sample d;
    cd_sketch_choices at = {0};
    size_t changed[CD_SKETCH_CHOICE_KINDS] = {0}, n = 0;
    uint64_t i = 0;
    while (cd_sketch_sampler_draw(r.w, i, &d, &err) || d.n_choice < 7) i++;
    made_keep(&d, &at);
    for (i = 0; i < 1000; i++) {
        size_t tiles = 0;
        if (cd_sketch_sampler_mutate(r.w, at.p, at.n, i, &d, &err)) continue;
        n++;
        for (uint32_t k = 0; k < at.n && k < d.n_choice; k++) {
            if (d.choice[k].pick == at.p[k].pick || d.choice[k].kind != at.p[k].kind) continue;
            changed[at.p[k].kind]++;
            tiles += at.p[k].kind == CD_SKETCH_CHOICE_TILE;
        }
        assert_true(tiles < 2);
    }
    assert_true(n > 900);
    assert_in_range(changed[CD_SKETCH_CHOICE_TILE], n * 85 / 100, n * 97 / 100);
    assert_true(changed[CD_SKETCH_CHOICE_UNROLL] > 10 && changed[CD_SKETCH_CHOICE_PARALLEL] > 0 &&
                !changed[CD_SKETCH_CHOICE_SKETCH]);
    cd_sketch_choices_free(&at);
    close_room(&r);
}

/* A child has each tile and unroll of one parent, and of both some. */
static void test_cross(void **state) {
    for (int gpu = 0; gpu < 2; gpu++) {
        room r = open_room(*state, MADE_MM_RELU, gpu);
        cdmpp_err err = {0};
        cd_sketch_sample d;
        cd_sketch_choices a = {0}, b = {0};
        size_t from[2] = {0}, n = 0;
        for (uint64_t i = 0; !b.n; i++)
            if (!cd_sketch_sampler_draw(r.w, i, &d, &err) &&
                (!a.n || d.choice[0].pick == a.p[0].pick))
                made_keep(&d, a.n ? &b : &a);
        for (uint64_t i = 0; i < MOVES; i++) {
            const cdmpp_status st =
                cd_sketch_sampler_crossover(r.w, a.p, a.n, b.p, b.n, i, &d, &err);
            if (st) {
                assert_int_equal(st, CDMPP_EREJECTED);
                continue;
            }
            n++;
            check_again(&r, &d);
            for (uint32_t k = 0; k < a.n && a.p[k].kind == CD_SKETCH_CHOICE_TILE; k++) {
                const bool like_a = d.choice[k].pick == a.p[k].pick,
                           like_b = d.choice[k].pick == b.p[k].pick;
                assert_true(like_a || like_b);
                from[0] += like_a && !like_b;
                from[1] += like_b && !like_a;
            }
            if (n == 1)
                assert_ok(cd_sketch_sampler_crossover(r.w, a.p, a.n, a.p, a.n, i, &d, &err));
        }
        assert_true(n > 3);
        b.p[0].pick++;
        if (cd_sketch_space_count(r.sp) > 1)
            assert_status(cd_sketch_sampler_crossover(r.w, a.p, a.n, b.p, b.n, 1, &d, &err),
                          CDMPP_EREJECTED);
        cd_sketch_choices_free(&a);
        cd_sketch_choices_free(&b);
        close_room(&r);
    }
}

/* A draft's own choices may be given to the call that ends its life. */
static void test_in_place(void **state) {
    room r = open_room(*state, MADE_MM_RELU, false);
    cdmpp_err err = {0};
    cd_sketch_sample d;
    uint64_t i = 0;
    while (cd_sketch_sampler_draw(r.w, i, &d, &err)) i++;
    made_text(&d, &r.one);
    assert_ok(cd_sketch_sampler_make(r.w, d.choice, d.n_choice, &d, &err));
    made_text(&d, &r.two);
    assert_string_equal(r.one.p, r.two.p);
    assert_ok(
        cd_sketch_sampler_crossover(r.w, d.choice, d.n_choice, d.choice, d.n_choice, 5, &d, &err));
    made_text(&d, &r.two);
    assert_string_equal(r.one.p, r.two.p);
    close_room(&r);
}

TESTS(made_spaces_up, made_spaces_down, test_make, test_make_any, test_mutate, test_mutation_kinds,
      test_cross, test_in_place)
