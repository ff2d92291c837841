/* The journal: what was written is read back, cut anywhere, and refused when it is not ours. */
#include "learner/hpo/hpo_internal.h"
#include "check.h"

#include <stdbool.h>
#include <string.h>

#include "scratch.h"

static const char digest[] = "0123456789012345678901234567890123456789012345678901234567890123";

static cd_hpo_journal_entry made(size_t k) {
    static const char *const why[] = {"", "", "out of \"memory\",\"params\":{}\n\x01"};
    const bool failed = k % 3 == 2;
    return (cd_hpo_journal_entry){.trial = k / 2,
                                  .rung = k % 2,
                                  .budget = 10 * (double)k + 0.5,
                                  .error = failed ? (double)INFINITY : 0.1 + 1e-17 * (double)k,
                                  .seconds = 1.25,
                                  .reason = why[k % 3],
                                  .params = k % 4 ? "{\"train.eta\":0.1,\"x\":\"}{\"}" : "{}"};
}

static void check_entry(const cd_hpo_journal *l, size_t k) {
    const cd_hpo_journal_entry want = made(k), *e = cd_hpo_journal_find(l, want.trial, want.rung);
    assert_non_null(e);
    assert_true(e->budget == want.budget && e->seconds == want.seconds);
    assert_true(isinf(want.error) ? isinf(e->error) : e->error == want.error);
    assert_string_equal(e->reason, want.reason);
    assert_string_equal(e->params, want.params);
}

TEST(reads_back) {
    cdmpp_err err = {0};
    cd_hpo_journal l;
    const char *path = scratch("a.jsonl");
    enum { N = 20 };
    /* one more each time it is opened, in an order that means nothing */
    for (size_t k = 0; k < N; k++) {
        assert_ok(cd_hpo_journal_open(&l, path, digest, &err));
        assert_int_equal(l.n, k);
        assert_int_equal(l.torn, 0);
        for (size_t i = 0; i < k; i++) check_entry(&l, i * 7 % N);
        assert_null(cd_hpo_journal_find(&l, k * 7 % N / 2, k * 7 % N % 2));
        const cd_hpo_journal_entry e = made(k * 7 % N);
        assert_ok(cd_hpo_journal_append(&l, &e, &err));
        cd_hpo_journal_close(&l);
    }
}

/* Four entries; the caller frees the text. */
static unsigned char *four_entries(size_t *n) {
    char path[256];
    cdmpp_err err = {0};
    cd_hpo_journal l;
    snprintf(path, sizeof path, "%s", scratch("b.jsonl"));
    assert_ok(cd_hpo_journal_open(&l, path, digest, &err));
    for (size_t k = 0; k < 4; k++) {
        const cd_hpo_journal_entry e = made(k);
        assert_ok(cd_hpo_journal_append(&l, &e, &err));
    }
    cd_hpo_journal_close(&l);
    return scratch_read(path, n);
}

/* Whole lines of the first `cut` bytes stay; `more`: and writing goes on. */
static void open_cut(const char *path, const unsigned char *text, size_t cut, bool more) {
    cdmpp_err err = {0};
    cd_hpo_journal l;
    size_t lines = 0, good = 0;
    for (size_t i = 0; i < cut; i++)
        if (text[i] == '\n') lines++, good = i + 1;
    scratch_write(path, text, cut);
    assert_ok(cd_hpo_journal_open(&l, path, digest, &err));
    assert_int_equal(l.torn, cut - good);
    assert_int_equal(l.n, lines ? lines - 1 : 0);
    for (size_t k = 0; k + 1 < lines; k++) check_entry(&l, k);
    const cd_hpo_journal_entry e = made(9);
    if (more) assert_ok(cd_hpo_journal_append(&l, &e, &err));
    cd_hpo_journal_close(&l);
    if (!more) return;
    assert_ok(cd_hpo_journal_open(&l, path, digest, &err));
    assert_int_equal(l.torn, 0);
    check_entry(&l, 9);
    cd_hpo_journal_close(&l);
}

static void cut_anywhere(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_hpo_journal l;
    char part[256];
    size_t n = 0;
    unsigned char *text = four_entries(&n);
    snprintf(part, sizeof part, "%s", scratch("c.jsonl"));
    /* a new first line waits for the disk, and so does an entry: not behind every byte */
    for (size_t cut = 0; cut <= n; cut += cut < 100 ? 25 : 1)
        open_cut(part, text, cut, cut % 50 == 0);
    /* a last line that never reached the disk, but its end did */
    memset(text + n - 30, 0, 29);
    scratch_write(part, text, n);
    assert_ok(cd_hpo_journal_open(&l, part, digest, &err));
    assert_int_equal(l.n, 3);
    assert_true(l.torn > 30);
    cd_hpo_journal_close(&l);
    /* damage elsewhere */
    text[n / 2] = '\n';
    scratch_write(part, text, n);
    assert_status(cd_hpo_journal_open(&l, part, digest, &err), CDMPP_EPARSE);
    assert_true(err.line > 1);
    free(text);
}

TEST(foreign_files_stay_as_they_are) {
    static const char *const text[] = {
        "model", "{\"schema\":\"other\"}\n", "\n",
        "{\"schema\":\"cdmpp.search\",\"schema_version\":2,\"digest\":\"\"}\n",
        "{\"schema\":\"cdmpp.search\",\"schema_version\":1,\"digest\":\"0\"}\n"};
    for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
        cdmpp_err err = {0};
        cd_hpo_journal l;
        size_t n;
        const char *path = scratch("d.jsonl");
        scratch_write(path, text[k], strlen(text[k]));
        const cdmpp_status st = cd_hpo_journal_open(&l, path, digest, &err);
        assert_true(st == CDMPP_ESCHEMA || st == CDMPP_ERANGE);
        unsigned char *now = scratch_read(path, &n);
        assert_string_equal((char *)now, text[k]);
        free(now);
    }
}

TEST(one_process_at_a_time) {
    cdmpp_err err = {0};
    cd_hpo_journal a, b;
    assert_ok(cd_hpo_journal_open(&a, scratch("e.jsonl"), digest, &err));
    assert_status(cd_hpo_journal_open(&b, scratch("e.jsonl"), digest, &err), CDMPP_EIO);
    cd_hpo_journal_close(&a);
    assert_ok(cd_hpo_journal_open(&b, scratch("e.jsonl"), digest, &err));
    cd_hpo_journal_close(&b);
    assert_status(cd_hpo_journal_open(&b, scratch("no/such/folder"), digest, &err), CDMPP_EIO);
    if (access("/dev/full", W_OK) == 0)
        assert_status(cd_hpo_journal_open(&b, "/dev/full", digest, &err), CDMPP_EIO);
}

TESTS(NULL, NULL, reads_back, cut_anywhere, foreign_files_stay_as_they_are, one_process_at_a_time)
