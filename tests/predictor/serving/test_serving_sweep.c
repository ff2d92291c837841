/* A sweep: threads change nothing, one that is stopped has what it answered, what is named is the
 * best or the nearest. */
#include "made_serving_session.h"

static cd_serving_config *listed(cd_arena *a, const cd_serving_lists *l, size_t *n) {
    cd_serving_config usual = small(), *v = NULL;
    assert_ok(cd_serving_combine(a, &usual, l, &v, n, &err));
    return v;
}

static void fresh_session(const fixture *f, cd_serving_session *s) {
    *s = f->s;
    s->known = NULL, s->made = NULL, s->n_known = s->cap_known = s->n_made = s->cap_made = 0;
}

/* The first name costs twice as much as the second one of the same GPU. */
static double price(void *ctx, const char *gpu) {
    (void)ctx;
    return strcmp(gpu, "h100") ? 3.6 : 7.2;
}

static const cd_serving_lists mixed = {
    .gpu = "h100,h100_sxm", .tp = "1,2,3", .pp = "1,2,5", .concurrency = "1,2,3,4,5,6,7,8"};

TEST(threads_change_nothing) {
    fixture f;
    cd_arena a = {0};
    cd_buf first = {0}, text = {0};
    size_t n;
    open_session(&f);
    const cd_serving_config *v = listed(&a, &mixed, &n);
    for (int k = 1; k <= 5; k++) {
        cd_serving_session s;
        cd_serving_sweep w;
        cd_threads *t = NULL;
        cd_serving_sweep_options o = {.ttft_s = 1e-4, .price = price};
        fresh_session(&f, &s);
        assert_ok(cd_threads_new(k, &t, &err));
        o.threads = t;
        assert_ok(cd_serving_sweep_run(&s, v, n, &o, &w, &err));
        assert_int_equal(w.done, n);
        assert_string_equal(w.reason[0].text, "pp"); /* in the order of the list */
        assert_string_equal(w.reason[1].text, "tp");
        cd_buf_clear(&text);
        cd_serving_sweep_json(&w, true, &text);
        if (k == 1) cd_serving_sweep_json(&w, true, &first);
        assert_string_equal(text.p, first.p);
        cd_serving_sweep_free(&w);
        cd_threads_free(t);
        cd_serving_session_end(&s);
    }
    cd_buf_free(&first);
    cd_buf_free(&text);
    cd_arena_free(&a);
    close_session(&f);
}

/* More threads than configurations; an unknown GPU is an error of all, whoever would have had
 * it. */
TEST(few_and_unknown) {
    fixture f;
    cd_arena a = {0};
    cd_threads *t = NULL;
    cd_serving_sweep w;
    size_t n;
    const cd_serving_lists few = {.concurrency = "1,2"};
    const cd_serving_lists unknown = {.gpu = "h100,h9000", .concurrency = "1,2,3,4"};
    open_session(&f);
    assert_ok(cd_threads_new(4, &t, &err));
    const cd_serving_sweep_options o = {.threads = t};
    const cd_serving_config *v = listed(&a, &few, &n);
    assert_ok(cd_serving_sweep_run(&f.s, v, n, &o, &w, &err));
    assert_int_equal(w.n, 2);
    cd_serving_sweep_free(&w);
    v = listed(&a, &unknown, &n);
    assert_status(cd_serving_sweep_run(&f.s, v, n, &o, &w, &err), CDMPP_ESCHEMA);
    cd_serving_sweep_free(&w);
    cd_threads_free(t);
    cd_arena_free(&a);
    close_session(&f);
}

/* ---- stopped ---- */
enum { BEGUN = 5 };
static volatile sig_atomic_t stop;

/* As a signal would, in the fifth configuration: no clock says when. */
static void stop_soon(void *ctx, size_t taken) {
    (void)ctx;
    assert_true(taken <= BEGUN);
    if (taken == BEGUN) stop = 1;
}

/* What was begun is answered; GPUs take turns: there is something of each. */
TEST(stopped) {
    fixture f;
    cd_arena a = {0};
    cd_buf text = {0};
    cd_serving_sweep w;
    size_t n;
    open_session(&f);
    const cd_serving_lists l = {
        .concurrency = "1,2,3,4,5,6,7,8", .pp = "1,2", .gpu = "h100,h100_sxm"};
    const cd_serving_config *v = listed(&a, &l, &n);
    const cd_serving_sweep_options o = {.stop = &stop, .step = stop_soon};
    stop = 0;
    assert_status(cd_serving_sweep_run(&f.s, v, n, &o, &w, &err), CDMPP_EINTERRUPTED);
    assert_int_equal(w.done, BEGUN);
    assert_true(w.n == w.done && w.tried == n);
    assert_true(w.v[0].c->gpu == v[0].gpu && w.v[w.n - 1].c->gpu == v[n - 1].gpu);
    assert_true(w.n_front >= 1 && w.most.p && w.most.ttft_low_s > 0);
    cd_serving_sweep_text(&w, &text);
    assert_non_null(strstr(text.p, "NOT COMPLETE: stopped after "));
    cd_buf_clear(&text);
    cd_serving_sweep_json(&w, true, &text);
    assert_non_null(strstr(text.p, "\"complete\":false"));
    cd_serving_sweep_free(&w);
    assert_status(cd_serving_sweep_run(&f.s, v, n, &o, &w, &err), CDMPP_EINTERRUPTED); /* at once */
    assert_int_equal(w.done + w.n, 0);
    cd_serving_sweep_free(&w);
    cd_buf_free(&text);
    cd_arena_free(&a);
    close_session(&f);
}

/* ---- what is named ---- */
static double worst(const cd_serving_sweep *w, const cd_serving_point *p) {
    return fmax(p->ttft_s / w->ttft_s, p->tpot_s / w->tpot_s);
}

TEST(named) {
    fixture f;
    cd_arena a = {0};
    cd_buf b = {0};
    cd_serving_sweep w;
    size_t n;
    open_session(&f);
    const cd_serving_config *v = listed(&a, &mixed, &n);
    cd_serving_sweep_options o = {.price = price};
    assert_ok(cd_serving_sweep_run(&f.s, v, n, &o, &w, &err));
    const double all = w.most.p->per_gpu, tpot_s = w.most.p->tpot_s;
    for (size_t i = 0; i < w.n; i++)
        assert_true(w.v[i].per_gpu <= all && w.v[i].price >= w.cheapest.p->price);
    assert_string_equal(w.cheapest.p->c->gpu, "h100_sxm");
    assert_string_equal(w.most.p->c->gpu, "h100"); /* the first of two alike */
    assert_null(w.nearest.p);
    assert_true(w.most.ttft_low_s < w.most.p->ttft_s && w.most.p->ttft_s < w.most.ttft_high_s &&
                w.most.tpot_low_s < tpot_s && tpot_s < w.most.tpot_high_s);
    assert_true(w.most.per_gpu_low < all && all < w.most.per_gpu_high);
    assert_close(w.most.per_gpu_low / all,
                 (w.most.p->ttft_s + 7 * tpot_s) / (w.most.ttft_high_s + 7 * w.most.tpot_high_s),
                 1e-12, 0);
    /* h100_sxm is the same chip: where it has no point on the front, its best one is listed */
    bool on_front = false;
    for (size_t i = 0; i < w.n; i++)
        on_front = on_front || (w.v[i].front && !strcmp(w.v[i].c->gpu, "h100_sxm"));
    cd_serving_sweep_text(&w, &b);
    assert_true(!strstr(b.p, "not on the front") == on_front);
    w.n_front = 0;
    for (size_t i = 0; i < w.n; i++) {
        w.v[i].front = w.v[i].front && !strcmp(w.v[i].c->gpu, "h100");
        w.n_front += w.v[i].front;
    }
    cd_buf_clear(&b);
    cd_serving_sweep_text(&w, &b);
    assert_non_null(strstr(b.p, "not on the front, the most tokens/s/GPU of each:"));
    assert_null(strstr(b.p, "over the target"));
    cd_serving_sweep_free(&w);
    o.tpot_s = tpot_s * 1.001; /* met, but not with its interval */
    o.price = NULL;
    assert_ok(cd_serving_sweep_run(&f.s, v, n, &o, &w, &err));
    assert_true(w.most.p && w.most.p->tpot_s <= o.tpot_s && w.most.tpot_high_s > o.tpot_s &&
                !w.cheapest.p);
    cd_buf_clear(&b);
    cd_serving_sweep_text(&w, &b);
    assert_non_null(strstr(b.p, "most tokens/s/GPU: the interval of TPOT reaches "));
    cd_buf_clear(&b);
    cd_serving_sweep_json(&w, true, &b);
    assert_non_null(strstr(
        b.p,
        "\"interval_over\":[\"tpot\"],\"missed\":{}},\"cheapest\":null,\"nearest_miss\":null"));
    cd_serving_sweep_free(&w);
    cd_buf_free(&b);
    cd_arena_free(&a);
    close_session(&f);
}

TEST(nearest_miss) {
    fixture f;
    cd_arena a = {0};
    cd_buf b = {0};
    cd_serving_sweep w;
    size_t n;
    open_session(&f);
    const cd_serving_config *v = listed(&a, &mixed, &n);
    const cd_serving_sweep_options o = {.ttft_s = 1e-6, .tpot_s = 1e-6};
    const cd_serving_sweep_options easy = {.ttft_s = 1e3, .tpot_s = 1e-6};
    assert_ok(cd_serving_sweep_run(&f.s, v, n, &o, &w, &err));
    assert_int_equal(w.n_met, 0);
    assert_null(w.most.p);
    assert_non_null(w.nearest.p);
    for (size_t i = 0; i < w.n; i++) assert_true(worst(&w, w.nearest.p) <= worst(&w, &w.v[i]));
    cd_serving_sweep_text(&w, &b);
    assert_non_null(strstr(b.p, "nearest miss: TTFT is "));
    assert_non_null(strstr(b.p, "nearest miss: TPOT is "));
    cd_serving_sweep_free(&w);
    assert_ok(cd_serving_sweep_run(&f.s, v, n, &easy, &w, &err));
    cd_buf_clear(&b);
    cd_serving_sweep_json(&w, true, &b);
    assert_null(strstr(b.p, "\"ttft\":{\"target_s\""));
    assert_non_null(strstr(b.p, "\"missed\":{\"tpot\":{\"target_s\":"));
    cd_serving_sweep_free(&w);
    cd_buf_free(&b);
    cd_arena_free(&a);
    close_session(&f);
}

/* Requests that come by themselves: how fast they are answered says nothing of how many come. */
TEST(rates) {
    fixture f;
    cd_arena a = {0};
    cd_serving_config c = small();
    cd_serving_sweep w;
    cd_buf b = {0};
    open_session(&f);
    c.concurrency = 0, c.rate = 10, c.osl = 1;
    assert_ok(
        cd_serving_sweep_run(&f.s, &c, 1, &(cd_serving_sweep_options){.ttft_s = 1e-9}, &w, &err));
    assert_true(w.nearest.p && isnan(w.nearest.per_gpu_low) && isnan(w.nearest.tpot_low_s));
    cd_serving_sweep_text(&w, &b);
    assert_null(strstr(b.p, "nan"));
    cd_buf_free(&b);
    cd_serving_sweep_free(&w);
    cd_arena_free(&a);
    close_session(&f);
}

TEST(faults) {
    fixture f;
    cd_arena a = {0};
    size_t n;
    const cd_serving_lists l = {.tp = "1,3", .concurrency = "1,2"};
    open_session(&f);
    const cd_serving_config *v = listed(&a, &l, &n);
    FAULT_SWEEP(g, 3) {
        cd_serving_session s, twin = {0};
        cd_serving_sweep w = {0};
        fresh_session(&f, &s);
        g.st =
            cd_serving_sweep_run(&s, v, n, &(cd_serving_sweep_options){.ttft_s = 1e-9}, &w, &g.err);
        cd_serving_sweep_free(&w);
        if (!g.st) g.st = cd_serving_session_twin(&s, &twin, &g.err);
        cd_serving_session_twin_end(&s, &twin);
        cd_serving_session_end(&s);
    }
    cd_arena_free(&a);
    close_session(&f);
}

TESTS(up, down, threads_change_nothing, few_and_unknown, stopped, named, nearest_miss, rates,
      faults)
