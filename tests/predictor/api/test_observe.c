/* Measured results through the public calls. */
#include "fault.h"
#include "made_api_all.h"

static made_out out, before;

static cdmpp_observer *observer(int model) {
    cdmpp_observer *o = NULL;
    cdmpp_err err = {0};
    assert_ok(cdmpp_observer_new(api.model[model], &o, &err));
    return o;
}

static cdmpp_context *with(int model, const char *device, cdmpp_observer *o) {
    const cdmpp_options opt = {.size = sizeof opt,
                               .device = device,
                               .nearest_device = 1,
                               .devices_file = "configs/devices.yaml",
                               .observer = o};
    return made_context(&api, model, &opt);
}

static void score(cdmpp_context *c, cdmpp_form form, made_out *o) {
    cdmpp_err err = {0};
    const cdmpp_batch b = made_batch_of(&api, &all, form, 0, all.n);
    const cdmpp_result r = made_result(o);
    assert_ok(cdmpp_score(c, &b, &r, &err));
}

static double mape(const made_out *o, double factor) {
    double sum = 0;
    for (size_t i = 16; i < all.n; i++)
        sum += fabs(o->seconds[i] / (factor * made_latency((int)i)) - 1) / (double)(all.n - 16);
    return sum;
}

/* Everything takes three times as long as the model thinks. */
static void sixteen_measurements_help(void **state) {
    (void)state;
    static const char *const device[] = {"zen5-avx512", "platinum-8272"}; /* known; unknown */
    for (int d = 0; d < 2; d++) {
        cdmpp_err err = {0};
        double y[16];
        cdmpp_status st[16];
        cdmpp_observer *o = observer(MADE_TREES);
        cdmpp_context *c = with(MADE_TREES, device[d], o);
        score(c, CDMPP_ROWS_F32, &before);
        for (int i = 0; i < 16; i++) y[i] = 3 * made_latency(i);
        const cdmpp_batch b = made_batch_of(&api, &all, CDMPP_STEPS, 0, 16);
        assert_ok(cdmpp_observe(c, &b, y, st, &err));
        assert_int_equal(cdmpp_observer_count(o), 16);
        score(c, CDMPP_ROWS_F32, &out);
        if (mape(&out, 3) > 0.8 * mape(&before, 3))
            fail_msg("%s: %g -> %g", device[d], mape(&before, 3), mape(&out, 3));
        for (size_t i = 0; i < all.n; i++) {
            assert_true(out.score[i] < before.score[i] && out.seconds[i] >= before.seconds[i] &&
                        out.rel_std[i] < before.rel_std[i]);
            assert_true(out.low[i] <= out.seconds[i] && out.seconds[i] <= out.high[i]);
            /* measured, it may be above */
            const uint32_t peak =
                before.reason[i] & CDMPP_REASON_PEAK ? CDMPP_FLAG_OUT_OF_RANGE : 0;
            assert_int_equal(out.flags[i] & ~(CDMPP_FLAG_OBSERVED | peak), before.flags[i] & ~peak);
            assert_true(out.flags[i] & CDMPP_FLAG_OBSERVED &&
                        !(before.flags[i] & CDMPP_FLAG_OBSERVED));
        }
        cdmpp_context_free(c);
        cdmpp_observer_free(o);
    }
}

/* The form, the parts and the threads in which results come do not matter; nor does a way through
 * text. */
static void ways_to_the_same_state(void **state) {
    (void)state;
    double y[MADE_N];
    for (int i = 0; i < MADE_N; i++) y[i] = made_latency(i) * (1 + 0.3 * (i % 3));
    for (int way = 0; way < 4; way++) {
        cdmpp_err err = {0};
        cdmpp_observer *o = observer(MADE_TREES);
        const cdmpp_options opt = {.size = sizeof opt,
                                   .device = "zen5-avx512",
                                   .nthreads = way == 1 ? 3 : 1,
                                   .observer = o};
        cdmpp_context *c = made_context(&api, MADE_TREES, &opt);
        cdmpp_batch b =
            made_batch_of(&api, &all, way == 2 ? CDMPP_RECORDS : CDMPP_ROWS_F64, 0, 100);
        if (way != 3) assert_ok(cdmpp_observe(c, &b, y, NULL, &err));
        for (size_t i = 0; way == 3 && i < 100; i += 25) {
            b = made_batch_of(&api, &all, CDMPP_STEPS, i, 25);
            assert_ok(cdmpp_observe(c, &b, y + i, NULL, &err));
        }
        if (way == 1) { /* observing does not see its own corrections */
            size_t len;
            cdmpp_observer *read = NULL;
            assert_ok(cdmpp_observer_write(o, NULL, 0, &len, &err));
            char *text = malloc(len + 1);
            assert_status(cdmpp_observer_write(o, text, len, &len, &err), CDMPP_ERANGE);
            assert_ok(cdmpp_observer_write(o, text, len + 1, &len, &err));
            assert_ok(cdmpp_observer_read(api.model[MADE_TREES], text, len, &read, &err));
            assert_status(cdmpp_observer_read(api.model[MADE_MLP], text, len, &read, &err),
                          CDMPP_EMODEL);
            free(text);
            cdmpp_context_free(c);
            cdmpp_observer_free(o);
            o = read;
            c = with(MADE_TREES, "zen5-avx512", o);
        }
        score(c, CDMPP_PACKED, way ? &out : &before);
        for (size_t i = 0; way && i < all.n; i++)
            assert_close(out.seconds[i], before.seconds[i], 1e-9, 0);
        cdmpp_context_free(c);
        cdmpp_observer_free(o);
    }
}

static void failed_measurements(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const double y[] = {1e-3, NAN, INFINITY, 0, -1, 1e-3};
    const cdmpp_status want[] = {CDMPP_OK,     CDMPP_ERANGE, CDMPP_ERANGE,
                                 CDMPP_ERANGE, CDMPP_ERANGE, CDMPP_EPARSE};
    cdmpp_status st[6];
    cdmpp_text t[6];
    for (int i = 0; i < 6; i++) t[i] = i < 5 ? all.record[i] : (cdmpp_text){"?", 1};
    const cdmpp_batch b = {.size = sizeof b, .form = CDMPP_RECORDS, .n = 6, .text = t};
    cdmpp_observer *o = observer(MADE_TREES);
    cdmpp_context *c = with(MADE_TREES, NULL, o), *none = with(MADE_TREES, NULL, NULL);
    assert_ok(cdmpp_observe(c, &b, y, st, &err));
    for (int i = 0; i < 6; i++) assert_int_equal(st[i], want[i]);
    assert_int_equal(cdmpp_observer_count(o), 1);
    assert_status(cdmpp_observe(none, &b, y, st, &err), CDMPP_EUSAGE);
    assert_status(cdmpp_observe(c, &b, NULL, st, &err), CDMPP_EUSAGE);
    const cdmpp_options other = {.size = sizeof other, .observer = o};
    cdmpp_context *wrong = NULL;
    assert_status(cdmpp_context_new(api.model[MADE_MLP], api.tasks, &other, &wrong, &err),
                  CDMPP_EMODEL);
    cdmpp_context_free(none);
    cdmpp_context_free(c);
    cdmpp_observer_free(o);
}

/* Every allocation refused in turn: what was entered before stays, a warm score needs none. */
static void refused_allocations(void **state) {
    (void)state;
    double y[16];
    for (int i = 0; i < 16; i++) y[i] = 2 * made_latency(i);
    FAULT_SWEEP(f, 1) {
        cdmpp_err err = {0};
        cdmpp_observer *o = NULL;
        cdmpp_context *c = NULL;
        const cdmpp_batch b = made_batch_of(&api, &all, CDMPP_ROWS_F32, 0, 16);
        f.st = cdmpp_observer_new(api.model[MADE_TREES], &o, &f.err);
        const cdmpp_options opt = {.size = sizeof opt, .device = "zen5-avx512", .observer = o};
        if (!f.st) f.st = cdmpp_context_new(api.model[MADE_TREES], api.tasks, &opt, &c, &f.err);
        if (!f.st) f.st = cdmpp_observe(c, &b, y, NULL, &f.err);
        fault_off();
        const cdmpp_result r = made_result(&out);
        for (int warm = 0; c && warm < 2; warm++) {
            const cdmpp_batch one = made_batch_of(&api, &all, CDMPP_ROWS_F32, 20, 1);
            if (warm) fault_all();
            assert_ok(cdmpp_score(c, &one, &r, &err));
            fault_off();
        }
        cdmpp_context_free(c);
        cdmpp_observer_free(o);
    }
}

TESTS(setup, teardown, sixteen_measurements_help, ways_to_the_same_state, failed_measurements,
      refused_allocations)
