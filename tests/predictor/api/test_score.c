/* Scoring through the public calls: every form gives the same bits, the score contract holds,
 * and bad candidates and bad batches are told apart. */
#include "check.h"
#include "made_api_all.h"

static made_out out, other;

static const cdmpp_options zen5 = {.size = sizeof zen5, .device = "zen5-avx512"};

static void score(int model, const cdmpp_batch *b, made_out *o) {
    cdmpp_err err = {0};
    cdmpp_context *c = made_context(&api, model, &zen5);
    const cdmpp_result r = made_result(o);
    assert_ok(cdmpp_score(c, b, &r, &err));
    cdmpp_context_free(c);
}

static void same_bits(const made_out *a, const made_out *b, size_t n) {
    assert_memory_equal(a->seconds, b->seconds, n * sizeof *a->seconds);
    assert_memory_equal(a->low, b->low, n * sizeof *a->low);
    assert_memory_equal(a->high, b->high, n * sizeof *a->high);
    assert_memory_equal(a->rel_std, b->rel_std, n * sizeof *a->rel_std);
    assert_memory_equal(a->score, b->score, n * sizeof *a->score);
    assert_memory_equal(a->score_f32, b->score_f32, n * sizeof *a->score_f32);
    assert_memory_equal(a->flags, b->flags, n * sizeof *a->flags);
}

static void every_form_gives_the_same_bits(void **state) {
    (void)state;
    for (int m = MADE_TREES; m <= MADE_TSF; m++) {
        const cdmpp_batch records = made_batch_of(&api, &all, CDMPP_RECORDS, 0, all.n);
        score(m, &records, &out);
        for (size_t i = 0; i < all.n; i++) assert_int_equal(out.status[i], CDMPP_OK);
        for (cdmpp_form f = CDMPP_STEPS; f <= (m == MADE_TSF ? CDMPP_STEPS : CDMPP_PACKED); f++) {
            const cdmpp_batch b = made_batch_of(&api, &all, f, 0, all.n);
            score(m, &b, &other);
            same_bits(&out, &other, all.n);
        }
        assert_int_equal(cdmpp_model_takes_rows(api.model[m]), m != MADE_TSF);
    }
}

/* Rows may lie at any address: a tuner's byte array does not know what it holds. */
static void any_alignment(void **state) {
    (void)state;
    const size_t n_byte = (size_t)all.row_ptr[all.n] * CD_N_COL * sizeof(double);
    char *raw = malloc(n_byte + all.packed.n + 1);
    assert_non_null(raw);
    cdmpp_batch b = made_batch_of(&api, &all, CDMPP_ROWS_F32, 0, all.n);
    score(MADE_TREES, &b, &out);
    for (cdmpp_form f = CDMPP_ROWS_F32; f <= CDMPP_PACKED; f++) {
        b = made_batch_of(&api, &all, f, 0, all.n);
        memcpy(raw + 1, b.data,
               f == CDMPP_PACKED     ? b.len
               : f == CDMPP_ROWS_F64 ? n_byte
                                     : n_byte / 2);
        b.data = raw + 1;
        score(MADE_TREES, &b, &other);
        same_bits(&out, &other, all.n);
    }
    free(raw);
}

/* One at a time is the same call. Trees: the same bits; networks: up to rounding. */
static void one_by_one(void **state) {
    (void)state;
    for (int m = MADE_TREES; m <= MADE_MLP; m++) {
        const cdmpp_batch whole = made_batch_of(&api, &all, CDMPP_ROWS_F32, 0, all.n);
        score(m, &whole, &out);
        for (size_t i = 0; i < all.n; i += 13) {
            const cdmpp_batch b = made_batch_of(&api, &all, CDMPP_ROWS_F32, i, 1);
            score(m, &b, &other);
            assert_close(other.seconds[0], out.seconds[i], m == MADE_TREES ? 0 : 1e-5, 0);
        }
    }
}

static void what_a_score_is(void **state) {
    (void)state;
    const cdmpp_batch b = made_batch_of(&api, &all, CDMPP_RECORDS, 0, all.n);
    score(MADE_TREES, &b, &out);
    for (size_t i = 0; i < all.n; i++) {
        assert_true(out.score[i] > 0 && isfinite(out.score[i]));
        /* of the median, which lies above the answer of least mean error */
        assert_true(out.score_f32[i] == (float)out.score[i]);
        assert_true(1 / out.score[i] <= out.high[i] &&
                    (1 / out.score[i] >= out.seconds[i] * (1 - 1e-12) ||
                     out.reason[i] & CDMPP_REASON_PEAK));
        assert_true(out.low[i] <= out.seconds[i] && out.seconds[i] <= out.high[i] &&
                    out.rel_std[i] > 0);
    }
    double sum = 0;
    for (size_t i = 0; i < all.n; i++)
        sum += fabs(out.seconds[i] / made_latency((int)i) - 1) / (double)all.n;
    if (sum > 0.25) fail_msg("mean error %g", sum);
}

/* A failed candidate among good ones, and a batch in which all fail. */
static void failed_candidates(void **state) {
    (void)state;
    cdmpp_text t[5] = {all.record[0], {"{", 1}, all.record[2], {"{}", 2}, all.record[4]};
    cdmpp_batch b = {.size = sizeof b, .form = CDMPP_RECORDS, .n = 5, .text = t};
    score(MADE_TREES, &b, &out);
    assert_int_equal(out.status[1], CDMPP_EPARSE);
    assert_int_equal(out.status[3], CDMPP_ESCHEMA);
    assert_int_equal(out.error[3].code, CDMPP_ESCHEMA);
    assert_non_null(strstr(out.error[3].msg, "expected the keys i, r, v"));
    assert_int_equal(out.error[0].code, CDMPP_OK);
    for (int i = 1; i < 4; i += 2) {
        assert_true(out.score[i] == 0 && out.score_f32[i] == 0 && isnan(out.rel_std[i]));
        assert_true(isinf(out.seconds[i]) && isinf(out.low[i]) && isinf(out.high[i]) &&
                    out.high[i] > 0);
    }
    const cdmpp_batch good = made_batch_of(&api, &all, CDMPP_RECORDS, 0, 5);
    score(MADE_TREES, &good, &other);
    for (int i = 0; i < 5; i += 2) assert_true(out.seconds[i] == other.seconds[i]);
    t[0] = t[2] = t[4] = t[1];
    score(MADE_TREES, &b, &out);
    for (int i = 0; i < 5; i++)
        assert_true(out.score[i] == CDMPP_SCORE_NONE && out.score_f32[i] > 0);
    b.n = 0;
    score(MADE_TREES, &b, &out);
}

static void flags_are_raised(void **state) {
    (void)state;
    static const char bad[] = "[[\"SP\", 2, 77, 512, [2], 1]]",
                      fine[] = "[[\"SP\", 2, 0, 512, [512], 1]]";
    const cdmpp_text t[] = {{bad, sizeof bad - 1}, {fine, sizeof fine - 1}};
    const cdmpp_batch b = {
        .size = sizeof b, .form = CDMPP_STEPS, .n = 2, .task = api.task, .text = t};
    score(MADE_TREES, &b, &out);
    assert_int_equal(out.status[0], CDMPP_EINVALID);
    assert_int_equal(out.flags[0], CDMPP_FLAG_LOWERING_FAILED);
    assert_int_equal(out.flags[1] & CDMPP_FLAG_LOWERING_FAILED, 0);
    score(MADE_TSF, &b, &out); /* one slot, two stores */
    assert_true(out.flags[1] & CDMPP_FLAG_TRUNCATED);
    float row[CD_N_COL];
    for (int k = 0; k < CD_N_COL; k++) row[k] = 60;
    const int64_t ptr[] = {0, 1};
    const cdmpp_batch far = {.size = sizeof far,
                             .form = CDMPP_ROWS_F32,
                             .n = 1,
                             .data = row,
                             .n_col = CD_N_COL,
                             .row_ptr = ptr};
    score(MADE_TREES, &far, &out);
    assert_true(out.flags[0] & CDMPP_FLAG_OUT_OF_RANGE);
}

static void bad_rows(void **state) {
    (void)state;
    float row[3][CD_N_COL] = {{0}};
    double wide[CD_N_COL] = {0};
    /* the last one is not there: its number is enough to refuse it */
    const int64_t ptr[] = {0, 1, 1, 2, 3, 1000003};
    const int64_t one[] = {0, 1}, falls[] = {0, 2, 1}, negative[] = {-1, 0};
    row[1][7] = NAN;
    row[2][163] = INFINITY;
    wide[3] = 1e300;
    cdmpp_batch b = {.size = sizeof b,
                     .form = CDMPP_ROWS_F32,
                     .n = 5,
                     .data = row,
                     .n_col = CD_N_COL,
                     .row_ptr = ptr};
    score(MADE_MLP, &b, &out);
    const cdmpp_status want[] = {CDMPP_OK, CDMPP_EINVALID, CDMPP_ENUMERIC, CDMPP_ENUMERIC,
                                 CDMPP_ERANGE};
    for (int i = 0; i < 5; i++) assert_int_equal(out.status[i], want[i]);
    assert_non_null(strstr(out.error[4].msg, "expected at most 16384 rows, found 1000000"));
    b = (cdmpp_batch){.size = sizeof b,
                      .form = CDMPP_ROWS_F64,
                      .n = 1,
                      .data = wide,
                      .n_col = CD_N_COL,
                      .row_ptr = one};
    score(MADE_MLP, &b, &out);
    assert_int_equal(out.status[0], CDMPP_ENUMERIC);

    cdmpp_err err = {0};
    cdmpp_context *c = made_context(&api, MADE_MLP, &zen5);
    const cdmpp_result r = made_result(&out);
    b.n_col = 165;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "expected rows of 164 numbers, found 165"));
    b.n_col = CD_N_COL;
    b.row_ptr = negative;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EPARSE);
    b.row_ptr = falls;
    b.n = 2;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EPARSE);
    b.row_ptr = NULL;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EUSAGE);
    cdmpp_context_free(c);
}

/* More rows than a call of the model takes at once, in one candidate and in many. */
static void many_rows(void **state) {
    (void)state;
    enum { LONG = 20000, N = 60 };
    const cdmpp_options o = {.size = sizeof o, .max_rows = LONG};
    float *row = calloc(LONG, CD_N_COL * sizeof *row);
    int64_t ptr[N + 1] = {0};
    cdmpp_err err = {0};
    assert_non_null(row);
    for (int i = 1; i <= N; i++) ptr[i] = LONG * (int64_t)i / N;
    cdmpp_batch b = {.size = sizeof b,
                     .form = CDMPP_ROWS_F32,
                     .n = N,
                     .data = row,
                     .n_col = CD_N_COL,
                     .row_ptr = ptr};
    cdmpp_context *c = made_context(&api, MADE_MLP, &o);
    const cdmpp_result r = made_result(&out);
    assert_ok(cdmpp_score(c, &b, &r, &err));
    for (int i = 0; i < N; i++) assert_true(out.status[i] == CDMPP_OK && out.seconds[i] > 0);
    ptr[1] = LONG;
    b.n = 1;
    assert_ok(cdmpp_score(c, &b, &r, &err));
    assert_int_equal(out.status[0], CDMPP_OK);
    cdmpp_context_free(c);
    free(row);
}

static void bad_calls(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_context *c = made_context(&api, MADE_TSF, NULL);
    cdmpp_result r = made_result(&out);
    cdmpp_batch b = made_batch_of(&api, &all, CDMPP_ROWS_F32, 0, 3);
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "the model's transformer reads the loop nests of programs"));
    b = made_batch_of(&api, &all, CDMPP_STEPS, 0, 3);
    b.task = NULL;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EUSAGE);
    b = made_batch_of(&api, &all, CDMPP_RECORDS, 0, 3);
    b.text = NULL;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EUSAGE);
    b.form = 99;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EUSAGE);
    b = made_batch_of(&api, &all, CDMPP_RECORDS, 0, 3);
    b.size = 8;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EUSAGE);
    b.size = sizeof b;
    r.size = 0;
    assert_status(cdmpp_score(c, &b, &r, &err), CDMPP_EUSAGE);
    cdmpp_context_free(c);
    /* a caller of a later version: fine while it leaves the new fields alone */
    struct {
        cdmpp_batch b;
        size_t later;
    } next = {.b = made_batch_of(&api, &all, CDMPP_RECORDS, 0, 3)};
    next.b.size = sizeof next;
    c = made_context(&api, MADE_TREES, &zen5);
    r = made_result(&out);
    assert_ok(cdmpp_score(c, &next.b, &r, &err));
    next.later = 1;
    assert_status(cdmpp_score(c, &next.b, &r, &err), CDMPP_EUSAGE);
    next.later = 0;
    const cdmpp_result none = {.size = sizeof none}; /* nothing is wanted */
    assert_ok(cdmpp_score(c, &next.b, &none, &err));
    cdmpp_context_free(c);
}

TESTS(setup, teardown, every_form_gives_the_same_bits, any_alignment, one_by_one, what_a_score_is,
      failed_candidates, flags_are_raised, bad_rows, many_rows, bad_calls)
