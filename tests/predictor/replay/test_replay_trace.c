/* The trace of a replay read back: every operator and copy is there, and no track holds two things
 * at once. */
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "check.h"
#include "made_replay.h"
#include "predictor/replay/replay.h"

typedef struct {
    int64_t pid, tid;
    double from, to;
} slice;

static int by_track(const void *pa, const void *pb) {
    const slice *a = pa, *b = pb;
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid) return a->tid < b->tid ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

static size_t read_slices(const cd_buf *text, slice *out, size_t cap) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    const cd_json *root, *list, *e;
    size_t n = 0;
    assert_ok(cd_json_parse(&a, text->p, text->n, &root, &err));
    assert_ok(cd_json_need(root, "traceEvents", &list, &err));
    for (e = list->u.child; e; e = e->next) {
        if (!cd_str_is(cd_json_get(e, "ph")->u.s, "X")) continue;
        double dur;
        assert_true(n < cap);
        assert_ok(cd_json_real(cd_json_get(e, "ts"), &out[n].from, &err));
        assert_ok(cd_json_real(cd_json_get(e, "dur"), &dur, &err));
        assert_true(dur >= 0);
        out[n].to = out[n].from + dur;
        out[n].pid = cd_json_get(e, "pid")->u.i;
        out[n++].tid = cd_json_get(e, "tid")->u.i;
    }
    cd_arena_free(&a);
    return n;
}

static void test_tracks(void **state) {
    (void)state;
    static made_replay m;
    static slice s[MAX_OP + MAX_EDGE];
    cdmpp_err err = {0};
    for (uint64_t seed = 0; seed < 30; seed++) {
        make_replay(&m, seed, true);
        /* ends between two nanoseconds */
        for (uint32_t k = 0; k < m.n.n_op; k++) m.op[k].seconds *= 1.2345678901e-6;
        cd_replay r;
        cd_buf b = {0};
        assert_ok(cd_replay_run(&m.n, &r, &err));
        assert_ok(cd_replay_trace(&b, &m.n, &r, &err));
        const size_t n = read_slices(&b, s, sizeof s / sizeof *s);
        assert_int_equal(n, m.n.n_op + r.n_copy);
        qsort(s, n, sizeof *s, by_track);
        for (size_t k = 1; k < n; k++) /* of 1e-3 us */
            if (s[k].pid == s[k - 1].pid && s[k].tid == s[k - 1].tid)
                assert_true(s[k].from >= s[k - 1].to - 1e-4);
        cd_buf_free(&b);
        cd_replay_free(&r);
    }
}

static void test_names_are_escaped(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cd_replay_op op = {.name = "a\"b\\\n", .seconds = 1.5e-6};
    const cd_replay_device d = {.name = "cpu \"0\"", .workers = 1};
    const cd_replay_net n = {.n_op = 1, .n_device = 1, .op = &op, .device = &d};
    cd_replay r;
    cd_buf b = {0};
    slice s;
    assert_ok(cd_replay_run(&n, &r, &err));
    assert_ok(cd_replay_trace(&b, &n, &r, &err));
    assert_int_equal(read_slices(&b, &s, 1), 1);
    assert_true(s.from == 0 && s.to == 1.5);
    cd_buf_free(&b);
    cd_replay_free(&r);
}

TESTS(NULL, NULL, test_tracks, test_names_are_escaped)
