/* Records followed: those of the space itself exactly, with what TVM's mutations leave in them;
 * others to the nearest. */
#include "check.h"
#include "made_space.h"

/* A copy whose steps may be changed. */
static cd_record copy_of(room *r, const cd_sketch_sample *d, cd_record_step **step) {
    *step = CD_NEWN(&r->a, cd_record_step, d->n_step + 1);
    assert_non_null(*step);
    memcpy(*step, d->step, d->n_step * sizeof **step);
    for (uint32_t k = 0; k < d->n_step; k++) {
        int32_t *list = CD_NEWN(&r->a, int32_t, d->step[k].n_list + 1);
        char *s = cd_arena_zalloc(&r->a, d->step[k].s.n + 1, 1);
        assert_true(list && s);
        if (d->step[k].n_list) memcpy(list, d->step[k].list, d->step[k].n_list * sizeof *list);
        if (d->step[k].s.n) memcpy(s, d->step[k].s.p, d->step[k].s.n);
        (*step)[k].list = list;
        (*step)[k].s.p = s;
    }
    return (cd_record){.n_step = d->n_step, .step = *step};
}

/* Followed exactly, and the choices make it again. */
static void check_exact(room *r, const cd_record *rec) {
    cdmpp_err err = {0};
    cd_sketch_sample d, again;
    bool exact;
    assert_ok(cd_sketch_sampler_match(r->other, rec, &d, &exact, &err));
    made_text(&(cd_sketch_sample){.n_step = rec->n_step, .step = rec->step}, &r->one);
    made_text(&d, &r->two);
    if (!exact) fail_msg("%s\nbecame\n%s", r->one.p, r->two.p);
    assert_ok(cd_sketch_sampler_make(r->w, d.choice, d.n_choice, &again, &err));
    made_text(&again, &r->one);
    assert_string_equal(r->one.p, r->two.p);
}

static void test_own(void **state) {
    for (int gpu = 0; gpu < 2; gpu++)
        for (size_t task = 0; task < MADE_SPACES; task++) {
            room r = open_room(*state, task, gpu);
            cdmpp_err err = {0};
            cd_sketch_sample d;
            cd_record_step *step;
            for (uint64_t i = 0; i < 20; i++) {
                if (cd_sketch_sampler_draw(r.w, i, &d, &err)) continue;
                cd_record rec = copy_of(&r, &d, &step);
                check_exact(&r, &rec);
                if (cd_sketch_sampler_match(r.w, &rec, &d, &(bool){0}, &err)) continue;
                if (cd_sketch_sampler_mutate(r.w, d.choice, d.n_choice, i, &d, &err)) continue;
                rec = copy_of(&r, &d, &step);
                check_exact(&r, &rec);
            }
            close_room(&r);
        }
}

static cd_record_step *find(cd_record_step *step, uint32_t n, cd_record_step_kind kind,
                            int32_t annotation) {
    for (uint32_t k = 0; k < n; k++)
        if (step[k].kind == kind && (kind != CD_RECORD_STEP_AN || step[k].i[1] == annotation))
            return &step[k];
    return NULL;
}

static int32_t *lengths(cd_record_step *t) { return (int32_t *)(uintptr_t)t->list; }

/* A first draft whose parallel loop was fused of at least two. */
static cd_record fused_draft(room *r, cd_record_step **step) {
    cdmpp_err err = {0};
    cd_sketch_sample d;
    for (uint64_t i = 0;; i++) {
        if (cd_sketch_sampler_draw(r->w, i, &d, &err)) continue;
        const cd_record rec = copy_of(r, &d, step);
        const cd_record_step *fu = find(*step, rec.n_step, CD_RECORD_STEP_FU, 0);
        if (fu && fu->n_list > 1 && fu[1].kind == CD_RECORD_STEP_AN && fu[1].i[1] == 3) return rec;
        assert_true(i < 1000);
    }
}

/* Fewer parallel loops, down to one that is "fused" alone: TVM's mutation of parallel. */
static void test_fewer_parallel(void **state) {
    room r = open_room(*state, MADE_MM, false);
    cd_record_step *step;
    const cd_record rec = fused_draft(&r, &step);
    cd_record_step *fu = find(step, rec.n_step, CD_RECORD_STEP_FU, 0),
                   *vector = find(step, rec.n_step, CD_RECORD_STEP_AN, 2);
    while (fu->n_list > 1) {
        fu->n_list--;
        for (cd_record_step *t = vector; t && t < step + rec.n_step; t++)
            if (t->kind == CD_RECORD_STEP_AN && t->stage == fu->stage) t->i[0]++;
        check_exact(&r, &rec);
    }
    close_room(&r);
}

/* Other tile lengths, and nothing else: loops stay parallel and vectors however long they have
 * become. */
static void test_stale_tiles(void **state) {
    room r = open_room(*state, MADE_MM, false);
    cd_record_step *step;
    const cd_record rec = fused_draft(&r, &step);
    cd_record_step *j = NULL;
    for (uint32_t k = 0; k < rec.n_step; k++)
        if (step[k].kind == CD_RECORD_STEP_SP && step[k].i[1] == 128) j = &step[k];
    assert_non_null(j);
    for (int32_t inner = 1; inner <= 64; inner *= 2) {
        lengths(j)[0] = 1;
        lengths(j)[1] = 128 / inner;
        lengths(j)[2] = inner;
        bool exact;
        cd_sketch_sample d;
        cdmpp_err err = {0};
        assert_ok(cd_sketch_sampler_match(r.other, &rec, &d, &exact, &err));
        for (uint32_t k = 0; k < d.n_step && k < rec.n_step; k++) {
            if (d.step[k].kind != CD_RECORD_STEP_FU) continue;
            assert_int_equal(d.step[k].n_list, step[k].n_list);
            assert_int_equal(d.step[k].stage, step[k].stage);
        }
    }
    close_room(&r);
}

/* What threads load at once may be as many as an ancestor's extent allowed; the extent that is
 * noted is not compared. */
static void test_stale_loads(void **state) {
    room r = open_room(*state, MADE_MM_RELU, true);
    cdmpp_err err = {0};
    cd_sketch_sample d;
    cd_record_step *step;
    uint64_t i = 0;
    while (cd_sketch_sampler_draw(r.w, i, &d, &err)) i++;
    const cd_record rec = copy_of(&r, &d, &step);
    size_t changed = 0;
    for (uint32_t k = 0; k < rec.n_step; k++) {
        if (step[k].kind != CD_RECORD_STEP_SP || step[k].n_list != 1) continue;
        changed++;
        for (int32_t n = 1; n <= 64; n += 7) {
            lengths(&step[k])[0] = n;
            step[k].i[1] = 1234;
            check_exact(&r, &rec);
        }
    }
    assert_int_equal(changed, 2);
    close_room(&r);
}

/* A record of another shape: the same steps but for extents and lengths, and each choice in its
 * place. */
static void test_other_shape(void **state) {
    for (int gpu = 0; gpu < 2; gpu++) {
        room from = open_room(*state, MADE_MM_RELU, gpu),
             to = open_room(*state, MADE_MM_OTHER, gpu);
        cdmpp_err err = {0};
        cd_sketch_sample d, e;
        size_t n = 0;
        for (uint64_t i = 0; i < 60; i++) {
            bool exact;
            if (cd_sketch_sampler_draw(from.w, i, &d, &err)) continue;
            const cd_record rec = made_record(&d);
            const cdmpp_status st = cd_sketch_sampler_match(to.w, &rec, &e, &exact, &err);
            if (st) {
                assert_int_equal(st, CDMPP_EREJECTED);
                continue;
            }
            n++;
            /* only the outermost loops are others */
            if (exact) assert_int_equal(e.n_step, d.n_step);
            assert_int_equal(e.choice[0].pick, d.choice[0].pick);
            for (uint32_t k = 0; k < e.n_step && k < d.n_step && d.step[k].kind == e.step[k].kind;
                 k++)
                assert_int_equal(e.step[k].stage, d.step[k].stage);
            cd_record_step *step;
            const cd_record back = copy_of(&to, &e, &step);
            check_exact(&to, &back);
        }
        assert_true(n > 5);
        close_room(&from);
        close_room(&to);
    }
}

static void test_strangers(void **state) {
    room r = open_room(*state, MADE_MM, false);
    cdmpp_err err = {0};
    cd_sketch_sample d;
    bool exact;
    assert_status(cd_sketch_sampler_match(r.w, &(cd_record){.n_step = 0}, &d, &exact, &err),
                  CDMPP_EREJECTED);
    static const cd_record_step odd[] = {{.kind = CD_RECORD_STEP_CI, .stage = 70000},
                                         {.kind = CD_RECORD_STEP_PR, .stage = -5, .s = {"$$9", 3}}};
    assert_status(
        cd_sketch_sampler_match(r.w, &(cd_record){.n_step = 2, .step = odd}, &d, &exact, &err),
        CDMPP_EREJECTED);
    close_room(&r);
    /* whose sketch has no steps: any record begins with it */
    r = open_room(*state, MADE_ADD, false);
    assert_ok(
        cd_sketch_sampler_match(r.w, &(cd_record){.n_step = 2, .step = odd}, &d, &exact, &err));
    assert_false(exact);
    close_room(&r);
}

TESTS(made_spaces_up, made_spaces_down, test_own, test_fewer_parallel, test_stale_tiles,
      test_stale_loads, test_other_shape, test_strangers)
